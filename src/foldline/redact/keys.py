"""Keys that are recognised by their prefix."""

from __future__ import annotations

import re
from collections.abc import Iterator

from foldline.redact import patterns
from foldline.redact.patterns import WORD, Hit, KeyShape
from foldline.redact.searched_text import RulesByMark, SearchedText
from foldline.redact.value_shape import DIGIT, LINE_JOINT, VALUE_END, is_words, looks_random, run_end, run_of

_OTHER_PREFIXES = RulesByMark((prefix, shape) for shape in patterns.OTHER_KEYS for prefix in shape.prefixes)
_SHAPES = {prefix: shape for shape in reversed(patterns.WORD_KEYS) for prefix in shape.prefixes}
_WORD_PREFIXES = RulesByMark(_SHAPES.items(), starts_word=True)
_WORD_START = re.compile(rf"(?<![{WORD}])(?<![{WORD}][_-])|(?<=\\[nrt])")
_AWS_SECRET = re.compile(r"""["'\s,;:|]{1,6}([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])""")
_SAMPLE = re.compile(r"[\w-]{0,12}?(?:([xX*0_-])\1{9,}|\w{0,20}EXAMPLE(?:KEY)?$)")
"""A key from documentation: one repeated character, or the word `EXAMPLE` at the end."""

_NO_WORD = re.compile(r"[a-z]{28}|[A-Z]{28}")
"""A run of letters in one case that is too long for a word."""


def find_word_keys(searched: SearchedText) -> Iterator[Hit]:
    """Keys at the start of a word.

    If an AWS secret follows the key, as in a table of credentials, the hit includes the secret.
    """
    text, prefixes = searched.text, _prefixes(searched)
    if not prefixes:
        return
    keys = _KeyReader(text)
    for start, prefix in prefixes:
        shape = _SHAPES[prefix]
        end = keys.end(start + len(prefix), shape)
        if end and not _is_harmless(text, start, end, prefix):
            pair = _AWS_SECRET.match(text, end)
            yield Hit(start, pair.end() if pair and looks_random(pair[1]) else end, shape.kind)


def _prefixes(searched: SearchedText) -> list[tuple[int, str]]:
    """The key prefixes at the start of a word, with their positions, in ascending order.

    If several prefixes match at a position, only the longest one is returned.
    """
    text = searched.text
    found: dict[int, str] = {}
    for prefix in sorted({prefix for prefix, _ in _WORD_PREFIXES.possible(searched)}, key=len):
        at = text.find(prefix)
        while at >= 0:
            if _WORD_START.match(text, at):
                found[at] = prefix
            at = text.find(prefix, at + len(prefix))
    return sorted(found.items())


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
    for prefix, shape in _OTHER_PREFIXES.possible(searched):
        at, keys = text.find(prefix), _KeyReader(text)
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

    The positions of keys must be passed in ascending order, because a search reuses the results of earlier searches.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._run_ends: dict[str, int] = {}
        """For each character set, where the most recently scanned run of its characters ends.

        A search that starts inside that run reuses this end instead of scanning again.
        """
        self._digit = -1
        """Where the last search for a digit ended. A search that starts before this position would end there, too."""
        self._joined_until = 0
        """The largest end of a key so far.

        A prefix before this position is in text that was already read as a key. So the key of this prefix is not
        continued on later lines.
        """

    def end(self, start: int, shape: KeyShape) -> int:
        """The end of the key whose prefix ends at `start`; 0 if there is no key.

        The key may continue on later lines.
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
