"""The text index in the ledger's own database.

A message is stored in a segment (a run of messages that branches share) and belongs to an owner. For each term, the
index holds two numbers: the term's checksum combined with the segment, and combined with the owner. So a lookup finds
only messages of the wanted segments or owner, and no word of a message or a query is part of an SQL statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from foldline.errors import LedgerBusy, LedgerUnavailable
from foldline.ledger.connections import Connection, Values
from foldline.ledger.index_feed import IndexRow, has_unindexed, index_pending
from foldline.ledger.log import Transactions
from foldline.ledger.serialize import read_message, unpack
from foldline.ledger.store import Store
from foldline.message import Message
from foldline.recall.excerpt import indexed_text
from foldline.recall.ranking import Document
from foldline.recall.terms import checksum, checksums

BATCH = 400
MAX_SEGMENTS = 64
"""If a branch has more segments, all messages of the owner are searched, and the results are filtered."""

_MASK = 0x7FFF_FFFF
_SELECT = "SELECT d.message, d.position, d.size, d.prompt, d.segment FROM documents d "


_SEGMENT = "strand"
"""The name of the scope for segments. The numbers in the index depend on it, so it must stay the
word of foldline 0.1.
"""


def _scope_seed(kind: str, id_: int) -> int:
    """The number with which the term checksums of one segment or owner are combined."""
    return checksum(f"{kind} {id_} ")


def index_numbers(owner: int, segment: int, text: str) -> str:
    """All index numbers of a message, in a syntax that both databases accept."""
    found, seeds = checksums(text), (_scope_seed("owner", owner), _scope_seed(_SEGMENT, segment))
    return "{" + ",".join([str((sum_ ^ seed) & _MASK) for seed in seeds for sum_ in found]) + "}"


class TextIndex:
    """The index that is passed to the store: `ledger.open(url, index=TextIndex())`."""

    def add(self, connection: Connection, rows: Sequence[IndexRow]) -> None:
        """Index messages that are not indexed yet."""
        sql = "SELECT message FROM documents WHERE message"
        known = {id_ for (id_,) in _among(connection, sql, (), [row.id for row in rows])}
        documents, words = [], []
        for row in [row for row in rows if row.id not in known]:
            text = indexed_text(row.message)
            words.append((row.id, index_numbers(row.owner, row.segment, text)))
            documents.append((row.id, row.owner, row.segment, row.position, len(text), int(row.message.is_prompt)))
        sql = "INSERT INTO documents (message, owner, segment, position, size, prompt) VALUES (?, ?, ?, ?, ?, ?)"
        connection.many(sql, documents)
        connection.many("INSERT INTO words (rowid, terms) VALUES (?, ?)", words)

    def drop(self, tx: Transactions, connection: Connection, ids: Sequence[int]) -> None:
        """Remove messages from the index.

        Call this before they are deleted, because SQLite needs their index numbers.
        """
        sql = (
            "SELECT m.id, m.segment, m.body, m.meta FROM documents d JOIN messages m ON m.id = d.message "
            "WHERE d.owner = ? AND d.message"
        )
        gone = [
            (id_, index_numbers(tx.owner.id, segment, indexed_text(read_message(unpack(body), meta))))
            for id_, segment, body, meta in _among(connection, sql, (tx.owner.id,), ids)
        ]
        connection.many(tx.pool.database.delete_words, gone)
        connection.many("DELETE FROM documents WHERE message = ?", [(id_,) for id_, _ in gone])


def catch_up(store: Store) -> int:
    """Index the messages that are not indexed yet, in batches, and return their number.

    If the database is busy or read-only, they are not indexed. Messages that are not indexed are the newest ones, and
    most of them are still in the view.
    """
    tx, index, done = store.tx, TextIndex(), 0
    with suppress(LedgerBusy, LedgerUnavailable):
        while has_unindexed(tx):
            done += tx.write(lambda connection: index_pending(tx, index, connection))
    return done


class IndexReader:
    """Reads the index for one owner, on one connection."""

    def __init__(self, store: Store, connection: Connection, segments: Sequence[int] | None) -> None:
        self.connection, self.owner = connection, store.tx.owner.id
        self._match_words = store.tx.pool.database.match_words
        self._joined_ids = store.tx.pool.database.joined_ids
        self._seeds = [_scope_seed("owner", self.owner)]
        if segments and len(segments) <= MAX_SEGMENTS:
            self._seeds = [_scope_seed(_SEGMENT, segment) for segment in segments]

    def find(self, wanted: Sequence[Sequence[str]], limit: int) -> list[list[int]]:
        """For each group of terms, the ids of the messages that contain all terms of the group: the newest `limit`,
        newest first.
        """
        if not wanted:
            return []
        queries: list[str] = []
        values: list[Any] = []
        for at, group in enumerate(wanted):
            numbers = [[(checksum(term) ^ seed) & _MASK for seed in self._seeds] for term in group]
            matching, terms = self._match_words(numbers)
            # The database's own SQL, without values of the caller
            newest = f"({matching} ORDER BY rowid DESC LIMIT ?) AS newest"
            queries.append(f"SELECT {at}, {self._joined_ids} FROM {newest}")  # noqa: S608
            values += [*terms, limit]
        found: list[list[int]] = [[] for _ in wanted]
        for at, ids in self.connection.run(" UNION ALL ".join(queries), tuple(values)):
            found[at] = sorted(map(int, ids.split(",")), reverse=True) if ids else []
        return found

    def messages(self, ids: Sequence[int]) -> dict[int, Message]:
        """Messages by id."""
        # The sign keeps the database from using the index on `owner`, which would scan all of its messages
        sql = "SELECT id, body, meta FROM messages WHERE +owner = ? AND id"
        found = _among(self.connection, sql, (self.owner,), ids)
        return {id_: read_message(unpack(body), meta) for id_, body, meta in found}

    def by_id(self, ids: Sequence[int]) -> list[Document]:
        """The index entries of these messages. Messages of other owners are left out."""
        sql = _SELECT + "WHERE d.owner = ? AND d.message"
        return [_document(row) for row in _among(self.connection, sql, (self.owner,), ids)]

    def by_position(self, segment: int, positions: Sequence[int]) -> list[Document]:
        """The index entries of the messages at these positions of a segment."""
        sql = _SELECT + "JOIN messages m ON m.id = d.message WHERE m.owner = ? AND m.segment = ? AND m.position"
        return [_document(row) for row in _among(self.connection, sql, (self.owner, segment), positions)]

    def count_messages(self, most: int) -> int:
        """The number of the owner's messages; `most` if there are more."""
        sql = "SELECT COUNT(*) FROM (SELECT 1 FROM messages WHERE owner = ? LIMIT ?) AS counted"
        return int(self.connection.run(sql, (self.owner, most))[0][0])


def _document(row: Values) -> Document:
    return Document(row[0], row[1], row[2], row[3] != 0, row[4])


def _among(connection: Connection, sql: str, values: Values, wanted: Sequence[int]) -> Iterator[Values]:
    """The rows that `sql` selects. Its last column must have one of the values `wanted`. The query runs in batches."""
    for start in range(0, len(wanted), BATCH):
        batch = wanted[start : start + BATCH]
        yield from connection.run(f"{sql} IN ({', '.join('?' * len(batch))})", (*values, *batch))
