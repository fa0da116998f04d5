"""Similarity of texts in meaning, computed from static word vectors. It needs the extra `recall`, but no model.

`wordllama` ships the vectors of 32,000 word pieces (16 MB). Only its two data files are read; its code is not imported.
The vector of a text is the sum of the vectors of its distinct words. A word that is not in the vocabulary is split into
the longest pieces that are in the vocabulary.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foldline.recall.terms import STOP

if TYPE_CHECKING:
    import numpy as np

PACKAGE = "wordllama"
WEIGHTS, VOCABULARY = "weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json"
TEXT_CHARS = 1000
"""Only this many characters at the start of a text are read. Reading more took longer, but did not rank better."""
PIECE_CHARS = 16
CACHED_WORDS = 1 << 15
_WORD = re.compile(r"[^\W\d_]+|[0-9]+")


class WordVectors:
    """The vectors of word pieces, read from a folder with the two data files of `wordllama`."""

    def __init__(self, folder: Path) -> None:
        import numpy as np  # noqa: PLC0415  # an extra

        path = folder / WEIGHTS
        with path.open("rb") as file:
            head = json.loads(file.read(int.from_bytes(file.read(8), "little")))
            start = file.tell()
        tensor = next(entry for name, entry in head.items() if name != "__metadata__")
        dtype = {"F16": np.float16, "F32": np.float32}[tensor["dtype"]]
        stored = np.memmap(path, dtype, mode="r", offset=start, shape=tuple(tensor["shape"]))
        self._rows: Any = stored.astype(
            np.float32
        )  # takes 32 MB; sums of half-precision numbers would take four times as long
        self._vocabulary: dict[str, int] = json.loads((folder / VOCABULARY).read_bytes())["model"]["vocab"]
        self._pieces: dict[str, tuple[int, ...]] = {}
        self._np = np

    def similarities(self, query: str, texts: list[str]) -> list[float]:
        """The cosine similarity of each text to the query; 0.0 if the cosine is negative."""
        np = self._np
        wanted = self._vector(query)
        vectors = np.stack([self._vector(text) for text in texts]) if texts else np.zeros((0, len(wanted)))
        return [max(0.0, float(value)) for value in vectors @ wanted]

    def _vector(self, text: str) -> np.ndarray[Any, Any]:
        """The vector of a text, of length 1; zeros if it has no words."""
        rows: list[int] = []
        for word in dict.fromkeys(_WORD.findall(text, 0, TEXT_CHARS)):
            pieces = self._pieces.get(word)
            if pieces is None:
                if len(self._pieces) >= CACHED_WORDS:
                    self._pieces.clear()
                pieces = self._pieces[word] = () if word.casefold() in STOP else self._split(word)
            rows += pieces
        total: np.ndarray[Any, Any] = self._rows[rows].sum(axis=0)
        length = float(total @ total) ** 0.5
        return total / length if length else total

    def _split(self, word: str) -> tuple[int, ...]:
        """The row numbers of a word's pieces.

        Each piece is as long as possible. The first piece includes the character that marks the start of a word.
        """
        marked, at, found = f"\u2581{word}", 0, []
        while at < len(marked):
            ends = range(min(len(marked), at + PIECE_CHARS), at, -1)
            end = next((end for end in ends if marked[at:end] in self._vocabulary), 0)
            if end:
                found.append(self._vocabulary[marked[at:end]])
            at = end or at + 1
        return tuple(found)


@cache
def installed_vectors() -> WordVectors | None:
    """The vectors of the installed package; None if the extra is not installed."""
    spec = find_spec(PACKAGE) if find_spec("numpy") else None
    for folder in (spec and spec.submodule_search_locations) or ():
        if (Path(folder) / WEIGHTS).is_file() and (Path(folder) / VOCABULARY).is_file():
            return WordVectors(Path(folder))
    return None
