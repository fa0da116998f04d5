"""Similarity in meaning: word vectors read from the data files of a package, here from a small one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foldline.message import assistant, user
from foldline.recall import candidates
from foldline.recall.word_vectors import VOCABULARY, WEIGHTS, WordVectors
from foldline.session import Session

np = pytest.importorskip("numpy")

WORDS = {
    "\u2581doctor": (1, 0, 0),
    "\u2581physician": (0.9, 0.1, 0),
    "\u2581garden": (0, 1, 0),
    "\u2581gard": (0, 0, 1),
}


@pytest.fixture
def vectors(tmp_path: Path) -> WordVectors:
    rows = np.array(list(WORDS.values()), dtype=np.float16)
    head = json.dumps({"embedding.weight": {"dtype": "F16", "shape": rows.shape, "data_offsets": [0, rows.nbytes]}})
    for name in (WEIGHTS, VOCABULARY):
        (tmp_path / name).parent.mkdir()
    (tmp_path / WEIGHTS).write_bytes(len(head).to_bytes(8, "little") + head.encode() + rows.tobytes())
    vocabulary = {"model": {"vocab": {word: number for number, word in enumerate(WORDS)}}}
    (tmp_path / VOCABULARY).write_text(json.dumps(vocabulary))
    return WordVectors(tmp_path)


def test_words_of_similar_meaning_are_similar(vectors: WordVectors) -> None:
    near, far, none = vectors.similarities("my doctor", ["a physician", "the garden", "of 7"])
    assert near > 0.9
    assert far < 0.1
    assert none == 0.0
    assert vectors.similarities("doctor", []) == []


def test_a_word_is_divided_into_the_longest_known_pieces(vectors: WordVectors) -> None:
    whole, part = vectors.similarities("garden", ["garden", "garde"])
    assert whole == pytest.approx(1.0)
    assert part == 0.0


def test_a_message_in_other_words_comes_first(vectors: WordVectors, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without vectors, both messages match one word of the query equally well, and the newer one comes first."""
    session = Session()
    talk = [user("the physician appointment is on Monday"), *[assistant("well " * 300)] * 9]
    session.add(*talk, user("the garden appointment is on Friday"))
    query = "appointment with my doctor"
    monkeypatch.setattr(candidates, "installed_vectors", lambda: None)
    assert session.recall(query)[0].handle == "#11"
    monkeypatch.setattr(candidates, "installed_vectors", lambda: vectors)
    assert session.recall(query)[0].handle == "#1"
