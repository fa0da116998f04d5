"""Copies an earlier digest into a new digest, if the earlier one was written by a model, the client or the provider."""

from __future__ import annotations

from foldline.digest.markup import INDENT, body_of, quote
from foldline.digest.shortening import without_code

_ANALYSIS, _SUMMARY = "Analysis:\n", "\nSummary:\n"


def carry_digest(text: str, room: int) -> list[str]:
    """The lines of an earlier digest, escaped, in at most `room` characters.

    If a client wrote an analysis before its summary, the analysis is left out, because the summary repeats it. If the
    digest does not fit, code in fences is left out, and then lines in the middle: such a digest begins with the request
    and ends with the current work.
    """
    text = body_of(text)
    if 0 <= text.find(_ANALYSIS) < (at := text.find(_SUMMARY)):
        text = text[at + len(_SUMMARY) :]
    lines = _escaped(text)
    if sum(map(len, lines)) + len(lines) > room:
        lines = _escaped(without_code(text))
    kept = set[int]()
    for at in (each for near in range(len(lines)) for each in (near, len(lines) - 1 - near)):
        if at not in kept and len(lines[at]) < room:
            kept.add(at)
            room -= len(lines[at]) + 1
    return [lines[at] for at in sorted(kept)]


def _escaped(text: str) -> list[str]:
    """The lines of a text, escaped so that none of them looks like a heading or an entry of a digest."""
    lines = []
    for line in text.split("\n"):
        indent = INDENT * (1 + min(2, (len(line) - len(line.lstrip())) // 2))
        if words := quote(line):
            lines.append(indent + words)
    return lines
