"""Feed of new messages to a text index.

Indexing many messages at once is faster than one by one. So a transaction that writes messages only adds their range as
a row to the table `unread`. When the unindexed messages exceed a size limit, the next writer indexes them; a search
does so, too. Since the ranges are in the ledger, nothing is missed when a process is killed or a store has no index.
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
"""Bytes of messages that may stay unindexed; indexing this many takes some hundredths of a second."""
ROW_BYTES = 256
"""Bytes that are added to the size of each message when it is compared with the limit."""
MAX_RANGES = 2 * MAX_UNINDEXED_BYTES // ROW_BYTES
PAGE = 64
_INSERT = "INSERT INTO unread (owner, strand, start, stop, size) VALUES (?, ?, ?, ?, ?)"


class IndexRow(NamedTuple):
    """A message to be indexed, with its row id."""

    id: int
    owner: int
    strand: int
    position: int
    message: Message


class MessageIndex(Protocol):
    """A text index."""

    def add(self, connection: Connection, rows: Sequence[IndexRow]) -> None:
        """Index messages; those already in the index are skipped."""

    def drop(self, tx: Transactions, connection: Connection, ids: Sequence[int]) -> None:
        """Remove messages from the index before retention deletes them."""


def add_unindexed(
    tx: Transactions, index: MessageIndex | None, connection: Connection, inserted: Sequence[InsertedMessage]
) -> None:
    """Record that consecutive messages of one strand are unindexed; index some if too many are unindexed."""
    if not inserted:
        return
    sql = _INSERT + " RETURNING (SELECT COALESCE(SUM(size), 0) FROM unread WHERE owner = ?)"  # noqa: S608  # constants
    owner, size = tx.owner.id, sum(ROW_BYTES + item.size for item in inserted)
    row = (owner, inserted[0].strand, inserted[0].position, inserted[-1].position + 1, size, owner)
    before = int(connection.run(sql, row)[0][0])
    if index is None or before + size <= MAX_UNINDEXED_BYTES:
        return
    free = _lock_ranges(tx, connection, " SKIP LOCKED" if tx.for_update else "")  # those not being indexed now
    if sum(row[-1] for row in free) > MAX_UNINDEXED_BYTES:
        # Twice as much as was added, so that a backlog shrinks
        _index_ranges(tx, index, connection, free, 2 * max(size, MAX_UNINDEXED_BYTES))


def index_pending(tx: Transactions, index: MessageIndex, connection: Connection) -> int:
    """Wait for concurrent indexing, then index some of the recorded messages and return their number."""
    return _index_ranges(tx, index, connection, _lock_ranges(tx, connection), MAX_UNINDEXED_BYTES)


def _lock_ranges(tx: Transactions, connection: Connection, locked: str = "") -> list[Values]:
    """The recorded ranges, locked until the transaction ends."""
    sql = "SELECT strand, start, stop, size FROM unread WHERE owner = ? ORDER BY strand, start LIMIT ?"
    return connection.run(sql + tx.for_update + locked, (tx.owner.id, MAX_RANGES))


def _index_ranges(
    tx: Transactions, index: MessageIndex, connection: Connection, ranges: Sequence[Values], max_bytes: int
) -> int:
    """Index about `max_bytes` bytes of messages; returns their number."""
    owner, count = tx.owner.id, 0
    for strand, start, stop, _ in ranges:
        at = start
        while at < stop and max_bytes > 0:
            rows, size = _page(connection, owner, strand, at, stop)
            index.add(connection, rows)
            at = rows[-1].position + 1 if rows else stop  # the messages may have been deleted
            count, max_bytes = count + len(rows), max_bytes - size
        connection.run("DELETE FROM unread WHERE owner = ? AND strand = ? AND start = ?", (owner, strand, start))
        if at < stop:
            connection.run(_INSERT, (owner, strand, at, stop, (stop - at) * ROW_BYTES))
        if max_bytes <= 0:
            break
    return count


def _page(connection: Connection, owner: int, strand: int, start: int, stop: int) -> tuple[list[IndexRow], int]:
    sql = (
        "SELECT id, position, body, meta FROM messages WHERE owner = ? AND strand = ? AND position >= ? "
        "AND position < ? ORDER BY position LIMIT ?"
    )
    rows, size = [], 0
    for id_, position, body, meta in connection.run(sql, (owner, strand, start, stop, PAGE)):
        text = unpack(body)
        size += ROW_BYTES + len(text)
        rows.append(IndexRow(id_, owner, strand, position, read_message(text, meta)))
    return rows, size


def has_unindexed(tx: Transactions) -> bool:
    """Whether any messages are unindexed."""
    sql = "SELECT 1 FROM unread WHERE owner = ? LIMIT 1"
    return tx.read(lambda connection: bool(connection.run(sql, (tx.owner.id,))))


def drop_unindexed(connection: Connection, owner: int, strand: int, stop: int) -> None:
    """Remove the positions from `stop` on from the recorded ranges of a strand."""
    where = (owner, strand, stop)
    connection.run("DELETE FROM unread WHERE owner = ? AND strand = ? AND start >= ?", where)
    connection.run("UPDATE unread SET stop = ? WHERE owner = ? AND strand = ? AND stop > ?", (stop, *where))
