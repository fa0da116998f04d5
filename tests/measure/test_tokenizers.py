"""Exact counters: equal to the real tokenizers, found by model, offline, and guarded against their failures."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foldline.errors import ConfigError
from foldline.measure.estimator import Estimator
from foldline.measure.tokenizers import (
    PIECE,
    ExactCounter,
    counter_for,
    encodable,
    exact_counter,
    golden_counts,
    golden_mismatch,
    pieces,
)
from support.scripts import HOSTILE, SENTENCES, corpus, hostile

VOCABULARIES = sorted(golden_counts()[1])
SPECIALS = (
    "<|endoftext|> <|im_start|> <|fim_prefix|> <|endofprompt|> <|eot_id|> <|begin_of_text|> <bos> <start_of_turn> "
    "[INST] </s> <|im_end|> <think> <|start|>assistant<|channel|> <｜User｜> <|user|> <|tool_call_begin|>"
)
FILES = {
    "cl100k_base": ("9b5ad71b2ce5302211f9c61530b329a4922fc6a4", 100_256),
    "o200k_base": ("fb374d419588a4632f3f557e76b4b70aebbca790", 199_998),
}
"""What tiktoken calls its files, and how many ordinary tokens are in each."""


def counter(vocabulary: str) -> ExactCounter:
    found = exact_counter(vocabulary, "o200k_base")
    assert found is not None
    return found


@pytest.fixture
def reloaded() -> Iterator[None]:
    """Counters are loaded anew in this test, and again after it."""
    exact_counter.cache_clear()
    yield
    exact_counter.cache_clear()


@pytest.fixture(scope="session")
def tiktoken_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as tiktoken leaves it after a download, filled from splintr: tiktoken checks the SHA-256 itself."""
    import splintr

    folder = tmp_path_factory.mktemp("tiktoken")
    for vocabulary, (name, size) in FILES.items():
        decode = splintr.Tokenizer.from_pretrained(vocabulary).decode_bytes
        lines = (base64.b64encode(decode([rank])) + f" {rank}\n".encode() for rank in range(size))
        (folder / name).write_bytes(b"".join(lines))
    return folder


@pytest.mark.promise("S2.9")
@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_tokenizers_match_the_golden_counts(vocabulary: str) -> None:
    assert golden_mismatch(counter(vocabulary), vocabulary) == ""
    assert counter(vocabulary).count("Hello, world!").source == f"splintr {vocabulary}"


def test_exact_counts_are_those_of_tiktoken(tiktoken_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tiktoken_cache))
    for vocabulary in FILES:
        encode = tiktoken.get_encoding(vocabulary).encode_ordinary
        for name, text in {**corpus(), "special": SPECIALS, "empty": ""}.items():
            assert counter(vocabulary).count(text).tokens == len(encode(text)), name
        assert [len(encode(text)) for text in golden_counts()[0]] == list(golden_counts()[1][vocabulary])


@pytest.mark.promise("S2.9")
@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("gpt-4o-2024-08-06", "splintr o200k_base"),
        ("openai/gpt-4", "splintr cl100k_base"),
        ("gemini-2.5-pro", "splintr gemma3"),
        ("Qwen/Qwen3-32B", "splintr qwen3"),
        ("claude-opus-5", "estimate claude_ge47"),
        ("claude-sonnet-4-5-20250929", "estimate claude_le46"),
        ("somebody-elses-model", "estimate cl100k_base"),
    ],
)
def test_the_counter_follows_the_model(model: str, name: str) -> None:
    assert counter_for(model).name == name
    assert counter_for(model).exact == name.startswith("splintr")


def test_a_policy_can_ask_for_another_counter() -> None:
    assert [counter_for("gpt-4o", kind=kind).name for kind in ("estimate", "chars/4", "chars/3.6", "words")] == [
        "estimate o200k_base",
        "chars/4",
        "chars/3.6",
        "words",
    ]
    with pytest.raises(ConfigError, match=r"unknown counter 'chars'.*chars/4"):
        counter_for("gpt-4o", kind="chars")


MIXED = st.lists(
    st.sampled_from(
        [*SENTENCES.values(), "foo_bar(x)\n", "  \n", "\n\n", " ", "a1 b2", "...", "\r\n", "snake_case Camel", "✅ ok"]
    ),
    min_size=5,
    max_size=40,
).map("".join)


@settings(max_examples=60, deadline=None)
@given(MIXED, st.sampled_from(VOCABULARIES), st.integers(40, 200))
def test_pieces_are_the_text_and_seams_cost_nothing(text: str, vocabulary: str, most: int) -> None:
    parts = list(pieces(text, most=most))
    assert "".join(piece for piece, _ in parts) == text
    assert all(0 < len(piece) <= most for piece, _ in parts)
    encode = counter(vocabulary).encode
    if all(clean for _, clean in parts):
        assert sum(len(encode(piece)) for piece, _ in parts) == len(encode(text))


