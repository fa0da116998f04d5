"""Counts the features of a text. The estimator multiplies each count by a weight, and adds up the products.

The counts have the same order as the weights (`Weights.features` in estimator_weights.py).
"""

from __future__ import annotations

from typing import NamedTuple

from foldline.measure.text_features import (
    CLASSES,
    SOLID,
    UNBROKEN,
    class_pairs,
    classes_of_pairs,
    consonants,
    count_byte,
    cut_repeats,
    lone_capitals,
    lone_letters,
    rare_characters,
    repeated_rules,
    sequences,
    unbroken_alphabets,
    uncommon_characters,
    without_ascii,
    without_word_edges,
    without_word_pairs,
)

ASCII_FEATURES = ("lone", "capitals", "clusters", "rare_letters", "sequences", "nul", "bars", "solid")
"""The features of every text that are not patterns of classes."""
# box drawing is counted by bytes, because its byte class (E2) also contains quotes and dashes
OTHER_FEATURES = ("box", "rules", "alphabet", "uncommon", "rare", "rare_bytes")
"""The features of characters that are not ASCII and that are not patterns of classes."""
_LARGE_SCRIPTS = (b"j", b"z", b"k", b"y", b"e")
"""The classes of scripts with so many characters that most of them have no token of their own."""


class Patterns(NamedTuple):
    """The patterns that are counted. They are in groups, because a text without a class does not need its patterns."""

    words: tuple[tuple[bytes, int], ...]
    """Patterns with a lowercase letter. Each has a pair that it contains, or -1.

    A search for this pair is much faster than counting the pattern.
    """
    signs: tuple[tuple[bytes, int], ...]
    """Patterns of other ASCII classes. Each has a pair that it contains, or -1."""
    edge_pairs: tuple[int, ...]
    """The pairs at the edges of words, which are most pairs of a text."""
    pairs: tuple[int, ...]
    """All other pairs of two classes."""
    other: tuple[bytes, ...]
    scripts: tuple[tuple[int, tuple[bytes, ...]], ...]
    """The first bytes of the characters of some scripts, grouped by the very first byte.

    If that byte is not in a text, its whole group is skipped.
    """


class FeatureCounts(NamedTuple):
    """How often each feature occurs in a text. A pure ASCII text has no counts for the other characters."""

    counts: list[float]
    repeats: dict[int, int]
    """For each ASCII character, how many of its repetitions were cut from long runs, such as `-----`."""
    size: int
    """The number of bytes of the text."""


def feature_counts(text: str, patterns: Patterns) -> FeatureCounts:
    """The features of a text, in the order of `Patterns`. A lone surrogate counts as three bytes."""
    raw = text.encode("utf-8", "surrogatepass")
    size = len(raw)
    raw, repeats = cut_repeats(raw)
    classes = raw.translate(CLASSES)
    pairs = without_word_pairs(class_pairs(raw))
    short = classes_of_pairs(pairs)
    rest = without_word_edges(pairs)
    counts: list[float] = [classes.count(word) if pair < 0 or pair in pairs else 0 for word, pair in patterns.words]
    counts += [short.count(sign) if pair < 0 or pair in pairs else 0 for sign, pair in patterns.signs]
    counts += [pairs.count(pair) for pair in patterns.edge_pairs]
    counts += [rest.count(pair) if pair in rest else 0 for pair in patterns.pairs]
    counts += (lone_letters(raw), lone_capitals(pairs), *consonants(raw), sequences(raw), count_byte(raw, 0))
    counts.append(count_byte(raw, ord("|")) + count_byte(raw, ord(";")))
    counts.append(raw.translate(UNBROKEN).count(b"w" * SOLID) if size >= SOLID else 0)
    if not text.isascii():
        counts += _other_counts(raw, classes, patterns)
    return FeatureCounts(counts, repeats, size)


def _other_counts(raw: bytes, classes: bytes, patterns: Patterns) -> list[float]:
    """The features of the characters that are not ASCII."""
    counts: list[float] = [classes.count(pattern) for pattern in patterns.other]
    for lead, beginnings in patterns.scripts:
        counts += [raw.count(beginning) for beginning in beginnings] if lead in raw else [0] * len(beginnings)
    counts += (raw.count(b"\xe2\x94") + raw.count(b"\xe2\x95"), repeated_rules(raw)) if 0xE2 in raw else (0, 0)
    wide = without_ascii(raw)
    large = any(script in classes for script in _LARGE_SCRIPTS)
    return [*counts, unbroken_alphabets(raw), uncommon_characters(wide) if large else 0, *rare_characters(wide)]
