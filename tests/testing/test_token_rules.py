"""The simulated provider counts tokens like a real one, also on a machine without a tokenizer."""

from __future__ import annotations

import subprocess
import sys

import pytest

from foldline.testing.provider import Account

TEXTS = {
    "hello world " * 200: 401,
    "question " * 300: 301,
    "The quick brown fox jumps over the lazy dog. " * 100: 1_001,
    "The parser reads a token and returns the node. " * 80: 801,
    "why is line 5 so long? " * 100: 801,
    "x = compute_value(index, total)\n" * 100: 800,
}
"""Texts that tests repeat, with their tokens by o200k."""
COUNT = """
import sys
sys.modules["splintr"] = sys.modules["tiktoken"] = None
from foldline.testing.provider.token_rules import default_counter
print(default_counter()(sys.stdin.read()))
"""


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:12])
def test_without_a_tokenizer_repeated_words_are_counted_within_a_sixth(text: str) -> None:
    done = subprocess.run([sys.executable, "-c", COUNT], input=text, capture_output=True, text=True, check=True)
    assert int(done.stdout) == pytest.approx(TEXTS[text], rel=1 / 6)


def test_no_prompt_has_more_tokens_than_bytes() -> None:
    def size(content: str) -> int:
        body = {"model": "claude-opus-5", "messages": [{"role": "user", "content": content}]}
        return int(Account().answer("anthropic", body, endpoint="count").body["input_tokens"])

    digits = "1,2,3,4,5,6,7,8,9," * 100
    assert size(digits) - size("a") <= len(digits)
