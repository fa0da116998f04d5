"""The log of a branch: entries that are numbered without a gap and hang on one another.

The number is unique in the database, so of two processes that would write the same one, one is told that it came
second. Every entry repeats where the branch stands, so the newest one tells it alone.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from foldline.errors import Conflict, LedgerBusy, LedgerUnavailable
from foldline.fold import Fold
from foldline.ledger import branches as branch_table
from foldline.ledger.chains import ChainPosition, Tenant
from foldline.ledger.connections import Connection, ConnectionLost, ConnectionPool, Values, WriteConflict
from foldline.ledger.message_keys import ROOT, link
from foldline.ledger.records import Branch, FoldReference, Head, LogEntry
from foldline.ledger.serialize import dump, fold_of, pack, unpack

T = TypeVar("T")

ATTEMPTS = 8
"""How often work is done anew that met somebody else's."""
APPEND, FOLD = "append", "fold"

_HEAD = "SELECT seq, mark, length, tip, at, strand, key FROM entries WHERE owner = ? AND branch = ? "
_ENTRY = (
    "SELECT seq, kind, length, tip, at, op, cut, key, CASE WHEN cut IS NULL THEN body END FROM entries "
    "WHERE owner = ? AND branch = ? "
)
"""A log without what its folds say: of thousands of folds, one is needed."""


class NewEntry(NamedTuple):
    """What an entry will say."""

    kind: str
    to: ChainPosition
    op: str
    body: Any = None
    at: float | None = None
    """When it was written; now, unless it was exported."""


