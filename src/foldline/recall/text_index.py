"""The text index in the ledger's own database.

A message is stored in a segment (a run of messages that branches share) and belongs to an owner. For each term, the
index holds two numbers. One number combines the term's checksum with the segment. The other number combines the
checksum with the owner. So a lookup finds only messages of the wanted segments or owner, and no word of a message or a
query is part of an SQL statement.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any
from weakref import WeakKeyDictionary

from foldline.ledger import branches as branch_table
from foldline.ledger.connections import Connection, ConnectionPool, Values
from foldline.ledger.index_feed import IndexRow
from foldline.ledger.log import Transactions
from foldline.ledger.serialize import read_message, reading, unpack
from foldline.ledger.store import Store
from foldline.message import Message
from foldline.recall.excerpt import indexed_text
from foldline.recall.ranking import Document
from foldline.recall.terms import checksum, checksums

BATCH = 400
MAX_SEGMENTS = 64
"""If a branch has more segments than this, all messages of the owner are searched, and the results are filtered."""

MAX_COMMON = 20_000
"""If more common terms than this are remembered for a ledger, all of them are forgotten."""

_MASK = 0x7FFF_FFFF


_SEGMENT = "strand"
"""A part of the text from which the seed of a segment is computed. It is the word that foldline 0.1 used for a segment,
and it must not change, because stored index numbers depend on it.
"""


def _scope_seed(kind: str, id_: int) -> int:
    """The number with which the term checksums of one segment or owner are combined."""
    return checksum(f"{kind} {id_} ")


def index_numbers(owner: int, segment: int, text: str) -> str:
    """All index numbers of a message, in a syntax that SQLite and PostgreSQL accept."""
    found, seeds = checksums(text), (_scope_seed("owner", owner), _scope_seed(_SEGMENT, segment))
    return "{" + ",".join([str((sum_ ^ seed) & _MASK) for seed in seeds for sum_ in found]) + "}"


_COMMON: WeakKeyDictionary[ConnectionPool, set[tuple[int, ...]]] = WeakKeyDictionary()
"""For each open ledger, the terms that are known to be common (see `find_rare`).

Each term is stored as one tuple: first the `limit` for which the term is common, then the index numbers of the term.
"""


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

        Call this method before the messages are deleted, because SQLite needs their index numbers.
        """
        sql = (
            "SELECT m.id, m.segment, m.body, m.meta FROM documents d JOIN messages m ON m.id = d.message "
            "WHERE d.owner = ? AND d.message"
        )
        rows = list(_among(connection, sql, (tx.owner.id,), ids))
        with reading("a message"):
            gone = [
                (id_, index_numbers(tx.owner.id, segment, indexed_text(read_message(unpack(body), meta))))
                for id_, segment, body, meta in rows
            ]
        _COMMON.pop(tx.pool, None)
        connection.many(tx.pool.database.delete_words, gone)
        connection.many("DELETE FROM documents WHERE message = ?", [(id_,) for id_, _ in gone])


