"""The seam for a text index: whoever searches is given every message to read, soon after it was written.

Reading a message takes longer than writing it, and many at once take less than one by one. So a transaction that writes
messages only notes that they are unread, in a row of its own; the next one that finds enough of them hands them to the
index, and so does whoever is about to search. What is unread is a fact of the ledger: a process may die, or a store
write without an index, and nothing is forgotten. The tables of an index are a migration of the schema like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from foldline.ledger.chains import InsertedMessage
from foldline.ledger.connections import Connection, Values
from foldline.ledger.log import Transactions
from foldline.ledger.serialize import read_message, unpack
from foldline.message import Message

MAX_UNINDEXED_BYTES = 1 << 17
"""Bytes of messages that may be unread: so many are read in some hundredths of a second."""
ROW = 256
"""What a message weighs beside its bytes."""
NOTES = 2 * MAX_UNINDEXED_BYTES // ROW
"""Notes that are looked at in one go: more than enough to find too much unread."""
PAGE = 64
"""Messages that are in memory at once while they are read."""


class IndexRow(NamedTuple):
    """A message and its number in the table of messages."""

    id: int
    owner: int
    strand: int
    position: int
    message: Message


class MessageIndex(Protocol):
    """A text index."""

    def add(self, connection: Connection, rows: Sequence[IndexRow]) -> None:
        """Index messages; those that it has already are left as they are."""
        ...

    def drop(self, connection: Connection, owner: int, ids: Sequence[int]) -> None:
        """Forget messages that retention is about to remove, if it has them."""
        ...


def add_unindexed(
    tx: Transactions, index: MessageIndex | None, connection: Connection, written: Sequence[InsertedMessage]
) -> None:
    """Note that messages are unread which stand together on one strand; let the index read when they are too many."""
    if not written:
        return
    sql = (
        "INSERT INTO unread (owner, strand, start, stop, size) VALUES (?, ?, ?, ?, ?) "
        "RETURNING (SELECT COALESCE(SUM(size), 0) FROM unread WHERE owner = ?)"
    )
    owner, size = tx.owner.id, sum(ROW + item.size for item in written)
    row = (owner, written[0].strand, written[0].position, written[-1].position + 1, size, owner)
    before = int(connection.run(sql, row)[0][0])
    if index is None or before + size <= MAX_UNINDEXED_BYTES:
        return
    free = _noted(tx, connection, " SKIP LOCKED" if tx.for_update else "")  # what nobody else reads at this moment
    if sum(row[-1] for row in free) > MAX_UNINDEXED_BYTES:
        _read(tx, index, connection, free, 2 * max(size, MAX_UNINDEXED_BYTES))  # so what others left becomes less


def index_pending(tx: Transactions, index: MessageIndex, connection: Connection) -> int:
    """Let the index read some of what is unread, when others are done who do so; how many messages that were."""
    return _read(tx, index, connection, _noted(tx, connection), MAX_UNINDEXED_BYTES)


def _noted(tx: Transactions, connection: Connection, others: str = "") -> list[Values]:
    """The notes of what is unread, held until the transaction ends."""
    sql = "SELECT strand, start, stop, size FROM unread WHERE owner = ? ORDER BY strand, start LIMIT ?"
    return connection.run(sql + tx.for_update + others, (tx.owner.id, NOTES))


def _read(tx: Transactions, index: MessageIndex, connection: Connection, notes: Sequence[Values], most: int) -> int:
    """Let the index read about `most` bytes; how many messages that were."""
    owner, done = tx.owner.id, 0
    for strand, start, stop, _ in notes:
        at = start
        while at < stop and most > 0:
            rows, size = _page(connection, owner, strand, at, stop)
            index.add(connection, rows)
            at = rows[-1].position + 1 if rows else stop  # retention may have been faster
            done, most = done + len(rows), most - size
        where = (owner, strand, start)
        connection.run("DELETE FROM unread WHERE owner = ? AND strand = ? AND start = ?", where)
        if at < stop:
            rest = "INSERT INTO unread (owner, strand, start, stop, size) VALUES (?, ?, ?, ?, ?)"
            connection.run(rest, (owner, strand, at, stop, (stop - at) * ROW))
        if most <= 0:
            break
    return done


def _page(connection: Connection, owner: int, strand: int, start: int, stop: int) -> tuple[list[IndexRow], int]:
    """Some messages of a strand, and what they weigh."""
    sql = (
        "SELECT id, position, body, meta FROM messages WHERE owner = ? AND strand = ? AND position >= ? "
        "AND position < ? ORDER BY position LIMIT ?"
    )
    rows, size = [], 0
    for id_, position, body, meta in connection.run(sql, (owner, strand, start, stop, PAGE)):
        text = unpack(body)
        size += ROW + len(text)
        rows.append(IndexRow(id_, owner, strand, position, read_message(text, meta)))
    return rows, size


def has_unindexed(tx: Transactions) -> bool:
    """Whether there is anything to read."""
    sql = "SELECT 1 FROM unread WHERE owner = ? LIMIT 1"
    return tx.read(lambda connection: bool(connection.run(sql, (tx.owner.id,))))


def drop_unindexed(connection: Connection, owner: int, strand: int, stop: int) -> None:
    """Nothing from `stop` on is there to be read any more."""
    where = (owner, strand, stop)
    connection.run("DELETE FROM unread WHERE owner = ? AND strand = ? AND start >= ?", where)
    connection.run("UPDATE unread SET stop = ? WHERE owner = ? AND strand = ? AND stop > ?", (stop, *where))
