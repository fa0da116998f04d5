"""A transcript in chunks that each fit into a digester's window, with nothing left out.

Whole messages are kept together; a message that is too large is cut between lines, a line between words. A chunk that
continues a message repeats the speaker's mark on the same line, so that no cut can put another speaker's mark there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

CountTokens = Callable[[str], int]

_SPEAKER = re.compile(r"» [^\s:]{1,40}(?: [^\s:]{1,80}(?=:))?")
CONTINUED = " (goes on): "


def chunked(texts: Iterable[str], max_tokens: int, count_tokens: CountTokens) -> list[str]:
    r"""The texts in order, joined into chunks of at most `max_tokens`.

    >>> chunked(["» you: the first line\nthe second line", "» agent: yes"], 36, len)
    ['» you: the first line', '» you (goes on): the second line', '» agent: yes']
    """
    chunks: list[str] = []
    batch: list[str] = []
    used = 0
    for text in texts:
        for piece in _split(text, max_tokens, count_tokens):
            tokens = count_tokens(piece) + 1
            if batch and used + tokens > max_tokens:
                chunks.append("\n".join(batch))
                batch, used = [], 0
            batch.append(piece)
            used += tokens
    return [*chunks, "\n".join(batch)] if batch else chunks


def _split(text: str, max_tokens: int, count_tokens: CountTokens) -> Iterator[str]:
    found = _SPEAKER.match(text)
    mark = (found[0] if found else "»") + CONTINUED
    prefix = ""
    while text:
        if count_tokens(prefix + text) + 1 <= max_tokens:
            yield prefix + text
            return
        end = _fitting_chars(text, max_tokens - 1, count_tokens, prefix)
        yield prefix + text[:end].removesuffix("\n")
        text = text[end:]
        prefix = mark


def _fitting_chars(text: str, max_tokens: int, count_tokens: CountTokens, prefix: str) -> int:
    """How many characters fit, at least one: up to the end of a line, else of a word, else as many as there are."""
    low, high = 1, len(text)
    guess = max(1, len(text) * max_tokens // max(1, count_tokens(text)))
    while low < high:
        middle = min(max(guess, low + 1), high) if guess else (low + high + 1) // 2
        guess = 0
        if count_tokens(prefix + text[:middle]) <= max_tokens:
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
