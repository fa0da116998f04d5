"""After an interrupt at any place of a call, a session goes on as a new one on the same record would."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

import foldline
from foldline.message import user
from foldline.policy import Policy
from foldline.session import Session
from foldline.session.record import MemoryRecord
from foldline.testing import assert_sendable
from support.interrupts import interrupted_at
from support.ledgers import turns

pytestmark = pytest.mark.filterwarnings(  # a place can be in the finalizer of a generator
    "ignore::pytest.PytestUnraisableExceptionWarning"
)

TIGHT = Policy.preset("balanced").but(window_tokens=2_000, reply_tokens=0, counter="chars/4")
CALLS: dict[str, Callable[[Session], object]] = {
    "add": lambda session: session.add(user("next"), *turns(1, 50, chars=40)),
    "view": lambda session: session.view(),
    "fold": lambda session: session.fold(force=True),
    "pin": lambda session: session.pin("the port is 4711", name="port"),
    "use": lambda session: session.use(model="gpt-5"),
}


def agrees(session: Session, other: Session) -> None:
    """Both send the same."""
    view = session.view()
    assert view.messages == other.view().messages
    assert view.blocks == other.view().blocks
    assert session.state.version == other.state.version
    assert_sendable(view.render("anthropic"))


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.promise("I14")
def test_an_interrupted_call_leaves_a_session_in_memory_whole(name: str) -> None:
    step, first = {"add": 3, "view": 97, "fold": 97, "pin": 3, "use": 17}[name], 1
    for place in count(first, step):
        record = MemoryRecord()
        session = Session(policy=TIGHT, record=record)
        session.add(*turns(8))
        was_interrupted = interrupted_at(place, lambda session=session: CALLS[name](session))  # type: ignore[misc]
        agrees(session, Session(record=record))
        if not was_interrupted:
            break
    assert place > first


@pytest.mark.parametrize("name", ["add", "fold"])
def test_an_interrupted_call_leaves_a_session_on_a_ledger_whole(tmp_path: Path, name: str) -> None:
    with foldline.open(tmp_path / "agent.db") as ledger:
        session = ledger.session("s", policy=TIGHT)
        session.add(*turns(4))
        for place in range(1, 1_500, {"add": 31, "fold": 53}[name]):
            interrupted_at(place, lambda: CALLS[name](session))
            agrees(session, ledger.session("s"))
        assert list(ledger.verify()) == []
