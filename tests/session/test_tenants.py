"""Ten owners with the same words and the same names in one ledger: nothing of one is ever seen by another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

import foldline
from foldline.digest.digester import Digester, DigesterCall
from foldline.events import Event
from foldline.message import Message, assistant, user
from foldline.policy import Policy
from foldline.session import Ledger
from foldline.testing import Scripted, proper

ROOMY = Policy.preset("balanced").but(window_tokens=3_000, reply_tokens=0, counter="chars/4")
OWNERS = [f"owner {number}" for number in range(10)]
NAMES = ("ticket-42", "main")
WAIT_S = 60.0


def secret(owner: str) -> str:
    return f"codeword{OWNERS.index(owner)}zebra"


def said(owner: str) -> Iterator[Message]:
    """The same words for everybody, but for one."""
    yield user("Which port does the worker use?")
    yield assistant(f"The worker listens on port 4711. The word is {secret(owner)}.")
    for number in range(9):
        yield user(f"question {number} " + "why " * 100)
        yield assistant(f"answer {number} " + "so " * 300)


class SharedLedger:
    """All owners' ledgers on one database, and the calls and events of each."""

    def __init__(self, url: str, stack: ExitStack) -> None:
        self.asked: dict[str, list[DigesterCall]] = {}
        self.events: dict[str, list[Event]] = {owner: [] for owner in OWNERS}
        self.ledgers: dict[str, Ledger] = {}
        for owner in OWNERS:
            scripted = Scripted(proper)
            self.asked[owner] = scripted.asks
            digester = Digester(complete=scripted, model="model", window=100_000)
            opened = foldline.open(url, owner=owner, digester=digester, listener=self.events[owner].append)
            self.ledgers[owner] = stack.enter_context(opened)


@pytest.fixture
def shared_ledger(url: str) -> Iterator[SharedLedger]:
    with ExitStack() as stack:
        found = SharedLedger(url, stack)
        for owner, ledger in found.ledgers.items():
            for name in NAMES:
                session = ledger.session(name, policy=ROOMY)
                for message in said(owner):
                    session.add(message)
                    if session.view().need:
                        assert ledger.wait(WAIT_S)
            session.branch("try", at=4)
        assert all(ledger.wait(WAIT_S) for ledger in found.ledgers.values())
        yield found


def others(owner: str) -> list[str]:
    return [secret(other) for other in OWNERS if other != owner]


@pytest.mark.promise("I17", "I16")
def test_nothing_crosses_from_one_owner_to_another(shared_ledger: SharedLedger) -> None:
    for owner, ledger in shared_ledger.ledgers.items():
        sessions = [ledger.session(name) for name in NAMES]
        views = [session.view() for session in sessions]
        shown = [message.text for view in views for message in view.messages]
        folds = [session.timeline.fold for session in sessions]
        assert all(fold is not None and fold.digest is not None for fold in folds)
        found = [str(sessions[0].recall(query, everywhere=True)) for query in ("which port?", *others(owner)[:2])]
        everything = [*shown, *map(str, folds), *found, *ledger.export(), *map(str, shared_ledger.events[owner])]
        everything += [ask.text for ask in shared_ledger.asked[owner]]
        assert not [word for word in others(owner) if any(word in text for text in everything)]
        assert secret(owner) in found[0]
        assert shared_ledger.asked[owner], "its digests were written from its own words"
    counts(shared_ledger)


def counts(shared_ledger: SharedLedger) -> None:
    """Every count is of one owner alone."""
    infos = [ledger.sessions() for ledger in shared_ledger.ledgers.values()]
    assert {len(info) for info in infos} == {len(NAMES)}
    assert {each.messages for info in infos for each in info} == {20}
    for owner, ledger in shared_ledger.ledgers.items():
        assert sorted(info.name for info in ledger.sessions()) == sorted(NAMES)
        assert list(ledger.verify()) == []
        for name in NAMES:
            folds = len(ledger.store.state(ledger.store.session(name)).folds)
            committed = [
                event for event in shared_ledger.events[owner] if (event.kind, event.session) == ("committed", name)
            ]
            assert folds == len(committed) >= 1


@pytest.mark.promise("I17", "I11")
def test_changes_of_one_owner_do_not_affect_others(shared_ledger: SharedLedger) -> None:
    first, *rest = OWNERS
    before = {owner: list(shared_ledger.ledgers[owner].export()) for owner in rest}
    session = shared_ledger.ledgers[first].session("ticket-42")
    session.unfold()
    session.pin("the port is 4711")
    session.cancel()
    session.clear()
    shared_ledger.ledgers[first].prune(older_than=2e12)
    assert shared_ledger.ledgers[first].sessions() == ()
    assert {owner: list(shared_ledger.ledgers[owner].export()) for owner in rest} == before
