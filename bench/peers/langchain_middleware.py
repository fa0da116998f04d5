"""The `SummarizationMiddleware` of langchain, called before every model call as an agent does.

It is configured with fractions of the window, as its reference shows. The middleware does not see the system prompt, so
the size of the system prompt is subtracted from the window.
"""

from __future__ import annotations

from typing import Any

from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.language_models.fake_chat_models import FakeListChatModel

from bench.peers.langchain_talk import count, from_native, to_native
from bench.peers.talk import Talk, size

TRIGGER, KEEP = ("fraction", 0.95), ("fraction", 0.5)
"""These fractions are generous. With the defaults of deepagents (0.85 and 0.10), the newest prompt is lost far more
often.
"""
SUMMARY = "The user asked for several things; files were read and changed, and most of it is done. " * 3


def fake_model(budget: int) -> Any:
    """A chat model that has a window and always gives the same reply."""
    return FakeListChatModel(responses=[SUMMARY], profile={"max_input_tokens": budget})


class Middleware:
    """The middleware, which rewrites the state of an agent."""

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
        """The messages in the form that a caller has. The system prompt is passed to the agent and is not one of its
        messages.
        """
        system = [said for said in talk if said.role == "system"]
        if system:
            self.system = to_native(system)
            self._set_up(self.budget - size(system))
        return to_native([said for said in talk if said.role != "system"])

    def add(self, native: list[Any]) -> None:
        """Add messages."""
        self.messages += native

    def view(self) -> list[Any]:
        """The messages that would be sent."""
        update = self.middleware.before_model({"messages": self.messages}, None)
        if update:
            self.messages = update["messages"][1:]
        return [*self.system, *self.messages]

    def said(self, view: list[Any]) -> Talk:
        """The view as a `Talk`."""
        return from_native(view)
