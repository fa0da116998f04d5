"""`verify` reports every changed, missing or damaged row with its position."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from foldline import ledger
from foldline.errors import LedgerCorrupt
from foldline.ledger import Store
from foldline.message import assistant, user
from support.ledgers import fill_ledger, texts


def test_an_intact_ledger_has_no_faults(store: Store) -> None:
    fill_ledger(store)
    assert list(store.verify()) == []


CHANGES = (
    ("UPDATE messages SET body = '{}' WHERE position = 2 AND segment = 1", "message 2 of segment 1: cannot be read"),
    (
        "UPDATE messages SET key = trace WHERE position = 1 AND segment = 1",
        "message 1 of segment 1: its content",
    ),
    (
        "UPDATE messages SET trace = key WHERE position = 1 AND segment = 1",
        "message 1 of segment 1: its trace does not match",
    ),
    (
        "DELETE FROM messages WHERE position = 1 AND segment = 1",
        "message 2 of segment 1: the previous message (message 1) is missing",
    ),
    ("DELETE FROM messages WHERE position = 4 AND segment = 1", "the message it points to is missing"),
    ("DELETE FROM segments WHERE id = 2", "segment 2: is missing, but has 2 messages"),
    ("UPDATE entries SET body = NULL WHERE kind = 'pin'", "its content does not match its key"),
    ("UPDATE entries SET at = 0 WHERE kind = 'append'", "its content does not match its key"),
    ("DELETE FROM entries WHERE kind = 'pin'", "the previous entry (entry "),
    ("DELETE FROM jobs WHERE kind = 'claim' AND 1 = 0", ""),
)


@pytest.mark.parametrize(("change", "said"), CHANGES)
def test_a_changed_row_is_reported_with_its_position(store: Store, change: str, said: str) -> None:
    fill_ledger(store)
    postgres = store.tx.pool.database.name == "postgres"
    sql = change.replace("'{}'", "'{}'::bytea") if postgres else change
    store.tx.pool.write(lambda connection: connection.run(sql))
    found = [str(fault) for fault in store.verify()]
    assert bool(found) == bool(said)
    assert any(said in line for line in found) or not said, found


def test_a_damaged_page_is_reported_and_the_rest_can_be_read(tmp_path: Path) -> None:
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


def test_reading_a_damaged_message_raises_ledger_corrupt(store: Store) -> None:
    branch = store.session("s")
    store.append(branch, [user("word " * 500), assistant("fine")])
    row = store.tx.pool.read(lambda connection: connection.run("SELECT body FROM messages WHERE position = 0"))[0][0]
    damaged = row[:20] + bytes([row[20] ^ 0xFF]) + row[21:]
    sql = "UPDATE messages SET body = ? WHERE position = 0"
    store.tx.pool.write(lambda connection: connection.run(sql, (damaged,)))
    with pytest.raises(LedgerCorrupt, match="a message of segment 1 is damaged"):
        list(store.read(branch))
