"""Agents of LlamaIndex. Its packages for OpenAI and Anthropic need older clients, so the model classes are here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from anthropic import AsyncAnthropic
from llama_index.core.agent.workflow import AgentStream, FunctionAgent
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    LLMMetadata,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context
from openai import AsyncOpenAI

from foldline.integrations.llama_index import FoldlineMemory
from foldline.session.session import Session
from foldline.testing import SimulatedProvider
from support.framework_agents import CLAUDE, GPT, SYSTEM, Pieces, read_file, run
from support.framework_agents.sdk_agents import ANTHROPIC_TOOL, FUNCTION


class SimulatedLLM(FunctionCallingLLM):
    """Chat Completions of the simulated provider."""

    client: Any

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name=GPT, is_function_calling_model=True)

    def request(self, messages: Sequence[ChatMessage], options: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a request."""
        tools = options.get("tools") or [{"type": "function", "function": FUNCTION}]
        return {"model": GPT, "messages": [_element(message) for message in messages], "tools": tools}

    async def achat(self, messages: Sequence[ChatMessage], **options: Any) -> ChatResponse:
        return _response(await self.client.chat.completions.create(**self.request(messages, options)))

    async def astream_chat(self, messages: Sequence[ChatMessage], **options: Any) -> Any:
        async def chunks() -> Any:
            text = ""
            async with self.client.chat.completions.stream(**self.request(messages, options)) as stream:
                async for event in stream:
                    if event.type == "content.delta":
                        text += event.delta
                        yield ChatResponse(message=ChatMessage(role="assistant", content=text), delta=event.delta)
                yield _response(await stream.get_final_completion())

        return chunks()

    def _prepare_chat_with_tools(self, tools: Any, user_msg: Any = None, chat_history: Any = None, **_: Any) -> Any:
        definitions = [tool.metadata.to_openai_tool() for tool in tools]
        return {"messages": [*(chat_history or ()), *([user_msg] if user_msg else [])], "tools": definitions}

    def get_tool_calls_from_response(self, response: Any, **_: Any) -> list[ToolSelection]:
        return [
            ToolSelection(tool_id=block.tool_call_id, tool_name=block.tool_name, tool_kwargs=block.tool_kwargs)
            for block in response.message.blocks
            if isinstance(block, ToolCallBlock)
        ]

    def chat(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    stream_chat = complete = stream_complete = chat

    async def acomplete(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    astream_complete = acomplete


def _response(completion: Any) -> ChatResponse:
    found = completion.choices[0].message
    blocks: list[Any] = [TextBlock(text=found.content)] if found.content else []
    for call in found.tool_calls or ():
        arguments = json.loads(call.function.arguments)
        blocks.append(ToolCallBlock(tool_call_id=call.id, tool_name=call.function.name, tool_kwargs=arguments))
    return ChatResponse(message=ChatMessage(role="assistant", blocks=blocks), raw=completion.model_dump())


class SimulatedClaude(SimulatedLLM):
    """Anthropic Messages of the simulated provider, with the blocks that LlamaIndex's own model class makes."""

    thinks: bool = False

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name=CLAUDE, is_function_calling_model=True)

    def request(self, messages: Sequence[ChatMessage], options: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a request."""
        system = "".join(str(message.content) for message in messages if message.role == "system")
        elements: list[dict[str, Any]] = []
        for message in messages:
            if message.role == "system":
                continue
            role, content = _claude_element(message)
            if elements and role == elements[-1]["role"] == "user":  # results of parallel calls
                elements[-1]["content"] += content
            else:
                elements.append({"role": role, "content": content})
        fixed: dict[str, Any] = {"thinking": {"type": "adaptive"}} if self.thinks else {}
        fixed |= {"system": system} if system else {}
        return {"model": CLAUDE, "max_tokens": 400, "messages": elements, "tools": [ANTHROPIC_TOOL], **fixed}

    async def achat(self, messages: Sequence[ChatMessage], **options: Any) -> ChatResponse:
        return _claude_response(await self.client.messages.create(**self.request(messages, options)))

    async def astream_chat(self, messages: Sequence[ChatMessage], **options: Any) -> Any:
        async def chunks() -> Any:
            text = ""
            async with self.client.messages.stream(**self.request(messages, options)) as stream:
                async for delta in stream.text_stream:
                    text += delta
                    yield ChatResponse(message=ChatMessage(role="assistant", content=text), delta=delta)
                yield _claude_response(await stream.get_final_message())

        return chunks()


def _claude_response(reply: Any) -> ChatResponse:
    blocks: list[Any] = []
    for block in reply.content:
        if block.type == "thinking":
            found = {"signature": block.signature}
            blocks.append(ThinkingBlock(content=block.thinking, additional_information=found))
        elif block.type == "text":
            blocks.append(TextBlock(text=block.text))
        else:
            blocks.append(ToolCallBlock(tool_call_id=block.id, tool_name=block.name, tool_kwargs=block.input))
    return ChatResponse(message=ChatMessage(role="assistant", blocks=blocks), raw=reply.model_dump())


def _claude_element(message: ChatMessage) -> tuple[str, list[dict[str, Any]]]:
    if message.role == "tool":
        name = message.additional_kwargs["tool_call_id"]
        return "user", [{"type": "tool_result", "tool_use_id": name, "content": message.content}]
    content: list[dict[str, Any]] = []
    for block in message.blocks:
        if isinstance(block, ThinkingBlock):
            signature = block.additional_information["signature"]
            content.append({"type": "thinking", "thinking": block.content, "signature": signature})
        elif isinstance(block, ToolCallBlock):
            call = {"id": block.tool_call_id, "name": block.tool_name, "input": block.tool_kwargs}
            content.append({"type": "tool_use", **call})
        elif isinstance(block, TextBlock):
            content.append({"type": "text", "text": block.text})
    return message.role.value, content


def _element(message: ChatMessage) -> dict[str, Any]:
    element: dict[str, Any] = {"role": message.role.value, "content": message.content or None}
    if message.role == "tool":
        return {**element, "tool_call_id": message.additional_kwargs["tool_call_id"]}
    calls = [
        {
            "id": block.tool_call_id,
            "type": "function",
            "function": {"name": block.tool_name, "arguments": json.dumps(block.tool_kwargs)},
        }
        for block in message.blocks
        if isinstance(block, ToolCallBlock)
    ]
    return {**element, "tool_calls": calls} if calls else element


class LlamaIndexAgent:
    """A `FunctionAgent` with a memory."""

    model = GPT

    def __init__(
        self, provider: SimulatedProvider, session: Session | None, mode: str, *, thinking: bool = False
    ) -> None:
        self.mode, self.pieces = mode, Pieces()
        self.client, llm = self.make_model(provider, thinks=thinking)
        self.memory: Any = ChatMemoryBuffer.from_defaults(token_limit=1_000_000)
        if session is not None:
            room = 1_100  # for the system prompt, and for the calls of a run, which the memory sees at its end
            session.use(model=self.model, tools=[{"type": "function", "function": FUNCTION}], extra_tokens=room)
            self.memory = FoldlineMemory(session)
        self.agent = FunctionAgent(
            llm=llm,
            tools=[FunctionTool.from_defaults(read_file)],
            system_prompt=SYSTEM,
            streaming="stream" in mode,
        )

    def make_model(self, provider: SimulatedProvider, *, thinks: bool) -> tuple[Any, Any]:
        client = AsyncOpenAI(base_url=provider.openai_url, api_key="x", max_retries=0)
        return client, SimulatedLLM(client=client)

    def ask(self, prompt: str) -> str:
        return str(run(self._run(prompt)))

    async def _run(self, prompt: str) -> Any:
        running = self.agent.run(prompt, memory=self.memory, ctx=Context(self.agent))
        async for event in running.stream_events():
            if isinstance(event, AgentStream):
                self.pieces.add(event.delta)
        return await running

    def adopt(self, other: Any) -> None:
        """The messages are in the ledger."""

    def close(self) -> None:
        run(self.client.close())


class LlamaIndexAnthropicAgent(LlamaIndexAgent):
    model = CLAUDE

    def make_model(self, provider: SimulatedProvider, *, thinks: bool) -> tuple[Any, Any]:
        client = AsyncAnthropic(base_url=provider.url, api_key="x", max_retries=0)
        return client, SimulatedClaude(client=client, thinks=thinks)
