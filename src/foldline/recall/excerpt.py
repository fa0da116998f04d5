"""Returns the searchable text of a message, and excerpts of a text around the terms of a query.

An excerpt is verbatim, with a mark where text is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import nlargest
from itertools import islice
from typing import Any

from foldline.message import Media, Message, Part, Text, ToolCall, ToolResult
from foldline.placeholders import OMISSION
from foldline.recall.result import is_recall_text
from foldline.recall.terms import TermFinder
from foldline.recall.verbatim import Phrase, verbatim_range
from foldline.wire.provider_tools import with_readable_parts
from foldline.wire.tool_definitions import tool_names

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
    return "\n".join(filter(None, map(_part_text, with_readable_parts(message).parts)))


def indexed_text(message: Message) -> str:
    """The searchable text of a message without calls of recall and without their results."""
    if message.role == "user" or not any(map(_is_recall, message.parts)):
        return searchable_text(message)
    return searchable_text(replace(message, parts=tuple([part for part in message.parts if not _is_recall(part)])))


def indexed_calls(message: Message) -> dict[str, str]:
    """For each call id of a message, the searchable text of the call. Calls of recall are left out."""
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    return {call.id: _part_text(call) for call in calls if not _is_recall(call)}


def _is_recall(part: Part) -> bool:
    match part:
        case ToolCall():
            return is_recall_tool(part.name)
        case ToolResult():
            return is_recall_tool(part.name) if part.name else is_recall_text(part.text)
        case _:
            return False


def is_recall_tool(tool: str) -> bool:
    """Whether a tool with this name is the recall tool. An MCP client may add the server's name to the tool's name.

    >>> list(map(is_recall_tool, ["recall", "mcp__memory__recall", "foldline_recall", "product_recall"]))
    [True, True, True, False]
    """
    return tool == RECALL_TOOL or tool.endswith((f"__{RECALL_TOOL}", f"foldline_{RECALL_TOOL}"))


def has_recall_tool(tools: Iterable[Any]) -> bool:
    """Whether tool definitions, of any wire format, include the recall tool."""
    return any(is_recall_tool(name) for tool in tools if isinstance(tool, Mapping) for name in tool_names(tool))


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


class Excerpts:
    """Makes excerpts of texts for one query: around its phrases, or around the terms with the highest scores."""

    def __init__(self, phrases: Sequence[Phrase], term_scores: Mapping[str, float]) -> None:
        self.phrases = phrases
        self.finder = TermFinder(
            {term: term_scores[term] for term in nlargest(MAX_TERMS, term_scores, key=lambda term: term_scores[term])}
        )

    def of(self, text: str, chars: int) -> str:
        """At most `chars` characters of a text."""
        if len(text) <= chars:
            return text
        found = verbatim_range(text, self.phrases) or _best_range(text, self.finder, _room(chars))
        return excerpt_around(text, *found, chars)


def excerpt(text: str, wanted: Mapping[str, float], chars: int) -> str:
    """At most `chars` characters of a text, around the range in which the wanted terms have the highest total weight.

    >>> excerpt("We met at noon. The port is 8081. It rained. Bye.", {"port": 1.0}, 30)
    '[…] The port is 8081. […]'
    """
    return Excerpts((), wanted).of(text, chars)


def excerpt_around(text: str, first: int, last: int, chars: int) -> str:
    """At most `chars` characters of a text, around the range from `first` to `last`."""
    if len(text) <= chars:
        return text
    room = _room(chars)
    start = min(max(0, first - max(0, room - (last - first)) // 2), len(text) - room)
    start = _next_start(text, start, first) if start else 0
    end = min(len(text), start + room)
    end = _last_end(text, max(start + 1, last), end) if end < len(text) else end
    shown = text[start:end].strip()
    return f"{OMISSION + ' ' if start else ''}{shown}{' ' + OMISSION if end < len(text) else ''}"


def _room(chars: int) -> int:
    """The number of characters that are left in an excerpt of `chars` characters if marks are added at both ends."""
    return max(1, chars - 2 * len(f" {OMISSION}"))


def _best_range(text: str, finder: TermFinder, room: int) -> tuple[int, int]:
    """Start and end of the range of at most `room` characters whose terms have the highest total weight."""
    hits = list(islice(finder.occurrences(text), MAX_OCCURRENCES))
    heaviest = finder.wanted
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

    If there is no such index, returns the first index at which a word begins. If there is none either, returns `start`.
    """
    found = _BREAK.search(text, start, first) or _SPACE.search(text, start, first)
    return found.end() if found else start


def _last_end(text: str, last: int, end: int) -> int:
    """The last index between `last` and `end` at which a sentence or line ends.

    If there is no such index, returns the last index at which a word ends. If there is none either, returns `end`.
    """
    for break_ in (_BREAK, _SPACE):
        found = [match.start() for match in break_.finditer(text, last, end)]
        if found:
            return found[-1]
    return end
