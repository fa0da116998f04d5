"""Returns the searchable text of a message, and excerpts of a text around the terms of a query.

An excerpt is verbatim, with a mark where text is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from heapq import nlargest
from itertools import islice

from foldline.message import Media, Message, Part, Text, ToolCall, ToolResult
from foldline.placeholders import OMISSION
from foldline.recall.result import is_recall_text
from foldline.recall.terms import occurrences

MAX_TERMS = 12
"""Maximum number of terms that are searched in a text. The terms with the highest weights are taken."""
MAX_OCCURRENCES = 20_000
RECALL_TOOL = "recall"
_BREAK = re.compile(r"\n+|(?<=[.!?])\s+|(?<=[。！？])")
_SPACE = re.compile(r"\s+")


def searchable_text(message: Message) -> str:
    """The text of a message with its calls and results, without reasoning; "" for a hidden message."""
    if message.meta.hidden:
        return ""
    return "\n".join(filter(None, map(_part_text, message.parts)))


def indexed_text(message: Message) -> str:
    """The searchable text of a message without calls of recall and without their results."""
    if message.role == "user" or not any(map(_is_recall, message.parts)):
        return searchable_text(message)
    return searchable_text(replace(message, parts=tuple([part for part in message.parts if not _is_recall(part)])))


def _is_recall(part: Part) -> bool:
    match part:
        case ToolCall():
            return _names_recall(part.name)
        case ToolResult():
            return _names_recall(part.name) if part.name else is_recall_text(part.text)
        case _:
            return False


def _names_recall(tool: str) -> bool:
    """Whether a tool name is that of recall. An MCP client adds a prefix to the name."""
    return tool == RECALL_TOOL or tool.endswith(f"__{RECALL_TOOL}")


def _part_text(part: Part) -> str:
    match part:
        case Text():
            return part.text
        case ToolCall():
            return f"{part.name} {part.arguments}"
        case ToolResult():
            return "\n".join(filter(None, map(_part_text, part.parts)))
        case Media():
            return part.text or f"[{part.kind}{' ' + part.url if part.url else ''}]"
        case _:
            return ""


def excerpt(text: str, wanted: Mapping[str, float], chars: int) -> str:
    """At most `chars` characters of a text, around the place where the wanted terms have the highest total weight.

    >>> excerpt("We met at noon. The port is 8081. It rained. Bye.", {"port": 1.0}, 30)
    '[…] The port is 8081. […]'
    """
    if len(text) <= chars:
        return text
    room = max(1, chars - 2 * len(f" {OMISSION}"))
    first, last = _best_range(text, wanted, room)
    start = min(max(0, first - max(0, room - (last - first)) // 2), len(text) - room)
    start = _next_start(text, start, first) if start else 0
    end = min(len(text), start + room)
    end = _last_end(text, max(start + 1, last), end) if end < len(text) else end
    shown = text[start:end].strip()
    return f"{OMISSION + ' ' if start else ''}{shown}{' ' + OMISSION if end < len(text) else ''}"


def _best_range(text: str, wanted: Mapping[str, float], room: int) -> tuple[int, int]:
    """Start and end of the range of at most `room` characters whose terms have the highest total weight."""
    heaviest = {term: wanted[term] for term in nlargest(MAX_TERMS, wanted, key=lambda term: wanted[term])}
    hits = list(islice(occurrences(text, heaviest), MAX_OCCURRENCES))
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


def _next_start(text: str, start: int, first: int) -> int:
    """The first index between `start` and `first` at which a sentence or line begins.

    Without one, the index at which a word begins; without that, `start`.
    """
    found = _BREAK.search(text, start, first) or _SPACE.search(text, start, first)
    return found.end() if found else start


def _last_end(text: str, last: int, end: int) -> int:
    """The last index between `last` and `end` at which a sentence or line ends.

    Without one, the index at which a word ends; without that, `end`.
    """
    for break_ in (_BREAK, _SPACE):
        found = [match.start() for match in break_.finditer(text, last, end)]
        if found:
            return found[-1]
    return end
