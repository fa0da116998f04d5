"""The weights of the estimator, per family of vocabularies, from estimator.json."""

from __future__ import annotations

import json
import pkgutil
from functools import cache
from itertools import chain
from operator import mul
from typing import Any, NamedTuple

from foldline.measure.text_features import (
    ASCII_CLASSES,
    ASCII_FEATURES,
    OTHER_FEATURES,
    FeatureCounts,
    Patterns,
    pair_code,
)


class Weights(NamedTuple):
    """The number of tokens that each occurrence of a feature adds."""

    features: tuple[float, ...]
    repeats: tuple[float, ...]
    """For each ASCII character, the number of tokens that one more repetition adds to a long run, such as `-----`."""

    def tokens(self, found: FeatureCounts) -> float:
        """The number of tokens of a text with these features."""
        tokens = sum(map(mul, found.counts, self.features), 0.5)
        if found.repeats:
            tokens += sum(self.repeats[byte] * number for byte, number in found.repeats.items())
        return tokens


class Family(NamedTuple):
    """The patterns and the weights of a family of vocabularies."""

    patterns: Patterns
    weights: Weights
    least: Weights | None
    """The weights of the lowest likely count, for a family whose vocabularies are not public."""

    def tokens(self, found: FeatureCounts) -> float:
        """The number of tokens of a text with these features."""
        tokens = self.weights.tokens(found)
        return max(tokens, self.least.tokens(found)) if self.least else tokens


@cache
def _data() -> Any:
    return json.loads(pkgutil.get_data(__name__, "estimator.json") or b"")


@cache
def families() -> tuple[str, ...]:
    """The names of the vocabulary families that have weights."""
    return tuple(_data()["families"])


@cache
def family_of(name: str) -> Family:
    """The patterns and the weights of one family of vocabularies."""
    data = _data()
    mine = data["families"][name]
    parts = [(mine, 1.0)]
    if "least_ratio" in mine:
        parts.append((data["least"], mine["least_ratio"]))
    tables = [_by_feature(part, factor) for part, factor in parts]
    patterns, features = _patterns({key for table in tables for key, weight in table.items() if weight})
    weights = [
        Weights(
            tuple(table[feature] for feature in features),
            tuple(factor * 2.0 ** -int(digit) for digit in part["repeats"]),
        )
        for table, (part, factor) in zip(tables, parts, strict=True)
    ]
    return Family(patterns, weights[0], weights[1] if len(weights) > 1 else None)


def _by_feature(part: Any, factor: float) -> dict[str, float]:
    """The weight of each feature, times a factor.

    There are three kinds of keys: patterns of classes, first UTF-8 bytes of characters (in hexadecimal digits), and
    names of other features.
    """
    data = _data()
    found = dict(zip((*data["patterns"], *data["dense"]), (*part["patterns"], *part["dense"]), strict=True))
    for beginnings, weight in zip(data["scripts"].values(), part["scripts"], strict=True):
        for beginning in beginnings:
            found[beginning] = weight
    found["solid"] = part["solid"]
    return {feature: factor * weight for feature, weight in found.items()}


def _patterns(used: set[str]) -> tuple[Patterns, tuple[str, ...]]:
    """The patterns among these features, and all features in the order in which they are counted."""
    data = _data()
    patterns = [pattern for pattern in data["patterns"] if pattern in used and pattern not in OTHER_FEATURES]
    plain = [pattern for pattern in patterns if set(ASCII_CLASSES).issuperset(pattern)]
    pairs = [pattern for pattern in plain if len(pattern) == len(set(pattern)) == 2]
    longer = [pattern for pattern in plain if pattern not in pairs]
    words, signs = [key for key in longer if "a" in key], [key for key in longer if "a" not in key]
    edge_pairs = [key for key in pairs if {*key} == {"_", "a"}]
    other_pairs = [key for key in pairs if key not in edge_pairs]
    other = [pattern for pattern in patterns if pattern not in plain]
    scripts: dict[int, list[str]] = {}
    for beginning in (text for beginnings in data["scripts"].values() for text in beginnings if text in used):
        scripts.setdefault(bytes.fromhex(beginning)[0], []).append(beginning)
    found = Patterns(
        words=tuple((key.encode(), _rarest_pair(key)) for key in words),
        signs=tuple((key.encode(), _rarest_pair(key)) for key in signs),
        edge_pairs=tuple(map(pair_code, edge_pairs)),
        pairs=tuple(map(pair_code, other_pairs)),
        other=tuple(map(str.encode, other)),
        scripts=tuple((lead, tuple(map(bytes.fromhex, group))) for lead, group in scripts.items()),
    )
    beginnings = chain.from_iterable(scripts.values())
    ascii_order = (*words, *signs, *edge_pairs, *other_pairs, *ASCII_FEATURES)
    return found, (*ascii_order, *other, *beginnings, *OTHER_FEATURES)


def _rarest_pair(pattern: str) -> int:
    """The code of the rarest pair of classes in a pattern; -1 if the pattern has only the common pair "aa".

    >>> _rarest_pair("AaA") == pair_code("aA"), _rarest_pair("aaa")
    (True, -1)
    """
    pairs = {pattern[at : at + 2] for at in range(len(pattern) - 1)} - {"aa"}
    return min(map(pair_code, pairs), default=-1)
