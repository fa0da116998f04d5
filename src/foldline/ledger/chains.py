"""Storage of message chains.

A segment is a run of consecutive messages. The first message of a segment either starts a new history, or follows a
message of another segment. So a few ranges of rows, each from one segment, hold all messages of a branch in order. This
sequence of messages is called the path of the branch. Messages that are appended at the end of a segment extend that
segment; messages that are appended anywhere else start a new segment. The `position` of a message is counted from the
first message of the path, not from the first message of its segment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from foldline.errors import LedgerCorrupt
from foldline.ledger.connections import Connection, Values
from foldline.ledger.message_keys import ROOT, link, trace
from foldline.ledger.records import Span, StoredMessage
from foldline.ledger.serialize import message_body, meta_body, meta_of, pack, read_message, reading, unpack
from foldline.message import Message

PAGE = 64
KEYS_PER_QUERY = 400
KEY_AT = "SELECT key FROM messages WHERE owner = ? AND segment = ? AND position = ?"
READ = """
SELECT m.position, m.key, m.at, m.body, COALESCE(
    (SELECT r.meta FROM remarks r WHERE r.owner = m.owner AND r.segment = m.segment AND r.position = m.position
     ORDER BY r.id DESC LIMIT 1), m.meta)
FROM messages m WHERE m.owner = ? AND m.segment = ? AND m.position >= ? AND m.position < ? ORDER BY m.position LIMIT ?
"""
"""Query for the messages of a segment, each with its newest metadata."""


NO_TENANT = 0
"""The id of a tenant that has no row in the table of tenants yet. The ids in the table begin with 1."""


class Tenant(NamedTuple):
    """One tenant: its id in the tables, and the name that the caller gave it."""

    id: int
    name: str


class ChainPosition(NamedTuple):
    """A position in a chain: the number of messages before it, and the segment and key of the previous message."""

    segment: int | None = None
    length: int = 0
    key: bytes = ROOT


class EncodedMessage(NamedTuple):
    """A message and its body in two forms: as JSON bytes, and as the bytes that are stored."""

    message: Message
    body: bytes
    stored: bytes
    meta: bytes | None
    at: float | None = None
    """When the message was first written, in seconds since 1970. Only an import sets this time; None means now."""


class InsertedMessage(NamedTuple):
    """A message that was inserted, and its position."""

    segment: int
    position: int
    size: int
    """Size of the message's uncompressed body in bytes."""


def encode(message: Message) -> EncodedMessage:
    """Serialize a message; call this before a transaction is opened."""
    body = message_body(message)
    return EncodedMessage(message, body, pack(body), meta_body(message.meta))


def spans(connection: Connection, owner: Tenant, place: ChainPosition, start: int = 0) -> list[Span]:
    """The ranges of rows that hold the messages from position `start` up to `place`."""
    found: list[Span] = []
    segment, stop = place.segment, place.length
    while segment is not None and stop > start:
        rows = connection.run("SELECT base, start FROM segments WHERE owner = ? AND id = ?", (owner.id, segment))
        if not rows:
            raise LedgerCorrupt(
                f"a part of the message chain (segment {segment}) is missing from the ledger",
                hint="run `foldline verify`",
            )
        base, first = rows[0]
        if first < stop:
            found.append(Span(segment, max(first, start), stop))
        segment, stop = base, min(first, stop)
    return found[::-1]


def position_at(connection: Connection, owner: Tenant, place: ChainPosition, length: int) -> ChainPosition:
    """The position after the first `length` messages of a branch."""
    if length == place.length:
        return place
    if length == 0:
        return ChainPosition()
    segment = spans(connection, owner, ChainPosition(place.segment, length), length - 1)[-1].segment
    rows = connection.run(KEY_AT, (owner.id, segment, length - 1))
    if not rows:
        raise LedgerCorrupt(f"message {length - 1} (segment {segment}) is missing", hint="run `foldline verify`")
    return ChainPosition(segment, length, rows[0][0])


def reachable(connection: Connection, owner: Tenant, branches: Iterable[int]) -> dict[int, int]:
    """The segments that these branches use. For each segment: the position after the last message that is used."""
    found: dict[int, int] = {}
    for branch in branches:
        for segment, stop in _own_stops(connection, owner, branch).items():
            found[segment] = max(stop, found.get(segment, 0))
    rows = connection.run("SELECT id, base, start FROM segments WHERE owner = ? ORDER BY id DESC", (owner.id,))
    for segment, base, start in rows:  # a segment has a higher id than the segment it forked from
        if segment in found and base is not None:
            found[base] = max(start, found.get(base, 0))
    return found


def _own_stops(connection: Connection, owner: Tenant, branch: int) -> dict[int, int]:
    """The segments that a branch's log entries point to. For each segment: the largest length in these entries."""
    sql = "SELECT segment, MAX(length) FROM entries WHERE owner = ? AND branch = ? AND segment IS NOT NULL GROUP BY 1"
    return dict(connection.run(sql, (owner.id, branch)))


