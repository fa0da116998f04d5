"""The log of a branch (numbered, hash-chained entries), and the transactions that write it.

The database accepts each number only once per branch. If two processes write an entry with the same number, one of them
gets a write conflict.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

from foldline.errors import Conflict, LedgerBusy
from foldline.fold import Fold
from foldline.ledger import branches as branch_table
from foldline.ledger.chains import NO_TENANT, ChainPosition, Tenant
from foldline.ledger.connections import Connection, ConnectionLost, ConnectionPool, Values, WriteConflict
from foldline.ledger.message_keys import ROOT, link
from foldline.ledger.records import Branch, FoldReference, Head, LogEntry
from foldline.ledger.serialize import dump, fold_of, pack, reading, unpack, unpack_value

T = TypeVar("T")

ATTEMPTS = 8
"""The maximum number of attempts for a transaction that conflicts with others."""
APPEND, FOLD = "append", "fold"

_MARKS = (
    "SELECT seq, kind, length, tip, at, op, key, cut, CASE WHEN cut IS NULL THEN body END FROM entries "
    "WHERE owner = ? AND branch = ? AND kind <> 'append' "
)
"""Query for marks (all entries except appends). Folds are read without their bodies.

Only the body of the fold in force is needed, and it is read separately.
"""


class NewEntry(NamedTuple):
    """An entry to be written."""

    kind: str
    to: ChainPosition
    op: str
    body: Any = None
    at: float | None = None
    """When the entry was written, in seconds since 1970. Only an import sets this time; None means now."""


class Transactions:
    """Runs the transactions of one tenant. A transaction is retried if the retry is safe."""

    def __init__(self, pool: ConnectionPool, owner: str, clock: Callable[[], float] | None) -> None:
        self.pool, self.owner, self.clock = pool, Tenant(NO_TENANT, owner), clock
        self.for_update = pool.database.for_update

    def find_owner(self) -> None:
        """Look up the id of the tenant, if it is not known yet. A tenant without a row has no sessions."""
        if self.owner.id == NO_TENANT:
            sql, name = "SELECT id FROM owners WHERE name = ?", self.owner.name
            if rows := self._read(lambda connection: connection.run(sql, (name,))):
                self.owner = Tenant(rows[0][0], name)

    def add_owner(self) -> None:
        """Insert the row of the tenant, if the ledger does not have it. Only a write of the tenant calls this."""
        self.find_owner()
        if self.owner.id == NO_TENANT:
            sql, name = "INSERT INTO owners (name) VALUES (?) ON CONFLICT DO NOTHING", self.owner.name
            self.pool.write(lambda connection: connection.run(sql, (name,)))
            self.find_owner()

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work`, which only reads. If the connection is lost, run `work` once more on a new connection."""
        self.find_owner()
        return self._read(work)

    def _read(self, work: Callable[[Connection], T]) -> T:
        try:
            return self.pool.read(work)
        except ConnectionLost:
            return self.pool.read(work)

    def snapshot(self, work: Callable[[Connection], Iterator[T]]) -> Iterator[T]:
        """Yield the items that `work` yields. All its statements see the same snapshot of the database."""
        self.find_owner()
        return self.pool.snapshot(work)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in a transaction.

        After a conflict, `work` runs again. If the connection is lost, `work` runs once more. So `work`
        must be idempotent.
        """
        self.find_owner()
        lost, group = False, self.pool.group_commit
        write = self.pool.write if group is None else group.write
        for _ in range(ATTEMPTS):
            try:
                return write(work)
            except WriteConflict:
                continue
            except ConnectionLost:
                if lost:
                    raise
                lost = True
        raise LedgerBusy(f"gave up after {ATTEMPTS} write conflicts", hint="retry")

    def now(self, connection: Connection) -> float:
        """Current time as seconds since 1970."""
        return self.clock() if self.clock is not None else self.pool.database.clock(connection)

    def lock(self, connection: Connection, branch: Branch) -> Head:
        """Lock a branch until the transaction ends, and return its head."""
        if self.for_update:
            check_branch(connection, self.owner, branch, self.for_update)
        return head(connection, self.owner, branch)  # raises `Conflict`, too, if the branch was deleted

    def add_entry(self, connection: Connection, branch: Branch, before: Head, entry: NewEntry) -> Head:
        """Insert an entry directly after the head `before`, and return the new head."""
        seq, to = before.seq + 1, entry.to
        at = self.now(connection) if entry.at is None else entry.at
        mark = before.mark if entry.kind == APPEND else seq
        body = None if entry.body is None else dump(entry.body)
        key = entry_key(self.owner, before.log, (seq, entry.kind, to.length, to.key, at, entry.op), body)
        sql = (
            "INSERT INTO entries (owner, branch, seq, kind, mark, segment, length, tip, key, at, op, cut, body) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        )
        where = (self.owner.id, branch.id, seq, entry.kind, mark, to.segment, to.length, to.key)
        cut = entry.body["fold"]["cut"] if entry.kind == FOLD else None
        connection.run(sql, (*where, key, at, entry.op, cut, None if body is None else pack(body)))
        return Head(seq=seq, mark=mark, length=to.length, key=to.key, at=at, segment=to.segment, log=key)


def check_branch(connection: Connection, owner: Tenant, branch: Branch, for_update: str = "") -> None:
    """Raise `Conflict` if a branch was deleted, or belongs to another tenant."""
    sql = f"SELECT id FROM branches WHERE owner = ? AND id = ?{for_update}"  # noqa: S608  # constant SQL
    if not connection.run(sql, (owner.id, branch.id)):
        raise Conflict(
            f"session {branch.session!r} no longer has a branch {branch.name!r}", hint="open the session again"
        )


def head(connection: Connection, owner: Tenant, branch: Branch) -> Head:
    """The newest entry of a branch."""
    sql = "SELECT seq, mark, length, tip, at, segment, key FROM entries WHERE owner = ? AND branch = ? "
    rows = connection.run(sql + "ORDER BY seq DESC LIMIT 1", (owner.id, branch.id))
    if not rows:
        check_branch(connection, owner, branch)
        return Head(log=root_key(owner, branch))
    seq, mark, length, tip, at, segment, key = rows[0]
    return Head(seq=seq, mark=mark, length=length, key=tip, at=at, segment=segment, log=key)


def root_key(owner: Tenant, branch: Branch) -> bytes:
    """The key that the first entry of a branch uses in place of a previous entry's key."""
    return link(owner.name, ROOT, dump([branch.session, branch.name]))


