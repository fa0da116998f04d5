"""Passes new messages to a text index.

Indexing many messages at once is faster than indexing each message alone. So a transaction that writes messages does
not index them. Instead, it adds the range of the messages as a row to the table `unread`. When the unindexed messages
exceed a size limit, the next writer indexes some of them. A search or an import indexes all unindexed messages, in many
short transactions.

The ranges are stored in the ledger. So every message is indexed in the end, even if the process that wrote the message
was killed, or had opened the ledger without an index.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from foldline.errors import LedgerBusy, LedgerUnavailable
from foldline.ledger.chains import InsertedMessage
from foldline.ledger.connections import Connection, Values
from foldline.ledger.log import Transactions
from foldline.ledger.serialize import read_message, reading, unpack
from foldline.message import Message

MAX_UNINDEXED_BYTES = 1 << 17
"""Maximum size of the messages that may stay unindexed, in bytes.

Indexing this many bytes takes a few hundredths of a second.
"""
ROW_BYTES = 256
"""Bytes that are added to the size of each message when the total is compared with the limit."""
MAX_RANGES = 2 * MAX_UNINDEXED_BYTES // ROW_BYTES
PAGE = 64
PAUSE_S = 0.03
"""Seconds between two transactions of `catch_up`. A SQLite writer that waits for the lock tries at least this often."""
_INSERT = "INSERT INTO unread (owner, segment, start, stop, size) VALUES (?, ?, ?, ?, ?)"


class IndexRow(NamedTuple):
    """A message to be indexed, with its row id."""

    id: int
    owner: int
    segment: int
    position: int
    message: Message


class MessageIndex(Protocol):
    """A text index."""

    def add(self, connection: Connection, rows: Sequence[IndexRow]) -> None:
        """Add messages to the index; messages that it already has are skipped."""

    def drop(self, tx: Transactions, connection: Connection, ids: Sequence[int]) -> None:
        """Remove messages from the index before retention deletes them."""


def add_unindexed(
    tx: Transactions, index: MessageIndex | None, connection: Connection, inserted: Sequence[InsertedMessage]
) -> None:
    """Record that these consecutive messages of one segment are not indexed yet.

    If the unindexed messages are too large in total, index some of them.
    """
    if not inserted:
        return
    sql = _INSERT + " RETURNING (SELECT COALESCE(SUM(size), 0) FROM unread WHERE owner = ?)"  # noqa: S608  # constants
    owner, size = tx.owner.id, sum(ROW_BYTES + item.size for item in inserted)
    row = (owner, inserted[0].segment, inserted[0].position, inserted[-1].position + 1, size, owner)
    before = int(connection.run(sql, row)[0][0])
    if index is None or before + size <= MAX_UNINDEXED_BYTES:
        return
    free = _lock_ranges(tx, connection, " SKIP LOCKED" if tx.for_update else "")  # those not being indexed now
    if sum(row[-1] for row in free) > MAX_UNINDEXED_BYTES:
        # twice as many bytes as were added, so that a backlog shrinks
        _index_ranges(tx, index, connection, free, 2 * max(size, MAX_UNINDEXED_BYTES))


def index_pending(tx: Transactions, index: MessageIndex, connection: Connection) -> int:
    """Index some of the unindexed messages and return their number.

    If another process is indexing, wait until it has finished.
    """
    return _index_ranges(tx, index, connection, _lock_ranges(tx, connection), MAX_UNINDEXED_BYTES)


def catch_up(tx: Transactions, index: MessageIndex) -> int:
    """Index all unindexed messages, and return their number.

    Each batch is a transaction of its own, with a pause after it, so that other writers do not wait for long. If the
    database is busy or read-only, indexing stops. Only the newest messages then stay unindexed, and most of them are
    still in the view.
    """
    done = 0
    with suppress(LedgerBusy, LedgerUnavailable):
        while has_unindexed(tx):
            if done:
                time.sleep(PAUSE_S)
            done += tx.write(lambda connection: index_pending(tx, index, connection))
    return done


def _lock_ranges(tx: Transactions, connection: Connection, locked: str = "") -> list[Values]:
    """The first ranges of unindexed messages. The rows of these ranges are locked until the transaction ends."""
    sql = "SELECT segment, start, stop, size FROM unread WHERE owner = ? ORDER BY segment, start LIMIT ?"
    return connection.run(sql + tx.for_update + locked, (tx.owner.id, MAX_RANGES))


def _index_ranges(
    tx: Transactions, index: MessageIndex, connection: Connection, ranges: Sequence[Values], max_bytes: int
) -> int:
    """Index about `max_bytes` bytes of messages, and return the number of these messages."""
    owner, count = tx.owner.id, 0
    for segment, start, stop, _ in _joined(ranges, max_bytes):
        at = start
        while at < stop and max_bytes > 0:
            rows, size = _page(connection, owner, segment, at, stop)
            index.add(connection, rows)
            at = rows[-1].position + 1 if rows else stop  # the messages may have been deleted
            count, max_bytes = count + len(rows), max_bytes - size
        sql = "DELETE FROM unread WHERE owner = ? AND segment = ? AND start >= ? AND start < ?"
        connection.run(sql, (owner, segment, start, stop))
        if at < stop:
            connection.run(_INSERT, (owner, segment, at, stop, (stop - at) * ROW_BYTES))
        if max_bytes <= 0:
            break
    return count


def _joined(ranges: Sequence[Values], max_bytes: int) -> list[Values]:
    """The ranges, with consecutive ranges of a segment joined. A joined range has at most `max_bytes` bytes.

    >>> _joined([(1, 0, 2, 50), (1, 2, 4, 50), (1, 4, 6, 50), (2, 6, 8, 50)], 100)
    [(1, 0, 4, 100), (1, 4, 6, 50), (2, 6, 8, 50)]
    """
    found: list[Values] = []
    for segment, start, stop, size in ranges:
        if found and found[-1][0] == segment and found[-1][2] == start and found[-1][3] + size <= max_bytes:
            found[-1] = (segment, found[-1][1], stop, found[-1][3] + size)
        else:
            found.append((segment, start, stop, size))
    return found


def _page(connection: Connection, owner: int, segment: int, start: int, stop: int) -> tuple[list[IndexRow], int]:
    sql = (
        "SELECT id, position, body, meta FROM messages WHERE owner = ? AND segment = ? AND position >= ? "
        "AND position < ? ORDER BY position LIMIT ?"
    )
    rows, size = [], 0
    for id_, position, body, meta in connection.run(sql, (owner, segment, start, stop, PAGE)):
        with reading(f"message {position} of segment {segment}"):
            text = unpack(body)
            message = read_message(text, meta)
        size += ROW_BYTES + len(text)
        rows.append(IndexRow(id_, owner, segment, position, message))
    return rows, size


def has_unindexed(tx: Transactions) -> bool:
    """Whether any messages are unindexed."""
    sql = "SELECT 1 FROM unread WHERE owner = ? LIMIT 1"
    return tx.read(lambda connection: bool(connection.run(sql, (tx.owner.id,))))


def drop_unindexed(connection: Connection, owner: int, segment: int, stop: int) -> None:
    """Delete the rows about the unindexed messages that a segment has at position `stop` or later."""
    where = (owner, segment, stop)
    connection.run("DELETE FROM unread WHERE owner = ? AND segment = ? AND start >= ?", where)
    connection.run("UPDATE unread SET stop = ? WHERE owner = ? AND segment = ? AND stop > ?", (stop, *where))
