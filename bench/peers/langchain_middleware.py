"""langchain's SummarizationMiddleware, as an agent drives it: before every model call, on its list of messages.

Set up by fractions of the window, as its reference shows. The system prompt is not in the list, and the middleware does
not see it; so its size is taken off the window it is told.
"""

from __future__ import annotations

from typing import Any

from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.language_models.fake_chat_models import FakeListChatModel

from bench.peers.langchain_talk import count, from_native, to_native
from bench.peers.talk import Talk, size

TRIGGER, KEEP = ("fraction", 0.95), ("fraction", 0.5)
"""Generous: the fractions that deepagents computes by default, 0.85 and 0.10, lose the newest prompt far more often."""
SUMMARY = "The user asked for several things; files were read and changed, and most of it is done. " * 3


def fake_model(budget: int) -> Any:
    """A chat model with a window and nothing to say."""
    return FakeListChatModel(responses=[SUMMARY], profile={"max_input_tokens": budget})


class Middleware:
    """The middleware on an agent's state, which it rewrites."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.messages: list[Any] = []
        self.system: list[Any] = []
        self._set_up(budget)

    def _set_up(self, window: int) -> None:
        self.middleware = SummarizationMiddleware(
            fake_model(max(1, window)),
            trigger=TRIGGER,
            keep=KEEP,
            token_counter=count,
            summarizer=lambda messages: SUMMARY,  # noqa: ARG005
        )

    def native(self, talk: Talk) -> list[Any]:
        """The messages as a caller would have them; the system prompt goes to the agent, not into its messages."""
        system = [said for said in talk if said.role == "system"]
        if system:
            self.system = to_native(system)
            self._set_up(self.budget - size(system))
        return to_native([said for said in talk if said.role != "system"])

    def add(self, native: list[Any]) -> None:
        """Add them."""
        self.messages += native

    def view(self) -> list[Any]:
        """What would be sent."""
        update = self.middleware.before_model({"messages": self.messages}, None)
        if update:
            self.messages = update["messages"][1:]
        return [*self.system, *self.messages]

    def said(self, view: list[Any]) -> Talk:
        """The view in plain form."""
        return from_native(view)