class Transactions:
    """Transactions of one owner, done anew where they may be."""

    def __init__(self, pool: ConnectionPool, owner: Tenant, clock: Callable[[], float] | None) -> None:
        self.pool, self.owner, self.clock = pool, owner, clock
        self.for_update = pool.database.for_update

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A connection to read one thing after another from, all as it was at one moment."""
        try:
            with self.pool.snapshot() as connection:
                yield connection
        except ConnectionLost as lost:
            raise LedgerUnavailable(str(lost), hint="the connection was lost; try again") from lost

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction that cannot be done anew, since what it reads from cannot be read again."""
        try:
            with self.pool.transaction() as connection:
                yield connection
        except ConnectionLost as lost:
            raise LedgerUnavailable(str(lost), hint="the connection was lost; try again") from lost
        except WriteConflict as again:
            raise LedgerBusy(str(again), hint="somebody else wrote the same; try again") from again

    def read(self, work: Callable[[Connection], T]) -> T:
        """Read; once more on a new connection when the old one was lost."""
        try:
            with self.pool.connection() as connection:
                return work(connection)
        except ConnectionLost:
            pass
        try:
            with self.pool.connection() as connection:
                return work(connection)
        except ConnectionLost as lost:
            raise LedgerUnavailable(str(lost), hint="the connection was lost; try again") from lost

    def write(self, work: Callable[[Connection], T]) -> T:
        """Do work in a transaction. It must be such that doing it twice is the same as doing it once."""
        lost = False
        for _ in range(ATTEMPTS):
            try:
                with self.pool.transaction() as connection:
                    return work(connection)
            except WriteConflict:
                continue
            except ConnectionLost as cause:
                if lost:
                    raise LedgerUnavailable(str(cause), hint="the connection was lost; try again") from cause
                lost = True
        raise LedgerBusy("others were always faster", hint="try again")

    def now(self, connection: Connection) -> float:
        """The time."""
        return self.clock() if self.clock is not None else self.pool.database.clock(connection)

    def lock(self, connection: Connection, branch: Branch) -> Head:
        """Where a branch stands, held until the transaction ends."""
        check_branch(connection, self.owner, branch, self.for_update)
        return head(connection, self.owner, branch)

    def add_entry(self, connection: Connection, branch: Branch, before: Head, line: NewEntry) -> Head:
        """Add an entry behind `before`."""
        seq, to = before.seq + 1, line.to
        at = self.now(connection) if line.at is None else line.at
        mark = before.mark if line.kind == APPEND else seq
        body = None if line.body is None else dump(line.body)
        key = entry_key(self.owner, before.log, (seq, line.kind, to.length, to.key, at, line.op), body)
        sql = (
            "INSERT INTO entries (owner, branch, seq, kind, mark, strand, length, tip, key, at, op, cut, body) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        )
        where = (self.owner.id, branch.id, seq, line.kind, mark, to.strand, to.length, to.key)
        cut = line.body["fold"]["cut"] if line.kind == FOLD else None
        connection.run(sql, (*where, key, at, line.op, cut, None if body is None else pack(body)))
        return Head(seq=seq, mark=mark, length=to.length, key=to.key, at=at, strand=to.strand, log=key)


def check_branch(connection: Connection, owner: Tenant, branch: Branch, for_update: str = "") -> None:
    """Refuse a branch that was pruned, or is another owner's."""
    sql = f"SELECT id FROM branches WHERE owner = ? AND id = ?{for_update}"  # noqa: S608  # a word of the database's
    if not connection.run(sql, (owner.id, branch.id)):
        raise Conflict(f"session {branch.session!r} has no branch {branch.name!r} any more", hint="open it anew")


def head(connection: Connection, owner: Tenant, branch: Branch) -> Head:
    """Where a branch stands."""
    rows = connection.run(_HEAD + "ORDER BY seq DESC LIMIT 1", (owner.id, branch.id))
    if not rows:
        check_branch(connection, owner, branch)
        return Head(log=root_key(owner, branch))
    seq, mark, length, tip, at, strand, key = rows[0]
    return Head(seq=seq, mark=mark, length=length, key=tip, at=at, strand=strand, log=key)


def root_key(owner: Tenant, branch: Branch) -> bytes:
    """What the first entry of a branch hangs on."""
    return link(owner.name, ROOT, dump([branch.session, branch.name]))


def position_of(where: Head) -> ChainPosition:
    """The newest message of a branch."""
    return ChainPosition(where.strand, where.length, where.key)


def entry_key(owner: Tenant, before: bytes, row: Values, body: bytes | None) -> bytes:
    """The key of an entry: of all it says and of all entries before it."""
    seq, kind, length, tip, at, op = row
    return link(owner.name, before, dump([seq, kind, length, tip.hex(), at, op]) + (body or b""))


def entries(branch: Branch, rows: Iterable[Values]) -> list[LogEntry]:
    """Rows of a log as values."""
    return [
        LogEntry(
            branch=branch.name,
            seq=seq,
            kind=kind,
            length=length,
            tip=tip,
            at=at,
            op=op,
            cut=cut,
            body=None if body is None else json.loads(unpack(body)),
            key=key,
        )
        for seq, kind, length, tip, at, op, cut, key, body in rows
    ]


def marks(connection: Connection, owner: Tenant, branch: Branch, upto: int | None = None) -> list[LogEntry]:
    """All entries but appends, the origin's before the branch's own."""
    found: list[LogEntry] = []
    if branch.origin is not None:
        source = branch_table.branch_by_id(connection, owner, branch.origin)
        found = marks(connection, owner, source, branch.origin_seq)
    sql = _ENTRY + "AND kind <> 'append' "
    values: Values = (owner.id, branch.id)
    if upto is not None:
        sql, values = sql + "AND seq <= ? ", (*values, upto)
    return found + entries(branch, connection.run(sql + "ORDER BY seq", values))


def read_fold(connection: Connection, owner: Tenant, session: str, folded: FoldReference) -> Fold:
    """All that a fold says."""
    sql = (
        "SELECT e.body FROM entries e JOIN branches b ON b.owner = e.owner AND b.id = e.branch "
        "JOIN sessions s ON s.owner = b.owner AND s.id = b.session "
        "WHERE e.owner = ? AND s.name = ? AND b.name = ? AND e.seq = ?"
    )
    rows = connection.run(sql, (owner.id, session, folded.branch, folded.seq))
    return fold_of(json.loads(unpack(rows[0][0]))["fold"])


def find_operation(
    connection: Connection, owner: Tenant, branch: Branch, op: str, after: int | None
) -> LogEntry | None:
    """The entry that an operation wrote before: among all marks, or among everything behind `after`."""
    sql = _ENTRY + ("AND kind <> 'append' AND op = ?" if after is None else "AND op = ? AND seq > ?")
    values = (owner.id, branch.id, op) if after is None else (owner.id, branch.id, op, after)
    found = entries(branch, connection.run(sql, values))
    return found[-1] if found else None


def new_operation_id() -> str:
    """A name for an operation that nobody else uses."""
    return secrets.token_hex(8)
