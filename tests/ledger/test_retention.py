"""`prune` deletes old sessions, and nothing that others need."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from foldline import ledger
from foldline.ledger import Store
from foldline.message import user
from support.ledgers import talk, texts


def test_retention_keeps_messages_that_other_sessions_share(opened: Callable[..., Store]) -> None:
    now = [100.0]
    store = opened(clock=lambda: now[0])
    old = store.session("old")
    store.append(old, talk("a", "b", "c", "d"))
    now[0] = 200.0
    new = store.session("new")
    store.append(new, talk("a", "b"))
    side = store.fork(new, "side")
    store.append(side, talk("x"))
    store.append(new, [user("e")])
    assert store.prune(older_than=50.0) == ()
    assert store.prune(older_than=150.0) == ("old",)
    assert [info.name for info in store.sessions()] == ["new"]
    assert texts(store, new) == ["a", "b", "e"]
    assert texts(store, side) == ["a", "b", "x"]
    assert list(store.verify()) == []
    found = store.find(talk("a", "b", "c", "d"))
    assert found is not None
    assert (found.count, found.branch.session) == (2, "new")
    again = store.session("old")
    assert store.append(again, talk("a", "b", "c", "d")).written == 2
    assert list(store.verify()) == []


def test_deleted_messages_are_overwritten_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    store = ledger.open(path)
    store.append(store.session("s"), [user("the secret is xyzzy")])
    store.prune(older_than=1e12)
    store.close()
    assert not [file for file in tmp_path.iterdir() if b"xyzzy" in file.read_bytes()]
