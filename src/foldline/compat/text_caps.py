"""Shortens a text at one end, so that its Markdown stays valid, and removes duplicate lines.

A text is shortened by whole lines. A line that alone exceeds the cap is cut between words, and a word that alone
exceeds the cap is cut between characters. If a code block is cut, its missing fence line is added.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from foldline.measure.estimator import Counter

End = Literal["head", "tail"]
"""Which end of a text is kept: its beginning ("head") or its end ("tail")."""
_BULLET = re.compile(r"(?:[-*](?=\s|$)|•)\s*")
"""Matches the bullet of a list item. Lines such as `-5 degrees` and `*so*` have no bullet."""
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})(.*)")
"""Matches a line that opens or closes a code block."""


def dedupe(digest: str, memory: str) -> tuple[str, int]:
    r"""The digest without the lines that are also in memory, and the number of removed lines.

    Case, spacing and bullets are ignored in the comparison. Blank lines and code blocks are never removed.

    >>> dedupe("• Likes  TEA\n\n-5 degrees", "- likes tea\n5 degrees")
    ('\n-5 degrees', 1)
    """
    known = {line_key(line) for line in memory.split("\n")} - {""}
    lines = digest.split("\n")
    inside = _inside(lines)
    kept = [
        line for index, line in enumerate(lines) if inside[index] or inside[index + 1] or line_key(line) not in known
    ]
    return "\n".join(kept), len(lines) - len(kept)


def line_key(line: str) -> str:
    """The form in which a line is compared with other lines: in lower case, without bullet and extra spacing."""
    text = line.strip().lower()
    bullet = _BULLET.match(text)
    return " ".join(text[bullet.end() if bullet else 0 :].split())


def fit_text(text: str, cap: int, end: End, counter: Counter) -> str:
    r"""The start or the end of a text: as many whole lines as fit the cap.

    A line that alone exceeds the cap is cut between words, and a word that alone exceeds the cap is cut between
    characters. If a code block is cut, its missing fence line is added.

    >>> from foldline.measure.estimator import WORDS
    >>> fit_text("one two\nthree four\nfive", 3, "head", WORDS), fit_text("one two\nthree four\nfive", 3, "tail", WORDS)
    ('one two', 'three four\nfive')
    """
    if counter.count(text).tokens <= cap:
        return text
    lines = text.split("\n")
    inside = _inside(lines)

    def take(count: int, piece: str | None = None) -> str:
        """The first or last `count` lines. If `piece` (a part of the adjacent line) is given, it is added."""
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

    def fits(candidate: str) -> bool:
        return counter.count(candidate).tokens <= cap

    whole = _most(len(lines) - 1, lambda count: fits(take(count)))
    line = lines[whole if end == "head" else len(lines) - 1 - whole]
    if fits(line):
        return take(whole)
    piece = _piece(line, end, fits, lambda piece: fits(take(whole, piece)))
    return take(whole, piece) if piece else take(whole)


def _piece(line: str, end: End, fits: Callable[[str], bool], fits_there: Callable[[str], bool]) -> str:
    """As many whole words of a line as fit the cap. A word that alone exceeds the cap is cut."""
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
    """The largest number up to `limit` for which `fits` is true, found by binary search; 0 if there is none."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _inside(lines: list[str]) -> list[str]:
    """For each line, the fence (first line) of the code block that is open before the line; "" if none is open.

    The list has one more item, for the end of the text.
    """
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
    found = _FENCE.match(line)
    return found[1] if found else ""
