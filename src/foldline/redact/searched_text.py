"""A text that is prepared for the search for secrets, and the rules that can apply to it.

A mark is a fixed string that a rule for secrets needs (see `word_index.py`). Only rules with a mark in the text are
selected. A mark consists of words and signs (all other characters).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Generic, TypeVar

from foldline.redact.word_index import WordIndex, mark_words, prefix_words, words_of

_RARE_SIGNS = '~%$@+;]}{[<>=/(:-_*"\t.'
"""The signs that occur in marks, the rarest first."""
_INDEX = WordIndex()
"""The words of all marks of all rules."""
Rule = TypeVar("Rule")


class SearchedText:
    """A text, the same text in lower case, and the parts of marks (words and signs) that the text contains."""

    __slots__ = ("lower", "marks", "signs", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.lower = text.replace("\u0130", "I").lower()  # only this letter (İ) is longer in lower case
        self.marks = _INDEX.marks_in(words_of(self.lower))
        self.signs = {"", *[sign for sign in _RARE_SIGNS if sign in text]}

    def regions(
        self, marks: Iterable[str], min_chars: int, probe: re.Pattern[str] | None = None
    ) -> list[tuple[int, int]]:
        """The start and end of each part of the text that contains a mark (and a match of `probe`, if it is given).

        A part begins at the line with the mark, and ends at the first line end that is at least `min_chars` after the
        mark. The parts are in order and do not overlap.
        """
        text = self.text
        found: list[tuple[int, int]] = []
        if probe is not None:
            match = probe.search(text)
            while match is not None:
                start, end = self._region(match.start(), min_chars)
                if any(text.find(mark, start, end) >= 0 for mark in marks):
                    found.append((start, end))
                match = probe.search(text, end)
        else:
            for mark in marks:
                at = text.find(mark)
                while at >= 0:
                    found.append(self._region(at, min_chars))
                    at = text.find(mark, found[-1][1])
        if len(found) < 2:
            return found
        found.sort()
        joined = found[:1]
        for start, end in found:
            if start <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
            else:
                joined.append((start, end))
        return joined

    def _region(self, at: int, min_chars: int) -> tuple[int, int]:
        end = self.text.find("\n", at + min_chars)
        return max(0, self.text.rfind("\n", 0, at)), len(self.text) if end < 0 else end


class RulesByMark(Generic[Rule]):
    """Rules with their marks. `possible` returns the rules that can apply to a text."""

    def __init__(self, rules: Iterable[tuple[str, Rule]], *, starts_word: bool = False) -> None:
        """`rules` are pairs of a mark and a rule. A rule with several marks occurs once for each mark.

        `starts_word` says that the marks are key prefixes, which count only at the start of a word.
        """
        self._by_word: dict[bytes, list[tuple[frozenset[bytes], str, tuple[str, Rule]]]] = {}
        """Marks with words. The key is the longest word of the mark.

        Each mark is stored with all its words, its rarest sign and its rule.
        """
        self._by_sign: dict[str, list[tuple[str, Rule]]] = {}
        """Marks without words, such as `://`, with their rules. The key is the rarest sign of the mark."""
        for mark, rule in rules:
            sign = next((sign for sign in _RARE_SIGNS if sign in mark), "")
            for words in [(word,) for word in prefix_words(mark)] if starts_word else [mark_words(mark)]:
                _INDEX.add(words)
                if words:
                    self._by_word.setdefault(words[0], []).append((frozenset(words), sign, (mark, rule)))
                else:
                    self._by_sign.setdefault(sign, []).append((mark, rule))

    def possible(self, searched: SearchedText) -> list[tuple[str, Rule]]:
        """The marks that the text can contain, with their rules."""
        marks, signs = searched.marks, searched.signs
        found: list[tuple[str, Rule]] = []
        for word in marks & self._by_word.keys():
            for words, sign, pair in self._by_word[word]:
                if sign in signs and words <= marks:
                    found.append(pair)
        for sign in signs & self._by_sign.keys():
            found += self._by_sign[sign]
        return found


class NeededMarks:
    """The marks that a rule needs, in upper or lower case. The rule applies only to texts with at least one mark."""

    def __init__(self, *marks: str) -> None:
        choices = [mark_words(mark) for mark in marks]
        choices = choices if all(choices) else []  # a mark without words may occur in any text
        self._alone = frozenset(words[0] for words in choices if len(words) == 1)
        self._joined = [frozenset(words) for words in choices if len(words) > 1]
        _INDEX.add(word for words in choices for word in words)

    def are_possible(self, found: frozenset[bytes]) -> bool:
        """Whether a text can contain at least one of the marks.

        `found` are the words of marks that occur in the text. The result is always True if there are no marks, or if a
        mark contains no word.
        """
        if not self._alone and not self._joined:
            return True
        return not self._alone.isdisjoint(found) or any(words <= found for words in self._joined)
