"""Counts tokens without a tokenizer. For many models, there is no public tokenizer, or the tokenizer is not installed
or too slow.

The default counter sorts the bytes of a text into classes, and counts a few patterns of classes. Each count is
multiplied by a weight that depends on the vocabulary. This counter needs no package, takes linear time, never raises,
and marks its counts as estimates. Other counters are the rules of thumb that some presets use: characters divided by 4
or 3.6, or words. An estimate is the likeliest size. Before an estimate is compared with a limit, `with_margin` adds a
margin.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil
from typing import ClassVar, NamedTuple, Protocol

from foldline.errors import ConfigError
from foldline.measure.estimator_weights import families, family_of
from foldline.measure.text_features import feature_counts

MARGIN = 0.15
"""The share by which an estimate may be too low.

This is the 95th percentile of the errors on prose, code and tool output.
"""

SHORT = 32
"""The counts of the newest texts with at most this many characters are cached."""

DEFAULT_FAMILY = "cl100k_base"
"""The vocabulary family that is used for unknown models.

For English and code, the counts of this family are close to those of newer vocabularies. For other scripts, the counts
are higher.
"""


class Count(NamedTuple):
    """A number of tokens, whether it is exact, and its source.

    >>> print(Count(77_000, True, "splintr o200k_base") + Count(400, False, "chars/4"))
    ~77k
    """

    tokens: int
    exact: bool
    source: str

    def __add__(self, other: Count) -> Count:  # type: ignore[override]  # counts add up, they are not concatenated
        """The sum of two counts. The sum is exact only if both counts are exact, and it names every source once."""
        if self.source == other.source:
            source = self.source
        else:
            source = " + ".join(dict.fromkeys(filter(None, (self.source + " + " + other.source).split(" + "))))
        return Count(self.tokens + other.tokens, self.exact and other.exact, source)

    def __str__(self) -> str:
        return format_tokens(self.tokens, self.exact)

    @property
    def upper(self) -> int:
        """The number of tokens to compare with a limit. For an estimate, the margin for its error is added."""
        return self.tokens if self.exact else with_margin(self.tokens)


_new_count = tuple.__new__
"""Makes a `Count` from a tuple, in half the time of `Count(…)`."""


def with_margin(tokens: int) -> int:
    """An estimated number of tokens plus the margin for its error, to compare with a limit."""
    return ceil(tokens * (1 + MARGIN))


def format_tokens(tokens: int, exact: bool) -> str:
    """A size as short text: `812`, `9.5k`, `77k`, `1.2M`; an estimate starts with `~`."""
    sign = "" if exact else "~"
    if abs(tokens) < 1000:
        return f"{sign}{tokens}"
    for unit, size in (("k", 1000), ("M", 1_000_000)):
        for digits, below in ((1, 10), (0, 1000)):
            shown = round(tokens / size, digits)
            if abs(shown) < below:
                return f"{sign}{shown:.{digits}f}".removesuffix(".0") + unit
    return f"{sign}{tokens / 1_000_000:,.0f}M"


class Counter(Protocol):
    """Counts the tokens of a text, in linear time. Accepts any `str`, never raises, and returns 0 only for ""."""

    @property
    def name(self) -> str:
        """The name of the counter, for display."""

    @property
    def exact(self) -> bool:
        """Whether the counts are those of the model's own tokenizer."""

    def count(self, text: str) -> Count:
        """The size of a text."""


@dataclass(frozen=True, slots=True)
class CharRatioCounter:
    """A rule of thumb: characters divided by a fixed number, rounded up. `tenths` is that number times 10."""

    name: str
    tenths: int
    exact: bool = False

    def count(self, text: str) -> Count:
        """The number of characters divided by the fixed number."""
        return _new_count(Count, (-(-len(text) * 10 // self.tenths), False, self.name))


CHARS_4 = CharRatioCounter("chars/4", 40)
"""The most common rule of thumb. For Claude 4.7 and later, the counts of this rule are a third to a half too low."""
CHARS_36 = CharRatioCounter("chars/3.6", 36)
"""A rule of thumb with counts a little higher than those of `CHARS_4`. For CJK, base64 and dense JSON, the counts are
far too low.
"""


@dataclass(frozen=True, slots=True)
class WordCounter:
    """Counts words, for budgets that are stated in words."""

    name: str = "words"
    exact: bool = False

    def count(self, text: str) -> Count:
        """The number of words, separated by white space; 1 for a text that is only white space."""
        return Count(len(text.split()) or int(bool(text)), False, self.name)


WORDS = WordCounter()


@dataclass(frozen=True, slots=True)
class Estimator:
    """The default counter: counts patterns of byte classes, with the weights of one family of vocabularies.

    Runs of one character are counted separately, because a vocabulary has long tokens for runs of some characters only.
    Further corrections are for text that is not made of common words: base64, keys, letters that form no words, lone
    letters, bars of tables, and rare characters. Another correction is for scripts in the same byte class as a more
    common script (Lao with Hindi, Hebrew with Arabic).

    Claude's vocabularies are not public, and the weights of its families were fitted on words and code. For other text,
    these weights can be too low. So the count for Claude has a lower limit: the count for OpenAI's vocabulary o200k,
    times a factor of the family.
    """

    family: str = DEFAULT_FAMILY
    name: str = field(init=False, repr=False)
    """The name of the counter, for example `estimate o200k_base`."""
    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.family not in families():
            raise ConfigError(f"unknown vocabulary family {self.family!r}", hint=f"use one of {', '.join(families())}")
        object.__setattr__(self, "name", f"estimate {self.family}")

    def count(self, text: str) -> Count:
        """The likeliest number of tokens. A lone surrogate counts as three bytes."""
        tokens = _tokens(text, self.family) if len(text) > SHORT else _tokens_of_short(text, self.family)
        return _new_count(Count, (tokens, False, self.name))


def _tokens(text: str, family_name: str) -> int:
    """The estimated number of tokens of a text, with the vocabularies of a family."""
    if not text:
        return 0
    family = family_of(family_name)
    found = feature_counts(text, family.patterns)
    return int(min(max(family.tokens(found), found.size // 130 + 1), found.size))


_tokens_of_short = lru_cache(maxsize=1_024)(_tokens)
"""`_tokens` for texts of at most `SHORT` characters. The same names of tools are counted at every step."""
