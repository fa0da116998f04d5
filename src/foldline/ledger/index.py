"""The seam for a text index: whoever searches is told of every new message in the transaction that writes it.

Its tables are a migration of the schema like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from foldline.ledger.chain import Owner, Written
from foldline.ledger.pool import Connection
from foldline.message import Message


class Row(NamedTuple):
    """A message that was just written, and its number in the table of messages."""

    id: int
    owner: int
    strand: int
    position: int
    message: Message


class Index(Protocol):
    """A text index."""

    def add(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Index messages that were just written."""
        ...

    def drop(self, connection: Connection, owner: int, ids: Sequence[int]) -> None:
        """Forget messages that retention is about to remove."""
        ...


def indexed(index: Index | None, connection: Connection, owner: Owner, written: Sequence[Written]) -> None:
    """Tell the index what is new: messages that stand together on one strand."""
    if index is None or not written:
        return
    sql = "SELECT id FROM messages WHERE owner = ? AND strand = ? AND position >= ? ORDER BY position"
    ids = connection.run(sql, (owner.id, written[0].strand, written[0].position))
    index.add(connection, [Row(number, owner.id, *item) for (number,), item in zip(ids, written, strict=True)])
