"""A text that is prepared for the search for secrets. It knows which rules can apply to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from foldline.redact.word_index import WordIndex, mark_words, prefix_words, words_of

_RARE_SIGNS = "~%$@+;]}{[>=/:-"
"""Non-letters that occur in marks, the rarest first."""
_INDEX = WordIndex()
"""The words of all marks of all rules."""
Rule = TypeVar("Rule")


class SearchedText:
    """A text, the same text in lower case with the same positions, and the words of marks that it contains."""

    __slots__ = ("lower", "marks", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.lower = text.replace("\u0130", "I").lower()  # the only letter that grows in lower case
        self.marks = _INDEX.marks_in(words_of(self.lower))

    def regions(self, marks: Iterable[str], min_chars: int) -> list[tuple[int, int]]:
        """The start and end of each part of the text that contains a mark.

        A part begins at the line with the mark, and ends at the first line end that is at least `min_chars` after the
        mark. The parts are in order and do not overlap.
        """
        text, found = self.text, list[tuple[int, int]]()
        for mark in marks:
            at = text.find(mark)
            while at >= 0:
                end = text.find("\n", at + min_chars)
                end = len(text) if end < 0 else end
                found.append((max(0, text.rfind("\n", 0, at)), end))
                at = text.find(mark, end)
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


class RulesByMark(Generic[Rule]):
    """Rules with their marks. `possible` returns the rules that can apply to a text."""

    def __init__(self, rules: Iterable[tuple[str, Rule]], *, starts_word: bool = False) -> None:
        """`rules` are pairs of a mark and a rule; a rule with several marks occurs several times.

        `starts_word` says that the marks are key prefixes, which count only at the start of a word.
        """
        self._by_word: dict[bytes, list[tuple[frozenset[bytes], tuple[str, Rule]]]] = {}
        """For the longest word of each mark: all words of the mark, the mark, and the rule."""
        self._by_sign: list[tuple[str, str, Rule]] = []
        """For each mark without a word, such as `://`: its rarest sign, the mark, and the rule."""
        for mark, rule in rules:
            choices = [(word,) for word in prefix_words(mark)] if starts_word else [mark_words(mark)]
            for words in choices:
                _INDEX.add(words)
                if words:
                    self._by_word.setdefault(words[0], []).append((frozenset(words), (mark, rule)))
                else:
                    sign = next((sign for sign in _RARE_SIGNS if sign in mark), mark)
                    self._by_sign.append((sign, mark, rule))

    def possible(self, searched: SearchedText) -> list[tuple[str, Rule]]:
        """The marks that the text can contain, with their rules."""
        text = searched.text
        found = [(mark, rule) for sign, mark, rule in self._by_sign if sign in text and mark in text]
        for word in searched.marks & self._by_word.keys():
            found += [pair for words, pair in self._by_word[word] if words <= searched.marks]
        return found


class NeededMarks:
    """Marks in any case. A rule that needs them applies only to a text that contains at least one of them."""

    def __init__(self, *marks: str) -> None:
        self._choices = [frozenset(mark_words(mark)) for mark in marks]
        _INDEX.add(word for words in self._choices for word in words)

    def are_possible(self, searched: SearchedText) -> bool:
        """Whether the text can contain at least one of the marks. True if there are no marks."""
        return not self._choices or any(words <= searched.marks for words in self._choices)
