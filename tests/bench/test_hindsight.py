"""The best schedule in hindsight is exact, and the economic gate keeps its bounds beside it."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bench.hindsight import Decide, ScheduleCost, Trace, TracedRequest, never, optimum, replay_cost
from foldline.plan.fold_cost import (
    STAKE,
    FoldAccount,
    FoldProposal,
    TokenPrices,
)

PRICES = TokenPrices()

TINY = TokenPrices(read=0.1, write=1.25, min_prefix=4)

"""So that literal token lists stay short."""


def rent_or_buy(stake: float, prices: TokenPrices = PRICES) -> Decide:
    return lambda rent, proposal: rent.earned_share(proposal, prices, stake=stake) >= 1


@st.composite
def traces(draw: st.DrawFn, *, unit: int = 1, most: int = 6, windows: bool = True, heads: int = 0) -> Trace:
    """Sessions with floors anywhere, pauses, windows, and digests with a price."""
    added = draw(st.lists(st.integers(1, 6), min_size=1, max_size=most))
    totals = [sum(added[: i + 1]) * unit for i in range(len(added))]
    floors = [draw(st.integers(0, total // unit)) * unit for total in totals]
    clock, times = 0.0, []
    for _ in added:
        clock += draw(st.sampled_from([1.0, 1.0, 300.0, 301.0]))
        times.append(draw(st.sampled_from([clock, clock, clock, None])))
    window = draw(st.none() | st.integers(1, 30)) if windows else None
    return Trace(
        requests=tuple(
            TracedRequest(added=size * unit, floor=lowest, at=at)
            for size, lowest, at in zip(added, floors, times, strict=True)
        ),
        head=draw(st.integers(heads, heads + 8 * unit)),
        digest=draw(st.integers(1, 3)) * unit,
        window=window * unit if window else None,
        cuts=draw(st.sampled_from([(), tuple(totals)])),
        digester=draw(st.sampled_from([None, TokenPrices(input=0.5, output=2.0), TokenPrices(input=3.0)])),
    )


Schedule = Sequence[int]

"""The cut in force at each request."""


def literal_cost(trace: Trace, schedule: Schedule, prices: TokenPrices) -> float:
    """The accounting once more, on token lists: the common prefix is found by looking."""
    cost, sent, last, cut = 0.0, list[str](), None, 0
    history = [f"said {i}" for i in range(sum(request.added for request in trace.requests))]
    total = 0
    for index, (request, now) in enumerate(zip(trace.requests, schedule, strict=True)):
        total += request.added
        if now != cut and trace.digester:
            covered = now - cut + (trace.digest if cut else 0)
            cost += trace.digester.input * covered + trace.digester.output * trace.digest
        cut = now
        digest = [f"digest {cut} {i}" for i in range(trace.digest)] if cut else []
        view = [f"head {i}" for i in range(trace.head)] + digest + history[cut:total]
        common = 0
        while common < min(len(view), len(sent)) and view[common] == sent[common]:
            common += 1
        dead = last is not None and request.at is not None and request.at - last > prices.ttl_seconds
        if index == 0 or dead or common < prices.min_prefix:
            common = 0
        cost += prices.read * common + prices.write * (len(view) - common)
        sent, last = view, last if request.at is None else request.at
    return cost


def schedules(trace: Trace, *, cuts: Sequence[int]) -> Iterator[Schedule]:
    """Every schedule there is that respects the window."""

    def go(index: int, total: int, low: int, cut: int) -> Iterator[list[int]]:
        if index == len(trace.requests):
            yield []
            return
        request = trace.requests[index]
        total, low = total + request.added, max(low, request.floor)
        targets = [cut, *(target for target in {*cuts, low} if cut < target <= low)]
        for target in targets:
            if trace.fits(target, total) or target >= low:
                for rest in go(index + 1, total, low, target):
                    yield [target, *rest]

    return go(0, 0, 0, 0)


def schedule_of(trace: Trace, folds: Sequence[tuple[int, int]]) -> Schedule:
    cuts, now = dict(folds), 0
    return [now := cuts.get(index, now) for index in range(len(trace.requests))]


@given(traces())
def test_the_optimum_is_the_best_of_all_schedules(trace: Trace) -> None:
    best = min(literal_cost(trace, schedule, TINY) for schedule in schedules(trace, cuts=trace.cuts))
    found = optimum(trace, TINY)
    assert found.cost == pytest.approx(best)
    assert literal_cost(trace, schedule_of(trace, found.folds), TINY) == pytest.approx(best)


@given(traces(windows=False), st.sampled_from([0.0, 0.1, 0.5]))
def test_the_optimum_for_a_stake_is_the_best_of_the_schedules_that_keep_it_whenever_the_session_ends(
    trace: Trace, stake: float
) -> None:
    def keeps_stake(schedule: Schedule) -> bool:
        for length in range(1, len(schedule) + 1):
            begun = replace(trace, requests=trace.requests[:length])
            most = (1 + stake) * literal_cost(begun, [0] * length, TINY)
            if literal_cost(begun, schedule[:length], TINY) > most + 1e-6:
                return False
        return True

    kept = [schedule for schedule in schedules(trace, cuts=trace.cuts) if keeps_stake(schedule)]
    best = min(literal_cost(trace, schedule, TINY) for schedule in kept)
    assert optimum(trace, TINY, stake=stake).cost == pytest.approx(best)


def test_the_optimum_for_a_stake_folds_at_a_full_window_in_any_case() -> None:
    trace = Trace(requests=(TracedRequest(added=10), TracedRequest(added=1, floor=10)), head=4, digest=1, window=14)
    assert optimum(trace, TINY, stake=0.0) == optimum(trace, TINY)


@given(traces(windows=False, heads=4), st.lists(st.booleans(), min_size=6, max_size=6))
def test_a_replay_counts_the_requests_at_which_the_session_had_cost_more_than_without_folds(
    trace: Trace, wishes: list[bool]
) -> None:
    def replayed(length: int) -> ScheduleCost:
        queue = iter(wishes)
        begun = replace(trace, requests=trace.requests[:length])
        return replay_cost(begun, TINY, lambda _rent, _proposal: next(queue))

    lengths = range(1, len(trace.requests) + 1)
    begun = [replace(trace, requests=trace.requests[:length]) for length in lengths]
    above = [
        replayed(one).cost > replay_cost(it, TINY, never).cost + 1e-6 for one, it in zip(lengths, begun, strict=True)
    ]
    assert replayed(len(trace.requests)).unpaid == sum(above)


@given(traces(), st.lists(st.booleans(), min_size=6, max_size=6))
def test_a_replay_costs_what_its_schedule_costs_and_never_less_than_the_optimum(
    trace: Trace, wishes: list[bool]
) -> None:
    queue = iter(wishes)
    outcome = replay_cost(trace, TINY, lambda _rent, _proposal: next(queue))
    assert outcome.cost == pytest.approx(literal_cost(trace, schedule_of(trace, outcome.folds), TINY))
    assert outcome.cost >= optimum(trace, TINY).cost - 1e-9


@given(traces(heads=4))
def test_a_cut_above_the_floor_is_never_better(trace: Trace) -> None:
    assume(trace.digester is None or trace.digester.input <= TINY.write)
    everywhere = replace(trace, cuts=tuple(range(1, 40)))
    assert optimum(everywhere, TINY).cost == pytest.approx(optimum(replace(trace, cuts=()), TINY).cost)


def test_a_digester_that_is_dear_to_read_makes_a_shallow_cut_better() -> None:
    requests = (TracedRequest(added=10), TracedRequest(added=1, floor=9))
    trace = Trace(requests=requests, head=4, digest=1, window=14, digester=TokenPrices(input=9.0))
    shallow = replace(trace, cuts=(1, 3, 6, 9))
    assert optimum(shallow, TINY).cost < optimum(trace, TINY).cost
    assert optimum(shallow, TINY).folds == ((1, 3),)  # 1 would not fit


@given(traces(windows=False, heads=4))
def test_the_account_knows_to_the_cent_what_was_saved(trace: Trace) -> None:
    accounts: list[FoldAccount] = []

    def every_other(rent: FoldAccount, _proposal: FoldProposal) -> bool:
        accounts.append(rent)
        return len(accounts) % 2 == 1

    # An extra request whose account is what the session before it came to.
    longer = replace(trace, requests=(*trace.requests, TracedRequest(added=10**6, floor=10**6)))
    replay_cost(longer, TINY, every_other)
    done = accounts[-1]
    accounts.clear()
    outcome = replay_cost(trace, TINY, every_other)
    everything = replay_cost(trace, TINY, never).cost
    assert done.baseline_cost == pytest.approx(everything)
    assert done.savings == pytest.approx(everything - outcome.cost)


@st.composite
def long_traces(draw: st.DrawFn) -> Trace:
    """Sessions of realistic sizes: steps up to 20k, floors that keep a tail, a pause now and then."""
    keep = draw(st.integers(2_000, 20_000))
    pause = draw(st.sampled_from([0.0, 0.03, 0.3]))
    rng = Random(draw(st.integers(0, 10**9)))
    scale = draw(st.sampled_from([200, 1_000, 5_000]))
    total, clock, ends, requests = 0, 0.0, [0], list[TracedRequest]()
    for _ in range(draw(st.integers(1, 120))):
        size = min(20_000, 1 + int(rng.expovariate(1 / scale)))
        total += size
        clock += 1000.0 if rng.random() < pause else 20.0
        lowest = max((end for end in ends if end <= total - keep), default=0)
        requests.append(TracedRequest(added=size, floor=lowest, at=clock))
        ends.append(total)
    return Trace(requests=tuple(requests), head=draw(st.integers(1_024, 20_000)), digest=draw(st.integers(50, 2_000)))


@given(long_traces(), st.sampled_from([0.0, STAKE, 0.05]))
def test_no_session_ever_costs_more_than_the_stake_above_never_folding(trace: Trace, stake: float) -> None:
    """Whenever it ends: the bound holds for every beginning of the session too."""
    whole = len(trace.requests)
    for length in {1, whole // 3 or 1, whole // 2 or 1, whole}:
        begun = replace(trace, requests=trace.requests[:length])
        cost = replay_cost(begun, PRICES, rent_or_buy(stake)).cost
        assert cost <= (1 + stake) * replay_cost(begun, PRICES, never).cost + 1e-6


@pytest.mark.parametrize("stake", [0.0, STAKE, 0.05])
def test_nor_when_it_ends_right_after_a_fold(stake: float) -> None:
    trace = steady(150, pause_at=80)
    for length in range(1, 151):
        begun = replace(trace, requests=trace.requests[:length])
        cost = replay_cost(begun, PRICES, rent_or_buy(stake)).cost
        assert cost <= (1 + stake) * replay_cost(begun, PRICES, never).cost + 1e-6


@given(long_traces())
def test_rent_or_buy_stays_within_twice_the_optimum(trace: Trace) -> None:
    cost = replay_cost(trace, PRICES, rent_or_buy(math.inf)).cost
    assert cost <= 2 * optimum(trace, PRICES).cost


@given(long_traces(), st.sampled_from([0.0, STAKE, math.inf]))
def test_no_fold_is_made_at_a_loss(trace: Trace, stake: float) -> None:
    folds = replay_cost(trace, PRICES, rent_or_buy(stake)).folds
    assert all(now - before > trace.digest for (_, before), (_, now) in pairwise([(0, 0), *folds]))


def steady(requests: int, *, added: int = 1_000, keep: int = 6_000, pause_at: int | None = None) -> Trace:
    """A session that grows by the same amount every request."""
    clock, made = 0.0, list[TracedRequest]()
    for index in range(requests):
        clock += 3_600.0 if index == pause_at else 20.0
        made.append(TracedRequest(added=added, floor=max(0, (index + 1) * added - keep), at=clock))
    return Trace(requests=tuple(made), head=18_000, digest=2_000)


def test_a_long_session_comes_near_the_optimum() -> None:
    trace = steady(1_000)
    best = optimum(trace, PRICES).cost
    assert replay_cost(trace, PRICES, rent_or_buy(STAKE)).cost < 1.02 * best
    assert replay_cost(trace, PRICES, never).cost > 5 * best


def test_a_short_session_is_left_alone() -> None:
    trace = steady(12)
    assert replay_cost(trace, PRICES, rent_or_buy(STAKE)) == replay_cost(trace, PRICES, never)


def test_a_cold_cache_is_the_moment_to_fold() -> None:
    trace = steady(16, pause_at=13)
    assert replay_cost(trace, PRICES, rent_or_buy(0.0)).folds == ((13, 8_000),)
    assert optimum(trace, PRICES).folds[0][0] == 13


ROOT = Path(__file__).parents[2]


def bench(data: Path, *options: str) -> str:
    """What the benchmark prints for a folder of sessions."""
    if not (ROOT / "bench" / "economy.py").exists():
        pytest.skip("not run from a checkout")
    command = [sys.executable, "-m", "bench.economy", "--data", str(data), *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120).stdout


def test_the_benchmark_reads_sessions(tmp_path: Path) -> None:
    folder = tmp_path / "entire-claude-code"
    folder.mkdir()
    lines = []
    for index in range(60):
        asked = {"role": "user", "content": "what now " * 400}
        reply = {"id": f"msg_{index}", "role": "assistant", "content": [{"type": "text", "text": "this " * 100}]}
        for kind, message in (("user", asked), ("assistant", reply)):
            hour = 8 + index // 30
            place = {"uuid": f"{kind}{index}", "timestamp": f"2026-01-01T{hour:02}:{index % 30:02}:00.000Z"}
            lines.append(json.dumps({"type": kind, "message": message, "sessionId": "s", **place}))
    for name in ("a.jsonl", "b.jsonl", "c.jsonl", "d.jsonl"):
        (folder / name).write_text("\n".join(lines) + "\n")
    rows = [json.loads(line) for line in bench(tmp_path, "--json").splitlines()]
    assert len(rows) == 4 * 9
    assert all(row["optimum"] <= row["rent"] + 1e-6 for row in rows)
    assert all(row["rent"] <= (1 + STAKE) * row["keep_all"] for row in rows if not row["forced"])
    assert all(row["rent"] < 0.7 * row["keep_all"] and row["folds"] for row in rows if row["floor"] == 6_000)
    table = bench(tmp_path)
    assert "entire-claude-code, quoted" in table
    assert "goal reached" in table


@pytest.mark.skipif("FOLDLINE_DATA" not in os.environ, reason="FOLDLINE_DATA names no folder with sessions")
def test_real_sessions_cost_at_most_a_tenth_more_than_the_optimum_and_never_more_than_without_folds() -> None:
    last = bench(Path(os.environ["FOLDLINE_DATA"])).splitlines()[-1]
    assert last.startswith("goal reached")
    assert "; 0 sessions above keep-all" in last
