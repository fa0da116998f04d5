"""The text index in the ledger's own database.

A term is kept as a number, the checksum of the term and of whose it is: once for the strand a message stands on, once
for its owner. So a look at one number gives one session's messages, or one owner's, and nobody else's; and no word of a
message or a question is ever part of a query. SQLite keeps the numbers in an FTS5 table, PostgreSQL as arrays under a
GIN index. Two words may share a number once in two thousand million; ranking bears that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from foldline.errors import LedgerBusy, LedgerUnavailable
from foldline.ledger.connections import Connection, Values
from foldline.ledger.index_feed import IndexRow, has_unindexed, index_pending
from foldline.ledger.log import Transactions
from foldline.ledger.serialize import read_message, unpack
from foldline.ledger.store import Store
from foldline.message import Message
from foldline.recall.excerpt import searchable_text
from foldline.recall.ranking import Document
from foldline.recall.terms import checksum, checksums

ASKED = 400
"""Values in one statement."""
STRANDS = 64
"""A path of more strands is searched among all of the owner's messages, and sorted out afterwards."""

_DOC = "SELECT d.message, d.position, d.size, d.prompt, d.strand FROM documents d "


class IndexScope:
    """Whose words: one strand's, or all of an owner's."""

    def __init__(self, kind: str, id_: int) -> None:
        self._seed = checksum(f"{kind} {id_} ")

    def numbers(self, sums: Iterable[int]) -> list[int]:
        """Checksums of terms as the index keeps them."""
        seed = self._seed
        return [(sum_ ^ seed) & 0x7FFF_FFFF for sum_ in sums]


def numbers(owner: int, strand: int, text: str) -> str:
    """All numbers of a message, as both databases read them."""
    found = checksums(text)
    both = IndexScope("owner", owner).numbers(found) + IndexScope("strand", strand).numbers(found)
    return "{" + ",".join(map(str, both)) + "}"


class TextIndex:
    """The index as the store calls it: `ledger.open(url, index=Words())`."""

    def add(self, connection: Connection, rows: Sequence[IndexRow]) -> None:
        """Index messages; those that are there already are left as they are."""
        sql = "SELECT message FROM documents WHERE message"
        known = {id_ for (id_,) in _among(connection, sql, (), [row.id for row in rows])}
        documents, words = [], []
        for row in rows:
            if row.id in known:
                continue
            text = searchable_text(row.message)
            words.append((row.id, numbers(row.owner, row.strand, text)))
            documents.append((row.id, row.owner, row.strand, row.position, len(text), int(row.message.is_prompt)))
        sql = "INSERT INTO documents (message, owner, strand, position, size, prompt) VALUES (?, ?, ?, ?, ?, ?)"
        connection.many(sql, documents)
        connection.many("INSERT INTO words (rowid, terms) VALUES (?, ?)", words)

    def drop(self, tx: Transactions, connection: Connection, ids: Sequence[int]) -> None:
        """Forget messages that are about to be removed. SQLite must be told what it is to forget of them."""
        sql = (
            "SELECT m.id, m.strand, m.body, m.meta FROM documents d JOIN messages m ON m.id = d.message "
            "WHERE d.owner = ? AND d.message"
        )
        gone = [
            (id_, numbers(tx.owner.id, strand, searchable_text(read_message(unpack(body), meta))))
            for id_, strand, body, meta in _among(connection, sql, (tx.owner.id,), ids)
        ]
        connection.many(tx.pool.database.delete_words, gone)
        connection.many("DELETE FROM documents WHERE message = ?", [(id_,) for id_, _ in gone])


def catch_up(store: Store) -> int:
    """Read what is unread, some at a time; how many messages that were.

    Where nothing can be written, or somebody else writes for long, the search goes without: what is unread is the
    newest, and so it is mostly in view.
    """
    tx, words, done = store.tx, TextIndex(), 0
    with suppress(LedgerBusy, LedgerUnavailable):
        while has_unindexed(tx):
            done += tx.write(lambda connection: index_pending(tx, words, connection))
    return done


class IndexReader:
    """Questions to the index, within one owner, on one connection."""

    def __init__(self, store: Store, connection: Connection, strands: Sequence[int] | None) -> None:
        self.connection, self.owner = connection, store.tx.owner.id
        self._match_words = store.tx.pool.database.match_words
        few = strands is not None and 0 < len(strands) <= STRANDS
        self.scopes = (
            [IndexScope("strand", strand) for strand in strands or ()] if few else [IndexScope("owner", self.owner)]
        )

    def having(self, wanted: Sequence[Sequence[str]], limit: int) -> list[list[int]]:
        """For each group of terms, the newest messages that have all of them, newest first, by id; in one statement."""
        if not wanted:
            return []
        queries: list[str] = []
        values: list[Any] = []
        for at, group in enumerate(wanted):
            matching, terms = self._match_words(
                [[number for scope in self.scopes for number in scope.numbers([checksum(term)])] for term in group]
            )
            # The database's own SQL, without values of the caller
            queries.append(f"SELECT {at}, rowid FROM ({matching} ORDER BY rowid DESC LIMIT ?) AS newest")  # noqa: S608
            values += [*terms, limit]
        sql = " UNION ALL ".join(queries)
        found: list[list[int]] = [[] for _ in wanted]
        for at, id_ in self.connection.run(sql, tuple(values)):
            found[at].append(id_)
        return [sorted(ids, reverse=True) for ids in found]

    def messages(self, ids: Sequence[int]) -> dict[int, Message]:
        """Messages by id."""
        # The sign keeps the database from walking through all that the owner has in search of a few
        sql = "SELECT id, body, meta FROM messages WHERE +owner = ? AND id"
        found = _among(self.connection, sql, (self.owner,), ids)
        return {id_: read_message(unpack(body), meta) for id_, body, meta in found}

    def by_id(self, ids: Sequence[int]) -> list[Document]:
        """What is known of messages; a stranger's are left out."""
        sql = _DOC + "WHERE d.owner = ? AND d.message"
        return [_doc(row) for row in _among(self.connection, sql, (self.owner,), ids)]

    def at(self, strand: int, positions: Sequence[int]) -> list[Document]:
        """What is known of the messages that stand in these places of a strand."""
        sql = _DOC + "JOIN messages m ON m.id = d.message WHERE m.owner = ? AND m.strand = ? AND m.position"
        return [_doc(row) for row in _among(self.connection, sql, (self.owner, strand), positions)]

    def total(self, most: int) -> int:
        """How many messages the owner has; `most` when there are more."""
        sql = "SELECT COUNT(*) FROM (SELECT 1 FROM messages WHERE owner = ? LIMIT ?) AS counted"
        count: int = self.connection.run(sql, (self.owner, most))[0][0]
        return count


def _doc(row: Values) -> Document:
    return Document(id=row[0], position=row[1], size=row[2], prompt=bool(row[3]), strand=row[4])


def _among(connection: Connection, sql: str, values: Values, wanted: Sequence[int]) -> Iterator[Values]:
    """The rows of a statement whose last column is one of those wanted, asked for some at a time."""
    for start in range(0, len(wanted), ASKED):
        asked = wanted[start : start + ASKED]
        yield from connection.run(f"{sql} IN ({', '.join('?' * len(asked))})", (*values, *asked))
