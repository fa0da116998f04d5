"""What is said, in the plainest form: what every peer is given, and what every view is judged in.

It is neither foldline's message nor any peer's, so that the judge owes nothing to what it judges. A step of several
calls is one assistant message with its results behind it, one message each, in whatever order they came back.
"""

from __future__ import annotations

import struct
from base64 import b64encode
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

IMAGE_TOKENS = 85
"""What an image counts for everybody who can be told: the figure that langchain documents."""
SLACK = 0.02
"""Counters round differently: a view is over its budget when it is so by more than this share."""


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
    """The counter that everybody is given: four characters to a token, rounded up."""
    return (len(text) + 3) // 4


def size(talk: Iterable[Said]) -> int:
    """Tokens of a talk by that counter."""
    return sum(
        chars4(said.text)
        + said.images * IMAGE_TOKENS
        + sum(chars4(call.name) + chars4(call.arguments) for call in said.calls)
        for said in talk
    )


def faults(view: Talk, talk: Talk, budget: int) -> list[str]:
    """What makes a view of a talk bad; nothing: it can be sent and has what it must have."""
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
    """Results without their call, and calls that something else was said to before all their results stood there."""
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
    """Tokens of the earlier view that stand word for word at the start of the later one."""
    count = 0
    for old, new in zip(before, now, strict=False):
        if old != new:
            break
        count += 1
    return size(before[:count])


@cache
def picture() -> str:
    """The head of a PNG of 476 by 140 pixels, which is all that anybody looks at; in base64."""
    head = struct.pack(">I4sIIBBBBB", 13, b"IHDR", 476, 140, 8, 2, 0, 0, 0)
    return b64encode(b"\x89PNG\r\n\x1a\n" + head + b"\0\0\0\0").decode()
