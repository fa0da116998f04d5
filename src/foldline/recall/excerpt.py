"""The words of a message, and the part of them that answers a question when the whole would cost too much.

What is shown is always the message's own words, cut between code points; what was left out is marked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from heapq import nlargest
from itertools import islice

from foldline.message import Media, Message, Part, Text, ToolCall, ToolResult
from foldline.placeholders import OMISSION
from foldline.recall.terms import places

WANTED = 12
"""How many terms are looked for: those that weigh most."""
HITS = 20_000
"""Places in one message that are weighed against one another."""
_BREAK = re.compile(r"\n+|(?<=[.!?])\s+|(?<=[。！？])")
_SPACE = re.compile(r"\s+")


def searchable_text(message: Message) -> str:
    """What a message says, calls and results included; reasoning and what is internal to the host is not said."""
    if message.meta.hidden:
        return ""
    return "\n".join(filter(None, map(_part, message.parts)))


def _part(part: Part) -> str:
    match part:
        case Text():
            return part.text
        case ToolCall():
            return f"{part.name} {part.arguments}"
        case ToolResult():
            return "\n".join(filter(None, map(_part, part.parts)))
        case Media():
            return part.text or f"[{part.kind}{' ' + part.url if part.url else ''}]"
        case _:
            return ""


def excerpt(text: str, wanted: Mapping[str, float], chars: int) -> str:
    """At most `chars` characters of a text in one piece: where most of the wanted terms stand together.

    >>> excerpt("We met at noon. The port is 8081. It rained. Bye.", {"port": 1.0}, 30)
    '[…] The port is 8081. […]'
    """
    if len(text) <= chars:
        return text
    room = max(1, chars - 2 * len(f" {OMISSION}"))
    first, last = _best(text, wanted, room)
    start = min(max(0, first - max(0, room - (last - first)) // 2), len(text) - room)
    start = _snapped(text, start, first) if start else 0
    end = min(len(text), start + room)
    end = _snapped_back(text, max(start + 1, last), end) if end < len(text) else end
    shown = text[start:end].strip()
    return f"{OMISSION + ' ' if start else ''}{shown}{' ' + OMISSION if end < len(text) else ''}"


def _best(text: str, wanted: Mapping[str, float], room: int) -> tuple[int, int]:
    """From where to where the terms that weigh most stand within `room` characters."""
    heaviest = {term: wanted[term] for term in nlargest(WANTED, wanted, key=lambda term: wanted[term])}
    hits = list(islice(places(text, heaviest), HITS))
    inside: Counter[str] = Counter()
    best, where, held, left = 0.0, (0, 0), 0.0, 0
    for start, end, term in hits:
        inside[term] += 1
        held += heaviest[term] * (inside[term] == 1)
        while end - hits[left][0] > max(room, end - start):
            gone = hits[left][2]
            inside[gone] -= 1
            held -= heaviest[gone] * (inside[gone] == 0)
            left += 1
        if held > best + 1e-9:
            best, where = held, (hits[left][0], end)
    return where


def _snapped(text: str, start: int, first: int) -> int:
    """The next place from `start` on where a sentence, a line or at least a word begins, but not behind `first`."""
    for break_ in (_BREAK, _SPACE):
        found = break_.search(text, start, first)
        if found:
            return found.end()
    return start


def _snapped_back(text: str, last: int, end: int) -> int:
    """The last place up to `end` where a sentence, a line or at least a word ends, but not before `last`."""
    for break_ in (_BREAK, _SPACE):
        found = [match.start() for match in break_.finditer(text, last, end)]
        if found:
            return found[-1]
    return end
