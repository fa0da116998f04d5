"""The weights of the estimator, per family of vocabularies, from estimator.json."""

from __future__ import annotations

import json
import pkgutil
from functools import cache
from typing import Any, NamedTuple

from foldline.measure.text_features import ASCII_CLASSES, pair_code


class Weights(NamedTuple):
    """The number of tokens that each occurrence of a feature adds, for one family of vocabularies.

    ASCII patterns are kept separate, because a pure ASCII text needs no other patterns.
    """

    ascii: tuple[tuple[bytes, float], ...]
    pairs: tuple[tuple[int, float], ...]
    tab_pairs: tuple[tuple[int, float], ...]
    """The pairs with a tab or another control character. They are skipped if a text has no such character."""
    other: tuple[tuple[bytes, float], ...]
    scripts: tuple[tuple[int, tuple[tuple[bytes, float], ...]], ...]
    """Corrections for scripts, grouped by the first byte of their characters.

    If that byte is not in a text, its whole group is skipped.
    """
    repeats: tuple[float, ...]
    """For each ASCII character, the number of tokens that one more repetition adds to a long run, such as `-----`."""
    box: float
    solid: float
    lone: float
    clusters: float
    rare_letters: float
    nul: float
    alphabet: float
    uncommon: float
    rare: float
    rare_bytes: float
    rules: float
    capitals: float
    sequences: float
    bars: float


@cache
def _data() -> Any:
    return json.loads(pkgutil.get_data(__name__, "estimator.json") or b"")


@cache
def families() -> tuple[str, ...]:
    """The names of the vocabulary families that have weights."""
    return tuple(_data()["families"])


@cache
def weights_of(family: str) -> Weights:
    """The weights of one family of vocabularies."""
    data = _data()
    mine = data["families"][family]
    patterns: dict[str, float] = dict(zip(data["patterns"], mine["patterns"], strict=True))
    # box drawing is counted by bytes, because its byte class (E2) also contains quotes and dashes
    box = patterns.pop("box")
    plain = {pattern for pattern in patterns if set(ASCII_CLASSES).issuperset(pattern)}
    pairs = {pattern for pattern in plain if len(pattern) == len(set(pattern)) == 2}
    scripts: dict[int, list[tuple[bytes, float]]] = {}
    for prefixes, weight in zip(data["scripts"].values(), mine["scripts"], strict=True):
        for prefix in map(bytes.fromhex, prefixes):
            if weight:
                scripts.setdefault(prefix[0], []).append((prefix, weight))
    return Weights(
        ascii=tuple((key.encode(), weight) for key, weight in patterns.items() if key in plain - pairs),
        pairs=tuple((pair_code(key), weight) for key, weight in patterns.items() if key in pairs and "t" not in key),
        tab_pairs=tuple((pair_code(key), weight) for key, weight in patterns.items() if key in pairs and "t" in key),
        other=tuple((key.encode(), weight) for key, weight in patterns.items() if key not in plain),
        scripts=tuple((lead, tuple(found)) for lead, found in scripts.items()),
        repeats=tuple(2.0 ** -int(digit) for digit in mine["repeats"]),
        box=box,
        solid=mine["solid"],
        **dict(zip(data["dense"], mine["dense"], strict=True)),
    )
