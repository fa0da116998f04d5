"""How a text gives way: in whole lines, from one end, so that markdown stays markdown.

Memory keeps its head, a digest its newest end; lines that two texts share are said once. Only what could never stand
whole is cut inside, at a word or at a character, and a block of code that is cut is closed again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from foldline.measure.estimator import Counter

End = Literal["head", "tail"]
"""The end of a text that stays."""
_BULLET = re.compile(r"(?:[-*](?=\s|$)|•)\s*")
"""A sign in front of an item. `-5 degrees` and `*so*` have none."""
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})(.*)")
"""The line that opens or closes a block of code."""


def dedupe(digest: str, memory: str) -> tuple[str, int]:
    r"""The digest without the lines that memory has, and how many those were; every other line stays as it is.

    Lines are compared without case, spacing and bullet. Blank lines and blocks of code stay: they are no facts.

    >>> dedupe("• Likes  TEA\n\n-5 degrees", "- likes tea\n5 degrees")
    ('\n-5 degrees', 1)
    """
    known = {line_key(line) for line in memory.split("\n")} - {""}
    lines = digest.split("\n")
    inside = _inside(lines)
    kept = [
        line for place, line in enumerate(lines) if inside[place] or inside[place + 1] or line_key(line) not in known
    ]
    return "\n".join(kept), len(lines) - len(kept)


def line_key(line: str) -> str:
    """What a line says, whatever its case, spacing and bullet."""
    said = line.strip().lower()
    bullet = _BULLET.match(said)
    return " ".join(said[bullet.end() if bullet else 0 :].split())


def fit_text(text: str, cap: int, end: End, counter: Counter) -> str:
    r"""As much of one end of a text as the cap allows, in whole lines.

    A line that is larger than the cap could never stand whole and is cut at a word; a word that is, at a character. A
    block of code that is cut is closed, or opened again, so that what follows is not taken for code.

    >>> from foldline.measure.estimator import WORDS
    >>> fit_text("one two\nthree four\nfive", 3, "head", WORDS), fit_text("one two\nthree four\nfive", 3, "tail", WORDS)
    ('one two', 'three four\nfive')
    """
    if counter.count(text).tokens <= cap:
        return text
    lines = text.split("\n")
    inside = _inside(lines)

    def take(count: int, piece: str | None = None) -> str:
        """So many whole lines from the end that stays, and a piece of the next one."""
        start, stop = (0, count) if end == "head" else (len(lines) - count, len(lines))
        kept = lines[start:stop]
        if piece is not None:
            start, stop = (start, stop + 1) if end == "head" else (start - 1, stop)
            kept = [*kept, piece] if end == "head" else [piece, *kept]
        if not kept:
            return ""
        opened = [inside[start]] if inside[start] else []
        closed = [_fence(inside[stop])] if inside[stop] and stop < len(lines) else []
        return "\n".join([*opened, *kept, *closed])

    def fits(said: str) -> bool:
        return counter.count(said).tokens <= cap

    whole = _most(len(lines) - 1, lambda count: fits(take(count)))
    line = lines[whole if end == "head" else len(lines) - 1 - whole]
    if fits(line):
        return take(whole)
    piece = _piece(line, end, fits, lambda piece: fits(take(whole, piece)))
    return take(whole, piece) if piece else take(whole)


def _piece(line: str, end: End, fits: Callable[[str], bool], fits_there: Callable[[str], bool]) -> str:
    """As much of a line as fits, up to a word's edge, or inside a word that is too large to ever stand whole."""
    words = [match.span() for match in re.finditer(r"\S+", line)]
    edges = [0, *(stop for _, stop in words)] if end == "head" else [len(line), *(start for start, _ in words[::-1])]

    def part(edge: int) -> str:
        return line[:edge] if end == "head" else line[edge:]

    count = _most(len(edges) - 1, lambda count: fits_there(part(edges[count])))
    if count + 1 == len(edges):
        return part(edges[count])
    first, last = edges[count], edges[count + 1]
    if fits(line[min(first, last) : max(first, last)]):
        return part(first)
    step = 1 if end == "head" else -1
    inner = _most(abs(last - first), lambda size: fits_there(part(first + step * size)))
    return part(first + step * inner)


def _most(limit: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `limit` that fits, where smaller ones fit too; 0 when none does."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _inside(lines: list[str]) -> list[str]:
    """For the place in front of each line, and for the end: the line that opened the code it is in, or ""."""
    found, opened = [""], ""
    for line in lines:
        fence = _FENCE.match(line)
        if fence and not opened:
            opened = line
        elif fence and not fence[2].strip() and fence[1].startswith(_fence(opened)):
            opened = ""
        found.append(opened)
    return found


def _fence(line: str) -> str:
    """The fence of the line that opens a block of code."""
    found = _FENCE.match(line)
    return found[1] if found else ""
