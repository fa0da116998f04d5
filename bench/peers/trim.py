"""langchain-core's trim_messages with the arguments that its documentation gives for a valid history."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import trim_messages

from bench.peers.langchain_talk import count, from_native, to_native
from bench.peers.talk import Talk


class Trim:
    """A function over the caller's own list."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.messages: list[Any] = []

    def native(self, talk: Talk) -> list[Any]:
        """The messages as a caller would have them."""
        return to_native(talk)

    def add(self, native: list[Any]) -> None:
        """Add them."""
        self.messages += native

    def view(self) -> list[Any]:
        """What would be sent."""
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
        """The view in plain form."""
        return from_native(view)
