"""Finds out from the words of a text which marks of rules it can contain.

A rule for secrets has marks, such as `mysql ` or `password`, and cannot apply to a text without any of them. The
distinct words of a text are few, and what is known about a word is remembered. So a text without marks costs little
more than to split it into words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_MAX_NEW_WORDS = 1_000
"""If a text has more words that are not known yet, they are not remembered."""
_MAX_KNOWN_WORDS, _MAX_WORD_BYTES = 50_000, 64
"""The number of words to remember, and the maximum length of such a word."""
_SMALL_LETTERS: Final = bytes(
    byte if byte >= 128 else ord(chr(byte).lower()) if chr(byte).isalpha() else ord(" ") for byte in range(256)
)
"""A translation of UTF-8: ASCII letters become small, other ASCII characters become blanks, the rest is kept."""
_ASCII_LETTERS: Final = _SMALL_LETTERS[:128] + b" " * 128
_RUN = re.compile(b" ?[^ ]+ ?")


def words_of(lower: str) -> set[bytes]:
    """The distinct words of a text in lower case, in UTF-8: the longest runs of letters.

    Other characters than ASCII are taken for letters. If they stand beside ASCII letters, these are a word too.
    """
    text = lower.encode("utf-8", "surrogatepass")
    words = set(text.translate(_SMALL_LETTERS).split())
    return words if lower.isascii() else words.union(text.translate(_ASCII_LETTERS).split())


def mark_words(mark: str) -> tuple[bytes, ...]:
    """The words in a mark, the longest first, with a blank on each side on which the mark shows that the word ends.

    A text with the mark has words that contain them, if a blank is added on both sides of every word. A letter that may
    be a part of a longer word is left out.

    >>> mark_words("net user"), mark_words("earer "), mark_words("://")
    ((b' user', b'net '), (b'earer ',), ())
    """
    runs = _RUN.findall(mark.lower().encode().translate(_SMALL_LETTERS).replace(b" ", b"  "))
    words = [word for word in runs if len(word.strip()) > 1 or (word.startswith(b" ") and word.endswith(b" "))]
    return tuple(sorted(words, key=len, reverse=True))


def prefix_words(prefix: str) -> tuple[bytes, ...]:
    r"""The words of a mark that stands at the start of a word, one of which a text with the mark has.

    There are several, because the letter of an escape such as `\n` may stand before the mark.
    """
    word = max(_RUN.findall(prefix.lower().encode().translate(_SMALL_LETTERS).replace(b" ", b"  ")), key=len)
    if word.startswith(b" "):
        return (word,)
    return tuple(b" " + letter + word for letter in (b"", b"n", b"r", b"t"))


class WordIndex:
    """The words of marks, and which of them other words contain."""

    def __init__(self) -> None:
        self._whole, self._parts = set[bytes](), set[bytes]()
        """The words of marks that are whole words, without their blanks, and those that may be a part of a word."""
        self._memory: tuple[set[bytes], dict[bytes, frozenset[bytes]]] = (set(), {})
        """The words that contain no mark, and the marks in other known words."""

    def add(self, marks: Iterable[bytes]) -> None:
        """Add the words of marks, as `mark_words` returns them."""
        for mark in marks:
            if mark.startswith(b" ") and mark.endswith(b" "):
                self._whole.add(mark.strip())
            else:
                self._parts.add(mark)
        self._memory = (set(), {})

    def marks_in(self, words: set[bytes]) -> frozenset[bytes]:
        """The marks that the words contain."""
        harmless, known = self._memory
        words = words - harmless
        new = words.difference(known)
        marks = frozenset[bytes]().union(*[known[word] for word in words - new])
        if not new:
            return marks
        return marks.union(self._look_up(new) if len(new) > _MAX_NEW_WORDS else self._learn(new))

    def _learn(self, new: set[bytes]) -> set[bytes]:
        """The marks in words that are not known yet. They are known from now on."""
        harmless, known = self._memory
        if len(harmless) + len(known) > _MAX_KNOWN_WORDS:
            harmless, known = self._memory = set(), {}
        found = self._look_up(new)
        for word in new:
            if len(word) <= _MAX_WORD_BYTES:
                whole = b" " + word + b" "
                marks = frozenset([mark for mark in found if mark in whole])
                if marks:
                    known[word] = marks
                else:
                    harmless.add(word)
        return found

    def _look_up(self, words: set[bytes]) -> set[bytes]:
        """The marks that any of some words contain."""
        joined = b" ".join([b"", *words, b""])
        return {mark for mark in self._parts if mark in joined}.union(
            [b" " + mark + b" " for mark in self._whole & words]
        )
