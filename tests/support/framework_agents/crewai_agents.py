"""An agent of CrewAI, with its real client for OpenAI."""

from __future__ import annotations

import os
from typing import Any

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false", "OTEL_SDK_DISABLED": "true"}

from crewai import LLM, Agent
from crewai.events import LLMStreamChunkEvent, crewai_event_bus
from crewai.tools import tool

from foldline.integrations.crewai import FoldlineInterceptor
from foldline.session.session import Session
from foldline.testing import SimulatedProvider
from support.framework_agents import GPT, SYSTEM, Pieces, run
from support.framework_agents import read_file as read_a_file


@tool("read_file")
def read_file(path: str) -> str:
    """Read a file."""
    return read_a_file(path)


class CrewAiAgent:
    """An `Agent` whose caller keeps the messages."""

    def __init__(
        self, provider: SimulatedProvider, session: Session | None, mode: str, *, thinking: bool = False
    ) -> None:
        self.mode, self.messages, self.pieces = mode, [], Pieces()
        fixed: Any = {} if session is None else {"interceptor": FoldlineInterceptor(session)}
        self.llm: Any = LLM(
            model=f"openai/{GPT}",
            base_url=provider.openai_url,
            api_key="x",
            max_retries=0,
            stream="stream" in mode,
            **fixed,
        )
        self.handler = crewai_event_bus.on(LLMStreamChunkEvent)(self._hear)
        fixed = {"role": "reader", "goal": SYSTEM, "backstory": SYSTEM, "tools": [read_file], "max_retry_limit": 0}
        self.agent: Any = Agent(llm=self.llm, respect_context_window=False, **fixed)

    messages: list[Any]

    def ask(self, prompt: str) -> str:
        messages = [*self.messages, {"role": "user", "content": prompt}]
        found = run(self.agent.kickoff_async(messages)) if "async" in self.mode else self.agent.kickoff(messages)
        self.messages = [message for message in found.messages if message["role"] != "system"]
        return str(found.raw)

    def _hear(self, source: Any, event: LLMStreamChunkEvent) -> None:
        if source is self.llm:
            self.pieces.add(event.chunk)

    def adopt(self, other: Any) -> None:
        self.messages = list(other.messages)

    def close(self) -> None:
        crewai_event_bus.off(LLMStreamChunkEvent, self.handler)
        self.llm._get_sync_client().close()
        run(self.llm._get_async_client().close())
