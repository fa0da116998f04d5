"""Carries an earlier digest, written by a model or by the client, into a new digest.

It is shortened if it does not fit.
"""

from __future__ import annotations

import re

from foldline.digest.extract.turns import without_code
from foldline.digest.markup import body_of, quote

_ANALYSIS, _SUMMARY = "Analysis:\n", "\nSummary:\n"
_HEADING = re.compile(r"(?:#{1,4} |\d{1,2}\. |\*\*)")
_IMPORTANT = re.compile(r"\b(?:request|intent|goal|objective|user|pending|current|next|todo)", re.IGNORECASE)
_WEIGHT = 4
"""A part whose heading matches `_IMPORTANT` gets this many times the room of another part."""
_MIN_LINE_CHARS = 60
"""A line is cut only if this many characters of it fit."""
_INDENT = "  "


def carry_digest(text: str, room: int) -> list[str]:
    """The lines of an earlier digest, escaped, in at most `room` characters.

    If the digest does not fit, code in fences is left out first. Then every part under a heading loses lines at its
    end.
    """
    text = _without_analysis(body_of(text))
    lines = _escaped(text)
    if _cost(lines) > room:
        lines = _escaped(without_code(text))
    if _cost(lines) <= room:
        return lines
    parts: list[list[str]] = [[]]
    for line in lines:
        if _HEADING.match(line.strip()) and not line.startswith(_INDENT * 2):
            parts.append([])
        parts[-1].append(line)
    kept = []
    for part, share in zip(parts, _shares(parts, room), strict=True):
        left, taken = share, list[str]()
        for line in part:
            is_long = len(line) >= left >= _MIN_LINE_CHARS
            taken.append(f"{line[: left - 4].rpartition(' ')[0]} …" if is_long else line)
            left -= len(taken[-1]) + 1
            if left < 0:
                taken.pop()
                break
        if len(taken) > 1 or len(part) == 1:
            kept += taken
    return kept


def _escaped(text: str) -> list[str]:
    """The lines of a text, escaped so that none of them looks like a heading or an entry of a digest."""
    lines = []
    for line in text.split("\n"):
        indent = _INDENT * (1 + min(2, (len(line) - len(line.lstrip())) // 2))
        if words := quote(line):
            lines.append(indent + words)
    return lines


def _without_analysis(text: str) -> str:
    """A client's digest without the analysis that precedes its summary.

    The summary repeats the results of the analysis.
    """
    at = text.find(_SUMMARY)
    return text[at + len(_SUMMARY) :] if 0 <= text.find(_ANALYSIS) < at else text


def _cost(lines: list[str]) -> int:
    return sum(map(len, lines)) + len(lines)


def _shares(parts: list[list[str]], room: int) -> list[int]:
    """The number of characters that each part gets.

    Small parts get all that they need. Of the rest, parts about the user's wishes and the open work get more than
    others.
    """
    shares = [0] * len(parts)
    weights = [_WEIGHT if part and _IMPORTANT.search(part[0]) else 1 for part in parts]
    left = sum(weights)
    for place in sorted(range(len(parts)), key=lambda place: _cost(parts[place]) / weights[place]):
        shares[place] = min(_cost(parts[place]), room * weights[place] // left)
        room -= shares[place]
        left -= weights[place]
    return shares
