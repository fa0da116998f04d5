"""Finds the texts of a query that a message may contain verbatim: the whole query, and the names in it.

The index has terms, not texts: it cannot tell a message with `self.policy.keep_tokens` from a message that has
`policy`, `keep` and `tokens` far from each other. So the messages that have all terms of such a text are read, to look
for the text itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from foldline.recall.terms import piece_terms, terms

MAX_NAMES = 3
"""Maximum number of names of a query that are looked up. The longest are taken."""

_NAME = re.compile(r"(?<![\w@./:-])[\w@./:-]*\w")
_IN_A_NAME = re.compile(r"[^\W\d_]-?\d|\d[^\W\d_]|\w[_./:@]\w|[a-z][A-Z]|\d{3}")
"""What makes a word a name: a letter beside a digit, punctuation or a capital inside the word, or three digits."""


class Phrase(NamedTuple):
    """A text to be found verbatim."""

    text: str
    term_groups: tuple[tuple[str, ...], ...]
    """Groups of terms. A message that contains the text contains all terms of at least one group."""
    is_query: bool
    """Whether the text is the whole query."""


def phrases(query: str) -> list[Phrase]:
    """The query without the space around it, and the longest names in it. Texts without terms are left out.

    >>> [phrase.text for phrase in phrases("where is worker.max_port set?")]
    ['where is worker.max_port set?', 'worker.max_port']
    """
    whole = query.strip()
    names = {name.strip("./:-@") for name in _NAME.findall(whole) if _IN_A_NAME.search(name)}
    longest = sorted(names - {whole}, key=lambda name: (-len(name), name))[:MAX_NAMES]
    found = [Phrase(text.casefold(), _term_groups(text), text == whole) for text in (whole, *longest)]
    return [phrase for phrase in found if phrase.term_groups]


def _term_groups(text: str) -> tuple[tuple[str, ...], ...]:
    """Two groups of terms, to find messages that may contain a text.

    The first group has the pieces of the text. The second group has all terms of the text, including whole names,
    because the pieces of a name may be common words.
    """
    groups = tuple(piece_terms(text)), tuple(terms(text))
    return tuple([group for group in dict.fromkeys(groups) if group])


def verbatim_range(text: str, wanted: Sequence[Phrase]) -> tuple[int, int] | None:
    """Start and end of the first phrase in `wanted` that a text contains. Case is ignored.

    Returns None if the text contains no phrase.
    """
    lower = text.casefold()
    if len(lower) != len(text):  # `casefold` made the text longer, so positions would be wrong
        lower = text.lower() if len(text.lower()) == len(text) else text
    for phrase in wanted:
        if (start := lower.find(phrase.text)) >= 0:
            return start, start + len(phrase.text)
    return None
