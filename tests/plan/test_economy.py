"""The economy of folding: exact beside brute force on literal token lists, and the bounds that the gate promises."""

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
from hypothesis import assume, example, given
from hypothesis import strategies as st

from foldline.errors import ConfigError
from foldline.fold import Digest, Fold
from foldline.message import assistant, user
from foldline.models.table import model
from foldline.plan import fold_cost as economy
from foldline.plan.cut import floor
from foldline.plan.fold_cost import STAKE, Offer, Rent, Tariff, break_even, fold_price, saving_per_request, tariff_of
from foldline.plan.gate import Load, Need, gate
from foldline.plan.hindsight import Decide, Request, Trace, never, optimum, replay_cost
from foldline.plan.timeline import timeline_of
from foldline.policy import Policy

TARIFF = Tariff()
TINY = Tariff(read=0.1, write=1.25, least_prefix=4)
"""So that literal token lists stay short."""


def rent_or_buy(stake: float, tariff: Tariff = TARIFF) -> Decide:
    return lambda rent, offer: rent.share(offer, tariff, stake=stake) >= 1


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
            Request(added=size * unit, floor=lowest, at=at)
            for size, lowest, at in zip(added, floors, times, strict=True)
        ),
        head=draw(st.integers(heads, heads + 8 * unit)),
        digest=draw(st.integers(1, 3)) * unit,
        window=window * unit if window else None,
        cuts=draw(st.sampled_from([(), tuple(totals)])),
        digester=draw(st.sampled_from([None, Tariff(input=0.5, output=2.0), Tariff(input=3.0)])),
    )


Schedule = Sequence[int]
"""The cut in force at each request."""


def literal_cost(trace: Trace, schedule: Schedule, tariff: Tariff) -> float:
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
        dead = last is not None and request.at is not None and request.at - last > tariff.life_seconds
        if index == 0 or dead or common < tariff.least_prefix:
            common = 0
        cost += tariff.read * common + tariff.write * (len(view) - common)
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


# Exactness


@given(traces())
def test_the_optimum_is_the_best_of_all_schedules(trace: Trace) -> None:
    best = min(literal_cost(trace, schedule, TINY) for schedule in schedules(trace, cuts=trace.cuts))
    found = optimum(trace, TINY)
    assert found.cost == pytest.approx(best)
    assert literal_cost(trace, schedule_of(trace, found.folds), TINY) == pytest.approx(best)


@given(traces(), st.lists(st.booleans(), min_size=6, max_size=6))
def test_a_replay_costs_what_its_schedule_costs_and_never_less_than_the_optimum(
    trace: Trace, wishes: list[bool]
) -> None:
    queue = iter(wishes)
    outcome = replay_cost(trace, TINY, lambda _rent, _offer: next(queue))
    assert outcome.cost == pytest.approx(literal_cost(trace, schedule_of(trace, outcome.folds), TINY))
    assert outcome.cost >= optimum(trace, TINY).cost - 1e-9


@given(traces(heads=4))
def test_a_cut_above_the_floor_is_never_better(trace: Trace) -> None:
    assume(trace.digester is None or trace.digester.input <= TINY.write)
    everywhere = replace(trace, cuts=tuple(range(1, 40)))
    assert optimum(everywhere, TINY).cost == pytest.approx(optimum(replace(trace, cuts=()), TINY).cost)


def test_a_digester_that_is_dear_to_read_makes_a_shallow_cut_better() -> None:
    requests = (Request(added=10), Request(added=1, floor=9))
    trace = Trace(requests=requests, head=4, digest=1, window=14, digester=Tariff(input=9.0))
    shallow = replace(trace, cuts=(1, 3, 6, 9))
    assert optimum(shallow, TINY).cost < optimum(trace, TINY).cost
    assert optimum(shallow, TINY).folds == ((1, 3),)  # 1 would not fit


@given(traces(windows=False, heads=4))
def test_the_account_knows_to_the_cent_what_was_saved(trace: Trace) -> None:
    accounts: list[Rent] = []

    def every_other(rent: Rent, _offer: Offer) -> bool:
        accounts.append(rent)
        return len(accounts) % 2 == 1

    # An extra request whose account is what the session before it came to.
    longer = replace(trace, requests=(*trace.requests, Request(added=10**6, floor=10**6)))
    replay_cost(longer, TINY, every_other)
    done = accounts[-1]
    accounts.clear()
    outcome = replay_cost(trace, TINY, every_other)
    everything = replay_cost(trace, TINY, never).cost
    assert done.spent == pytest.approx(everything)
    assert done.saved == pytest.approx(everything - outcome.cost)


