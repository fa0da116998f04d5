"""Agents of Microsoft Agent Framework, with its real clients for OpenAI."""

from __future__ import annotations

from typing import Any, ClassVar

from agent_framework import Agent, AgentSession, tool
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient
from openai import AsyncOpenAI

from foldline.integrations.agent_framework import FoldlineChatMiddleware
from foldline.session.session import Session
from foldline.testing import SimulatedProvider
from support.framework_agents import GPT, SYSTEM, Pieces, read_file, run


class MafChatAgent:
    """An `Agent` whose session keeps the messages."""

    kind: Any = OpenAIChatCompletionClient
    options: ClassVar[Any] = {}
    changed_fields = ("name", "id")
    """The framework changes these fields of its messages when a run ends, also without foldline."""

    def __init__(
        self, provider: SimulatedProvider, session: Session | None, mode: str, *, thinking: bool = False
    ) -> None:
        self.mode, self.pieces = mode, Pieces()
        self.client = AsyncOpenAI(base_url=provider.openai_url, api_key="x", max_retries=0)
        self.agent: Any = Agent(
            client=self.kind(GPT, async_client=self.client),
            instructions=SYSTEM,
            tools=[tool(read_file)],
            middleware=[] if session is None else [FoldlineChatMiddleware(session)],
            default_options=self.options,
        )
        self.session: Any = self.agent.create_session()

    def ask(self, prompt: str) -> str:
        return str(run(self._stream(prompt) if "stream" in self.mode else self._run(prompt)))

    async def _run(self, prompt: str) -> Any:
        return (await self.agent.run(prompt, session=self.session)).text

    async def _stream(self, prompt: str) -> Any:
        stream = self.agent.run(prompt, session=self.session, stream=True)
        async for update in stream:
            self.pieces.add(update.text)
        return (await stream.get_final_response()).text

    def adopt(self, other: Any) -> None:
        self.session = AgentSession.from_dict(other.session.to_dict())

    def close(self) -> None:
        run(self.client.close())


class MafResponsesAgent(MafChatAgent):
    kind = OpenAIChatClient
    options: ClassVar[Any] = {"store": False, "include": ["reasoning.encrypted_content"]}
