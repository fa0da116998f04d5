"""A turn costs the same however long the conversation is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from foldline.message import ToolCall, assistant, tool, user
from foldline.policy import Policy, presets
from foldline.session import Session
from support.knobs import FOLDING, small


@pytest.mark.parametrize("name", presets())
def test_a_message_costs_the_same_however_long_the_conversation_is(name: str) -> None:
    """Counted in calls, not in time: the last 600 turns make no more of them than the 600 before."""
    policy = small(name, 4_000) if name in FOLDING else Policy.preset(name).but(window_tokens=1_000_000)
    session = Session(model="claude-sonnet-5", policy=policy)
    costs = []
    for turns in (300, 600, 600):
        calls = count_calls(lambda: turn(session), turns)
        costs.append(calls / turns)
    assert costs[2] <= 1.05 * costs[1]


def turn(session: Session) -> None:
    """A prompt, a step, a reply."""
    place = len(session.timeline)
    call = ToolCall(id=f"call_{place}", name="run")
    session.add(user(f"Do {place}."))
    session.view()
    session.add(assistant("", call), tool(call.id, "done " * 20))
    session.view()
    session.add(assistant("It is done."))


def count_calls(action: Callable[[], None], times: int) -> int:
    """How many calls of Python functions some turns make."""
    calls = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(note)
    try:
        for _ in range(times):
            action()
    finally:
        sys.setprofile(None)
    return calls
