"""Copies an earlier digest into a new digest, if the earlier one was written by a model, the client or the provider."""

from __future__ import annotations

import re
from itertools import accumulate

from foldline.digest.markup import INDENT, body_of, quote
from foldline.digest.shortening import without_code

_ANALYSIS, _SUMMARY = "Analysis:\n", "\nSummary:\n"
_PART_HEADING = re.compile(r"(?:#{1,4} |\d{1,2}\. |\*\*)")
_IMPORTANT = re.compile(r"\b(?:request|intent|goal|objective|user|pending|current|next|todo)", re.IGNORECASE)
_WEIGHT = 4
"""A part whose heading matches `_IMPORTANT` gets this many times the room of another part."""


def carry_digest(text: str, room: int) -> list[str]:
    """The lines of an earlier digest, escaped, in at most `room` characters.

    If a client wrote an analysis before its summary, the analysis is left out, because the summary repeats it. If the
    digest does not fit, code in fences is left out. If it still does not fit, lines are removed at the end of each part
    under a heading.
    """
    text = body_of(text)
    if 0 <= text.find(_ANALYSIS) < (at := text.find(_SUMMARY)):
        text = text[at + len(_SUMMARY) :]
    lines = _escaped(text)
    if _cost(lines) > room:
        lines = _escaped(without_code(text))
    if _cost(lines) <= room:
        return lines
    parts: list[list[str]] = [[]]
    for line in lines:
        if _PART_HEADING.match(line.strip()) and not line.startswith(INDENT * 2):
            parts.append([])
        parts[-1].append(line)
    weights = [_WEIGHT if part and _IMPORTANT.search(part[0]) else 1 for part in parts]
    kept, weight = [0] * len(parts), sum(weights)
    for place in sorted(range(len(parts)), key=lambda place: _cost(parts[place]) / weights[place]):
        part, share = parts[place], room * weights[place] // weight
        count = sum(end <= share for end in accumulate(len(line) + 1 for line in part))
        kept[place] = count if count > 1 or len(part) == 1 else 0
        room -= _cost(part[: kept[place]])
        weight -= weights[place]
    return [line for part, count in zip(parts, kept, strict=True) for line in part[:count]]


def _escaped(text: str) -> list[str]:
    """The lines of a text, escaped so that none of them looks like a heading or an entry of a digest."""
    lines = []
    for line in text.split("\n"):
        indent = INDENT * (1 + min(2, (len(line) - len(line.lstrip())) // 2))
        if words := quote(line):
            lines.append(indent + words)
    return lines


def _cost(lines: list[str]) -> int:
    return sum(map(len, lines)) + len(lines)
