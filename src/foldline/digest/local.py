"""The digest that needs no model: deterministic, in milliseconds, never failing."""

from __future__ import annotations

from collections.abc import Sequence

from foldline.message import Message, user
from foldline.plan.span import handle


def count_digest(messages: Sequence[Message], *, first: int | None, header: str, prior: str = "") -> Message:
    """A digest that says how many messages it stands for and carries the digest before it.

    `first` is the number of the first one in the record; None where there is no record to recall them from.
    """
    count = len(messages)
    lines = [header]
    if prior:
        lines.append(prior)
    where = "" if first is None or not count else f": {handle(first, first + count - 1)}, ask recall for them"
    lines.append(f"{count} earlier message{'s were' if count != 1 else ' was'} condensed{where}.")
    return user("\n".join(lines), kind="digest")
