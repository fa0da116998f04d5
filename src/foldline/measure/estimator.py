"""Counts tokens without a tokenizer. For many models, there is no public tokenizer, or the tokenizer is not installed
or too slow.

The default counter sorts the bytes of a text into classes, counts a few patterns of classes, and multiplies each count
by a weight of the vocabulary. This counter needs no package, takes linear time, never raises, and marks its counts as
estimates. Other counters are the rules of thumb that some presets use: characters divided by 4 or 3.6, or words. An
estimate is the likeliest size. Before an estimate is compared with a limit, `with_margin` adds a margin.
"""

from __future__ import annotations

import json
import pkgutil
from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import Any, ClassVar, NamedTuple, Protocol

from foldline.errors import ConfigError

MARGIN = 0.15
"""The share by which an estimate may be too low.

This is the 95th percentile of the errors on prose, code and tool output.
"""

DEFAULT_FAMILY = "cl100k_base"
"""The family for unknown models.

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
        """The size to check against a limit."""
        return self.tokens if self.exact else with_margin(self.tokens)


def with_margin(tokens: int) -> int:
    """The number of tokens plus the margin of an estimate, to check against a limit."""
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
        return tuple.__new__(Count, (-(-len(text) * 10 // self.tenths), False, self.name))  # half the time of Count(…)


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

    Two corrections are added. The first correction is for a script that is in the same byte class as a more common
    script (Lao and Hindi, Hebrew and Arabic). The second correction is for long runs without white space or punctuation
    (base64, a key).
    """

    family: str = DEFAULT_FAMILY
    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.family not in families():
            raise ConfigError(f"unknown vocabulary family {self.family!r}", hint=f"use one of {', '.join(families())}")

    @property
    def name(self) -> str:
        """The name of the counter, for example `estimate o200k_base`."""
        return f"estimate {self.family}"

    def count(self, text: str) -> Count:
        """The likeliest number of tokens. A lone surrogate counts as three bytes."""
        if not text:
            return Count(0, False, self.name)
        weights = _weights(self.family)
        raw = text.encode("utf-8", "surrogatepass")
        size = len(raw)
        classes = raw.translate(weights.classes)
        tokens = 0.5
        for pattern, weight in weights.ascii:
            tokens += weight * classes.count(pattern)
        if size >= _SOLID:
            tokens += weights.solid * raw.translate(weights.unbroken).count(b"w" * _SOLID)
        if not text.isascii():
            for pattern, weight in weights.other:
                tokens += weight * classes.count(pattern)
            tokens += weights.box * (raw.count(b"\xe2\x94") + raw.count(b"\xe2\x95"))
            for lead, prefixes in weights.scripts:
                if lead in raw:
                    tokens += sum(weight * raw.count(prefix) for prefix, weight in prefixes)
        return Count(int(min(max(tokens, size // 130 + 1), size)), False, self.name)


class _Weights(NamedTuple):
    """The weights of one family.

    ASCII patterns are kept separate, because a pure ASCII text needs no other patterns.
    """

    classes: bytes
    unbroken: bytes
    ascii: tuple[tuple[bytes, float], ...]
    other: tuple[tuple[bytes, float], ...]
    box: float
    solid: float
    scripts: tuple[tuple[int, tuple[tuple[bytes, float], ...]], ...]
    """Corrections for scripts, grouped by the first byte of their characters.

    If that byte is not in a text, its whole group is skipped.
    """


_CLASSES = (
    (0x00, "t"), (0x0A, "n"), (0x0B, "t"), (0x0D, "n"), (0x0E, "t"), (0x20, "_"), (0x21, "p"), (0x30, "0"), (0x3A, "p"),
    (0x41, "A"), (0x5B, "p"), (0x61, "a"), (0x7B, "p"), (0x7F, "t"), (0x80, "x"), (0xC0, "l"), (0xCC, "g"), (0xD0, "c"),
    (0xD5, "h"), (0xE0, "i"), (0xE2, "s"), (0xE3, "j"), (0xE4, "z"), (0xEA, "k"), (0xEE, "y"), (0xF0, "e"),
)  # fmt: skip
"""Ranges of byte values: the first byte of each range, and the letter of its class.

The classes are letters, digits, space, line ends, other control characters, punctuation, and the UTF-8 bytes of each
script.
"""
_SOLID = 64
"""A run of at least this many letters, digits, + and / is taken as encoded data, not as a word.

A line of a PEM file has this length.
"""


@cache
def _data() -> Any:
    return json.loads(pkgutil.get_data(__name__, "estimator.json") or b"")


@cache
def families() -> tuple[str, ...]:
    """The names of the vocabulary families that have weights."""
    return tuple(_data()["families"])


@cache
def _weights(family: str) -> _Weights:
    data = _data()
    mine = data["families"][family]
    weights: dict[str, float] = dict(zip(data["patterns"], mine["patterns"], strict=True))
    box = weights.pop("box")  # box drawing is counted by bytes, because its class (E2) also has quotes and dashes
    pairs = [(pattern, (pattern.encode(), weight)) for pattern, weight in weights.items()]
    plain = set("aA0_ntp")
    table = bytearray(256)
    for first, letter in _CLASSES:
        table[first:] = letter.encode() * (256 - first)
    scripts: dict[int, list[tuple[bytes, float]]] = {}
    for prefixes, weight in zip(data["scripts"].values(), mine["scripts"], strict=True):
        for prefix in map(bytes.fromhex, prefixes):
            if weight:
                scripts.setdefault(prefix[0], []).append((prefix, weight))
    return _Weights(
        classes=bytes(table),
        unbroken=bytes(ord("w") if chr(byte) in "+/" or chr(table[byte]) in "aA0" else 0 for byte in range(256)),
        ascii=tuple(pair for pattern, pair in pairs if plain.issuperset(pattern)),
        other=tuple(pair for pattern, pair in pairs if not plain.issuperset(pattern)),
        box=box,
        solid=mine["solid"],
        scripts=tuple((lead, tuple(found)) for lead, found in scripts.items()),
    )
