"""An agent of Strands, with its real model class for OpenAI."""

from __future__ import annotations

from typing import Any

from strands import Agent, tool
from strands.agent.conversation_manager import NullConversationManager
from strands.models.openai import OpenAIModel

from foldline.integrations.strands import FoldlineConversationManager
from foldline.session.session import Session
from foldline.testing import SimulatedProvider
from support.framework_agents import GPT, SYSTEM, Pieces, read_file, run


class StrandsAgent:
    """An `Agent` that keeps its messages itself."""

    def __init__(
        self, provider: SimulatedProvider, session: Session | None, mode: str, *, thinking: bool = False
    ) -> None:
        self.mode, self.pieces = mode, Pieces()
        options = {"base_url": provider.openai_url, "api_key": "x", "max_retries": 0}
        manager = NullConversationManager() if session is None else FoldlineConversationManager(session)
        self.agent: Any = Agent(
            model=OpenAIModel(client_args=options, model_id=GPT),
            tools=[tool(read_file)],
            system_prompt=SYSTEM,
            conversation_manager=manager,
            callback_handler=None,
        )

    def ask(self, prompt: str) -> str:
        if self.mode == "async":
            result = run(self.agent.invoke_async(prompt))
        elif "stream" in self.mode:
            result = run(self._stream(prompt))
        else:
            result = self.agent(prompt)
        return str(result).strip()

    async def _stream(self, prompt: str) -> Any:
        async for event in self.agent.stream_async(prompt):
            self.pieces.add(event.get("data"))
            if "result" in event:
                result = event["result"]
        return result

    def adopt(self, other: Any) -> None:
        """The messages are in the ledger."""

    def close(self) -> None:
        pass
