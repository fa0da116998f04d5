"""The function `trim_messages` of langchain-core, with the arguments that its documentation gives for a valid
history.
"""

from __future__ import annotations

from typing import Any

from langchain_core.messages import trim_messages

from bench.peers.langchain_talk import count, from_native, to_native
from bench.peers.talk import Talk


class Trim:
    """A list of messages that is trimmed for each view."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.messages: list[Any] = []

    def native(self, talk: Talk) -> list[Any]:
        """The messages in the form that the peer takes."""
        return to_native(talk)

    def add(self, native: list[Any]) -> None:
        """Add messages."""
        self.messages += native

    def view(self) -> list[Any]:
        """The messages that would be sent."""
        found: list[Any] = trim_messages(
            self.messages,
            max_tokens=self.budget,
            strategy="last",
            token_counter=count,
            start_on="human",
            end_on=("human", "tool"),
            include_system=True,
            allow_partial=False,
        )
        return found

    def said(self, view: list[Any]) -> Talk:
        """The view as a `Talk`."""
        return from_native(view)