# What the gate promises


@st.composite
def long_traces(draw: st.DrawFn) -> Trace:
    """Sessions of realistic sizes: steps up to 20k, floors that keep a tail, a pause now and then."""
    keep = draw(st.integers(2_000, 20_000))
    pause = draw(st.sampled_from([0.0, 0.03, 0.3]))
    rng = Random(draw(st.integers(0, 10**9)))
    scale = draw(st.sampled_from([200, 1_000, 5_000]))
    total, clock, ends, requests = 0, 0.0, [0], list[Request]()
    for _ in range(draw(st.integers(1, 120))):
        size = min(20_000, 1 + int(rng.expovariate(1 / scale)))
        total += size
        clock += 1000.0 if rng.random() < pause else 20.0
        lowest = max((end for end in ends if end <= total - keep), default=0)
        requests.append(Request(added=size, floor=lowest, at=clock))
        ends.append(total)
    return Trace(requests=tuple(requests), head=draw(st.integers(1_024, 20_000)), digest=draw(st.integers(50, 2_000)))


@given(long_traces(), st.sampled_from([0.0, STAKE, 0.05]))
def test_no_session_ever_costs_more_than_the_stake_above_never_folding(trace: Trace, stake: float) -> None:
    """Whenever it ends: the bound holds for every beginning of the session too."""
    whole = len(trace.requests)
    for length in {1, whole // 3 or 1, whole // 2 or 1, whole}:
        begun = replace(trace, requests=trace.requests[:length])
        cost = replay_cost(begun, TARIFF, rent_or_buy(stake)).cost
        assert cost <= (1 + stake) * replay_cost(begun, TARIFF, never).cost + 1e-6


@pytest.mark.parametrize("stake", [0.0, STAKE, 0.05])
def test_nor_when_it_ends_right_after_a_fold(stake: float) -> None:
    trace = steady(150, pause_at=80)
    for length in range(1, 151):
        begun = replace(trace, requests=trace.requests[:length])
        cost = replay_cost(begun, TARIFF, rent_or_buy(stake)).cost
        assert cost <= (1 + stake) * replay_cost(begun, TARIFF, never).cost + 1e-6


def test_rent_counts_as_far_as_it_is_covered() -> None:
    rent = Rent(size=60_000, gone=5_000, paid=1e9, saved=300.0, spent=40_000.0)
    offer = Offer(size=61_000, folded=28_000, head=18_000, digest=2_000)
    price, fresh, untouched = 1.15 * 9_000, 0.1 * 33_000, 0.1 * 65_000 + 1.25 * 1_000
    cover = 300.0 + 0.1 * 5_000 + 0.02 * (40_000 + untouched)
    assert rent.share(offer, TARIFF, stake=0.02) == pytest.approx((fresh + cover) / price)
    assert replace(rent, paid=100.0).share(offer, TARIFF, stake=0.02) == pytest.approx((fresh + 100) / price)


def test_a_fold_that_pays_at_once_is_right_even_in_debt() -> None:
    rent = Rent(size=500_000, saved=-1e9, spent=1.0)
    assert rent.share(Offer(size=501_000, folded=24_000, head=18_000, digest=2_000), TARIFF) > 1


def test_a_head_too_small_for_the_cache_is_written_again_too() -> None:
    offer = Offer(size=40_000, folded=10_000, head=1_000, digest=2_000)
    terms = Rent(size=40_000, spent=1.0).terms(offer, TARIFF)
    assert terms.price == pytest.approx(1.15 * 10_000)
    assert terms.rent == pytest.approx(0.1 * 30_000)


@given(long_traces())
def test_rent_or_buy_stays_within_twice_the_optimum(trace: Trace) -> None:
    cost = replay_cost(trace, TARIFF, rent_or_buy(math.inf)).cost
    assert cost <= 2 * optimum(trace, TARIFF).cost


@given(long_traces(), st.sampled_from([0.0, STAKE, math.inf]))
def test_no_fold_is_made_at_a_loss(trace: Trace, stake: float) -> None:
    folds = replay_cost(trace, TARIFF, rent_or_buy(stake)).folds
    assert all(now - before > trace.digest for (_, before), (_, now) in pairwise([(0, 0), *folds]))


def steady(requests: int, *, added: int = 1_000, keep: int = 6_000, pause_at: int | None = None) -> Trace:
    """A session that grows by the same amount every request."""
    clock, made = 0.0, list[Request]()
    for index in range(requests):
        clock += 3_600.0 if index == pause_at else 20.0
        made.append(Request(added=added, floor=max(0, (index + 1) * added - keep), at=clock))
    return Trace(requests=tuple(made), head=18_000, digest=2_000)


def test_a_long_session_comes_near_the_optimum() -> None:
    trace = steady(1_000)
    best = optimum(trace, TARIFF).cost
    assert replay_cost(trace, TARIFF, rent_or_buy(STAKE)).cost < 1.02 * best
    assert replay_cost(trace, TARIFF, never).cost > 5 * best


def test_a_short_session_is_left_alone() -> None:
    trace = steady(12)
    assert replay_cost(trace, TARIFF, rent_or_buy(STAKE)) == replay_cost(trace, TARIFF, never)


def test_a_cold_cache_is_the_moment_to_fold() -> None:
    trace = steady(16, pause_at=13)
    assert replay_cost(trace, TARIFF, rent_or_buy(0.0)).folds == ((13, 8_000),)
    assert optimum(trace, TARIFF).folds[0][0] == 13


def test_a_cold_fold_is_free_and_a_model_s_digest_is_not() -> None:
    rent = Rent(size=40_000, at=0.0, spent=50_000.0)
    cold = Offer(size=41_000, folded=28_000, head=18_000, digest=2_000, at=301.0)
    assert rent.share(cold, TARIFF) == math.inf
    dear = replace(cold, making=economy.digest_cost(TARIFF, covered=15_000, digest=2_000))
    assert rent.share(dear, TARIFF) == pytest.approx(1.25 * 13_000 / 25_000)
    warm = rent.share(replace(cold, at=300.0), TARIFF)
    assert 0 < warm < 1


def test_what_is_new_makes_folding_cheaper() -> None:
    """A large result has to be written in any case; folding in the same request rewrites that much less."""
    old = Rent(size=60_000, at=0.0, spent=1.0, paid=5_000.0)
    new = replace(old, size=50_000)
    offer = Offer(size=60_000, folded=32_000, head=18_000, digest=2_000, at=1.0)
    assert new.terms(offer, TARIFF).price == pytest.approx(1.15 * 4_000)
    assert old.terms(offer, TARIFF).price == pytest.approx(1.15 * 14_000)
    assert new.share(offer, TARIFF, stake=1e9) > 1 > old.share(offer, TARIFF, stake=1e9)


def test_rent_is_counted_from_the_last_fold() -> None:
    offer = Offer(size=60_000, folded=28_000, head=18_000, digest=2_000, at=1.0)
    rent = Rent(size=60_000, at=0.0, spent=1.0)
    once = rent.sent(offer, TARIFF)
    assert once.paid == pytest.approx(0.1 * 32_000)
    assert once.sent(offer, TARIFF).paid == pytest.approx(0.2 * 32_000)
    bought = once.bought(offer, TARIFF)
    assert (bought.paid, bought.size, bought.gone) == (0.0, 28_000, 32_000)
    after = bought.sent(replace(offer, size=28_000), TARIFF)
    assert (after.paid, after.size) == (0.0, 28_000)
    assert after.saved == pytest.approx(0.1 * 32_000 - 1.15 * 10_000)


@pytest.mark.parametrize("offer", [Offer(size=20_000, folded=19_000, digest=1_000), Offer(size=900, folded=500)])
def test_too_little_to_gain_is_no_reason(offer: Offer) -> None:
    """Not more than the digest takes; or so small that the cache would not keep it any more."""
    assert Rent(paid=1e9, saved=1e9).share(offer, TARIFF) == 0


def test_a_model_that_costs_nothing_gives_no_reason_to_fold() -> None:
    free = Tariff(read=0.0, write=0.0, input=0.0, output=0.0)
    assert Rent(size=50_000).share(Offer(size=60_000, folded=28_000, digest=2_000), free) == 0


# Arithmetic


def test_the_price_of_a_fold() -> None:
    assert fold_price(TARIFF, rewritten=8_000, making=100.0, warm=True) == pytest.approx(1.15 * 8_000 + 100)
    assert fold_price(TARIFF, rewritten=8_000, making=100.0, warm=False) == 100.0
    assert saving_per_request(TARIFF, 32_000) == pytest.approx(3_200)


@given(st.integers(1, 50_000), st.integers(-5, 50_000), st.floats(0, 1e5), st.booleans())
@example(0, 1, 0.0, True)
def test_break_even_is_the_first_request_at_which_folding_was_not_dearer(
    rewritten: int, gain: int, making: float, warm: bool
) -> None:
    found = break_even(TARIFF, rewritten=rewritten, gain=gain, making=making, warm=warm)
    if gain <= 0:
        assert found is None
        return
    assert found is not None
    price = fold_price(TARIFF, rewritten=rewritten, making=making, warm=warm)

    def earned(requests: int) -> float:
        return gain * ((TARIFF.read if warm else TARIFF.write) + TARIFF.read * (requests - 1))

    assert earned(found) >= price - 1e-4
    assert found == 1 or earned(found - 1) < price


def test_a_cache_that_reads_for_nothing_never_pays_back() -> None:
    assert break_even(Tariff(read=0.0), rewritten=10, gain=10, making=0.0, warm=True) is None


def test_the_tariff_comes_from_the_model() -> None:
    known = model("claude-sonnet-4-5")
    assert known.prices is not None
    five, hour = tariff_of(known), tariff_of(known, hour=True)
    assert (five.read, five.write, five.life_seconds) == (known.prices.read, known.prices.write, 300)
    assert (hour.write, hour.life_seconds) == (known.prices.write_1h, 3600)
    assert five.least_prefix == known.cache.min_tokens
    unknown = tariff_of(model("nobody-knows-it"))
    assert (unknown.read, unknown.write) == (TARIFF.read, TARIFF.write)


def test_a_token_that_is_not_cached_costs_at_least_plain_input() -> None:
    known = model("claude-sonnet-4-5")
    assert known.prices is not None
    assert tariff_of(replace(known, prices=replace(known.prices, write=0.0))).write == known.prices.input


@pytest.mark.parametrize("wrong", [{"read": 2.0}, {"read": -0.1}, {"output": -1.0}, {"life_seconds": -1.0}])
def test_an_impossible_tariff_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        Tariff(**wrong)  # type: ignore[arg-type]  # least_prefix is not among them


# On a timeline, and at the gate


def test_an_offer_is_read_off_a_path() -> None:
    timeline = timeline_of([user("a"), assistant("b")] * 10, [1_000] * 20)
    at = floor(timeline, Policy(keep_tokens=4_000), 100_000)
    offer = economy.offer(timeline, at, digest=500, fixed=3_000, at=7.0)
    assert (offer.size, offer.folded, offer.head, offer.gain) == (23_000, 7_500, 3_000, 15_500)
    timeline.apply(
        Fold(
            cut=at,
            digest=Digest(message=user("so far", kind="digest")),
            digest_tokens=400,
            carried=(14,),
            carried_tokens=1_000,
        )
    )
    for message in (user("c"), assistant("d")):
        timeline.append(message, 2_000)
    later = economy.offer(timeline, 18, digest=500, fixed=3_000)
    assert (later.size, later.folded) == (3_000 + 400 + 1_000 + 8_000, 3_000 + 500 + 1_000 + 6_000)


def test_the_gate_folds_when_the_rent_has_reached_the_price() -> None:
    policy = Policy.preset("thrifty")
    rent = Rent(size=60_000, at=0.0, paid=9_000.0, saved=50_000.0, spent=400_000.0)
    offer = Offer(size=61_000, folded=28_000, head=18_000, digest=2_000, at=20.0)

    def verdict(rent: Rent) -> Need:
        load = Load(request=61_000, history=41_000, count=80, usable=180_000, rent=rent.share(offer, TARIFF))
        return gate(load, policy).need

    assert verdict(rent) is Need.SOFT
    assert verdict(replace(rent, paid=0.0)) is Need.NONE
    assert verdict(replace(rent, paid=0.0, at=-600.0)) is Need.SOFT
    assert verdict(replace(rent, saved=0.0, spent=0.0)) is Need.NONE


def test_a_free_fold_is_said_in_words() -> None:
    load = Load(request=61_000, history=41_000, count=80, usable=180_000, rent=math.inf)
    assert gate(load, Policy.preset("thrifty")).reason == "folding costs nothing now (fold when cost >= 100%)"


# On sessions


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
