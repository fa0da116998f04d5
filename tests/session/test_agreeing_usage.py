"""Usage figures that agree with each other, but not with the estimate: they are used, and an event says so."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from foldline import Policy, Session
from foldline.events import Event
from foldline.measure.estimator import Count
from foldline.measure.tokenizers import exact_counter
from support.counting import words

POLICY = Policy.preset("balanced").but(window_tokens=60_000, reply_tokens=1_000)
EXACT = exact_counter("o200k_base", "o200k_base")


class LowCounter:
    """An estimate that is too low (or too high) by a factor."""

    exact = False

    def __init__(self, factor: float) -> None:
        self.factor, self.name = factor, f"a count divided by {factor}"

    def count(self, text: str) -> Count:
        return Count(max(round(tokens(text) / self.factor), 1) if text else 0, False, self.name)


def tokens(text: str) -> int:
    assert EXACT is not None
    return EXACT.count(text).tokens


class Chat:
    """A session with estimates that are wrong by a factor, and a provider that reports what `figure` returns."""

    def __init__(self, factor: float, hidden: int = 0, policy: Policy = POLICY) -> None:
        self.events: list[Event] = []
        self.counter = LowCounter(factor)
        self.session = Session(
            model="gpt-5", format="openai", policy=policy, counter=self.counter, listener=self.events.append
        )
        self.hidden, self.turns, self.before = hidden, 0, 0

    def turn(self, size: int, figure: Callable[[int, int], int] = lambda real, _before: real) -> tuple[int, int]:
        """One turn. Returns the size that the session shows for the request, and its real size."""
        self.turns += 1
        self.session.add({"role": "user", "content": words(size, self.turns)})
        view = self.session.view()
        real = self.hidden + sum(tokens(message.text) + 4 for message in view.messages)
        prompt, self.before = figure(real, self.before), real
        usage = {"prompt_tokens": prompt, "completion_tokens": 30, "total_tokens": prompt + 30}
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": words(30)}}
        head = {"id": f"c{self.turns}", "object": "chat.completion", "created": 1, "model": "gpt-5"}
        self.session.add({**head, "choices": [choice], "usage": usage})
        return view.tokens, real

    @property
    def corrections(self) -> list[Any]:
        return [event.facts for event in self.events if event.kind == "corrected"]


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
    assert facts["ratio"] == pytest.approx(2.5, rel=0.1)
    assert facts["reported"] > facts["expected"]


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
