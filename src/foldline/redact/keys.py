"""Keys that are recognised by their prefix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from foldline.redact import patterns
from foldline.redact.patterns import WORD, Hit, KeyShape
from foldline.redact.searched_text import SearchedText
from foldline.redact.value_shape import DIGIT, LINE_JOINT, VALUE_END, is_words, looks_random, run_end, run_of

_SHAPES = {prefix: shape for shape in reversed(patterns.WORD_KEYS) for prefix in shape.prefixes}


def _any_of(words: Iterable[str]) -> str:
    """A pattern for any of the words. It reads each first letter once, so that most positions fail at once."""
    tails: dict[str, list[str]] = {}
    for word in words:
        tails.setdefault(word[:1], []).append(word[1:])
    branches = [re.escape(first) + _any_of(rest) for first, rest in tails.items() if first]
    pattern = branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"
    return "" if not branches else f"(?:{pattern})?" if "" in tails else pattern


_PREFIX = re.compile(rf"(?:(?<![{WORD}])(?<![{WORD}][_-])|(?<=\\[nrt])){_any_of(_SHAPES)}")
_AWS_SECRET = re.compile(r"""["'\s,;:|]{1,6}([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])""")
_SAMPLE = re.compile(r"[\w-]{0,12}?(?:([xX*0_-])\1{9,}|\w{0,20}EXAMPLE(?:KEY)?$)")
"""A key in documentation: one character repeated, or the word `EXAMPLE` at its end."""

_NO_WORD = re.compile(r"[a-z]{28}|[A-Z]{28}")
"""More letters of one case in a row than a word has."""


def find_word_keys(searched: SearchedText) -> Iterator[Hit]:
    """Keys at the start of a word.

    If an AWS secret follows the key, as in a table of credentials, the hit includes it.
    """
    text = searched.text
    keys = _KeyReader(text)
    for prefix in _PREFIX.finditer(text):
        shape = _SHAPES[prefix[0]]
        start, end = prefix.start(), keys.end(prefix.end(), shape)
        if end and not _is_harmless(text, start, end, prefix[0]):
            pair = _AWS_SECRET.match(text, end)
            yield Hit(start, pair.end() if pair and looks_random(pair[1]) else end, shape.kind)


def _is_harmless(text: str, start: int, end: int, prefix: str) -> bool:
    """Whether a key is a sample, a long name, or JSON in a data URL."""
    if prefix == "eyJ" and text.startswith(";base64,", start - 8):
        return True
    return end - start <= 80 and (
        _SAMPLE.match(text, start + len(prefix), end) is not None
        or (is_words(text[start:end]) and not _NO_WORD.search(text, start, end))
    )


def find_other_keys(searched: SearchedText) -> Iterator[Hit]:
    """Keys whose prefix contains a dot or a slash, and webhooks."""
    text = searched.text
    for shape in patterns.OTHER_KEYS:
        for prefix in shape.prefixes:
            at = text.find(prefix)
            if at < 0:
                continue
            keys = _KeyReader(text)
            while at >= 0:
                end = keys.end(at + len(prefix), shape)
                address = "/" in prefix and prefix[0].isalpha()
                if end and (address or _starts_word(text, at)):
                    yield Hit(at + len(prefix) if address else at, end, shape.kind)
                at = text.find(prefix, end or at + len(prefix))


def _starts_word(text: str, at: int) -> bool:
    r"""Whether a word can begin at `at`. The letter of an escape such as `\n` is not part of a word."""
    return not at or not text[at - 1].isalnum() or (text[at - 1] in "nrt" and text[at - 2 : at - 1] == "\\")


class _KeyReader:
    """Finds the ends of keys in a text.

    The starts must be passed in ascending order, so that the text is read about once.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._run_ends: dict[str, int] = {}
        """For each set of letters, the end of the run that was read last. A later start within that run has the same
        end.
        """
        self._digit = -1
        """Position of the first digit after the last start that was checked for a digit."""
        self._joined_until = 0
        """The largest end so far. A key that starts before it is not continued on later lines."""

    def end(self, start: int, shape: KeyShape) -> int:
        """The end of the key whose prefix ends at `start`.

        The key may continue on later lines. 0 if the text is not a key.
        """
        text, letters = self.text, run_of(shape.letters)
        end = self._run_ends.get(shape.letters, 0)
        if end < start:
            end = self._run_ends[shape.letters] = run_end(letters, text, start)
        size = end - start
        while start >= self._joined_until and not (shape.exact and size >= shape.least):
            joint = LINE_JOINT.match(text, end)
            if joint is None:
                break
            last = run_end(letters, text, joint.end())
            piece = text[joint.end() : last]
            if not piece or not VALUE_END.match(text, last) or not (size < shape.least or looks_random(piece)):
                break
            end, size = last, size + len(piece)
        self._joined_until = max(self._joined_until, end)
        if size < shape.least or (shape.exact and size != shape.least):
            return 0
        return end if shape.digitless or self._has_digit(start, end) else 0

    def _has_digit(self, start: int, end: int) -> bool:
        if self._digit < start:
            found = DIGIT.search(self.text, start)
            self._digit = found.start() if found else len(self.text)
        return self._digit < end
