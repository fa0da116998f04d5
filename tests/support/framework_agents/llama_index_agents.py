"""An agent of LlamaIndex. Its packages for OpenAI and Anthropic need older clients, so the model class is here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata, TextBlock, ToolCallBlock
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context
from openai import AsyncOpenAI

from foldline.integrations.llama_index import FoldlineMemory
from foldline.session.session import Session
from foldline.testing import SimulatedProvider
from support.framework_agents import GPT, SYSTEM, read_file, run
from support.framework_agents.sdk_agents import FUNCTION


class SimulatedLLM(FunctionCallingLLM):
    """Chat Completions of the simulated provider."""

    client: Any

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name=GPT, is_function_calling_model=True)

    async def achat(self, messages: Sequence[ChatMessage], **options: Any) -> ChatResponse:
        elements = [_element(message) for message in messages]
        tools = options.get("tools") or [{"type": "function", "function": FUNCTION}]
        reply = await self.client.chat.completions.create(model=GPT, messages=elements, tools=tools)
        found = reply.choices[0].message
        blocks: list[Any] = [TextBlock(text=found.content)] if found.content else []
        for call in found.tool_calls or ():
            arguments = json.loads(call.function.arguments)
            blocks.append(ToolCallBlock(tool_call_id=call.id, tool_name=call.function.name, tool_kwargs=arguments))
        return ChatResponse(message=ChatMessage(role="assistant", blocks=blocks), raw=reply.model_dump())

    async def astream_chat(self, messages: Sequence[ChatMessage], **options: Any) -> Any:
        response = await self.achat(messages, **options)

        async def chunks() -> Any:
            yield response

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

    def __init__(
        self, provider: SimulatedProvider, session: Session | None, mode: str, *, thinking: bool = False
    ) -> None:
        self.client = AsyncOpenAI(base_url=provider.openai_url, api_key="x", max_retries=0)
        self.memory: Any = ChatMemoryBuffer.from_defaults(token_limit=1_000_000)
        if session is not None:
            room = 1_100  # for the system prompt, and for the calls of a run, which the memory sees at its end
            session.use(model=GPT, tools=[{"type": "function", "function": FUNCTION}], extra_tokens=room)
            self.memory = FoldlineMemory(session)
        self.agent = FunctionAgent(
            llm=SimulatedLLM(client=self.client),
            tools=[FunctionTool.from_defaults(read_file)],
            system_prompt=SYSTEM,
            streaming="stream" in mode,
        )

    def ask(self, prompt: str) -> str:
        return str(run(self._run(prompt)))

    async def _run(self, prompt: str) -> Any:
        return await self.agent.run(prompt, memory=self.memory, ctx=Context(self.agent))

    def adopt(self, other: Any) -> None:
        """The messages are in the ledger."""

    def close(self) -> None:
        run(self.client.close())
