"""Agents of the OpenAI Agents SDK, with its own client."""

from __future__ import annotations

from typing import Any

from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    SQLiteSession,
    function_tool,
)
from openai import AsyncOpenAI
from openai.types.shared import Reasoning

from foldline.integrations.openai_agents import FoldlineSession
from foldline.session.session import Session
from foldline.testing import SimulatedProvider
from support.framework_agents import GPT, SYSTEM, Pieces, read_file, run


class OpenAiAgentsAgent:
    """An `Agent` whose session keeps the items."""

    kind: Any = OpenAIResponsesModel

    def __init__(
        self, provider: SimulatedProvider, session: Session | None, mode: str, *, thinking: bool = False
    ) -> None:
        self.mode, self.pieces = mode, Pieces()
        self.client = AsyncOpenAI(base_url=provider.openai_url, api_key="x", max_retries=0)
        settings = ModelSettings(include_usage=True)
        if self.kind is OpenAIResponsesModel:
            reasoning = Reasoning(effort="low") if thinking else None
            settings = ModelSettings(store=False, reasoning=reasoning, response_include=["reasoning.encrypted_content"])
        self.agent: Any = Agent(
            name="reader",
            instructions=SYSTEM,
            model=self.kind(model=GPT, openai_client=self.client),
            tools=[function_tool(read_file)],
            model_settings=settings,
        )
        self.session: Any = SQLiteSession("plain") if session is None else FoldlineSession(session)

    def ask(self, prompt: str) -> str:
        return str(run(self._stream(prompt) if "stream" in self.mode else self._run(prompt)))

    @property
    def options(self) -> Any:
        if isinstance(self.session, FoldlineSession):
            config, hooks = self.session.run_config(tracing_disabled=True), self.session.hooks
            return {"session": self.session, "run_config": config, "hooks": hooks}
        return {"session": self.session, "run_config": RunConfig(tracing_disabled=True)}

    async def _run(self, prompt: str) -> Any:
        return (await Runner.run(self.agent, prompt, **self.options)).final_output

    async def _stream(self, prompt: str) -> Any:
        result = Runner.run_streamed(self.agent, prompt, **self.options)
        async for event in result.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                self.pieces.add(event.data.delta)
        return result.final_output

    def adopt(self, other: Any) -> None:
        """The items are in the ledger."""

    def close(self) -> None:
        run(self.client.close())
        if isinstance(self.session, SQLiteSession):
            self.session.close()


class OpenAiAgentsChatAgent(OpenAiAgentsAgent):
    kind = OpenAIChatCompletionsModel
