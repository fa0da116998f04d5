"""How full the window is, and when the flags are set and cleared."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.compat.context_budget import ContextBudget
from foldline.watch.meter import Meter
from foldline.watch.watcher import Watcher, WatchEvent
from support.agent_events import MODEL, SOUND, boundary, call, lines, reply, result, said
from support.watching import feed_all, named, watch_json


@pytest.mark.promise("S1.5")
def test_a_resumed_session_has_its_model_and_window() -> None:
    watch = Watcher()
    for session, model in (("a", f"{MODEL}[1m]"), ("b", "claude-haiku-4-5")):
        feed_all(watch, {"type": "system", "subtype": "init", "session_id": session, "model": model})
    assert not named(feed_all(watch, reply(300_000, session="a")), "warning")
    assert watch.meter.window.tokens == 1_000_000
    feed_all(
        watch, {"type": "system", "subtype": "init", "session_id": "c", "model": MODEL}, reply(160_000, session="c")
    )
    assert watch.meter.should_compact
    watch = Watcher()
    feed_all(watch, reply(160_000), result(modelUsage={MODEL: {"contextWindow": 1_000_000}}), reply(9, session="b"))
    assert not named(feed_all(watch, reply(161_000)), "warning")


def test_a_smaller_window_clears_no_flag() -> None:
    watch = Watcher()
    feed_all(watch, reply(170_000), reply(100_000), result(modelUsage={MODEL: {"contextWindow": 190_000}}))
    assert watch.meter.should_warn
    assert watch.meter.should_compact


@pytest.mark.promise("F9")
def test_a_later_piece_of_a_reply_belongs_to_its_own_session() -> None:
    watch = Watcher()
    wish = reply(1_000, call("compact_context", focus="task of a"), session="a")
    found = feed_all(watch, reply(1_000, session="a"), said("go", session_id="b"), wish, result(session_id="b"))
    assert not named(found, "intervention")


@pytest.mark.promise("S1.7", "S1.8")
def test_a_session_that_is_full_at_its_first_event_is_reported() -> None:
    watch = Watcher()
    feed_all(watch, reply(160_000, session="a"))
    found = feed_all(watch, reply(159_000, session="b"))
    assert [notice.event for notice in found] == ["session", "meter", "warning", "compact"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(3, 200_000)), max_size=20))
def test_alternating_sessions_in_one_stream_keep_their_figures(steps: list[tuple[str, int]]) -> None:
    watch, last = Watcher(), dict[str, int]()
    for session, used in steps:
        feed_all(watch, reply(used, session=session))
        last[session] = used
    for session, used in last.items():
        found = named(feed_all(watch, result(session_id=session)), "turn")
        assert [notice.facts["used"] for notice in found] == [used]


@pytest.mark.promise("S1.5", "S1.10")
def test_a_flag_from_an_assumed_window_is_cleared_when_the_stream_names_a_larger_one() -> None:
    told_window = {"modelUsage": {MODEL: {"contextWindow": 1_000_000}}}
    watch = Watcher()
    assert not named(feed_all(watch, reply(160_000), result(**told_window)), "intervention")
    assert named(feed_all(watch, reply(800_000), result(**told_window)), "intervention")


@pytest.mark.promise("S1.1", "S1.10")
@given(st.integers(150_000, 250_000))
def test_a_cleared_flag_does_not_come_back_without_a_new_figure(used: int) -> None:
    budget = ContextBudget()
    budget.update(reply(used))
    budget.clear_warning()
    budget.clear_compact()
    budget.update(result())
    budget.update(result(usage={"input_tokens": used}))
    assert not budget.should_warn
    assert not budget.should_compact


@pytest.mark.promise("S1.6")
def test_figures_in_both_places_of_a_result_belong_together() -> None:
    budget = ContextBudget()
    budget.update(result(input_tokens=100, usage={"cache_read_input_tokens": 50, "input_tokens": None}))
    assert budget.used_tokens == 150


WARN, COMPACT = Fraction(70, 100), Fraction(78, 100)


WINDOW = 1_000


@pytest.mark.promise("S1.7", "S1.8", "S1.11")
@given(st.integers(1, 2_000_000) | st.integers(1, 20_000).map(lambda number: 50 * number), st.data())
def test_a_flag_is_set_at_its_share_and_not_a_token_earlier(window: int, data: st.DataObject) -> None:
    edges = [int(share * window) + step for share in (WARN, COMPACT) for step in (-1, 0, 1)]
    used = data.draw(st.sampled_from([edge for edge in edges if edge >= 0]))
    budget = ContextBudget(context_window=window)
    budget.update(result(usage={"input_tokens": used}))
    assert budget.should_warn == (Fraction(used, window) >= WARN)
    assert budget.should_compact == (Fraction(used, window) >= COMPACT)


STEPS = st.one_of(
    st.tuples(st.just("reply"), st.integers(3, 2 * WINDOW)),
    st.tuples(st.sampled_from(["clear_warning", "clear_compact", "compaction", "other words"]), st.just(0)),
)


@pytest.mark.promise("S1.10")
@given(st.lists(STEPS, max_size=25))
def test_a_flag_stays_until_it_is_cleared_or_the_agent_compacts(steps: list[tuple[str, int]]) -> None:
    budget = ContextBudget(context_window=WINDOW)
    warn = compact = False
    for step, used in steps:
        if step == "reply":
            budget.update(reply(used))
            warn |= Fraction(used, WINDOW) >= WARN
            compact |= Fraction(used, WINDOW) >= COMPACT
        elif step == "clear_warning":
            budget.clear_warning()
            warn = False
        elif step == "clear_compact":
            budget.clear_compact()
            warn = compact = False
        elif step == "compaction":
            budget.update(boundary())
            warn = compact = False
        else:
            budget.update(said("go on"))
        assert (budget.should_warn, budget.should_compact) == (warn, compact)


HELPERS = st.builds(
    lambda size, mark: {**reply(size), **mark},
    st.integers(3, 400_000),
    st.sampled_from([{"parent_tool_use_id": "toolu_9"}, {"isSidechain": True}]),
)


def of_the_window(notices: list[WatchEvent]) -> list[tuple[str, Any]]:
    kinds = ("meter", "warning", "compact", "turn", "intervention", "compacted")
    return [(notice.event, notice.facts.get("used")) for notice in notices if notice.event in kinds]


@given(st.lists(st.tuples(SOUND, st.lists(HELPERS, max_size=2)), max_size=12))
def test_sub_agents_change_no_figure_of_the_window(
    steps: list[tuple[dict[str, Any], list[dict[str, Any]]]],
) -> None:
    alone, among = Watcher(), Watcher()
    plain, mixed = alone.feed(reply(9)), among.feed(reply(9))
    for event, helpers in steps:
        for helper in helpers:
            mixed += among.feed(helper)
        event["session_id"] = "s1"
        plain += alone.feed(event)
        mixed += among.feed(event)
    assert of_the_window(mixed) == of_the_window(plain)
    assert among.meter.should_warn == alone.meter.should_warn
    assert among.meter.should_compact == alone.meter.should_compact


def test_a_window_of_one_token_is_full_at_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    told = watch_json(tmp_path_factory, lines(reply(3), result()), "--window", "1")
    assert [event["event"] for event in told if event["event"] in ("warning", "compact", "intervention")] == [
        "warning",
        "compact",
        "intervention",
    ]
    assert (told[-1]["share"], told[-1]["code"]) == (3.0, 10)


@pytest.mark.parametrize("window", [168_000, 1_000_000])
def test_the_flags_use_the_given_window(window: int) -> None:
    watch = Watcher(meter=Meter(window=window))
    feed_all(watch, reply(140_000))
    assert watch.meter.should_compact == (window == 168_000)
