"""The ledger as a whole: verified, exported, imported, pruned."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from foldline import ledger
from foldline.errors import InputError, LedgerCorrupt
from foldline.ledger import Store
from foldline.message import Meta, Usage, assistant, user
from support.ledgers import FOLD, talk, texts


def furnish(store: Store) -> None:
    """Two sessions that share a beginning, with branches, folds, pins, jobs and events."""
    main = store.session("s")
    reply = assistant("b" * 2_000)
    store.append(main, [user("a"), reply, user("c"), assistant("d")])
    claim = store.jobs.claim(main, lease_s=60, deadline_s=600, holder="w")
    store.append_fold(main, FOLD, claim=claim)
    store.pin(main, "first", 0)
    store.unfold(main)
    store.append_fold(main, FOLD)
    side = store.fork(main, "side", at=3)
    store.append(side, talk("x", "y"))
    store.event(main, "warned", {"left": 7})
    other = store.session("t")
    store.append(other, [user("a"), reply, user("other")])
    store.append(other, [user("a"), reply], at=0)
    store.append(main, [user("e")])
    store.move(other, 1)
    store.append(other, [assistant("again")])


def told(store: Store) -> object:
    """Everything a user can see."""
    seen = []
    for info in sorted(store.sessions(), key=lambda info: info.name):
        for branch in store.branches(info.name):
            state = store.state(branch)
            rows = [(row.position, row.at, row.message, row.message.meta) for row in store.read(branch)]
            folds = [(fold, store.fold(branch, fold)) for fold in state.folds]
            marks = [(entry.seq, entry.kind, entry.length, entry.at, entry.op) for entry in state.marks]
            events = [event[1:] for event in store.events(branch)]
            seen.append((info, branch.name, rows, folds, state.pins, marks, events, store.jobs.get(branch)))
    return seen


def test_a_sound_ledger_verifies(store: Store) -> None:
    furnish(store)
    assert list(store.verify()) == []


@pytest.mark.parametrize("owner", ["", "another"])
@pytest.mark.parametrize("target", ["sqlite", "postgres"])
def test_an_export_is_the_ledger_again(
    store: Store, owner: str, target: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    furnish(store)
    lines = list(store.export())
    url = str(tmp_path / "copy.db")
    if target == "postgres":
        url, owner = request.getfixturevalue("shared_postgres"), f"{request.node.name} {owner}"
    copy = ledger.open(url, owner=owner)
    try:
        assert copy.load(lines) == 9
        assert told(copy) == told(store)
        assert list(copy.verify()) == []
        assert [json.loads(line).get("message") for line in copy.export()] == [
            json.loads(line).get("message") for line in lines
        ]
        with pytest.raises(InputError, match="already"):
            copy.load(lines)
    finally:
        copy.close()


def test_an_import_shares_what_is_there_already(opened: Callable[..., Store], tmp_path: Path) -> None:
    source = ledger.open(tmp_path / "source.db")
    furnish(source)
    store = opened()
    mine = store.session("mine")
    store.append(mine, [user("a"), assistant("b" * 2_000), user("mine")])
    assert store.load(source.export()) == 7
    assert [row.message for row in store.read(store.session("s"))] == [
        row.message for row in source.read(source.session("s"))
    ]
    assert list(store.verify()) == []
    source.close()


def test_one_session_can_be_exported(store: Store, tmp_path: Path) -> None:
    furnish(store)
    copy = ledger.open(tmp_path / "one.db")
    copy.load(store.export(["t"]))
    assert [info.name for info in copy.sessions()] == ["t"]
    assert texts(copy, copy.session("t")) == ["a", "again"]
    assert list(copy.verify()) == []
    copy.close()


@pytest.mark.parametrize(
    ("line", "change", "said"),
    [
        (0, lambda value: {"owner": ""}, "line 1: not an export"),
        (
            5,
            lambda value: value | {"message": {"role": "user", "parts": []}},
            "line 6: the message does not match its key",
        ),
        (5, lambda value: {"what": 1}, "line 6: unknown kind of line"),
        (4, lambda value: {"strand": 1}, "line 5 is not a line of an export"),
    ],
)
def test_a_bad_export_imports_nothing(store: Store, tmp_path: Path, line: int, change, said: str) -> None:  # type: ignore[no-untyped-def]
    furnish(store)
    lines = list(store.export())
    lines[line] = json.dumps(change(json.loads(lines[line])))
    copy = ledger.open(tmp_path / "copy.db")
    with pytest.raises(InputError, match=said):
        copy.load(lines)
    assert copy.sessions() == ()
    copy.close()


CHANGES = (
    ("UPDATE messages SET body = '{}' WHERE position = 2 AND strand = 1", "message 2 of strand 1: cannot be read"),
    (
        "UPDATE messages SET key = trace WHERE position = 1 AND strand = 1",
        "message 1 of strand 1: its content",
    ),
    (
        "UPDATE messages SET trace = key WHERE position = 1 AND strand = 1",
        "message 1 of strand 1: its trace does not match",
    ),
    ("DELETE FROM messages WHERE position = 1 AND strand = 1", "message 2 of strand 1: message 1, the one before it"),
    ("DELETE FROM messages WHERE position = 4 AND strand = 1", "the message it points to is missing"),
    ("DELETE FROM strands WHERE id = 2", "strand 2: is missing, but has 2 messages"),
    ("UPDATE entries SET body = NULL WHERE kind = 'pin'", "its content does not match its key"),
    ("UPDATE entries SET at = 0 WHERE kind = 'append'", "its content does not match its key"),
    ("DELETE FROM entries WHERE kind = 'pin'", "the one before it, is missing"),
    ("DELETE FROM jobs WHERE kind = 'claim' AND 1 = 0", ""),
)


@pytest.mark.parametrize(("change", "said"), CHANGES)
def test_what_was_changed_behind_its_back_is_found_where_it_is(store: Store, change: str, said: str) -> None:
    furnish(store)
    postgres = store.tx.pool.database.name == "postgres"
    with store.tx.pool.transaction() as connection:
        connection.run(change.replace("'{}'", "'{}'::bytea") if postgres else change)
    found = [str(fault) for fault in store.verify()]
    assert bool(found) == bool(said)
    assert any(said in line for line in found) or not said, found


def test_retention_keeps_what_others_need(opened: Callable[..., Store]) -> None:
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


def test_what_was_pruned_is_gone_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    store = ledger.open(path)
    store.append(store.session("s"), [user("the secret is xyzzy")])
    store.prune(older_than=1e12)
    store.close()
    assert not [file for file in tmp_path.iterdir() if b"xyzzy" in file.read_bytes()]


def test_a_damaged_page_is_said_and_the_rest_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    store = ledger.open(path)
    for number in range(40):
        store.append(store.session(f"s{number}"), [user(f"{number} " + "x" * 300), assistant("y" * 300 + str(number))])
    store.close()
    with sqlite3.connect(path) as link:
        page = link.execute("SELECT rootpage FROM sqlite_master WHERE name = 'messages_trace'").fetchone()[0]
        size = link.execute("PRAGMA page_size").fetchone()[0]
    link.close()
    data = bytearray(path.read_bytes())
    data[(page - 1) * size : page * size] = b"\xff" * size
    path.write_bytes(data)
    store = ledger.open(path)
    assert any(fault.where == "file" for fault in store.verify())
    assert texts(store, store.session("s0"))[0].startswith("0 ")
    with pytest.raises(LedgerCorrupt, match="restore a backup"):
        store.append(store.session("s0"), [user("more")])
    store.close()


def test_usage_that_came_later_is_exported(store: Store, tmp_path: Path) -> None:
    main = store.session("s")
    store.append(main, [user("a")])
    with_usage = user("a")
    store.append(main, [type(with_usage)(role="user", parts=with_usage.parts, meta=Meta(usage=Usage(input=3)))], at=0)
    copy = ledger.open(tmp_path / "copy.db")
    copy.load(store.export())
    assert next(copy.read(copy.session("s"))).message.meta.usage == Usage(input=3)
    copy.close()


def test_an_export_is_of_one_moment(opened: Callable[..., Store], tmp_path: Path) -> None:
    """Whoever writes meanwhile does not tear it apart."""
    store, other = opened(), opened()
    furnish(store)
    before = told(store)
    lines = []
    for number, line in enumerate(store.export()):
        lines.append(line)
        main = other.session("s" if number % 2 else f"new {number}")
        other.append(main, [user(f"meanwhile {number}")])
    copy = ledger.open(tmp_path / "copy.db")
    copy.load(lines)
    assert told(copy) == before
    copy.close()
