"""An owner never sees a row, a count or a key of another owner."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import foldline.ledger
from foldline import ledger
from foldline.errors import Conflict
from foldline.ledger import Store
from support.ledgers import FOLD, talk

OWNERS = ("", *(f"owner-{number}" for number in range(9)))


@pytest.mark.promise("I17")
def test_ten_owners_with_the_same_text_and_the_same_names(opened: Callable[..., Store]) -> None:
    stores = {owner: opened(owner=owner) for owner in OWNERS}
    keys, logs = set(), set()
    for number, (owner, store) in enumerate(stores.items()):
        assert store.sessions() == ()
        assert store.find(talk("a", "b")) is None, "the same text was said by others before"
        main = store.session("same")
        appended = store.append(main, talk("a", "b", "c"))
        assert appended.written == 3
        keys.add(appended.head.key)
        logs.add(appended.head.log)
        store.append_fold(main, FOLD)
        store.pin(main, "p", 0)
        store.event(main, "warned", owner)
        claim = store.jobs.claim(main, lease_s=100, deadline_s=100, holder=owner)
        assert claim is not None
        assert claim.fence == 1
        side = store.fork(main, "side", at=1)
        store.append(side, talk(*(f"{owner} {place}" for place in range(number))))
    assert len(keys) == len(logs) == len(OWNERS)
    for number, (owner, store) in enumerate(stores.items()):
        (info,) = store.sessions()
        assert (info.messages, info.folds, info.branches) == (max(3, 1 + number), 1, ("main", "side"))
        main, side = store.branches("same")
        assert [event.body for event in store.events(main)] == [owner]
        assert store.jobs.get(main).holder == owner
        assert [row.message.text for row in store.read(side)] == ["a", *(f"{owner} {place}" for place in range(number))]
        assert len(list(store.export())) > 5
        assert list(store.verify()) == []
        found = store.find(talk("a", "b", "c"))
        assert found is not None
        assert found.branch == main


@pytest.mark.promise("I17")
def test_an_id_of_another_owner_gives_no_access(opened: Callable[..., Store]) -> None:
    alice, bob = opened(owner="alice"), opened(owner="bob")
    hers = alice.session("s")
    head = alice.append(hers, talk("a", "b")).head
    claim = alice.jobs.claim(hers, lease_s=100, deadline_s=100)
    assert claim is not None
    alice.pin(hers, "p", 0)
    alice.event(hers, "warned")
    before = (alice.state(hers), list(alice.read(hers)), alice.jobs.get(hers))
    for look in (bob.head, bob.state, lambda branch: list(bob.read(branch))):
        with pytest.raises(Conflict):
            look(hers)
    with pytest.raises(foldline.errors.LedgerError):
        list(bob.read(head))
    assert bob.events(hers) == []
    assert bob.jobs.get(hers).fence == 0
    for change in (
        lambda: bob.append(hers, talk("x")),
        lambda: bob.append_fold(hers, FOLD),
        lambda: bob.pin(hers, "q", 0),
        lambda: bob.move(hers),
        lambda: bob.note(hers, "model", "m"),
        lambda: bob.fork(hers, "side"),
        lambda: bob.jobs.claim(hers, lease_s=1, deadline_s=1),
        lambda: bob.jobs.renew(claim, lease_s=1),
        lambda: bob.jobs.finish(claim),
        lambda: bob.jobs.cancel(hers),
    ):
        with pytest.raises(Conflict):
            change()
    assert bob.prune(older_than=1e12) == ()
    assert (alice.state(hers), list(alice.read(hers)), alice.jobs.get(hers)) == before


@pytest.mark.promise("I17")
def test_every_query_filters_by_owner() -> None:
    """Held by reading the code: a new query that forgets the owner fails here."""
    tables = "sessions|branches|segments|messages|remarks|entries|jobs|events"
    seen = 0
    for path in sorted(Path(foldline.ledger.__file__).parent.glob("*.py")):
        source = re.sub(r'"\s*\n\s*f?"', "", path.read_text())
        for statement in re.findall(rf"(?:SELECT|UPDATE|DELETE)[^;]*?(?:FROM|UPDATE) (?:{tables})\b[^\"]*", source):
            assert "owner" in statement, f"{path.name}: {statement}"
            seen += 1
    assert seen > 30


def test_for_owner_opens_the_same_ledger(opened: Callable[..., Store]) -> None:
    store = opened(owner="a")
    other = ledger.for_owner(store, "b")
    other.append(other.session("s"), talk("x"))
    assert store.sessions() == ()
    assert opened(owner="b").sessions()[0].name == "s"
