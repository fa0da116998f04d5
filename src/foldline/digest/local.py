"""The digest that needs no model: deterministic, in milliseconds, never failing."""

from __future__ import annotations

from collections.abc import Sequence

from foldline.message import Message, user
from foldline.plan.span import handle


def count_digest(messages: Sequence[Message], *, first: int, header: str, prior: str = "") -> Message:
    """A digest that says how many messages it stands for and carries the digest before it."""
    last = first + len(messages) - 1
    lines = [header]
    if prior:
        lines.append(prior)
    lines.append(f"{len(messages)} earlier messages were condensed: {handle(first, last)}, ask recall for them.")
    return user("\n".join(lines), kind="digest")
