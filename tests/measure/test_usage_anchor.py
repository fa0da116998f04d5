"""The gauge beside a simulated provider with known token counts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.measure.calibration import Calibration
from foldline.measure.usage_anchor import Gauge
from foldline.message import Message, Meta, Thinking, Usage, assistant, tool, user

Item = tuple[Message, int]


def reply(prompt: int, *, output: int = 0, reasoning: int = 0, model: str = "", of: str = "", **parts: Any) -> Message:
    """A reply that reports `prompt` tokens for the request it answers; `thinking="..."` makes it think first."""
    usage = Usage(input=prompt % 7, cache_read=prompt - prompt % 7, output=output, reasoning=reasoning)
    said = assistant("Done.")
    if "thinking" in parts:
        said = replace(said, parts=(Thinking(text=parts["thinking"]), *said.parts))
    return replace(said, meta=Meta(usage=usage, model=model, reply=of))


def gauge_of(items: Iterable[Item], start: Gauge | None = None) -> Gauge:
    gauge = start or Gauge()
    for message, tokens in items:
        gauge = gauge.add(message, tokens)
    return gauge


class Provider:
    """Counts a·estimate + b for each message, on top of parts that no message shows."""

    def __init__(self, a: float = 1.0, b: float = 0.0, hidden: int = 0) -> None:
        self.a, self.b, self.size = a, b, float(hidden)

    def take(self, tokens: int) -> None:
        self.size += self.a * tokens + self.b

    @property
    def prompt(self) -> int:
        return round(self.size)


def converse(provider: Provider, steps: Iterable[tuple[int, int]]) -> Iterable[tuple[Message, int, int]]:
    """Each step is a reply and its result, by their estimates; gives each message with the true size before it."""
    provider.take(50)
    yield user("Begin"), 50, 0
    for said, result in steps:
        true = provider.prompt
        yield reply(true, output=1), said, true
        provider.take(said)
        yield tool("c", "…"), result, provider.prompt
        provider.take(result)


STEPS = st.lists(st.tuples(st.integers(20, 2_000), st.integers(1, 20_000)), min_size=1, max_size=30)
SIZES = st.integers(0, 100_000)
ANYTHING = st.lists(
    st.one_of(
        st.tuples(st.just(user("Go on")), SIZES),
        st.tuples(st.just(tool("c", "…")), SIZES),
        st.tuples(st.just(assistant("Well.")), SIZES),
        st.tuples(
            st.builds(
                reply,
                st.integers(0, 2**53),
                output=SIZES,
                reasoning=SIZES,
                of=st.sampled_from(["", "a", "b"]),
                model=st.sampled_from(["", "m"]),
                thinking=st.just("…"),
            ),
            SIZES,
        ),
    ),
    max_size=25,
)


@given(STEPS, st.integers(0, 60_000))
def test_a_true_estimate_gives_the_true_size_at_every_step(steps: list[tuple[int, int]], hidden: int) -> None:
    gauge = Gauge()
    for message, tokens, true in converse(Provider(hidden=hidden), steps):
        if gauge.is_anchored and true:
            assert gauge.tokens == true
        gauge = gauge.add(message, tokens)
    assert gauge.calibration.ratio == 1
    assert gauge.calibration.hidden == pytest.approx(hidden, abs=8), "within the margin of the first 50 tokens"


@given(
    st.floats(0.6, 1.7),
    st.integers(0, 40),
    st.integers(0, 60_000),
    st.lists(st.tuples(st.integers(200, 400), st.integers(300, 600)), min_size=60, max_size=60),
)
def test_the_correction_converges(a: float, b: int, hidden: int, steps: list[tuple[int, int]]) -> None:
    provider = Provider(a, b, hidden)
    gauge = Gauge()
    start = 0
    for message, tokens, true in converse(provider, steps):
        if message.role == "assistant":
            wrong, step = abs(gauge.tokens - true), true - start
            start = true
        gauge = gauge.add(message, tokens)
    assert wrong <= 0.06 * step


@given(st.floats(0.5, 2.0), st.integers(5_000, 90_000))
def test_hidden_parts_never_bend_the_ratio(a: float, hidden: int) -> None:
    seen = list(converse(Provider(a, 0, hidden), [(100, 100)] * 5))
    alone = list(converse(Provider(a, 0, 0), [(100, 100)] * 5))
    with_hidden = gauge_of((message, tokens) for message, tokens, _ in seen)
    without = gauge_of((message, tokens) for message, tokens, _ in alone)
    assert with_hidden.calibration.ratio == pytest.approx(without.calibration.ratio, abs=0.01)


def ratio_after(*steps: tuple[int, int]) -> float:
    """The ratio after steps that were estimated and told."""
    gauge = gauge_of([(user("Go"), 100_000), (reply(100_000), 0)])
    for guessed, told in steps:
        assert gauge.anchor is not None
        gauge = gauge_of([(tool("c", "…"), guessed), (reply(gauge.anchor.tokens + told), 0)], gauge)
    return gauge.calibration.ratio


def test_one_odd_step_hardly_bends_the_ratio_and_a_lasting_change_does() -> None:
    assert ratio_after((100, 150)) < 1.03
    assert ratio_after((1_000, 20_000)) == ratio_after((1_000, 2_000))
    assert ratio_after((1_000, -20_000)) == 1.0, "a request that only grew does not shrink: not believed"
    steady = [(1_000, 1_200)] * 30
    assert ratio_after(*steady) == pytest.approx(1.2, abs=0.03)
    assert ratio_after(*steady, (1_000, 1_800)) == pytest.approx(1.2, abs=0.07)
    assert ratio_after(*steady, *[(1_000, 1_800)] * 40) == pytest.approx(1.8, abs=0.1)


def test_tokens_that_usage_reports_do_not_change_the_ratio() -> None:
    """Replies come with their true output; only the results were estimated, and at two thirds of their size."""
    gauge = gauge_of([(user("Go"), 20), (reply(50_000, output=5_000), 4_800)])
    for step in range(1, 40):
        gauge = gauge_of([(tool("c", "…"), 600), (reply(50_000 + step * 5_900, output=5_000), 4_800)], gauge)
    assert gauge.calibration.ratio == pytest.approx(1.5, abs=0.05)


@given(ANYTHING)
def test_any_history_gives_a_size(items: list[Item]) -> None:
    gauge = Gauge()
    for message, tokens in items:
        gauge = gauge.add(message, tokens)
        assert 0 <= gauge.tokens <= gauge.upper
        assert gauge.count.tokens == gauge.tokens
        assert not gauge.count.exact
        assert 0.499 < gauge.calibration.ratio < 2.001
        if gauge.anchor:
            assert gauge.anchor.messages < gauge.messages
            assert f"usage of reply {gauge.anchor.messages}" in gauge.count.source


@given(ANYTHING, SIZES)
def test_a_new_message_never_makes_the_request_smaller(items: list[Item], tokens: int) -> None:
    gauge = gauge_of(items)
    assert copy(gauge).add(tool("c", "…"), tokens).tokens >= gauge.tokens
    assert copy(gauge).add(assistant("…"), tokens).tokens >= gauge.tokens


@pytest.mark.promise("S0.5")
@given(ANYTHING, st.data())
def test_the_same_messages_give_the_same_gauge(items: list[Item], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(items)))
    first = gauge_of(items[:at])
    assert gauge_of(items[at:], copy(first)) == gauge_of(items[at:], first) == gauge_of(items)


@pytest.mark.promise("I10")
@given(st.sampled_from([2.0, 4.0, 12.0, 0.1, 0.0001]), STEPS)
def test_a_figure_that_jumps_is_rejected_and_leaves_no_trace(factor: float, steps: list[tuple[int, int]]) -> None:
    provider = Provider(hidden=40_000)
    gauge = gauge_of((message, tokens) for message, tokens, _ in converse(provider, steps))
    expected = gauge.tokens
    doubled = copy(gauge).add(reply(int(provider.prompt * factor), output=100), 100)
    assert doubled.tokens == expected + 100
    assert doubled.anchor == gauge.anchor
    assert doubled.calibration == gauge.calibration
    healed = doubled.add(tool("c", "…"), 1_000).add(reply(provider.prompt + 1_100), 50)
    assert healed.anchor is not None
    assert healed.anchor.tokens == provider.prompt + 1_100
    assert healed.calibration.ratio == 1


def test_doubled_usage_after_a_thousand_tokens_is_not_trusted() -> None:
    before = gauge_of([(user("Go"), 334_000), (reply(335_000), 500), (tool("c", "…"), 1_000)])
    after = before.add(reply(2 * 336_500), 80)
    assert after.tokens == 336_500 + 80
    assert after.count.source == "usage of reply 1 + 1,580 estimated"


def test_a_sum_over_the_calls_of_a_turn_is_not_trusted() -> None:
    start = [(user("Go"), 150_000), (reply(150_000), 300), (tool("c", "…"), 2_000)]
    gauge = gauge_of([*start, (reply(12 * 150_000), 300)])
    assert gauge.tokens == 150_000 + 300 + 2_000 + 300


def test_two_figures_that_agree_are_trusted_however_far_they_jump() -> None:
    """A client that loads forty more tools, or a provider that clears old results: odd once, true twice."""
    start = gauge_of([(user("Go"), 20), (reply(20_000), 300), (tool("c", "…"), 700)])
    once = start.add(reply(61_000), 200)
    assert once.tokens == 20_000 + 300 + 700 + 200
    twice = once.add(tool("c", "…"), 400).add(reply(61_700), 100)
    assert twice.tokens == 61_700 + 100
    assert twice.calibration.ratio == 1
    assert twice.calibration.hidden == pytest.approx(61_700 - (20 + 300 + 700 + 200 + 400), rel=0.01)


def test_two_doubted_figures_that_disagree_are_both_rejected() -> None:
    start = gauge_of([(user("Go"), 20), (reply(20_000), 300), (tool("c", "…"), 700)])
    gauge = gauge_of([(reply(42_000), 200), (tool("c", "…"), 400), (reply(86_400), 100)], start)
    assert gauge.tokens == 20_000 + 300 + 700 + 200 + 400 + 100


def test_a_doubt_is_forgotten_once_a_figure_is_good_again() -> None:
    """Two doubled figures with a good one between them are two accidents, not one truth."""
    start = gauge_of([(user("Go"), 20), (reply(20_000), 100), (reply(40_200), 100), (reply(20_200), 100)])
    assert start.tokens == 20_300
    assert start.add(reply(40_500), 100).tokens == 20_400


def test_a_first_figure_without_its_cached_share_is_not_trusted() -> None:
    gauge = gauge_of([(user("Go"), 80_000), (reply(12), 100)])
    assert not gauge.is_anchored
    assert gauge.tokens == 80_100


def test_the_smallest_requests_are_never_doubted() -> None:
    gauge = gauge_of([(user("Go"), 20), (reply(60), 10), (reply(600), 10)])
    assert gauge.tokens == 610


def test_the_figure_after_a_badly_estimated_long_result_is_trusted_at_once() -> None:
    """Ciphertext may be twice its estimate; that is no reason to doubt the provider."""
    gauge = gauge_of([(user("Go"), 20), (reply(20_000), 100), (tool("c", "…"), 60_000), (reply(140_000), 100)])
    assert gauge.anchor is not None
    assert gauge.anchor.tokens == 140_000


@pytest.mark.promise("S0.5", "I10")
def test_a_fold_voids_the_anchor_and_the_usage_of_kept_replies() -> None:
    """The kept reply once measured 196,000 tokens; its figure must never be read as the size of the new view."""
    kept = (reply(196_000), 400)
    full = gauge_of([(user("Go"), 20), (reply(30_000), 500), (tool("c", "…"), 165_500), kept])
    assert full.tokens > 196_000
    folded = full.after_fold([(user("[digest]", kind="digest"), 2_000, 0), (*kept, 0)])
    assert not folded.is_anchored
    assert folded.tokens == pytest.approx(29_980 + 2_400, abs=100)
    noted = folded.add(user("a note", kind="note"), 50)
    assert noted.tokens < 33_000
    measured = noted.add(reply(31_000), 200)
    assert measured.is_anchored
    assert measured.tokens == 31_200


def test_the_calibration_survives_a_fold() -> None:
    seen = list(converse(Provider(1.5, 0, 30_000), [(500, 2_000)] * 20))
    gauge = gauge_of((message, tokens) for message, tokens, _ in seen)
    folded = gauge.after_fold([(user("[digest]", kind="digest"), 4_000, 0)])
    assert folded.calibration == gauge.calibration
    assert folded.tokens == pytest.approx(30_000 + 1.5 * 4_000, rel=0.02)


@pytest.mark.promise("I10")
@given(st.floats(0.88, 1.12), st.lists(st.tuples(st.integers(20, 2_000), st.integers(500, 20_000)), max_size=30))
def test_an_error_of_the_estimator_is_not_kept_as_hidden_tokens(a: float, steps: list[tuple[int, int]]) -> None:
    """Whatever it was learned on, a view of a tenth of the size is measured within the margin."""
    provider = Provider(a)
    provider.take(20_000)
    gauge = gauge_of([(user("Go"), 20_000), (reply(provider.prompt), 0)])
    gauge = gauge_of(((message, tokens) for message, tokens, _ in converse(provider, steps)), gauge)
    folded = gauge.after_fold([(user("[digest]", kind="digest"), 2_000, 0)])
    assert folded.tokens == pytest.approx(a * 2_000, rel=0.15)


@pytest.mark.promise("I10")
@given(st.floats(0.88, 1.12), st.integers(0, 50_000))
def test_hidden_tokens_are_kept_through_a_fold(a: float, hidden: int) -> None:
    seen = list(converse(Provider(a, 0, hidden), [(300, 1_500)] * 20))
    gauge = gauge_of((message, tokens) for message, tokens, _ in seen)
    folded = gauge.after_fold([(user("[digest]", kind="digest"), 2_000, 0)])
    assert folded.tokens == pytest.approx(hidden + a * 2_000, rel=0.15)


@pytest.mark.parametrize("usage", [None, Usage(), Usage(output=12)])
def test_without_usage_the_estimate_is_the_size(usage: Usage | None) -> None:
    said = replace(assistant("Done."), meta=Meta(usage=usage))
    gauge = gauge_of([(user("Go"), 1_000), (said, 500), (tool("c", "…"), 90_000)])
    assert not gauge.is_anchored
    assert gauge.tokens == 91_500
    assert gauge.upper == 105_225
    assert gauge.count.source == "91,500 estimated"


def test_known_tool_schemas_count_until_a_figure_replaces_them() -> None:
    gauge = Gauge(calibration=Calibration(hidden=9_000)).add(user("Go"), 100)
    assert gauge.tokens == 9_100
    assert gauge.add(reply(12_100), 10).calibration.hidden == pytest.approx(12_000, abs=15)


def test_a_large_output_after_the_figure_counts_at_once() -> None:
    gauge = gauge_of([(user("Go"), 20), (reply(50_000, output=200), 180), (tool("c", "…"), 80_000)])
    assert gauge.tokens == 50_000 + 200 + 80_000
    assert gauge.upper == 50_000 + 200 + 92_000
    assert gauge.count.source == "usage of reply 1 + 200 of output + 80,000 estimated"


def test_a_placeholder_output_figure_is_not_taken_for_the_size_of_the_reply() -> None:
    gauge = gauge_of([(user("Go"), 20), (reply(50_000, output=3), 180)])
    assert gauge.tokens == 50_180


def test_a_reply_in_several_messages_is_one_reply() -> None:
    """Codex writes reasoning, text and calls as items and the usage after them: it measured what stands before all."""
    pieces = [assistant("Let me look."), assistant("And there."), reply(20_000, output=90, of="r")]
    items = [(replace(piece, meta=replace(piece.meta, reply="r")), 30) for piece in pieces]
    gauge = gauge_of([(user("Go"), 20), *items])
    assert gauge.anchor is not None
    assert gauge.anchor.messages == 1
    assert gauge.tokens == 20_090


def test_a_figure_repeated_on_every_message_of_a_reply_counts_once() -> None:
    once = gauge_of([(user("Go"), 20), (reply(20_000, output=90, of="r"), 90)])
    thrice = gauge_of([(user("Go"), 20), *[(reply(20_000, output=90, of="r"), 30)] * 3])
    assert thrice.tokens == once.tokens == 20_090
    assert thrice.calibration == once.calibration


def thinker(*, drops: bool) -> Gauge:
    gauge = Gauge(calibration=Calibration(drops_thinking=drops)).add(user("Go"), 20)
    gauge = gauge.add(reply(20_000, thinking="…"), 1_300, thinking=1_000).add(tool("c", "…"), 500)
    return gauge.add(reply(21_800, thinking="…"), 700, thinking=600)


def test_old_thinking_leaves_with_the_next_user_message() -> None:
    """Within a turn the thinking goes back with every request; a new prompt ends that for these models."""
    assert thinker(drops=True).tokens == 22_500
    assert thinker(drops=True).add(user("Next"), 10).tokens == 22_510 - 1_600
    assert thinker(drops=True).add(user("a note", kind="note"), 10).tokens == 22_510
    assert thinker(drops=False).add(user("Next"), 10).tokens == 22_510


def test_thinking_leaves_once() -> None:
    spoken = thinker(drops=True).add(user("Next"), 10)
    assert copy(spoken).add(user("And then"), 10).tokens == spoken.tokens + 10
    answered = spoken.add(reply(20_910), 100)
    assert answered.tokens == 21_010
    assert answered.add(user("More"), 10).tokens == 21_020


def test_a_little_thinking_that_may_have_left_does_not_change_the_calibration() -> None:
    gauge = gauge_of([(user("Go"), 20)]).add(reply(20_000, thinking="…"), 300, thinking=200).add(user("Next"), 100)
    assert gauge.add(reply(20_200), 10).calibration.ratio == 1


@pytest.mark.parametrize("drops", [False, True])
def test_one_figure_shows_whether_old_thinking_is_dropped(drops: bool) -> None:
    wrong = thinker(drops=not drops).add(user("Next"), 10)
    told = copy(wrong).add(reply(22_510 - (1_600 if drops else 0)), 40)
    assert told.calibration.drops_thinking is drops
    assert told.calibration.ratio == wrong.calibration.ratio


def test_reasoning_that_no_message_holds_is_not_sent_back() -> None:
    """Chat Completions bills hidden reasoning as output, and the client never sees it."""
    hidden = gauge_of([(user("Go"), 20), (reply(5_000, output=900, reasoning=800), 90)])
    assert hidden.tokens == 5_100
    carried = gauge_of([(user("Go"), 20), (reply(5_000, output=900, reasoning=800, thinking=""), 90)])
    assert carried.tokens == 5_900


def test_a_change_of_model_does_not_change_the_ratio() -> None:
    start = gauge_of([(user("Go"), 20), (reply(50_000, model="one"), 100), (tool("c", "…"), 1_000)])
    switched = copy(start).add(reply(66_000, model="other"), 100)
    assert switched.anchor is not None
    assert switched.anchor.tokens == 66_000
    assert switched.calibration == start.calibration


def test_one_more_message_costs_the_same_however_long_the_conversation_is() -> None:
    def calls(gauge: Gauge) -> int:
        made = 0

        def count(*_: object) -> None:
            nonlocal made
            made += 1

        sys.setprofile(count)
        try:
            gauge.add(tool("c", "…"), 10).add(reply(gauge.tokens + 10), 10).tokens  # noqa: B018
        finally:
            sys.setprofile(None)
        return made

    short = [(message, tokens) for message, tokens, _ in converse(Provider(hidden=100), [(20, 30)] * 3)]
    long = [(message, tokens) for message, tokens, _ in converse(Provider(hidden=100), [(20, 30)] * 2_000)]
    assert calls(gauge_of(short)) == calls(gauge_of(long)) > 0


@pytest.mark.skipif("FOLDLINE_DATA" not in os.environ, reason="needs real sessions")
def test_the_size_of_the_next_request_of_real_sessions_is_predicted() -> None:
    """On the half of the files that nothing was chosen on, wherever there is enough for a 95th percentile."""
    bench = [sys.executable, "-m", "bench", "counting", "--json", "--data", os.environ["FOLDLINE_DATA"]]
    done = subprocess.run(bench, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    anchored = [entry["rows"]["anchored"] for entry in json.loads(done.stdout) if entry["half"] == "quoted"]
    large = [row for row in anchored if row["n"] >= 100]
    assert large
    assert all(row["p50"] <= 0.3 and row["p95"] <= 3 for row in large), anchored