def used_spans(connection: Connection, owner: Tenant, branch: int) -> list[Span]:
    """The ranges of rows that hold all messages of a branch, including messages that were removed from it."""
    found: dict[int, Span] = {}
    waiting = list(_own_stops(connection, owner, branch).items())
    while waiting:
        segment, stop = waiting.pop()
        sql = "SELECT base, start FROM segments WHERE owner = ? AND id = ?"
        for base, start in connection.run(sql, (owner.id, segment)):
            known = found.get(segment)
            found[segment] = Span(segment, start, max(stop, known.stop if known else 0))
            if base is not None and known is None:
                waiting.append((base, start))
    return [found[segment] for segment in sorted(found)]


def read_page(connection: Connection, owner: Tenant, span: Span) -> list[StoredMessage]:
    """The first messages of a span. At most `PAGE` messages are read."""
    rows = connection.run(READ, (owner.id, span.segment, span.start, span.stop, PAGE))
    if not rows or rows[0][0] != span.start or rows[-1][0] - span.start + 1 != len(rows):
        raise LedgerCorrupt(f"messages of segment {span.segment} are missing", hint="run `foldline verify`")
    with reading(f"a message of segment {span.segment}"):
        return [StoredMessage._make((*place, read_message(unpack(body), meta))) for *place, body, meta in rows]


class ChainWriter:
    """Appends messages to a chain, in the caller's transaction."""

    def __init__(self, connection: Connection, owner: Tenant, now: float) -> None:
        self.connection, self.owner, self.now = connection, owner, now
        self.inserted: list[InsertedMessage] = []
        self.segments: list[int] = []

    def put(self, branch: int, place: ChainPosition, encoded: Sequence[EncodedMessage]) -> ChainPosition:
        """Append messages and return the position after the last message.

        Messages that are already stored are not inserted again.
        """
        self.inserted, self.segments = [], []
        keys: list[bytes] = []
        key = place.key
        for item in encoded:
            key = link(self.owner.name, key, item.body)
            keys.append(key)
        for item, (key, segment, position, meta) in zip(encoded, self._known(keys), strict=False):
            place = ChainPosition(segment, position + 1, key)
            self._remark(place, meta, item)
            self.segments.append(segment)
        known = len(self.segments)
        return self._write(branch, place, list(zip(keys[known:], encoded[known:], strict=True)))

    def _known(self, keys: list[bytes]) -> Iterator[Values]:
        """The rows of the messages that are already stored.

        The stored messages are always the first messages of the list, because a key depends on all previous messages.
        """
        for begin in range(0, len(keys), KEYS_PER_QUERY):
            batch = keys[begin : begin + KEYS_PER_QUERY]
            placeholders = ", ".join("?" * len(batch))
            sql = f"SELECT key, segment, position, meta FROM messages WHERE owner = ? AND key IN ({placeholders})"  # noqa: S608
            found = {row[0]: row for row in self.connection.run(sql, (self.owner.id, *batch))}
            for key in batch:
                if key not in found:
                    return
                yield found[key]

    def _remark(self, place: ChainPosition, meta: bytes | None, item: EncodedMessage) -> None:
        """Store new metadata for a message that is appended again.

        Metadata fields that are already stored keep their values.
        """
        if item.meta is None or item.meta == meta:
            return
        where = (self.owner.id, place.segment, place.length - 1)
        sql = "SELECT meta FROM remarks WHERE owner = ? AND segment = ? AND position = ? ORDER BY id DESC LIMIT 1"
        for row in self.connection.run(sql, where):
            meta = row[0]
        merged = meta_body(meta_of(item.meta, over=meta or b"{}"))
        if merged != meta:
            sql = "INSERT INTO remarks (owner, segment, position, at, meta) VALUES (?, ?, ?, ?, ?)"
            self.connection.run(sql, (*where, self.now, merged))

    def _write(self, branch: int, place: ChainPosition, items: list[tuple[bytes, EncodedMessage]]) -> ChainPosition:
        if not items:
            return place
        before, segment = self._end(place)
        if segment is None:
            sql = "INSERT INTO segments (owner, branch, base, start) VALUES (?, ?, ?, ?) RETURNING id"
            segment = self.connection.run(sql, (self.owner.id, branch, place.segment, place.length))[0][0]
        rows: list[Values] = []
        for position, (key, item) in enumerate(items, place.length):
            before = trace(self.owner.name, before, item.message)
            at = self.now if item.at is None else item.at
            rows.append((self.owner.id, segment, position, key, before, at, item.stored, item.meta))
            self.inserted.append(InsertedMessage(segment, position, len(item.body)))
            self.segments.append(segment)
        columns = "owner, segment, position, key, trace, at, body, meta"
        self.connection.many(f"INSERT INTO messages ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)  # noqa: S608
        return ChainPosition(segment, place.length + len(items), items[-1][0])

    def _end(self, place: ChainPosition) -> tuple[bytes, int | None]:
        """The trace (see `message_keys`) at a position, and the segment that can be extended there.

        The segment is None if a message already follows the position. The caller then starts a new segment. If two
        writers extend the same segment, the unique index rejects one of them, and its transaction is retried.
        """
        if place.segment is None:
            return ROOT, None
        sql = (
            "SELECT m.trace, (SELECT n.position FROM messages n "
            "WHERE n.owner = m.owner AND n.segment = m.segment AND n.position = m.position + 1) "
            "FROM messages m WHERE m.owner = ? AND m.segment = ? AND m.position = ?"
        )
        trace_, follows = self.connection.run(sql, (self.owner.id, place.segment, place.length - 1))[0]
        return trace_, place.segment if follows is None else None