def position_of(where: Head) -> ChainPosition:
    """The chain position of a branch's newest message."""
    return ChainPosition(where.segment, where.length, where.key)


def entry_key(owner: Tenant, before: bytes, row: Values, body: bytes | None) -> bytes:
    """The key of an entry: a hash of its content and of the previous entry's key."""
    seq, kind, length, tip, at, op = row
    return link(owner.name, before, dump([seq, kind, length, tip.hex(), at, op]) + (body or b""))


def marks(connection: Connection, owner: Tenant, branch: Branch, upto: int | None = None) -> list[LogEntry]:
    """All entries of a branch except appends. Entries that the branch inherits come first."""
    found: list[LogEntry] = []
    if branch.origin is not None:
        source = branch_table.branch_by_id(connection, owner, branch.origin)
        found = marks(connection, owner, source, branch.origin_seq)
    sql, values = (_MARKS, ()) if upto is None else (_MARKS + "AND seq <= ? ", (upto,))
    for *row, body in connection.run(sql + "ORDER BY seq", (owner.id, branch.id, *values)):
        found.append(
            LogEntry._make((branch.name, *row, unpack_value(body, f"entry {row[0]} of branch {branch.name!r}")))
        )
    return found


def read_fold(connection: Connection, owner: Tenant, session: str, folded: FoldReference) -> Fold:
    """Read a fold with its digest."""
    sql = (
        "SELECT e.body FROM entries e JOIN branches b ON b.owner = e.owner AND b.id = e.branch "
        "JOIN sessions s ON s.owner = b.owner AND s.id = b.session "
        "WHERE e.owner = ? AND s.name = ? AND b.name = ? AND e.seq = ?"
    )
    rows = connection.run(sql, (owner.id, session, folded.branch, folded.seq))
    with reading(f"a fold of session {session!r}"):
        return fold_of(json.loads(unpack(rows[0][0]))["fold"])


def has_operation(connection: Connection, owner: Tenant, branch: Branch, op: str, after: int | None = None) -> bool:
    """Whether the operation `op` has already written a mark (an entry that is not an append).

    With `after`: whether the operation has already written an entry of any kind with a number above `after`.
    """
    sql = "SELECT 1 FROM entries WHERE owner = ? AND branch = ? AND op = ? AND "
    if after is None:
        return bool(connection.run(sql + "kind <> 'append'", (owner.id, branch.id, op)))
    return bool(connection.run(sql + "seq > ?", (owner.id, branch.id, op, after)))


def new_operation_id() -> str:
    """A random id for one operation."""
    return secrets.token_hex(8)
