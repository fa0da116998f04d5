"""An export can be imported into any database and under any owner."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from foldline import ledger
from foldline.errors import InputError
from foldline.ledger import Store
from foldline.ledger.connections import Connection
from foldline.ledger.index_feed import IndexRow, has_unindexed
from foldline.message import Meta, Usage, assistant, user
from foldline.recall.text_index import TextIndex
from support.ledgers import fill_ledger, texts


def visible_content(store: Store) -> object:
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


@pytest.mark.parametrize("owner", ["", "another"])
@pytest.mark.parametrize("target", ["sqlite", "postgres"])
def test_an_imported_export_equals_the_ledger(
    store: Store, owner: str, target: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    fill_ledger(store)
    lines = list(store.export())
    url = str(tmp_path / "copy.db")
    if target == "postgres":
        url, owner = request.getfixturevalue("shared_postgres"), f"{request.node.name} {owner}"
    copy = ledger.open(url, owner=owner)
    try:
        assert copy.load(lines) == 9
        assert visible_content(copy) == visible_content(store)
        assert list(copy.verify()) == []
        assert [json.loads(line).get("message") for line in copy.export()] == [
            json.loads(line).get("message") for line in lines
        ]
        with pytest.raises(InputError, match="already"):
            copy.load(lines)
    finally:
        copy.close()


def test_an_import_shares_stored_messages(opened: Callable[..., Store], tmp_path: Path) -> None:
    source = ledger.open(tmp_path / "source.db")
    fill_ledger(source)
    store = opened()
    mine = store.session("mine")
    store.append(mine, [user("a"), assistant("b" * 2_000), user("mine")])
    assert store.load(source.export()) == 7
    assert [row.message for row in store.read(store.session("s"))] == [
        row.message for row in source.read(source.session("s"))
    ]
    assert list(store.verify()) == []
    source.close()


class ReadingIndex(TextIndex):
    """Records how many messages another reader of the ledger sees while messages are being indexed."""

    def __init__(self, other: Store) -> None:
        self.other = other
        self.seen: list[int] = []

    def add(self, connection: Connection, rows: Sequence[IndexRow]) -> None:
        """Read with the other store, then index."""
        self.seen.append(sum(info.messages for info in self.other.sessions()))
        super().add(connection, rows)


def test_the_messages_of_an_import_are_committed_before_they_are_indexed(tmp_path: Path) -> None:
    """Indexing takes most of the time of an import. Other writers do not have to wait for it."""
    source, other = ledger.open(tmp_path / "source.db"), ledger.open(tmp_path / "copy.db")
    source.append(source.session("long"), [user(f"{number} and {'plain words ' * 40}") for number in range(900)])
    index = ReadingIndex(other)
    copy = ledger.open(tmp_path / "copy.db", index=index)
    copy.load(source.export())
    assert len(index.seen) > 1
    assert set(index.seen) == {900}
    assert not has_unindexed(copy.tx)
    for store in (source, other, copy):
        store.close()


def test_one_session_can_be_exported(store: Store, tmp_path: Path) -> None:
    fill_ledger(store)
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
        (4, lambda value: {"segment": 1}, "line 5 is malformed"),
    ],
)
def test_a_bad_export_imports_nothing(store: Store, tmp_path: Path, line: int, change, said: str) -> None:  # type: ignore[no-untyped-def]
    fill_ledger(store)
    lines = list(store.export())
    lines[line] = json.dumps(change(json.loads(lines[line])))
    copy = ledger.open(tmp_path / "copy.db")
    with pytest.raises(InputError, match=said):
        copy.load(lines)
    assert copy.sessions() == ()
    copy.close()


def test_usage_that_was_added_later_is_exported(store: Store, tmp_path: Path) -> None:
    main = store.session("s")
    store.append(main, [user("a")])
    with_usage = user("a")
    store.append(main, [type(with_usage)(role="user", parts=with_usage.parts, meta=Meta(usage=Usage(input=3)))], at=0)
    copy = ledger.open(tmp_path / "copy.db")
    copy.load(store.export())
    assert next(copy.read(copy.session("s"))).message.meta.usage == Usage(input=3)
    copy.close()


def test_an_export_is_one_snapshot(opened: Callable[..., Store], tmp_path: Path) -> None:
    """Whoever writes meanwhile does not tear it apart."""
    store, other = opened(), opened()
    fill_ledger(store)
    before = visible_content(store)
    lines = []
    for number, line in enumerate(store.export()):
        lines.append(line)
        main = other.session("s" if number % 2 else f"new {number}")
        other.append(main, [user(f"meanwhile {number}")])
    copy = ledger.open(tmp_path / "copy.db")
    copy.load(lines)
    assert visible_content(copy) == before
    copy.close()
