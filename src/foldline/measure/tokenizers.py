"""Counts tokens with a model's own vocabulary, if a tokenizer for it is installed.

Exact counters are native code of third parties, and such code can fail. So before an exact counter is used, its counts
are compared with known counts (golden counts). An exact counter gets only texts of limited length. If an exact counter
fails, the estimator replaces it. This module opens no network connection: splintr ships its vocabularies, and tiktoken
is used only if its vocabulary file is already on disk.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import pkgutil
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from foldline.errors import ConfigError
from foldline.measure.estimator import CHARS_4, CHARS_36, WORDS, Count, Counter, Estimator
from foldline.models.table import model as model_of
from foldline.policy import COUNTERS

_log = logging.getLogger("foldline")

PIECE = 16_384
"""The largest number of characters that is given to native code at once, to limit its time and memory."""

_RULES_OF_THUMB: dict[str, Counter] = {counter.name: counter for counter in (CHARS_4, CHARS_36, WORDS)}


def counter_for(model: str, *, kind: str = "model", table: Path | None = None) -> Counter:
    """The counter for a model: exact if its vocabulary is public and a tokenizer is installed, else the estimator."""
    if kind in _RULES_OF_THUMB:
        return _RULES_OF_THUMB[kind]
    if kind not in COUNTERS:
        raise ConfigError(f"unknown counter {kind!r}", hint=f"use one of {', '.join(COUNTERS)}")
    known = model_of(model, table=table)
    exact = exact_counter(known.vocabulary, known.family) if known.vocabulary and kind == "model" else None
    return exact or Estimator(known.family)


@dataclass(frozen=True, slots=True, eq=False)
class ExactCounter:
    """Counts with a vocabulary, or with the estimator if the tokenizer fails.

    A text of more than `PIECE` characters is counted in pieces. A piece ends at a position that is inside no token of
    any vocabulary, so the sum is exact. If there is no such position, the text is split anywhere. The count may then be
    wrong by a token or two per split, and it is not marked as exact.
    """

    name: str
    encode: Callable[[str], Sequence[int]]
    fallback: Estimator
    exact: bool = True

    def count(self, text: str) -> Count:
        """The number of tokens, with special tokens counted as plain text."""
        try:
            return self._count(text)
        except UnicodeEncodeError:
            return self._count(encodable(text))

    def _count(self, text: str) -> Count:
        tokens, exact = 0, True
        try:
            for piece, clean in pieces(text):
                tokens += len(self.encode(piece))
                exact = exact and clean
        except (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError, UnicodeEncodeError):
            raise
        except BaseException as error:  # noqa: BLE001 (a panic in native code is no Exception)
            estimate = self.fallback.count(text)
            return Count(estimate.tokens, False, f"{estimate.source} ({self.name} failed: {type(error).__name__})")
        return Count(max(tokens, 1) if text else 0, exact, self.name)


_SEAM = re.compile(r"(?<=\n)(?=[^\W_])|(?<=[^\W_])(?= [^\W_])|(?<=[^\W\d_])(?=[，。、！？；：])")
"""Matches a position that is never inside a token.

Such a position is before a word at the start of a line, before the space between two words, or before a full-width
punctuation mark after a letter. This was verified at 58,000 positions in all twelve vocabularies.
"""


def pieces(text: str, *, most: int = PIECE) -> Iterator[tuple[str, bool]]:
    """The pieces of a text, each of at most `most` characters, with a flag.

    The flag is False if the end of the piece may be inside a token.
    """
    start = 0
    while len(text) - start > most:
        end = _last_seam(text, start + most // 2, start + most)
        yield text[start : end or start + most], bool(end)
        start = end or start + most
    if start < len(text):
        yield text[start:], True


def _last_seam(text: str, low: int, high: int) -> int:
    """The last position from `low` to `high` that is never inside a token; 0 if there is none."""
    step = 256
    for top in range(high, low, -step):
        found = [match.start() for match in _SEAM.finditer(text, max(low, top - step), top)]
        if found:
            return found[-1]
    return 0


def encodable(text: str) -> str:
    """The text in a form that can be encoded: surrogate pairs are joined, and lone surrogates are replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@cache
def exact_counter(vocabulary: str, family: str) -> ExactCounter | None:
    """The first installed tokenizer that has the vocabulary and counts the golden texts correctly; else None."""
    for package, load in (("splintr", _splintr), ("tiktoken", _tiktoken)):
        try:
            encode = load(vocabulary)
        except ImportError:
            continue
        except (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError):
            raise
        except BaseException as error:  # noqa: BLE001 (a panic in native code is no Exception)
            reason = repr(error)
        else:
            if encode is None:
                continue
            counter = ExactCounter(f"{package} {vocabulary}", encode, Estimator(family))
            reason = golden_mismatch(counter, vocabulary)
            if not reason:
                return counter
        _log.warning("%s %s is not used, counts are estimates: %s", package, vocabulary, reason)
    return None


def _splintr(vocabulary: str) -> Callable[[str], Sequence[int]] | None:
    """The function of splintr that encodes special tokens as plain text.

    The other functions of splintr read `<|endoftext|>` as one token.
    """
    tokenizer: Any = import_module("splintr").Tokenizer
    try:
        loaded = tokenizer.from_pretrained(vocabulary)
    except ValueError:
        return None
    encode: Callable[[str], Sequence[int]] = loaded.encode_ordinary
    return encode


_TIKTOKEN_FILES = {
    "cl100k_base": (
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
    "o200k_base": (
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
}
"""Names of tiktoken's files on disk, and their SHA-256."""


def _tiktoken(vocabulary: str) -> Callable[[str], Sequence[int]] | None:
    """The encoding of tiktoken; None if its file is missing or incomplete.

    Without the file, tiktoken would start a download.
    """
    file = _TIKTOKEN_FILES.get(vocabulary.replace("o200k_harmony", "o200k_base"))
    if file is None:
        return None
    tiktoken: Any = import_module("tiktoken")
    name, digest = file
    folder = tiktoken_folder()
    try:
        if not folder or hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest:
            return None
    except OSError:
        return None
    encode: Callable[[str], Sequence[int]] = tiktoken.get_encoding(vocabulary).encode_ordinary
    return encode


def tiktoken_folder() -> Path | None:
    """The folder in which tiktoken stores its downloads, found by tiktoken's own rules; None if there is none."""
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if variable in os.environ:
            return Path(os.environ[variable]) if os.environ[variable] else None
    return Path(tempfile.gettempdir()) / "data-gym-cache"


@cache
def golden_counts() -> tuple[tuple[str, ...], dict[str, tuple[int, ...]]]:
    """The golden texts, and for each vocabulary the number of tokens of every text."""
    data = json.loads(pkgutil.get_data(__name__, "golden.json") or b"")
    return tuple(data["texts"]), {name: tuple(counts) for name, counts in data["tokens"].items()}


def golden_mismatch(counter: Counter, vocabulary: str) -> str:
    """Describes the first golden text for which a counter returns a wrong count; "" if there is none."""
    texts, tokens = golden_counts()
    if vocabulary not in tokens:
        return "there are no golden counts for this vocabulary"
    for text, expected in zip(texts, tokens[vocabulary], strict=True):
        found = counter.count(text)
        if found.tokens != expected or not found.exact:
            return f"{text[:40]!r} has {expected} tokens, not {found.tokens}"
    return ""