def test_a_long_text_is_exact_unless_it_had_to_be_cut_hard() -> None:
    exact = counter("o200k_base")
    talk = (SENTENCES["english"] + "\n" + SENTENCES["chinese"]) * 400
    assert len(talk) > 3 * PIECE
    assert (exact.count(talk).tokens, exact.count(talk).exact) == (len(exact.encode(talk)), True)
    solid = "ab1" * PIECE
    assert exact.count(solid).exact is False
    assert exact.count(solid).tokens == pytest.approx(len(exact.encode(solid)), abs=2 * len(solid) / PIECE)


@pytest.mark.parametrize("vocabulary", ["o200k_base", "gemma4"])
@pytest.mark.parametrize("name", HOSTILE)
def test_co17_a_megabyte_of_anything_is_counted_in_time(name: str, vocabulary: str) -> None:
    count = counter(vocabulary).count(hostile(name, 1_000_000))
    assert 0 < count.tokens <= 1_000_000
    assert count.source == f"splintr {vocabulary}"


def test_co15_special_tokens_are_plain_text() -> None:
    for vocabulary in VOCABULARIES:
        exact = counter(vocabulary)
        for special in SPECIALS.split():
            assert exact.count(special * 3).tokens > 3, (vocabulary, special)


def test_lone_surrogates_are_replaced_and_pairs_joined() -> None:
    assert encodable("a\ud83d\ude00b\ud800c") == "a😀b\ufffdc"
    exact = counter("o200k_base")
    assert exact.count("a\ud83d\ude00b").tokens == exact.count("a😀b").tokens
    assert exact.count("\ud800").tokens > 0


class Panic(BaseException):
    """What native code raises when it panics: no child of Exception."""


def test_co31_after_a_panic_the_count_is_an_estimate_that_names_the_failure() -> None:
    def panic(_: str) -> list[int]:
        raise Panic

    count = ExactCounter("native x", panic, Estimator("o200k_base")).count("some text")
    assert (count.tokens, count.exact) == (Estimator("o200k_base").count("some text").tokens, False)
    assert count.source == "estimate o200k_base (native x failed: Panic)"


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, MemoryError])
def test_an_interrupt_stops_a_count(stop: type[BaseException]) -> None:
    def interrupted(_: str) -> list[int]:
        raise stop

    with pytest.raises(stop):
        ExactCounter("native x", interrupted, Estimator()).count("some text")


@pytest.mark.usefixtures("reloaded")
def test_a_tokenizer_that_counts_wrong_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """There are packages that silently count bytes when they are offline."""

    class Tokenizer:
        @staticmethod
        def from_pretrained(_: str) -> Tokenizer:
            return Tokenizer()

        def encode_ordinary(self, text: str) -> bytes:
            return text.encode()

    fake = types.ModuleType("splintr")
    fake.Tokenizer = Tokenizer  # type: ignore[attr-defined]  # a module made by hand
    monkeypatch.setitem(sys.modules, "splintr", fake)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert counter_for("gpt-4o").name == "estimate o200k_base"
    assert "splintr o200k_base is not used" in caplog.text
    assert "'Hello, world!' has 4 tokens, not 13" in caplog.text


@pytest.mark.usefixtures("reloaded")
def test_tiktoken_is_used_when_its_file_is_there(tiktoken_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tiktoken")
    monkeypatch.setitem(sys.modules, "splintr", None)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tiktoken_cache))
    found = counter_for("gpt-4o")
    assert found.name == "tiktoken o200k_base"
    for name in HOSTILE:
        assert found.count(hostile(name, 300_000)).tokens > 0
    assert counter_for("qwen3-32b").name == "estimate qwen3"


OFFLINE = """
import sys
def watch(event, _):
    if event.startswith("socket."):
        raise SystemExit("a socket was opened: " + event)
sys.addaudithook(watch)
if sys.argv[1] == "alone":
    sys.modules["splintr"] = None
from foldline.measure.tokenizers import counter_for
print(counter_for("gpt-4o").count("Hello, world!").source)
"""


@pytest.mark.promise("I10")
@pytest.mark.parametrize(("with_splintr", "source"), [("both", "splintr o200k_base"), ("alone", "estimate o200k_base")])
@pytest.mark.parametrize("broken", [False, True])
def test_co18_the_first_count_opens_no_connection(tmp_path: Path, with_splintr: str, source: str, broken: bool) -> None:
    """Nor when tiktoken's file is damaged, which it would otherwise remove and fetch again."""
    if broken:
        (tmp_path / FILES["o200k_base"][0]).write_bytes(b"aGVsbG8= 0\n")
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE, with_splintr],
        env={**os.environ, "TIKTOKEN_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.strip(), done.returncode) == (source, 0), done.stderr


@pytest.mark.promise("S0.15", "S4.21")
def test_estimates_load_no_tokenizer() -> None:
    code = """
import sys
from foldline.measure.tokenizers import counter_for
for kind in ("estimate", "chars/4", "chars/3.6", "words"):
    counter_for("gpt-4o", kind=kind).count("some text")
counter_for("claude-opus-5").count("some text")
print({"splintr", "tiktoken"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
