"""Determines from the words of a text which marks of rules the text can contain.

A mark is a fixed string that a rule for secrets needs, such as `mysql ` or `password`. A rule cannot apply to a text
without any of its marks. A text has few distinct words, and the result for each word is remembered. So a text without
marks takes little more time than splitting it into words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_MAX_NEW_WORDS = 1_000
"""If a text has more unknown words than this, the results for them are not remembered."""
_MAX_KNOWN_WORDS, _MAX_WORD_BYTES = 50_000, 64
"""The number of words to remember, and the maximum length of such a word in bytes."""
_SMALL_LETTERS: Final = bytes(
    byte if byte >= 128 else ord(chr(byte).lower()) if chr(byte).isalpha() else ord(" ") for byte in range(256)
)
"""A translation table for UTF-8. ASCII letters become lower case, other ASCII characters become blanks."""
_ASCII_LETTERS: Final = _SMALL_LETTERS[:128] + b" " * 128
_RUN = re.compile(b" ?[^ ]+ ?")


def words_of(lower: str) -> set[bytes]:
    """The distinct words of a text, in UTF-8. The text must be in lower case. A word is a longest run of letters.

    Characters that are not ASCII count as letters. If such characters are next to ASCII letters, the run of ASCII
    letters is a further word.
    """
    text = lower.encode("utf-8", "surrogatepass")
    words = set(text.translate(_SMALL_LETTERS).split())
    return words if lower.isascii() else words.union(text.translate(_ASCII_LETTERS).split())


def mark_words(mark: str) -> tuple[bytes, ...]:
    """The words in a mark, the longest first.

    If the mark shows that a word begins or ends there, the word has a blank on that side. For each word, a text that
    contains the mark has a word that contains it, if every word of the text is written with a blank on both sides. A
    single letter that may be a part of a longer word is left out.

    >>> mark_words("net user"), mark_words("earer "), mark_words("://")
    ((b' user', b'net '), (b'earer ',), ())
    """
    runs = _RUN.findall(mark.lower().encode().translate(_SMALL_LETTERS).replace(b" ", b"  "))
    words = [word for word in runs if len(word.strip()) > 1 or (word.startswith(b" ") and word.endswith(b" "))]
    return tuple(sorted(words, key=len, reverse=True))


def prefix_words(prefix: str) -> tuple[bytes, ...]:
    r"""Words for a key prefix at the start of a word. A text that contains the prefix contains at least one of them.

    There are several words, because the letter of an escape such as `\n` may directly precede the prefix.
    """
    word = max(_RUN.findall(prefix.lower().encode().translate(_SMALL_LETTERS).replace(b" ", b"  ")), key=len)
    if word.startswith(b" "):
        return (word,)
    return tuple(b" " + letter + word for letter in (b"", b"n", b"r", b"t"))


class WordIndex:
    """The words of all marks, and for each word of a text, which of them it contains."""

    def __init__(self) -> None:
        self._whole, self._parts = set[bytes](), set[bytes]()
        """Words of marks that must be whole words of the text (stored without blanks), and those that may be a part of
        a word.
        """
        self._memory: tuple[set[bytes], dict[bytes, frozenset[bytes]]] = (set(), {})
        """The known words that contain no word of a mark, and for each other known word, the words of marks in it."""

    def add(self, marks: Iterable[bytes]) -> None:
        """Add words that `mark_words` returned for a mark."""
        for mark in marks:
            if mark.startswith(b" ") and mark.endswith(b" "):
                self._whole.add(mark.strip())
            else:
                self._parts.add(mark)
        self._memory = (set(), {})

    def marks_in(self, words: set[bytes]) -> frozenset[bytes]:
        """The words of marks that occur in these words of a text."""
        harmless, known = self._memory
        words = words - harmless
        new = words.difference(known)
        marks = frozenset[bytes]().union(*[known[word] for word in words - new])
        if not new:
            return marks
        return marks.union(self._look_up(new) if len(new) > _MAX_NEW_WORDS else self._learn(new))

    def _learn(self, new: set[bytes]) -> set[bytes]:
        """The words of marks in words that are not known yet. Remembers the result."""
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
        """The words of marks that occur in at least one of these words."""
        joined = b" ".join([b"", *words, b""])
        return {mark for mark in self._parts if mark in joined}.union(
            [b" " + mark + b" " for mark in self._whole & words]
        )
