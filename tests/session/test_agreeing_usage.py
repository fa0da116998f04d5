"""Usage figures that agree with each other, but not with the estimate: they are used, and an event says so."""

from __future__ import annotations

import random

import pytest

from support.wrong_estimates import POLICY, Chat


@pytest.mark.promise("I3", "I10")
@pytest.mark.parametrize("hidden", [0, 8_000])
@pytest.mark.parametrize("size", [300, 1_500, 6_000])
@pytest.mark.parametrize("factor", [1.3, 1.7, 2.5, 3.5])
def test_no_request_is_too_long_if_the_estimate_is_far_too_low(factor: float, size: int, hidden: int) -> None:
    chat = Chat(factor, hidden)
    for _ in range(40):
        _, real = chat.turn(size)
        assert real <= chat.session.usable
    shown, real = chat.turn(size)
    assert shown >= 0.8 * real


@pytest.mark.promise("I10")
def test_an_event_says_that_the_figures_count_more_than_the_estimate() -> None:
    chat = Chat(2.5)
    for _ in range(12):
        chat.turn(1_500)
    chat.session.view()
    (facts,) = chat.corrections
    assert facts["reported"] > 1.15 * facts["expected"]
    assert facts["ratio"] == round(facts["reported"] / facts["expected"], 2)


@pytest.mark.promise("I10")
def test_there_is_no_event_if_the_figures_are_within_the_margin_of_the_expected_size() -> None:
    chat = Chat(2.5, hidden=8_000)
    for _ in range(12):
        chat.turn(300)
    shown, real = chat.turn(300)
    assert shown == pytest.approx(real, rel=0.1), "the figures are used"
    assert not chat.corrections


@pytest.mark.promise("I10")
@pytest.mark.parametrize("first", [200, 8_000])
@pytest.mark.parametrize("seed", range(3))
def test_content_of_another_kind_than_before_is_measured_as_the_provider_counts_it(first: int, seed: int) -> None:
    """The first messages are estimated well, and then a kind of content comes that is estimated far too low."""
    chat, chance = Chat(1.0), random.Random(seed)
    chat.turn(first)
    chat.counter.factor = 3.0
    for _ in range(8):
        chat.turn(chance.randint(500, 4_000))
    shown, real = chat.turn(1_000)
    assert shown == pytest.approx(real, rel=0.15)


TWICE = {
    "without hidden tokens": (0, 8_000, 1.0),
    "with hidden tokens": (9_000, 500, 1.0),
    "with an estimate that is a little low": (0, 8_000, 1.12),
}


@pytest.mark.promise("I10")
@pytest.mark.parametrize("is_uneven", [False, True])
@pytest.mark.parametrize("kind", TWICE)
def test_figures_that_count_cached_tokens_twice_do_not_win_by_agreeing(kind: str, is_uneven: bool) -> None:
    hidden, first, factor = TWICE[kind]
    chat, chance = Chat(factor, hidden, POLICY.but(window_tokens=200_000)), random.Random(1)
    chat.turn(first)
    for number in range(25):
        size = chance.randint(500, 3_000) if is_uneven else 1_500
        shown, real = chat.turn(size, lambda real, before: real + before)
        assert shown <= 1.25 * real, number
    assert not chat.corrections


def test_a_first_figure_far_below_the_estimate_counts_when_later_ones_agree() -> None:
    chat = Chat(0.6)
    estimate, real = chat.turn(9_000)
    assert estimate == pytest.approx(real / 0.6, rel=0.05)
    shown, real = chat.turn(1_000)
    assert shown == pytest.approx(real / 0.6, rel=0.05), "one low figure may lack cached tokens"
    for _ in range(3):
        shown, real = chat.turn(1_000)
    assert shown == pytest.approx(real, rel=0.1)
