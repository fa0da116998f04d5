"""The cost of a fold: prices, break-even, the account of a session, and the share that the gate tests."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from foldline.errors import ConfigError
from foldline.fold import Digest, Fold
from foldline.message import Usage, assistant, user
from foldline.models.table import model
from foldline.plan import fold_cost
from foldline.plan.cut import floor
from foldline.plan.fold_cost import (
    FoldAccount,
    FoldProposal,
    TokenPrices,
    break_even,
    fold_price,
    prices_of,
    reports_cache,
)
from foldline.plan.gate import Load, Need, gate
from foldline.plan.timeline import timeline_of
from foldline.policy import Policy

PRICES = TokenPrices()


@pytest.mark.parametrize(
    ("usages", "is_cached"),
    [
        ([], True),
        ([Usage(input=9_000)], True),
        ([Usage(input=9_000), Usage(input=9_000, output=7)], True),
        ([Usage(input=900), Usage(input=1_000), Usage(input=1_100)], True),
        ([Usage(input=9_000), Usage(input=9_500)], False),
        ([Usage(input=9_000), Usage(input=9_500), Usage(input=10, cache_write=9_900)], True),
        ([Usage(input=9_000), Usage(input=1_500, cache_read=8_000), Usage(input=9_900)], True),
    ],
)
def test_a_cache_is_denied_only_by_two_large_prompts_without_cached_tokens(
    usages: list[Usage], is_cached: bool
) -> None:
    assert reports_cache(usages, 1_024) == is_cached


def test_rent_counts_only_as_far_as_savings_and_stake_cover_it() -> None:
    rent = FoldAccount(size=60_000, removed=5_000, rent_paid=1e9, savings=300.0, baseline_cost=40_000.0)
    proposal = FoldProposal(size=61_000, folded=28_000, head=18_000, digest=2_000)
    price, fresh, untouched = 1.15 * 9_000, 0.1 * 33_000, 0.1 * 65_000 + 1.25 * 1_000
    stake = 0.4 * fold_cost.SMALL_GAIN_STAKE
    cover = 300.0 + 0.1 * 5_000 + stake * (40_000 + untouched)
    assert rent.earned_share(proposal, PRICES, stake=0.4) == pytest.approx((fresh + cover) / price)
    assert rent._replace(rent_paid=100.0).earned_share(proposal, PRICES, stake=0.4) == pytest.approx(
        (fresh + 100) / (fold_cost.PATIENCE * price)
    )


def test_only_a_fold_with_a_large_gain_may_use_the_whole_stake() -> None:
    """It is paid back soon: the fold removes many more tokens than it writes to the cache again."""
    rent = FoldAccount(size=80_000, rent_paid=1e9, baseline_cost=400_000.0)
    rewritten = 9_000
    least = FoldProposal(size=81_000, folded=81_000 - fold_cost.LARGE_GAIN - rewritten, head=24_000, digest=2_000)
    small = least._replace(size=least.size - 1, folded=least.folded)
    assert rent.costs_of(least, PRICES).price == pytest.approx(1.15 * rewritten)
    untouched = 0.1 * 80_000 + 1.25 * 1_000
    cover = fold_cost.STAKE * (400_000 + untouched)
    assert rent.earned_share(least, PRICES) == pytest.approx((0.1 * least.gain + cover) / (1.15 * rewritten))
    assert rent.earned_share(least, PRICES) > 1 > rent.earned_share(small, PRICES)


def test_a_fold_that_pays_at_once_is_right_even_in_debt() -> None:
    rent = FoldAccount(size=500_000, savings=-1e9, baseline_cost=1.0)
    assert rent.earned_share(FoldProposal(size=501_000, folded=24_000, head=18_000, digest=2_000), PRICES) > 1


def test_a_head_too_small_for_the_cache_is_written_again_too() -> None:
    proposal = FoldProposal(size=40_000, folded=10_000, head=1_000, digest=2_000)
    terms = FoldAccount(size=40_000, baseline_cost=1.0).costs_of(proposal, PRICES)
    assert terms.price == pytest.approx(1.15 * 10_000)
    assert terms.rent == pytest.approx(0.1 * 30_000)


def test_a_cold_fold_is_free_and_a_model_s_digest_is_not() -> None:
    rent = FoldAccount(size=40_000, at=0.0, baseline_cost=50_000.0)
    cold = FoldProposal(size=41_000, folded=28_000, head=18_000, digest=2_000, at=301.0)
    assert rent.earned_share(cold, PRICES) == math.inf
    dear = cold._replace(digest_price=fold_cost.digest_cost(PRICES, covered=15_000, digest=2_000))
    fresh, untouched = 1.25 * 13_000, 1.25 * 41_000
    cover = fold_cost.STAKE * fold_cost.SMALL_GAIN_STAKE * (50_000 + untouched)
    assert rent.earned_share(dear, PRICES) == pytest.approx((fresh + cover) / 25_000)
    warm = rent.earned_share(cold._replace(at=300.0), PRICES)
    assert 0 < warm < 1


def test_what_is_new_makes_folding_cheaper() -> None:
    """A large result has to be written in any case; folding in the same request rewrites that much less."""
    old = FoldAccount(size=60_000, at=0.0, baseline_cost=1.0, rent_paid=5_000.0)
    new = old._replace(size=50_000)
    proposal = FoldProposal(size=60_000, folded=32_000, head=18_000, digest=2_000, at=1.0)
    assert new.costs_of(proposal, PRICES).price == pytest.approx(1.15 * 4_000)
    assert old.costs_of(proposal, PRICES).price == pytest.approx(1.15 * 14_000)
    assert new.earned_share(proposal, PRICES, stake=1e9) > 1 > old.earned_share(proposal, PRICES, stake=1e9)


def test_rent_is_counted_from_the_last_fold() -> None:
    proposal = FoldProposal(size=60_000, folded=28_000, head=18_000, digest=2_000, at=1.0)
    rent = FoldAccount(size=60_000, at=0.0, baseline_cost=1.0)
    once = rent.after_request(proposal, PRICES)
    assert once.rent_paid == pytest.approx(0.1 * 32_000)
    assert once.after_request(proposal, PRICES).rent_paid == pytest.approx(0.2 * 32_000)
    bought = once.after_fold(proposal, PRICES)
    assert (bought.rent_paid, bought.size, bought.removed) == (0.0, 28_000, 32_000)
    after = bought.after_request(proposal._replace(size=28_000), PRICES)
    assert (after.rent_paid, after.size) == (0.0, 28_000)
    assert after.savings == pytest.approx(0.1 * 32_000 - 1.15 * 10_000)


@pytest.mark.parametrize(
    "proposal", [FoldProposal(size=20_000, folded=19_000, digest=1_000), FoldProposal(size=900, folded=500)]
)
def test_a_fold_that_gains_too_little_is_not_proposed(proposal: FoldProposal) -> None:
    """Not more than the digest takes; or so small that the cache would not keep it any more."""
    assert FoldAccount(rent_paid=1e9, savings=1e9).earned_share(proposal, PRICES) == 0


def test_a_model_that_costs_nothing_gives_no_reason_to_fold() -> None:
    free = TokenPrices(read=0.0, write=0.0, input=0.0, output=0.0)
    assert FoldAccount(size=50_000).earned_share(FoldProposal(size=60_000, folded=28_000, digest=2_000), free) == 0


def test_the_price_of_a_fold() -> None:
    assert fold_price(PRICES, rewritten=8_000, digest_price=100.0, warm=True) == pytest.approx(1.15 * 8_000 + 100)
    assert fold_price(PRICES, rewritten=8_000, digest_price=100.0, warm=False) == 100.0


@given(st.integers(1, 50_000), st.integers(-5, 50_000), st.floats(0, 1e5), st.booleans())
@example(0, 1, 0.0, True)
def test_break_even_is_the_first_request_at_which_folding_was_not_dearer(
    rewritten: int, gain: int, digest_price: float, warm: bool
) -> None:
    found = break_even(PRICES, rewritten=rewritten, gain=gain, digest_price=digest_price, warm=warm)
    if gain <= 0:
        assert found is None
        return
    assert found is not None
    price = fold_price(PRICES, rewritten=rewritten, digest_price=digest_price, warm=warm)

    def earned(requests: int) -> float:
        return gain * ((PRICES.read if warm else PRICES.write) + PRICES.read * (requests - 1))

    assert earned(found) >= price - 1e-4
    assert found == 1 or earned(found - 1) < price


def test_a_cache_that_reads_for_nothing_never_pays_back() -> None:
    assert break_even(TokenPrices(read=0.0), rewritten=10, gain=10, digest_price=0.0, warm=True) is None


def test_prices_come_from_the_model() -> None:
    known = model("claude-sonnet-4-5")
    assert known.prices is not None
    five, hour = prices_of(known), prices_of(known, hour=True)
    assert (five.read, five.write, five.ttl_seconds) == (known.prices.read, known.prices.write, 300)
    assert (hour.write, hour.ttl_seconds) == (known.prices.write_1h, 3600)
    assert five.min_prefix == known.cache.min_tokens
    unknown = prices_of(model("nobody-knows-it"))
    assert (unknown.read, unknown.write) == (PRICES.read, PRICES.write)


def test_a_token_that_is_not_cached_costs_at_least_plain_input() -> None:
    known = model("claude-sonnet-4-5")
    assert known.prices is not None
    assert prices_of(replace(known, prices=replace(known.prices, write=0.0))).write == known.prices.input


@pytest.mark.parametrize("wrong", [{"read": 2.0}, {"read": -0.1}, {"output": -1.0}, {"ttl_seconds": -1.0}])
def test_impossible_prices_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        TokenPrices(**wrong)  # type: ignore[arg-type]  # min_prefix is not among them


def test_a_proposal_is_read_off_the_timeline() -> None:
    timeline = timeline_of([user("a"), assistant("b")] * 10, [1_000] * 20)
    at = floor(timeline, Policy(keep_tokens=4_000), 100_000)
    proposal = fold_cost.propose_fold(timeline, at, digest=500, fixed=3_000, at=7.0)
    assert (proposal.size, proposal.folded, proposal.head, proposal.gain) == (23_000, 7_500, 3_000, 15_500)
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
    later = fold_cost.propose_fold(timeline, 18, digest=500, fixed=3_000)
    assert (later.size, later.folded) == (3_000 + 400 + 1_000 + 8_000, 3_000 + 500 + 1_000 + 6_000)


def test_the_gate_folds_when_the_rent_has_reached_the_price() -> None:
    policy = Policy.preset("thrifty")
    rent = FoldAccount(size=60_000, at=0.0, rent_paid=9_000.0, savings=50_000.0, baseline_cost=400_000.0)
    proposal = FoldProposal(size=61_000, folded=28_000, head=18_000, digest=2_000, at=20.0)

    def verdict(rent: FoldAccount) -> Need:
        load = Load(
            request=61_000, history=41_000, count=80, usable=180_000, earned_share=rent.earned_share(proposal, PRICES)
        )
        return gate(load, policy).need

    assert verdict(rent) is Need.SOFT
    assert verdict(rent._replace(rent_paid=0.0)) is Need.NONE
    assert verdict(rent._replace(rent_paid=0.0, at=-600.0)) is Need.SOFT
    assert verdict(rent._replace(savings=0.0, baseline_cost=0.0)) is Need.NONE


def test_the_reason_of_a_free_fold_says_that_it_is_free() -> None:
    load = Load(request=61_000, history=41_000, count=80, usable=180_000, earned_share=math.inf)
    assert gate(load, Policy.preset("thrifty")).reason == "folding costs nothing now (fold when cost >= 100%)"
