"""Agents on the bare clients of Anthropic, OpenAI and Google: a loop and a list."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import openai
from google import genai

import foldline
from foldline.session.session import Session
from foldline.testing import SimulatedProvider
from support.framework_agents import CLAUDE, GEMINI, GPT, SCHEMA, SYSTEM, Pieces, read_file, run

ANTHROPIC_TOOL: Any = {"name": "read_file", "description": "Read a file.", "input_schema": SCHEMA}
FUNCTION: Any = {"name": "read_file", "description": "Read a file.", "parameters": SCHEMA}


class _SdkAgent:
    """The loop. A subclass sends one request and answers the calls of its reply."""

    def __init__(
        self, provider: SimulatedProvider, session: Session | None, mode: str, *, thinking: bool = False
    ) -> None:
        self.provider, self.session, self.mode, self.thinks = provider, session, mode, thinking
        self.messages: list[Any] = []
        self.pieces = Pieces()
        self.is_async = mode.startswith("async")
        made = self.make_async_client() if self.is_async else self.make_client()
        self.client = made if session is None else foldline.wrap(made, session=session)

    def ask(self, prompt: str) -> str:
        before = len(self.messages)
        try:
            return self.answer(prompt)
        except Exception:
            del self.messages[before:]  # a prompt without a reply cannot be followed by another prompt
            raise

    def answer(self, prompt: str) -> str:
        self.add_prompt(prompt)
        while True:
            reply = run(self.asend(self.client)) if self.is_async else self.send(self.client)
            text, is_final = self.take(reply)
            if is_final:
                return str(text)

    def close(self) -> None:
        if self.is_async:
            run(self.client.close())
        else:
            self.client.close()

    def adopt(self, other: Any) -> None:
        """Continue the history of another agent."""
        self.messages = list(other.messages)

    def add_prompt(self, prompt: str) -> None:
        self.messages.append({"role": "user", "content": prompt})

    def not_written(self, *_: Any) -> Any:
        raise NotImplementedError

    make_client = make_async_client = send = asend = take = not_written


class AnthropicAgent(_SdkAgent):
    @property
    def request(self) -> Any:
        thinking = {"thinking": {"type": "adaptive"}} if self.thinks else {}
        return {
            "model": CLAUDE,
            "max_tokens": 500,
            "system": SYSTEM,
            "tools": [ANTHROPIC_TOOL],
            "messages": self.messages,
            **thinking,
        }

    def make_client(self) -> Any:
        return anthropic.Anthropic(base_url=self.provider.url, api_key="x", max_retries=0)

    def make_async_client(self) -> Any:
        return anthropic.AsyncAnthropic(base_url=self.provider.url, api_key="x", max_retries=0)

    def send(self, client: Any) -> Any:
        if self.mode == "sync":
            return client.messages.create(**self.request)
        with client.messages.stream(**self.request) as stream:
            for text in stream.text_stream:
                self.pieces.add(text)
            return stream.get_final_message()

    async def asend(self, client: Any) -> Any:
        if self.mode == "async":
            return await client.messages.create(**self.request)
        async with client.messages.stream(**self.request) as stream:
            async for text in stream.text_stream:
                self.pieces.add(text)
            return await stream.get_final_message()

    def take(self, reply: Any) -> tuple[str, bool]:
        self.messages.append({"role": "assistant", "content": reply.content})
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": read_file(**block.input)}
            for block in reply.content
            if block.type == "tool_use"
        ]
        if results:
            self.messages.append({"role": "user", "content": results})
        return "".join(block.text for block in reply.content if block.type == "text"), not results


class OpenAiChatAgent(_SdkAgent):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.messages = [{"role": "system", "content": SYSTEM}]

    @property
    def request(self) -> Any:
        return {"model": GPT, "tools": [{"type": "function", "function": FUNCTION}], "messages": self.messages}

    def make_client(self) -> Any:
        return openai.OpenAI(base_url=self.provider.openai_url, api_key="x", max_retries=0)

    def make_async_client(self) -> Any:
        return openai.AsyncOpenAI(base_url=self.provider.openai_url, api_key="x", max_retries=0)

    def send(self, client: Any) -> Any:
        if self.mode == "sync":
            return client.chat.completions.create(**self.request).choices[0].message
        usage = {"include_usage": True}
        with client.chat.completions.stream(**self.request, stream_options=usage) as stream:
            for event in stream:
                self.hear(event)
            return stream.get_final_completion().choices[0].message

    async def asend(self, client: Any) -> Any:
        if self.mode == "async":
            return (await client.chat.completions.create(**self.request)).choices[0].message
        usage = {"include_usage": True}
        async with client.chat.completions.stream(**self.request, stream_options=usage) as stream:
            async for event in stream:
                self.hear(event)
            return (await stream.get_final_completion()).choices[0].message

    def hear(self, event: Any) -> None:
        """Keep the text of an event of a stream."""
        if event.type in ("content.delta", "response.output_text.delta"):
            self.pieces.add(event.delta)

    def take(self, message: Any) -> tuple[str, bool]:
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": arguments}}
            for call in message.tool_calls or ()
            if (arguments := call.function.arguments) is not None
        ]
        reply = {"role": "assistant", "content": message.content}
        self.messages.append({**reply, "tool_calls": calls} if calls else reply)
        for call in calls:
            text = read_file(**json.loads(call["function"]["arguments"]))
            self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
        return message.content or "", not calls


class OpenAiResponsesAgent(OpenAiChatAgent):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.messages = []

    @property
    def request(self) -> Any:
        tool = {"type": "function", **FUNCTION, "strict": False}
        fixed = {"model": GPT, "instructions": SYSTEM, "tools": [tool], "store": False}
        return {**fixed, "include": ["reasoning.encrypted_content"], "input": self.messages}

    def send(self, client: Any) -> Any:
        if self.mode == "sync":
            return client.responses.create(**self.request)
        with client.responses.stream(**self.request) as stream:
            for event in stream:
                self.hear(event)
            return stream.get_final_response()

    async def asend(self, client: Any) -> Any:
        if self.mode == "async":
            return await client.responses.create(**self.request)
        async with client.responses.stream(**self.request) as stream:
            async for event in stream:
                self.hear(event)
            return await stream.get_final_response()

    def take(self, response: Any) -> tuple[str, bool]:
        calls = [item for item in response.output if item.type == "function_call"]
        self.messages += [_without_parsed(item.model_dump(exclude_none=True)) for item in response.output]
        for call in calls:
            text = read_file(**json.loads(call.arguments))
            self.messages.append({"type": "function_call_output", "call_id": call.call_id, "output": text})
        return response.output_text, not calls


def _without_parsed(item: dict[str, Any]) -> dict[str, Any]:
    item.pop("parsed_arguments", None)
    for part in item.get("content") or ():
        part.pop("parsed", None)
    return item


class GeminiAgent(_SdkAgent):
    @property
    def request(self) -> Any:
        declaration = {**FUNCTION, "parameters": None, "parameters_json_schema": SCHEMA}
        off = {"disable": True}
        config = {"system_instruction": SYSTEM, "tools": [{"function_declarations": [declaration]}]}
        return {
            "model": GEMINI,
            "contents": self.messages,
            "config": {**config, "automatic_function_calling": off},
        }

    def make_client(self) -> Any:
        options = genai.types.HttpOptions(base_url=self.provider.url)
        return genai.Client(api_key="x", http_options=options)

    def make_async_client(self) -> Any:
        return self.make_client()

    def close(self) -> None:
        if self.is_async:
            run(self.client.aio.aclose())
        self.client.close()

    def add_prompt(self, prompt: str) -> None:
        self.messages.append({"role": "user", "parts": [{"text": prompt}]})

    def send(self, client: Any) -> Any:
        if self.mode == "sync":
            return client.models.generate_content(**self.request).candidates[0].content
        return self.joined([self.heard(chunk) for chunk in client.models.generate_content_stream(**self.request)])

    async def asend(self, client: Any) -> Any:
        if self.mode == "async":
            return (await client.aio.models.generate_content(**self.request)).candidates[0].content
        chunks = await client.aio.models.generate_content_stream(**self.request)
        return self.joined([self.heard(chunk) async for chunk in chunks])

    def take(self, content: Any) -> tuple[str, bool]:
        self.messages.append(content)
        calls = [part.function_call for part in content.parts if part.function_call]
        answers = [
            {"function_response": {"id": call.id, "name": call.name, "response": {"output": read_file(**call.args)}}}
            for call in calls
        ]
        if answers:
            self.messages.append({"role": "user", "parts": answers})
        return "".join(part.text or "" for part in content.parts if not part.thought), not answers

    def heard(self, chunk: Any) -> list[Any]:
        """The parts of a chunk of a stream, whose texts are kept."""
        parts = list(chunk.candidates[0].content.parts or ()) if chunk.candidates else []
        for part in parts:
            self.pieces.add("" if part.thought else part.text)
        return parts

    def joined(self, chunks: list[list[Any]]) -> Any:
        """The content for the parts of all chunks."""
        return genai.types.Content(role="model", parts=[part for parts in chunks for part in parts if part.text != ""])
