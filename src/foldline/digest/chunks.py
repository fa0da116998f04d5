"""A transcript in pieces that each fit into a digester's window, with nothing left out.

Whole messages first; a message that is too large by lines; a line that is too large by characters. A piece that goes on
says whose words it goes on with, on the same line, so that no cut can put somebody else's mark in front.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

Size = Callable[[str], int]

_SPEAKER = re.compile(r"» [^\s:]{1,40}(?: [^\s:]{1,80}(?=:))?")
"""Who speaks, short enough to be said again in every piece."""
GOES_ON = " (goes on): "


def chunked(texts: Iterable[str], room: int, size: Size) -> list[str]:
    r"""The texts in order, joined into chunks of at most `room` each.

    >>> chunked(["» you: the first line\nthe second line", "» agent: yes"], 36, len)
    ['» you: the first line', '» you (goes on): the second line', '» agent: yes']
    """
    chunks: list[str] = []
    batch: list[str] = []
    used = 0
    for text in texts:
        for piece in _pieces(text, room, size):
            tokens = size(piece) + 1
            if batch and used + tokens > room:
                chunks.append("\n".join(batch))
                batch, used = [], 0
            batch.append(piece)
            used += tokens
    return [*chunks, "\n".join(batch)] if batch else chunks


def _pieces(text: str, room: int, size: Size) -> Iterator[str]:
    """One message's text, cut where it must be."""
    found = _SPEAKER.match(text)
    mark = (found[0] if found else "»") + GOES_ON
    prefix = ""
    while text:
        if size(prefix + text) + 1 <= room:
            yield prefix + text
            return
        end = _fit(text, room - 1, size, prefix)
        yield prefix + text[:end].removesuffix("\n")
        text = text[end:]
        prefix = mark


def _fit(text: str, room: int, size: Size, prefix: str) -> int:
    """How many characters fit: up to a line's end, else to a blank, else as many as there are; at least one."""
    low, high = 1, len(text)
    guess = max(1, len(text) * room // max(1, size(text)))
    while low < high:
        middle = min(max(guess, low + 1), high) if guess else (low + high + 1) // 2
        guess = 0
        if size(prefix + text[:middle]) <= room:
            low = middle
        else:
            high = middle - 1
        if low >= high or (low > 256 and high - low < low // 8):
            break
    for mark in ("\n", " "):
        at = text.rfind(mark, low // 2, low)
        if at > 0:
            return at + 1
    return low
