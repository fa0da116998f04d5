"""A text prepared for the search for secrets: its lower-case form, and the distinct words in it.

A rule that needs a word, such as `mysql` or `password`, is skipped if the text does not have it. The distinct words of
a text are few, so this check costs much less than a search of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

_REGION_CHARS = 600
"""Minimum number of characters behind a mark that are searched."""
_MAX_NEW_WORDS = 200
"""If a text has more words that were not seen before, they are not looked up one by one."""
_MAX_KNOWN_WORDS = 50_000
"""The number of words to remember."""
_LETTERS = re.compile(r"[a-z]{2,64}|[^\W\d_]{2,64}")


class SearchedText:
    """A text, the same text in lower case with the same positions, and its distinct words in one string."""

    __slots__ = ("distinct", "lower", "text", "words")

    def __init__(self, text: str) -> None:
        self.text = text
        self.lower = text.replace("\u0130", "I").lower()  # the only letter that grows in lower case
        self.distinct = set(_LETTERS.findall(self.lower))
        self.words = "\n".join(self.distinct)

    def has_mark(self, mark: str) -> bool:
        """Whether the text contains `mark`, in this case."""
        return mark_word(mark) in self.words and mark in self.text

    def regions(self, marks: tuple[str, ...]) -> list[tuple[int, int]]:
        """The parts of the text in which a mark occurs: from the start of its line to a line end well behind it.

        The parts are in order and do not overlap. Each is so long that a text has few of them.
        """
        text, found = self.text, []
        for mark in marks:
            at = text.find(mark) if mark_word(mark) in self.words else -1
            while at >= 0:
                end = text.find("\n", at + _REGION_CHARS)
                end = len(text) if end < 0 else end
                found.append((max(0, text.rfind("\n", 0, at)), end))
                at = text.find(mark, end)
        found.sort()
        joined: list[tuple[int, int]] = []
        for start, end in found:
            if joined and start <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
            else:
                joined.append((start, end))
        return joined


@cache
def mark_word(mark: str) -> str:
    """The longest run of letters in a mark, in lower case. A text that contains the mark has it in its words."""
    return max(_LETTERS.findall(mark.lower()), key=len, default="")


class RuleIndex:
    """Finds the rules that a text can trigger by its words. Most words trigger none, and they are remembered.

    Each rule is given by its marks. A rule with a mark that has no letters can be triggered by any text.
    """

    def __init__(self, marks_of_rules: Iterable[tuple[str, ...]]) -> None:
        self._words = [tuple(map(mark_word, marks)) for marks in marks_of_rules]
        self._every = range(len(self._words))
        self._always = frozenset(number for number in self._every if "" in self._words[number])
        self._known: dict[str, frozenset[int]] = {}

    def rules_of(self, searched: SearchedText) -> Sequence[int]:
        """The numbers of the rules that the text can trigger, in order. A text of many new words gives all."""
        known = self._known
        unknown = searched.distinct.difference(known)
        if len(unknown) > _MAX_NEW_WORDS:
            return self._every
        if len(known) > _MAX_KNOWN_WORDS:
            known = self._known = {}
            unknown = searched.distinct
        for word in unknown:
            known[word] = frozenset(
                number for number in self._every if any(mark in word for mark in self._words[number])
            )
        return sorted(self._always.union(*map(known.__getitem__, searched.distinct)))
