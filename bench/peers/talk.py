"""A neutral form of conversations. Conversations are converted from this form for each peer, and views are converted
back to it and judged.

The form is independent of foldline and of all peers, so that the judgement does not depend on the code that is judged.
A step is one assistant message with all its calls, followed by one message for each result, in any order.
"""

from __future__ import annotations

import struct
from base64 import b64encode
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

IMAGE_TOKENS = 85
"""Tokens of an image, for every peer that has such a setting. This is the figure that langchain documents."""
SLACK = 0.02
"""A view exceeds its budget only if it is larger by more than this share, because counters round differently."""


class Call(NamedTuple):
    """A tool call; the arguments are JSON text."""

    id: str
    name: str
    arguments: str


class Said(NamedTuple):
    """One message. `answers` is the id of the call that a tool message answers."""

    role: str
    text: str = ""
    calls: tuple[Call, ...] = ()
    answers: str = ""
    images: int = 0


Talk = list[Said]


def chars4(text: str) -> int:
    """The counter of every peer: the number of characters divided by 4, rounded up."""
    return (len(text) + 3) // 4


def size(talk: Iterable[Said]) -> int:
    """The size of a conversation by `chars4`, in tokens."""
    return sum(
        chars4(said.text)
        + said.images * IMAGE_TOKENS
        + sum(chars4(call.name) + chars4(call.arguments) for call in said.calls)
        for said in talk
    )


def faults(view: Talk, talk: Talk, budget: int) -> list[str]:
    """The faults of a view; empty if the view can be sent and contains all that it must contain."""
    first = next((said for said in view if said.role != "system"), None)
    if first is None:
        return ["empty"]
    found = set(_pairing(view))
    if first.role != "user":
        found.add("first message not user")
    if size(view) > budget * (1 + SLACK):
        found.add("over budget")
    if any(not _holds(view, said) for said in talk if said.role == "system"):
        found.add("system lost")
    newest = next((said for said in reversed(talk) if said.role == "user"), None)
    if newest is not None and not _holds(view, newest):
        found.add("newest user lost")
    return sorted(found)


def _holds(view: Talk, wanted: Said) -> bool:
    return any(said.role == wanted.role and wanted.text in said.text and said.images >= wanted.images for said in view)


def _pairing(view: Talk) -> Iterable[str]:
    """A text for each result without a call, and for each call that is not directly followed by all results of its
    step.
    """
    waiting = set[str]()
    for said in view:
        if said.role == "tool":
            if said.answers not in waiting:
                yield "orphan result"
            waiting.discard(said.answers)
            continue
        if waiting:
            yield "unanswered call"
        waiting = {call.id for call in said.calls}
    if waiting:
        yield "unanswered call"


def shared(before: Talk, now: Talk) -> int:
    """The size in tokens of the unchanged messages at the start of two consecutive views."""
    count = 0
    for old, new in zip(before, now, strict=False):
        if old != new:
            break
        count += 1
    return size(before[:count])


@cache
def picture() -> str:
    """The header of a PNG image of 476 by 140 pixels, in base64. No peer reads more than the header."""
    head = struct.pack(">I4sIIBBBBB", 13, b"IHDR", 476, 140, 8, 2, 0, 0, 0)
    return b64encode(b"\x89PNG\r\n\x1a\n" + head + b"\0\0\0\0").decode()
