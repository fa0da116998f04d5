"""A session knows from the times of its messages when the prompt cache has expired, and then folds for free."""

from __future__ import annotations

import pytest

from foldline.message import assistant, user
from foldline.policy import Policy
from foldline.session import Session
from support.ledgers import Open

THRIFTY = Policy.preset("thrifty").but(
    window_tokens=200_000, keep_tokens=5_000, keep_ratio=0.0, digest_tokens=1_000, counter="chars/4", background=False
)
PAUSE_S = 3_600.0


class Clock:
    """A clock that is set by hand."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def talk(session: Session, clock: Clock, turns: int = 3) -> None:
    """Some turns, ten seconds apart; too few to earn a fold."""
    for number in range(turns):
        clock.now += 10
        session.add(user(f"question {number} " + "why " * 3_000))
        session.view()
        clock.now += 10
        session.add(assistant(f"answer {number} " + "so " * 3_000))


def ask_after(session: Session, clock: Clock, seconds: float) -> None:
    clock.now += seconds
    session.add(user("and now?"))


@pytest.mark.parametrize("seconds", [60.0, PAUSE_S])
def test_a_live_session_folds_for_free_after_a_pause(seconds: float) -> None:
    clock = Clock()
    session = Session(model="claude-sonnet-5", policy=THRIFTY, clock=clock)
    talk(session, clock)
    assert session.folds == 0
    ask_after(session, clock, seconds)
    plan = session.plan()
    assert (plan.fold is not None) == (seconds == PAUSE_S), str(plan)
    assert ("costs nothing" in plan.verdict.reason) == (seconds == PAUSE_S)
    session.view()
    assert session.folds == (seconds == PAUSE_S)


@pytest.mark.promise("I14")
def test_another_process_sees_the_same_pause_whatever_its_clock_says(opens: Open) -> None:
    clock, later = Clock(), Clock(2_000_000_000.0)
    mine = opens(clock=clock).session("s", model="claude-sonnet-5", policy=THRIFTY)
    other = opens(clock=later).session("s")
    talk(mine, clock)
    ask_after(mine, clock, 60)
    assert other.plan().fold is None
    assert other.load() == mine.load()
    mine.view()
    mine.add(assistant("nothing"))
    ask_after(mine, clock, PAUSE_S)
    assert other.plan() == mine.plan()
    assert other.plan().fold is not None
    assert mine.view().messages == other.view().messages
    assert mine.folds == other.folds == 1
    assert opens().session("s").load() == mine.load(), "also when it is opened later"


def test_messages_of_a_log_keep_their_times() -> None:
    """Messages without a time in a log have the time of their neighbour, not the present."""
    clock = Clock()
    session = Session(model="claude-sonnet-5", policy=THRIFTY, clock=clock)
    log = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}]
    session.add(*log)
    assert [message.meta.at for message in session.timeline.messages] == [clock.now] * 2


def test_a_session_without_a_rule_about_cost_needs_no_times() -> None:
    message = user("hi")
    session = Session(policy="balanced")
    session.add(message)
    assert session.timeline.messages[0] is message
