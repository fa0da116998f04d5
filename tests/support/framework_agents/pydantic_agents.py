"""Agents of Pydantic AI, with its real model classes."""

from __future__ import annotations

from typing import Any

from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from foldline.integrations.pydantic_ai import FoldlineCapability
from foldline.session.session import Session
from foldline.testing import SimulatedProvider
from support.framework_agents import CLAUDE, GPT, SYSTEM, Pieces, read_file, run


class PydanticAgent:
    """An `Agent` whose caller passes the message history on from run to run."""

    def __init__(
        self, provider: SimulatedProvider, session: Session | None, mode: str, *, thinking: bool = False
    ) -> None:
        self.mode, self.messages, self.pieces = mode, [], Pieces()
        capabilities = [] if session is None else [FoldlineCapability(session)]
        self.client, model = self.make_model(provider)
        settings = {"max_tokens": 400, **({"anthropic_thinking": {"type": "adaptive"}} if thinking else {})}
        self.agent: Any = Agent(
            model, tools=[read_file], system_prompt=SYSTEM, capabilities=capabilities, model_settings=settings
        )

    messages: list[Any]

    def make_model(self, provider: SimulatedProvider) -> tuple[Any, Any]:
        raise NotImplementedError

    def ask(self, prompt: str) -> str:
        before = len(self.messages)
        result = run(self._stream(prompt) if "stream" in self.mode else self._run(prompt))
        self.messages = result.all_messages()
        assert result.new_messages() == self.messages[before:]
        return str(self.messages[-1].text)

    async def _run(self, prompt: str) -> Any:
        return await self.agent.run(prompt, message_history=self.messages)

    async def _stream(self, prompt: str) -> Any:
        async with self.agent.run_stream(prompt, message_history=self.messages) as result:
            async for text in result.stream_text(delta=True, debounce_by=None):
                self.pieces.add(text)
        return result

    def adopt(self, other: Any) -> None:
        self.messages = ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(other.messages))

    def close(self) -> None:
        run(self.client.close())


class PydanticAnthropicAgent(PydanticAgent):
    def make_model(self, provider: SimulatedProvider) -> tuple[Any, Any]:
        client = AsyncAnthropic(base_url=provider.url, api_key="x", max_retries=0)
        return client, AnthropicModel(CLAUDE, provider=AnthropicProvider(anthropic_client=client))


class PydanticOpenAiAgent(PydanticAgent):
    kind: Any = OpenAIChatModel

    def make_model(self, provider: SimulatedProvider) -> tuple[Any, Any]:
        client = AsyncOpenAI(base_url=provider.openai_url, api_key="x", max_retries=0)
        return client, self.kind(GPT, provider=OpenAIProvider(openai_client=client))


class PydanticResponsesAgent(PydanticOpenAiAgent):
    kind = OpenAIResponsesModel