class IndexReader:
    """Reads the index of one ledger, on one connection. Only messages of the owners of `stores` are read.

    If `segments` are given, the reader reads one branch, which consists of these segments.
    """

    def __init__(self, stores: Sequence[Store], connection: Connection, segments: Sequence[int] | None) -> None:
        pool = stores[0].tx.pool
        self.connection, self._owners = connection, {store.tx.owner.id: store.tx.owner for store in stores}
        self._owned = f"owner IN ({_marks(len(self._owners))})"
        self._match_words, self._joined_ids = pool.database.match_words, pool.database.joined_ids
        self._common = _COMMON.setdefault(pool, set())
        self._documents: dict[int, Document] = {}
        self._messages: dict[int, Message] = {}
        self._segment_column = "d.segment" if segments is None else "0"
        self._seeds = [_scope_seed("owner", owner) for owner in self._owners]
        if segments and len(segments) <= MAX_SEGMENTS:
            self._seeds = [_scope_seed(_SEGMENT, segment) for segment in segments]

    def find(self, wanted: Sequence[Sequence[str]], limit: int) -> list[list[int]]:
        """For each group of terms, the ids of the newest messages that contain all terms of the group.

        At most `limit` ids are returned per group, newest first.
        """
        if not wanted:
            return []
        queries: list[str] = []
        values: list[Any] = []
        for at, group in enumerate(wanted):
            matching, terms = self._match_words([self._numbers(term) for term in group])
            # This SQL comes from the database class and contains no values of the caller
            newest = f"({matching} ORDER BY rowid DESC LIMIT ?) AS newest"
            queries.append(f"SELECT {at}, {self._joined_ids} FROM {newest}")  # noqa: S608
            values += [*terms, limit]
        found: list[list[int]] = [[] for _ in wanted]
        for at, ids in self.connection.run(" UNION ALL ".join(queries), tuple(values)):
            found[at] = sorted(json.loads(f"[{ids}]"), reverse=True) if ids else []  # faster than int() for each
        return found

    def find_rare(self, terms: Iterable[str], limit: int) -> dict[str, list[int]]:
        """The rare terms: those that fewer than `limit` messages contain. The dict maps each term to the message ids.

        The ids are in order, newest first. Terms that `limit` or more messages contain are remembered, and not looked
        up again. The index only grows, so these terms stay common.
        """
        numbers = {term: (limit, *self._numbers(term)) for term in terms}
        wanted = [term for term in numbers if numbers[term] not in self._common]
        found = dict(zip(wanted, self.find([[term] for term in wanted], limit), strict=True))
        if len(self._common) > MAX_COMMON:
            self._common.clear()
        self._common.update(numbers[term] for term, ids in found.items() if len(ids) >= limit)
        return {term: ids for term, ids in found.items() if len(ids) < limit}

    def _numbers(self, term: str) -> list[int]:
        sum_ = checksum(term)
        return [(sum_ ^ seed) & _MASK for seed in self._seeds]

    def messages(self, ids: Sequence[int]) -> dict[int, Message]:
        """Messages by id."""
        # The plus sign keeps SQLite from using the index on `owner`, which would scan all messages of the owner
        sql = f"SELECT id, body, meta FROM messages WHERE +{self._owned} AND id"  # noqa: S608  # placeholders only
        new = [id_ for id_ in ids if id_ not in self._messages]
        for id_, body, meta in _among(self.connection, sql, (*self._owners,), new):
            with reading("a message"):
                self._messages[id_] = read_message(unpack(body), meta)
        return {id_: self._messages[id_] for id_ in ids if id_ in self._messages}

    def by_id(self, ids: Sequence[int]) -> list[Document]:
        """The index entries of these messages. Messages of other owners are left out."""
        sql = f"SELECT message, position, size, prompt, segment FROM documents WHERE {self._owned} AND message"  # noqa: S608  # placeholders only
        new = [id_ for id_ in ids if id_ not in self._documents]
        self._documents |= {row[0]: Document._make(row) for row in _among(self.connection, sql, (*self._owners,), new)}
        return [self._documents[id_] for id_ in ids if id_ in self._documents]

    def read(self, segment: int, ranges: Sequence[tuple[int, int]]) -> list[Document]:
        """The index entries of a segment's messages in these ranges of positions, in any order.

        A range is given by its first and its last position. Ranges do not overlap. If the reader reads one branch, the
        segment of each entry is 0, because a position is enough to identify a message of the branch.
        """
        if not ranges:
            return []
        # CROSS JOIN makes SQLite start with the ranges
        sql = (
            f"WITH ranges (low, high) AS (VALUES {', '.join(['(?, ?)'] * len(ranges))}) "  # noqa: S608  # placeholders only
            f"SELECT d.message, d.position, d.size, d.prompt, {self._segment_column} "
            "FROM ranges CROSS JOIN messages m CROSS JOIN documents d "
            f"WHERE m.{self._owned} AND m.segment = ? AND m.position BETWEEN low AND high AND d.message = m.id"
        )
        values = (*chain.from_iterable(ranges), *self._owners, segment)
        return [*map(Document._make, self.connection.run(sql, values))]

    def count_messages(self, most: int) -> int:
        """The number of messages of the owners, but at most `most`."""
        sql = f"SELECT COUNT(*) FROM (SELECT 1 FROM messages WHERE {self._owned} LIMIT ?) AS counted"  # noqa: S608  # placeholders only
        return int(self.connection.run(sql, (*self._owners, most))[0][0])

    def session_of(self, segment: int) -> tuple[str, str]:
        """The owner and the name of the session that a segment belongs to."""
        sql = f"SELECT owner FROM segments WHERE {self._owned} AND id = ?"  # noqa: S608  # placeholders only
        owner = self._owners[self.connection.run(sql, (*self._owners, segment))[0][0]]
        return owner.name, branch_table.branch_of_segment(self.connection, owner, segment).session


def _marks(count: int) -> str:
    """`count` placeholders for the values of an SQL statement."""
    return ", ".join("?" * count)


def _among(connection: Connection, sql: str, values: Values, wanted: Sequence[int]) -> Iterator[Values]:
    """The rows in which a column has one of the values in `wanted`.

    `sql` is a query that ends with the name of this column. It is run once for each batch of values, with `IN (…)` at
    its end.
    """
    for start in range(0, len(wanted), BATCH):
        batch = wanted[start : start + BATCH]
        yield from connection.run(f"{sql} IN ({_marks(len(batch))})", (*values, *batch))
