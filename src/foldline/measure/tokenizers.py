"""Counting tokens with a model's own vocabulary, where one is installed.

Exact counters are native code from other people: they are looked up by model, proven on golden vectors before they are
trusted, fed bounded pieces, and guarded, because one that panics raises what `except Exception` does not catch. Nothing
here ever opens a connection: splintr carries its vocabularies, and tiktoken is used only if the file it would download
is already on the disk. Behind every exact counter stands the estimator, and a count says which of the two it is.
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

COUNTERS = ("model", "estimate", "chars/4", "chars/3.6", "words")
"""What a policy may ask for: the model's own counter if it is installed, or one of the others by name."""

PIECE = 16_384
"""Characters given to native code at once: time and memory stay bounded, whatever the text."""

_RULES_OF_THUMB: dict[str, Counter] = {counter.name: counter for counter in (CHARS_4, CHARS_36, WORDS)}


def counter_for(model: str, *, kind: str = "model", table: Path | None = None) -> Counter:
    """The counter for a model: exact if its vocabulary is public and a tokenizer is installed, else the estimator."""
    if kind in _RULES_OF_THUMB:
        return _RULES_OF_THUMB[kind]
    if kind not in COUNTERS:
        raise ConfigError(f"no counter {kind!r}", hint=f"use one of {', '.join(COUNTERS)}")
    known = model_of(model, table=table)
    exact = exact_counter(known.vocabulary, known.family) if known.vocabulary and kind == "model" else None
    return exact or Estimator(known.family)


@dataclass(frozen=True, slots=True, eq=False)
class ExactCounter:
    """A vocabulary's own count, with the estimator behind it.

    Text above `PIECE` characters is counted in pieces that end where every vocabulary splits anyway, so the sum is the
    count of the whole. A run with no such place is cut hard: a merge across that cut is lost, so the count may be off
    by a token or two at each, and it no longer calls itself exact.
    """

    name: str
    encode: Callable[[str], Sequence[int]]
    behind: Estimator
    exact: bool = True

    def count(self, text: str) -> Count:
        """The number of tokens, special tokens counted as the plain text they are."""
        try:
            return self._count(text)
        except UnicodeEncodeError:
            return self._count(whole(text))

    def _count(self, text: str) -> Count:
        tokens, exact = 0, True
        try:
            for piece, clean in pieces(text):
                tokens += len(self.encode(piece))
                exact = exact and clean
        except (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError, UnicodeEncodeError):
            raise
        except BaseException as error:  # noqa: BLE001 (a panic in native code is none of Exception's children)
            guess = self.behind.count(text)
            return Count(guess.tokens, False, f"{guess.source} ({self.name} failed: {type(error).__name__})")
        return Count(max(tokens, 1) if text else 0, exact, self.name)


_SEAM = re.compile(r"(?<=\n)(?=[^\W_])|(?<=[^\W_])(?= [^\W_])|(?<=[^\W\d_])(?=[，。、！？；：])")
"""A place no token crosses: before a word at the start of a line, before the space between two words, and before a
full-width stop after a letter. No difference at 58,000 such places in all twelve vocabularies."""


def pieces(text: str, *, most: int = PIECE) -> Iterator[tuple[str, bool]]:
    """A text in pieces of bounded size, each with whether it ends at a seam (or at the end of the text)."""
    start = 0
    while len(text) - start > most:
        end = _last_seam(text, start + most // 2, start + most)
        yield text[start : end or start + most], bool(end)
        start = end or start + most
    if start < len(text):
        yield text[start:], True


def _last_seam(text: str, low: int, high: int) -> int:
    """The last seam between two places, looking back in small steps because it is usually near; 0 if there is none."""
    step = 256
    for top in range(high, low, -step):
        found = [match.start() for match in _SEAM.finditer(text, max(low, top - step), top)]
        if found:
            return found[-1]
    return 0


def whole(text: str) -> str:
    """Text that can be encoded: halves of a surrogate pair joined, lone ones replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@cache
def exact_counter(vocabulary: str, family: str) -> ExactCounter | None:
    """The first installed tokenizer that has a vocabulary and passes the golden vectors; None if there is none."""
    for package, load in (("splintr", _splintr), ("tiktoken", _tiktoken)):
        try:
            encode = load(vocabulary)
        except ImportError:
            continue
        except (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError):
            raise
        except BaseException as error:  # noqa: BLE001 (native code again)
            _doubt(package, vocabulary, repr(error))
            continue
        if encode is None:
            continue
        counter = ExactCounter(f"{package} {vocabulary}", encode, Estimator(family))
        wrong = first_wrong(counter, vocabulary)
        if not wrong:
            return counter
        _doubt(package, vocabulary, wrong)
    return None


def _doubt(package: str, vocabulary: str, why: str) -> None:
    logging.getLogger("foldline").warning("%s %s is not used, counts are estimates: %s", package, vocabulary, why)


def _splintr(vocabulary: str) -> Callable[[str], Sequence[int]] | None:
    """Its plain encoding: the others read `<|endoftext|>` in a text as one token."""
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
"""What tiktoken calls its files on the disk, and their SHA-256."""


def _tiktoken(vocabulary: str) -> Callable[[str], Sequence[int]] | None:
    """The encoding of tiktoken, if loading it cannot start a download: the file is there and is the right one."""
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
    """Where tiktoken keeps what it has downloaded, by its own rule; None if it keeps nothing."""
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if variable in os.environ:
            return Path(os.environ[variable]) if os.environ[variable] else None
    return Path(tempfile.gettempdir()) / "data-gym-cache"


@cache
def golden() -> tuple[tuple[str, ...], dict[str, tuple[int, ...]]]:
    """Texts, and how many tokens each has in each vocabulary."""
    data = json.loads(pkgutil.get_data(__name__, "golden.json") or b"")
    return tuple(data["texts"]), {name: tuple(counts) for name, counts in data["tokens"].items()}


def first_wrong(counter: Counter, vocabulary: str) -> str:
    """The first golden vector a counter gets wrong, in words; "" if it gets all right."""
    texts, tokens = golden()
    if vocabulary not in tokens:
        return "there are no golden vectors for it"
    for text, expected in zip(texts, tokens[vocabulary], strict=True):
        found = counter.count(text)
        if found.tokens != expected or not found.exact:
            return f"{text[:40]!r} has {expected} tokens, not {found.tokens}"
    return ""
