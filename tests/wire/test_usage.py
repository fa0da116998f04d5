"""Usage of six providers becomes one figure for what fills the window."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.message import Usage
from foldline.wire.anthropic.usage import anthropic_usage
from foldline.wire.gemini.usage import gemini_usage
from foldline.wire.openai_chat.usage import chat_usage
from foldline.wire.openai_responses.usage import responses_usage
from foldline.wire.session_logs.usage import codex_usage, pi_usage

READERS = {
    "anthropic": anthropic_usage,
    "chat": chat_usage,
    "responses": responses_usage,
    "codex": codex_usage,
    "gemini": gemini_usage,
    "pi": pi_usage,
}

FIGURES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=0, max_value=300_000),
    st.floats(),
    st.text(max_size=5),
)
KEYS = [
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "prompt_tokens",
    "completion_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "thinking_tokens",
    "ephemeral_5m_input_tokens",
    "ephemeral_1h_input_tokens",
    "cached_input_tokens",
    "reasoning_output_tokens",
    "promptTokenCount",
    "cachedContentTokenCount",
    "candidatesTokenCount",
    "thoughtsTokenCount",
    "toolUsePromptTokenCount",
    "prompt_token_count",
    "input",
    "output",
    "cacheRead",
    "cacheWrite",
    "prompt_cache_hit_tokens",
    "type",
]
NESTS = [
    "cache_creation",
    "prompt_tokens_details",
    "completion_tokens_details",
    "input_tokens_details",
    "output_tokens_details",
    "info",
    "last_token_usage",
    "total_token_usage",
    "iterations",
]
FLAT = st.dictionaries(st.sampled_from(KEYS), FIGURES, max_size=5)
NESTED = st.dictionaries(st.sampled_from(NESTS), st.one_of(FLAT, FIGURES, st.lists(FLAT, max_size=2)), max_size=3)
REPORTS = st.builds(lambda flat, nested: {**flat, **nested}, FLAT, NESTED)


# One request of 100,000 tokens, 90,000 of them read from the cache, as each provider reports it.
SAME = [
    ("anthropic", {"input_tokens": 10_000, "cache_read_input_tokens": 90_000, "output_tokens": 500}),
    (
        "chat",
        {"prompt_tokens": 100_000, "completion_tokens": 500, "prompt_tokens_details": {"cached_tokens": 90_000}},
    ),
    ("chat", {"prompt_tokens": 100_000, "completion_tokens": 500, "prompt_cache_hit_tokens": 90_000}),
    ("responses", {"input_tokens": 100_000, "output_tokens": 500, "input_tokens_details": {"cached_tokens": 90_000}}),
    ("codex", {"last_token_usage": {"input_tokens": 100_000, "cached_input_tokens": 90_000, "output_tokens": 500}}),
    ("gemini", {"promptTokenCount": 100_000, "cachedContentTokenCount": 90_000, "candidatesTokenCount": 500}),
    ("gemini", {"prompt_token_count": 100_000, "cached_content_token_count": 90_000, "candidates_token_count": 500}),
    ("pi", {"input": 10_000, "output": 500, "cacheRead": 90_000, "cacheWrite": 0, "cost": {"total": 0.1}}),
]


@pytest.mark.parametrize(("provider", "value"), SAME)
def test_co19_cached_tokens_are_counted_once_in_every_format(provider: str, value: dict[str, Any]) -> None:
    assert READERS[provider](value) == Usage(input=10_000, cache_read=90_000, output=500)


def test_cache_writes_are_inside_for_openai_and_beside_for_anthropic() -> None:
    details = {"cached_tokens": 60, "cache_write_tokens": 30}
    expected = Usage(input=10, cache_read=60, cache_write=30, output=1)
    assert chat_usage({"prompt_tokens": 100, "completion_tokens": 1, "prompt_tokens_details": details}) == expected
    assert responses_usage({"input_tokens": 100, "output_tokens": 1, "input_tokens_details": details}) == expected
    beside = {"input_tokens": 10, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 30, "output_tokens": 1}
    assert anthropic_usage(beside) == expected


def test_a_server_that_reports_more_cached_than_prompt_reports_it_beside() -> None:
    found = chat_usage({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 90}})
    assert found is not None
    assert found.prompt == 100


def test_anthropic_hour_writes_and_thinking_are_shares() -> None:
    found = anthropic_usage(
        {
            "input_tokens": 2,
            "cache_creation_input_tokens": None,
            "cache_creation": {"ephemeral_5m_input_tokens": 522, "ephemeral_1h_input_tokens": 19_151},
            "output_tokens": 168,
            "output_tokens_details": {"thinking_tokens": 100},
        }
    )
    assert found == Usage(input=2, cache_write=19_673, output=168, reasoning=100, cache_write_1h=19_151)


def test_co21_a_compaction_pass_is_not_in_the_window() -> None:
    value: dict[str, Any] = {
        "input_tokens": 23_000,
        "output_tokens": 1_000,
        "iterations": [
            {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500},
            {"type": "message", "input_tokens": 23_000, "output_tokens": 1_000},
        ],
    }
    assert anthropic_usage(value) == Usage(input=23_000, output=1_000)
    value["iterations"] = value["iterations"][:1]
    assert anthropic_usage(value) == Usage(input=23_000, output=1_000)


def test_co21_a_tool_loop_of_twelve_calls_counts_the_last_iteration_only() -> None:
    calls = [
        {"type": "message", "input_tokens": 5, "cache_read_input_tokens": 150_000 + n, "output_tokens": 10}
        for n in range(12)
    ]
    total = {"input_tokens": 60, "cache_read_input_tokens": 1_800_066, "output_tokens": 120, "iterations": calls}
    assert anthropic_usage(total) == Usage(input=5, cache_read=150_011, output=10)


def test_co21_codex_running_total_is_not_the_window() -> None:
    info = {
        "total_token_usage": {"input_tokens": 33_554, "cached_input_tokens": 18_688, "output_tokens": 1_008},
        "last_token_usage": {
            "input_tokens": 18_823,
            "cached_input_tokens": 15_232,
            "output_tokens": 358,
            "reasoning_output_tokens": 46,
        },
    }
    expected = Usage(input=3_591, cache_read=15_232, output=358, reasoning=46)
    assert codex_usage(info) == expected
    assert codex_usage({"type": "token_count", "info": info, "rate_limits": {}}) == expected
    assert codex_usage({"type": "token_count", "info": None}) is None


def test_gemini_thoughts_are_output_and_tool_results_are_input() -> None:
    value = {
        "promptTokenCount": 100,
        "toolUsePromptTokenCount": 20,
        "candidatesTokenCount": 7,
        "thoughtsTokenCount": 30,
        "totalTokenCount": 157,
    }
    assert gemini_usage(value) == Usage(input=120, output=37, reasoning=30)


@pytest.mark.parametrize("provider", READERS)
@pytest.mark.parametrize("value", [None, {}, [], 5, "x", True, {"input_tokens": None}, {"prompt_tokens": 0}])
def test_no_usage_is_none(provider: str, value: Any) -> None:
    assert READERS[provider](value) is None


@pytest.mark.parametrize("bad", [-5, "12", True, 1e300, float("nan"), float("inf"), 2**70, [], {}, 0.5])
def test_garbage_counts_as_nothing(bad: Any) -> None:
    assert anthropic_usage({"input_tokens": bad, "output_tokens": 3}) == Usage(output=3)
    assert chat_usage({"prompt_tokens": 8, "prompt_tokens_details": {"cached_tokens": bad}}) == Usage(input=8)


@given(provider=st.sampled_from(sorted(READERS)), value=REPORTS)
def test_every_report_is_read_without_fault(provider: str, value: dict[str, Any]) -> None:
    found = READERS[provider](value)
    if found is not None:
        assert all(type(figure) is int and figure >= 0 for figure in found)
        assert found.reasoning <= found.output
        assert found.cache_write_1h <= found.cache_write
        assert found.prompt + found.output > 0


CACHED = [
    # prompt, cached, output, total, expected
    (100, 300, 5, 105, Usage(input=100, output=5)),
    (100, 300, 5, 405, Usage(input=100, cache_read=300, output=5)),
    (100, 300, 5, None, Usage(input=100, cache_read=300, output=5)),
    (100, 90, 5, 105, Usage(input=10, cache_read=90, output=5)),
    (0, 300, 5, 305, Usage(output=5)),
    (-5, 300, 5, 300, Usage(output=5)),
    (None, 300, 5, None, Usage(output=5)),
]


@pytest.mark.parametrize(("prompt", "cached", "output", "total", "expected"), CACHED)
def test_cached_tokens_are_part_of_a_prompt(
    prompt: int | None, cached: int, output: int, total: int | None, expected: Usage
) -> None:
    details = {"cached_tokens": cached}
    chat = {"prompt_tokens": prompt, "completion_tokens": output, "prompt_tokens_details": details}
    assert chat_usage({**chat, "total_tokens": total}) == expected
    found = {"input_tokens": prompt, "output_tokens": output, "input_tokens_details": details}
    assert responses_usage({**found, "total_tokens": total}) == expected
    gemini = {"promptTokenCount": prompt, "cachedContentTokenCount": cached, "candidatesTokenCount": output}
    assert gemini_usage({**gemini, "totalTokenCount": total}) == expected
