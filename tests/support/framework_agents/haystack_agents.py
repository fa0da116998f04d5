"""An agent of Haystack, with its real generator for OpenAI, whose clients are wrapped."""

from __future__ import annotations

from typing import Any

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import create_tool_from_function
from haystack.utils import Secret

import foldline
from foldline.session.session import Session
from foldline.testing import SimulatedProvider
from support.framework_agents import GPT, SYSTEM, Pieces, read_file, run


class HaystackAgent:
    """An `Agent` whose caller keeps the messages."""

    def __init__(
        self, provider: SimulatedProvider, session: Session | None, mode: str, *, thinking: bool = False
    ) -> None:
        self.mode, self.messages, self.pieces = mode, [], Pieces()
        self.generator: Any = OpenAIChatGenerator(
            api_key=Secret.from_token("x"), model=GPT, api_base_url=provider.openai_url, max_retries=0
        )
        self.generator.warm_up()
        run(self.generator.warm_up_async())
        if session is not None:
            self.generator.client = foldline.wrap(self.generator.client, session=session)
            self.generator.async_client = foldline.wrap(self.generator.async_client, session=session)
        self.agent: Any = Agent(
            chat_generator=self.generator, tools=[create_tool_from_function(read_file)], system_prompt=SYSTEM
        )

    messages: list[Any]

    def ask(self, prompt: str) -> str:
        messages = [*self.messages, ChatMessage.from_user(prompt)]
        options: Any = {"messages": messages}
        if "stream" in self.mode:
            options |= {"streaming_callback": self._ahear if "async" in self.mode else self._hear}
            options |= {"generation_kwargs": {"stream_options": {"include_usage": True}}}
        found = run(self.agent.run_async(**options)) if "async" in self.mode else self.agent.run(**options)
        self.messages = [message for message in found["messages"] if not message.is_from("system")]
        return str(self.messages[-1].text)

    def _hear(self, chunk: Any) -> None:
        self.pieces.add(chunk.content)

    async def _ahear(self, chunk: Any) -> None:
        self._hear(chunk)

    def adopt(self, other: Any) -> None:
        self.messages = [ChatMessage.from_dict(message.to_dict()) for message in other.messages]

    def close(self) -> None:
        self.generator.client.close()
        run(self.generator.async_client.close())
