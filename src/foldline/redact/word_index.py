"""Determines which marks of rules a text can contain, from the words of the text.

A mark is a fixed string that a rule for secrets needs, such as `mysql ` or `password`. A rule cannot apply to a text
that contains none of the rule's marks. A text has few distinct words, and the result for each word is remembered. So
the search in a text without marks takes little more time than splitting the text into words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_MAX_NEW_WORDS = 1_000
"""If a text has more unknown words than this, the results for these words are not remembered."""
_MAX_KNOWN_WORDS, _MAX_WORD_BYTES = 50_000, 64
"""If more than `_MAX_KNOWN_WORDS` words are remembered, all of them are forgotten. Words of more than `_MAX_WORD_BYTES`
bytes are not remembered.
"""
_PIECE_BYTES = 4
"""A mark is searched for in long words only if the words contain its first and its last bytes (this many of each)."""
_SMALL_LETTERS: Final = bytes(
    byte if byte >= 128 else ord(chr(byte).lower()) if chr(byte).isalpha() else ord(" ") for byte in range(256)
)
"""A translation table for UTF-8. ASCII letters become lower case, other ASCII characters become blanks."""
_ASCII_LETTERS: Final = _SMALL_LETTERS[:128] + b" " * 128
_NO_MARKS: Final[frozenset[bytes]] = frozenset()
_RUN = re.compile(b" ?[^ ]+ ?")


def words_of(lower: str) -> set[bytes]:
    """The distinct words of a text, in UTF-8. The text must be in lower case. A word is an unbroken run of letters.

    Characters that are not ASCII count as letters. If such characters are next to ASCII letters, the ASCII letters
    alone are also returned as a word.
    """
    text = lower.encode("utf-8", "surrogatepass")
    words = set(text.translate(_SMALL_LETTERS).split())
    return words if lower.isascii() else words.union(text.translate(_ASCII_LETTERS).split())


def mark_words(mark: str) -> tuple[bytes, ...]:
    """The words in a mark, the longest first.

    A mark may begin or end inside a word of a text. For example, the text `subnet users` contains the mark `net user`.
    If a returned word begins with a blank, a word of the text must begin there. If it ends with a blank, a word of the
    text must end there. A single letter is left out unless it has a blank on both sides.

    >>> mark_words("net user"), mark_words("earer "), mark_words("://")
    ((b' user', b'net '), (b'earer ',), ())
    """
    runs = _RUN.findall(mark.lower().encode().translate(_SMALL_LETTERS).replace(b" ", b"  "))
    words = [word for word in runs if len(word.strip()) > 1 or (word.startswith(b" ") and word.endswith(b" "))]
    return tuple(sorted(words, key=len, reverse=True))


def prefix_words(prefix: str) -> tuple[bytes, ...]:
    r"""The words by which the index finds a key prefix.

    Every text with the prefix contains at least one of these words.

    One word is not enough: in the escaped text `\nsk-live`, the letter `n` of the escape is joined to the prefix. So
    the word in this text is `nsk`.
    """
    word = max(_RUN.findall(prefix.lower().encode().translate(_SMALL_LETTERS).replace(b" ", b"  ")), key=len)
    if word.startswith(b" "):
        return (word,)
    return tuple(b" " + letter + word for letter in (b"", b"n", b"r", b"t"))


class WordIndex:
    """The words of all marks. Finds out which of these words occur in the words of a text."""

    def __init__(self) -> None:
        self._whole, self._parts = set[bytes](), set[bytes]()
        """Words of marks that must be whole words of a text, and words of marks that may be parts of words.

        The words in `_whole` have a blank on both sides, but are stored without these blanks.
        """
        self._part_sizes = set[int]()
        """The lengths of the words in `_parts`."""
        self._memory: tuple[set[bytes], dict[bytes, frozenset[bytes]]] = (set(), {})
        """Known words that contain no word of a mark, and a dict for all other known words.

        The values of the dict are the words of marks that a known word contains.
        """

    def add(self, marks: Iterable[bytes]) -> None:
        """Add words of marks to the index. `marks` holds such words, as `mark_words` returns them, not whole marks."""
        for mark in marks:
            if mark.startswith(b" ") and mark.endswith(b" "):
                self._whole.add(mark.strip())
            else:
                self._parts.add(mark)
                self._part_sizes.add(len(mark))
        self._memory = (set(), {})

    def marks_in(self, words: set[bytes]) -> frozenset[bytes]:
        """The words of this index that occur in the given words of a text."""
        harmless, known = self._memory
        words = words - harmless
        new = words.difference(known)
        marks = _NO_MARKS.union(*[known[word] for word in words - new]) if known else _NO_MARKS
        return marks.union(self._look_up(new) if len(new) > _MAX_NEW_WORDS else self._learn(new)) if new else marks

    def _learn(self, new: set[bytes]) -> set[bytes]:
        """Like `_look_up`, but remembers the result for each word that is not too long."""
        harmless, known = self._memory
        if len(harmless) + len(known) > _MAX_KNOWN_WORDS:
            harmless, known = self._memory = set(), {}
        short = [word for word in new if len(word) <= _MAX_WORD_BYTES]
        found = self._look_up(new.difference(short)) if len(short) < len(new) else set[bytes]()
        for word in short:
            whole, size = b" " + word + b" ", len(word) + 2
            parts = [whole[at : at + chars] for chars in self._part_sizes for at in range(size - chars + 1)]
            marks = self._parts.intersection(parts)
            if word in self._whole:
                marks.add(whole)
            if marks:
                known[word] = frozenset(marks)
                found |= marks
            else:
                harmless.add(word)
        return found

    def _look_up(self, words: set[bytes]) -> set[bytes]:
        """The words of marks that occur in at least one of these words. Faster than `_learn` for many or long words."""
        joined = b" ".join([b"", *words, b""])
        pieces = {joined[at : at + _PIECE_BYTES] for at in range(len(joined))}
        size = _PIECE_BYTES
        possible = [
            mark for mark in self._parts if len(mark) < size or (mark[:size] in pieces and mark[-size:] in pieces)
        ]
        return {mark for mark in possible if mark in joined}.union([b" " + mark + b" " for mark in self._whole & words])
