"""Context budget: the documented behaviour, and foldline's deviations from it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.compat.context_budget import ContextBudget, ScratchModel, build_compact_prompt, extract_text
from foldline.errors import ConfigError
from support.agent_events import EVENTS, boundary, call, reply, result, said


def ended(used: int, **fields: Any) -> dict[str, Any]:
    """A result event that carries usage, as the design reads it."""
    return result(usage={"input_tokens": used}, **fields)


@pytest.mark.promise("S1.1", "S1.2", "S1.3", "S1.6")
@pytest.mark.parametrize("place", ["top", "usage"])
def test_a_result_event_gives_the_three_counters(place: str) -> None:
    counts = {"input_tokens": 10, "cache_creation_input_tokens": 200, "cache_read_input_tokens": 3000}
    budget = ContextBudget()
    budget.update({"type": "tool_use", **counts})
    assert budget.used_tokens == 0
    budget.update(result(**counts) if place == "top" else result(usage=counts))
    assert budget.input_tokens == 10
    assert budget.cache_creation_input_tokens == 200
    assert budget.cache_read_input_tokens == 3000
    assert budget.used_tokens == 3210


@pytest.mark.promise("S1.6", "F7")
def test_counts_at_the_top_are_found_beside_an_empty_usage() -> None:
    budget = ContextBudget()
    budget.update(result(usage={}, input_tokens=7))
    budget.update(result(usage=None, input_tokens=9))
    assert budget.used_tokens == 9


@pytest.mark.promise("S1.4", "S1.5")
def test_utilization_is_a_share_of_the_window_and_may_exceed_it() -> None:
    budget = ContextBudget()
    assert budget.context_window == 200_000
    budget.update(ended(50_000))
    assert budget.utilization == 0.25
    budget.update(ended(300_000))
    assert budget.utilization == 1.5


@pytest.mark.promise("S1.7", "S1.8", "S1.11")
@pytest.mark.parametrize(
    ("used", "warn", "compact"),
    [(139_999, False, False), (140_000, True, False), (155_999, True, False), (156_000, True, True)],
)
def test_flags_are_set_at_their_thresholds(used: int, warn: bool, compact: bool) -> None:
    budget = ContextBudget()
    budget.update(ended(used))
    assert (budget.should_warn, budget.should_compact) == (warn, compact)


@pytest.mark.promise("S1.10")
def test_flags_stay_until_they_are_cleared() -> None:
    budget = ContextBudget()
    budget.update(ended(160_000))
    budget.update(ended(10))
    assert budget.should_warn
    assert budget.should_compact
    budget.clear_warning()
    assert not budget.should_warn
    assert budget.should_compact
    budget.clear_compact()
    assert not budget.should_compact
    budget.update(result(input_tokens=170_000))
    budget.clear_compact()
    assert not budget.should_warn


@pytest.mark.promise("S1.7", "S1.8", "S1.11")
def test_thresholds_may_be_given_in_any_order() -> None:
    budget = ContextBudget(compact_threshold=0.5)
    assert (budget.warning_threshold, budget.compact_threshold) == (0.70, 0.5)
    budget.update(result(input_tokens=90_000))
    assert not budget.should_warn
    budget.update(result(input_tokens=100_000))
    assert budget.should_warn
    assert budget.should_compact


@pytest.mark.promise("S1.18")
def test_a_state_change_takes_the_documented_keywords() -> None:
    scratch = ScratchModel()
    scratch.record_state_change(previous_state="PLAN", new_state="WORK")
    scratch.record_state_change(previous="WORK", new="DONE")
    assert scratch.state_changes == [{"from": "PLAN", "to": "WORK"}, {"from": "WORK", "to": "DONE"}]


def test_an_impossible_setting_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="window of -1 tokens is impossible"):
        ContextBudget(context_window=-1)


@pytest.mark.promise("F7")
def test_occupancy_is_the_last_call_and_not_the_sum_of_a_turn() -> None:
    budget = ContextBudget()
    budget.update(reply(60_000))
    budget.update(reply(61_000))
    budget.update(ended(121_000))
    assert budget.used_tokens == 61_000
    assert not budget.should_warn


@pytest.mark.promise("F7")
def test_null_counts_as_zero() -> None:
    budget = ContextBudget()
    budget.update(result(usage={"input_tokens": 5, "cache_read_input_tokens": None}))
    assert budget.used_tokens == 5


def test_a_sub_agent_fills_a_window_of_its_own() -> None:
    budget = ContextBudget()
    budget.update(reply(20_000))
    budget.update(reply(190_000, parent_tool_use_id="toolu_1"))
    budget.update(reply(190_000, isSidechain=True))
    assert budget.used_tokens == 20_000
    assert not budget.should_warn


@pytest.mark.promise("F8")
def test_the_model_decides_the_window_and_the_source_is_shown() -> None:
    budget = ContextBudget()
    assert "default" in budget.window_source
    budget.update(reply(20_000, model="claude-opus-5"))
    assert budget.context_window == 1_000_000
    assert "models.toml" in budget.window_source
    budget.update(
        result(modelUsage={"claude-opus-5": {"contextWindow": 500_000}, "claude-haiku-4-5": {"contextWindow": 9}})
    )
    assert budget.context_window == 500_000
    assert "claude-opus-5" in budget.window_source
    assert ContextBudget(context_window=1_000).context_window == 1_000


@pytest.mark.promise("F8")
def test_the_1m_suffix_of_a_model_stays_when_later_events_omit_it() -> None:
    budget = ContextBudget()
    budget.update({"type": "system", "subtype": "init", "model": "claude-sonnet-4-5[1m]"})
    budget.update(reply(300_000, model="claude-sonnet-4-5"))
    assert budget.context_window == 1_000_000


@pytest.mark.promise("F8")
def test_a_window_argument_overrides_the_stream() -> None:
    budget = ContextBudget(context_window=100_000)
    budget.update(reply(10, model="claude-opus-5"))
    budget.update(result(modelUsage={"claude-opus-5": {"contextWindow": 1_000_000}}))
    assert budget.context_window == 100_000
    budget.context_window = 50_000
    assert budget.context_window == 50_000


@pytest.mark.promise("F24")
def test_a_compaction_by_the_agent_resets_the_flags() -> None:
    budget = ContextBudget()
    budget.update(reply(160_000))
    assert budget.should_compact
    event = boundary()
    event["compact_metadata"]["post_tokens"] = 12_000
    budget.update(event)
    assert not budget.should_warn
    assert not budget.should_compact
    assert budget.used_tokens == 12_000


@pytest.mark.promise("F9")
def test_a_flag_belongs_to_its_session() -> None:
    budget = ContextBudget()
    budget.update(reply(160_000, session="a"))
    budget.update({"type": "system", "subtype": "hook_started", "session_id": "b"})
    assert budget.should_compact
    budget.update({"type": "system", "subtype": "init", "session_id": "b"})
    assert not budget.should_compact
    assert budget.used_tokens == 0


@pytest.mark.promise("S1.12")
def test_the_compact_prompt_has_the_documented_text() -> None:
    assert build_compact_prompt(task="fix the parser", cfa_state="PLANNING") == (
        "/compact focus on fix the parser -- current CfA state is PLANNING"
    )
    assert build_compact_prompt(task="t", cfa_state="WORK", scratch_path=".context/scratch.md") == (
        "/compact focus on t -- current CfA state is WORK\n"
        "After compaction, read .context/scratch.md for preserved context."
    )


@given(st.text(), st.text(), st.text())
def test_a_task_with_line_breaks_stays_on_one_line(task: str, state: str, path: str) -> None:
    lines = build_compact_prompt(task=task, cfa_state=state, scratch_path=path).splitlines()
    assert len(lines) == 1 + bool(path)
    assert lines[0].startswith("/compact focus on ")


@pytest.mark.promise("S1.16")
@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        ([{"type": "text", "text": "one"}, {"type": "image"}, {"type": "text", "text": "two"}], "one\ntwo"),
        ([{"type": "text"}, None, 5], ""),
        (None, ""),
        ({"type": "text", "text": "x"}, ""),
    ],
)
def test_extract_text_returns_the_text_blocks(content: Any, text: str) -> None:
    assert extract_text(content) == text


@given(st.lists(EVENTS, max_size=12))
def test_no_event_raises_and_a_flag_stays_set(events: list[Any]) -> None:
    budget = ContextBudget()
    for event in events:
        before = (budget.should_warn, budget.should_compact, budget.meter.session, budget.meter.compactions)
        budget.update(event)
        same = before[2:] == (budget.meter.session, budget.meter.compactions)
        assert not same or (budget.should_warn, budget.should_compact) >= before[:2]
        assert budget.should_warn or not budget.should_compact
        assert budget.used_tokens >= 0
        assert budget.context_window > 0
        assert str(budget)


@given(st.lists(st.integers(1, 400_000), min_size=1, max_size=20))
def test_flags_are_those_of_the_fullest_call(sizes: list[int]) -> None:
    budget = ContextBudget(context_window=200_000)
    for size in sizes:
        budget.update(ended(size))
    assert budget.should_warn == (max(sizes) >= 140_000)
    assert budget.should_compact == (max(sizes) >= 156_000)
    assert budget.used_tokens == sizes[-1]


@pytest.mark.parametrize("window", [0, -1, 1.5, True])
def test_an_impossible_window_is_refused(window: Any) -> None:
    with pytest.raises(ConfigError, match="above 0"):
        ContextBudget(context_window=window)
    with pytest.raises(ConfigError, match="above 0"):
        ContextBudget().context_window = window


def test_impossible_thresholds_are_refused() -> None:
    with pytest.raises(ConfigError, match="give thresholds above 0"):
        ContextBudget(warning_threshold=0.0)


@pytest.mark.promise("S1.14", "S1.15", "S1.17", "S1.18", "S1.19")
def test_the_design_example_runs() -> None:
    budget, scratch = ContextBudget(), ScratchModel(job="parser")
    for event in (said("fix it"), reply(160_000, call("Edit", file_path="a.py")), result()):
        budget.update(event)
        scratch.extract(event)
    scratch.record_state_change("PLAN", "WORK")
    scratch.add_dead_end("regexes")
    assert budget.should_compact
    assert scratch.human_inputs == ["fix it"]
    assert scratch.artifacts == ["a.py"]
    assert scratch.state_changes == [{"from": "PLAN", "to": "WORK"}]
    assert scratch.dead_ends == ["regexes"]
