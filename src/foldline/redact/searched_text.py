"""A text prepared for the search for secrets: its lower-case form, and the distinct words in it.

A rule that needs a word, such as `mysql` or `password`, is skipped if the text does not have it. The distinct words of
a text are few, so this check costs much less than a search of the text.
"""

from __future__ import annotations

import re
from functools import cache

_LETTERS = re.compile(r"[^\W\d_]{2,}")


class SearchedText:
    """A text, the same text in lower case with the same positions, and its distinct words in one string."""

    __slots__ = ("lower", "text", "words")

    def __init__(self, text: str) -> None:
        self.text = text
        self.lower = text.replace("\u0130", "I").lower()  # the only letter that grows in lower case
        self.words = "\n".join(set(_LETTERS.findall(self.lower)))

    def has_mark(self, mark: str) -> bool:
        """Whether the text contains `mark`, in this case."""
        return mark_word(mark) in self.words and mark in self.text


@cache
def mark_word(mark: str) -> str:
    """The longest run of letters in a mark, in lower case. A text that contains the mark has it in its words."""
    return max(_LETTERS.findall(mark.lower()), key=len, default="")
