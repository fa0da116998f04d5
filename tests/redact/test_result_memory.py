"""Redacted texts are remembered: bounded in number and size, and without the secrets."""

from __future__ import annotations

import pytest

from foldline.redact import value_shape
from foldline.redact.redact import ResultMemory, redact


class Masking:
    """A function that masks the word `secret` and keeps a list of the texts that it was called with."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, text: str) -> str:
        self.texts.append(text)
        return text.replace("secret", "[redacted]")


def test_a_text_is_read_once() -> None:
    memory, mask = ResultMemory(max_entries=9, max_chars=99), Masking()
    for _ in range(3):
        assert memory.result_of(mask, "a secret") == "a [redacted]"
        assert memory.result_of(mask, "no word") == "no word"
    assert mask.texts == ["a secret", "no word"]


def test_the_result_of_an_idempotent_function_is_not_read_again() -> None:
    memory, mask = ResultMemory(max_entries=9, max_chars=99, is_idempotent=True), Masking()
    assert memory.result_of(mask, memory.result_of(mask, "a secret")) == "a [redacted]"
    assert mask.texts == ["a secret"]


def test_the_oldest_texts_are_forgotten_when_there_are_too_many() -> None:
    memory, mask = ResultMemory(max_entries=2, max_chars=99), Masking()
    for text in ("one", "two", "one", "three", "one", "two"):
        assert memory.result_of(mask, text) == text
    assert mask.texts == ["one", "two", "three", "two"]


def test_the_oldest_texts_are_forgotten_when_the_results_are_too_long() -> None:
    memory, mask = ResultMemory(max_entries=9, max_chars=30), Masking()
    for number in range(3):
        assert memory.result_of(mask, f"secret {number}") == f"[redacted] {number}"
    mask.texts.clear()
    for number in (2, 1, 0):
        memory.result_of(mask, f"secret {number}")
    assert mask.texts == ["secret 0"]
    assert memory.result_of(mask, "secret " * 20) == "[redacted] " * 20
    assert memory.result_of(mask, "kept " * 20) == "kept " * 20


@pytest.mark.parametrize("text", ["\ud800 secret", "\U0001f600", ""])
def test_any_text_has_a_result(text: str) -> None:
    memory = ResultMemory(max_entries=9, max_chars=99)
    assert memory.result_of(str.upper, text) == memory.result_of(str.upper, text) == text.upper()


def test_no_secret_is_stored() -> None:
    memory = ResultMemory(max_entries=9, max_chars=99)
    memory.result_of(Masking(), "my secret word")
    stored = repr([getattr(memory, name) for name in vars(memory)])
    assert "[redacted]" in stored
    assert "secret" not in stored


def test_no_checked_value_stays_in_memory_after_a_search() -> None:
    assert "tr0ub4dor" not in redact("The password is 'tr0ub4dor-3', not PASSWORD=<your-password> or 'a good pass 7'.")
    checks = [each for each in vars(value_shape).values() if hasattr(each, "cache_info")]
    remembered = {check.__name__: check.cache_info().currsize for check in checks if check is not value_shape.run_of}
    assert set(remembered) >= {"looks_typed", "is_passphrase"}
    assert not any(remembered.values())
