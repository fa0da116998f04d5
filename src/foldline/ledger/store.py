"""Reads and writes one tenant's sessions: messages, folds, pins and branches. Every change is stored as new rows.

All methods block; call them with `asyncio.to_thread` from an event loop. A method that writes uses one transaction.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Any

from foldline.errors import Conflict, InputError
from foldline.fold import Fold
from foldline.ledger import branches as branch_table
from foldline.ledger import chains, export_import, log, retention, verify
from foldline.ledger.chains import ChainPosition, ChainWriter
from foldline.ledger.connections import Connection, ConnectionPool, Values
from foldline.ledger.index_feed import MessageIndex, add_unindexed
from foldline.ledger.jobs import Claim, Jobs
from foldline.ledger.log import NewEntry
from foldline.ledger.message_keys import ROOT, trace
from foldline.ledger.records import (
    MAIN,
    AppendResult,
    Branch,
    BranchState,
    FoldReference,
    Head,
    IntegrityFault,
    KnownHistory,
    SessionInfo,
    Span,
    StoredEvent,
    StoredMessage,
    derive,
)
from foldline.ledger.serialize import dump, fold_value, message_value, pack, unpack_value
from foldline.message import Message

RESERVED = (log.APPEND, "fold", "unfold", "refold", "pin", "unpin", "move", "branch")
"""Kinds of entries that the ledger writes itself; a caller cannot use them for notes."""
_MarkBody = Callable[[Connection, Head], tuple[Any, ChainPosition]]
"""A function that makes a mark (an entry that is not an append).

It gets a connection and the current head. It returns the body of the mark and the new position of the branch.
"""


class Store:
    """The ledger of one tenant."""

    def __init__(
        self,
        pool: ConnectionPool,
        owner: str,
        *,
        clock: Callable[[], float] | None = None,
        index: MessageIndex | None = None,
    ) -> None:
        self.tx = log.Transactions(pool, owner, clock)
        self.index = index
        self.jobs = Jobs(self.tx)

    @property
    def owner(self) -> str:
        """Tenant id."""
        return self.tx.owner.name

    def close(self) -> None:
        """Close the ledger, including the stores of other tenants that `for_owner` returned."""
        self.tx.pool.close()

    # Sessions and branches

    def session(self, name: str, branch: str = MAIN) -> Branch:
        """A branch of a session. If the session does not exist, it is created with its main branch."""
        branch_table.check_name("a session", name)
        found = self.tx.read(lambda connection: branch_table.find(connection, self.tx.owner, name, branch))
        if found is not None:
            return found
        if branch != MAIN:
            raise InputError(f"session {name!r} has no branch {branch!r}", hint="create it with branch()")
        if not name.strip():
            raise InputError("a session needs a name", hint='pass a text such as "ticket-42"')
        self.tx.add_owner()
        return self.tx.write(
            lambda connection: branch_table.begin_session(connection, self.tx.owner, name, self.tx.now(connection))
        )

    def sessions(self) -> tuple[SessionInfo, ...]:
        """Every session with its counts and times, most recently used first."""
        return self.tx.read(lambda connection: branch_table.session_infos(connection, self.tx.owner))

    def branches(self, session: str) -> tuple[Branch, ...]:
        """The branches of a session, oldest first."""
        return self.tx.read(lambda connection: branch_table.branches_of(connection, self.tx.owner, session))

    def fork(self, branch: Branch, name: str, *, at: int | None = None) -> Branch:
        """Create a branch that shares the first `at` messages of `branch` (default: all), with their folds and pins."""
        branch_table.check_name("a branch", name)
        op = log.new_operation_id()

        def work(connection: Connection) -> Branch:
            owner = self.tx.owner
            before, now = self.tx.lock(connection, branch), self.tx.now(connection)
            length = _check_length(before, before.length if at is None else at)
            known = branch_table.find(connection, owner, branch.session, name)
            if known is not None:
                if log.has_operation(connection, owner, known, op):
                    return known  # an earlier attempt was committed, but its answer was lost
                raise InputError(f"session {branch.session!r} already has a branch {name!r}", hint="use another name")
            to = chains.position_at(connection, owner, log.position_of(before), length)
            plan = Branch(id=0, session=branch.session, name=name, origin=branch.id, origin_seq=before.seq)
            fork = branch_table.add_branch(connection, owner, plan, now)
            start = Head(log=log.root_key(owner, fork))
            body = {"shared": length, "origin": branch.name, "seq": before.seq}
            self.tx.add_entry(connection, fork, start, NewEntry("branch", to, op, body))
            return fork

        return self.tx.write(work)

    # Messages

    def head(self, branch: Branch) -> Head:
        """The head of a branch: its newest entry."""
        return self.tx.read(lambda connection: log.head(connection, self.tx.owner, branch))

    def append(
        self,
        branch: Branch,
        messages: Sequence[Message],
        *,
        expected: bytes | None = None,
        at: int | None = None,
        events: Sequence[tuple[str, Any]] = (),
    ) -> AppendResult:
        """Append messages at the end, or after the first `at` messages; only new messages are inserted.

        `expected` is the key of the newest message that the caller knows (`ROOT` if it knows none). `Conflict` is
        raised if the newest message of the branch has another key. `events` are pairs of kind and body,
        which are recorded in the same transaction.
        """
        encoded, op = [chains.encode(message) for message in messages], log.new_operation_id()
        first: list[int] = []

        def work(connection: Connection) -> AppendResult:
            before = self.tx.lock(connection, branch)
            if first and log.has_operation(connection, self.tx.owner, branch, op, first[0]):
                return AppendResult(head=before, written=0)  # an earlier attempt was committed, but its answer was lost
            first[:] = [before.seq]
            if expected is not None and before.key != expected:
                raise Conflict(
                    "other messages were appended meanwhile", hint="read the new messages, then append again"
                )
            if at is not None and _check_length(before, at) < before.length:
                body, to = self._back(connection, before, at)
                before = self.tx.add_entry(connection, branch, before, NewEntry("move", to, op, body))
            if not encoded:
                return AppendResult(head=before, written=0)
            writer = ChainWriter(connection, self.tx.owner, self.tx.now(connection))
            to = writer.put(branch.id, log.position_of(before), encoded)
            add_unindexed(self.tx, self.index, connection, writer.inserted)
            after = self.tx.add_entry(connection, branch, before, NewEntry(log.APPEND, to, op))
            for kind, body in events:
                self._add_event(connection, branch, kind, body)
            return AppendResult(head=after, written=len(writer.inserted))

        return self.tx.write(work)

    def read(self, branch: Branch | Head, *, start: int = 0, stop: int | None = None) -> Iterator[StoredMessage]:
        """The messages of a branch from position `start` up to `stop`. They are read one page at a time."""
        where = branch if isinstance(branch, Head) else self.head(branch)
        length = where.length if stop is None else min(stop, where.length)
        yield from self._read_spans(self.spans(where, start=max(0, start), stop=length))

    def read_used(self, branch: Branch) -> Iterator[StoredMessage]:
        """All messages of a branch, including messages that were removed from it."""
        yield from self._read_spans(
            self.tx.read(lambda connection: chains.used_spans(connection, self.tx.owner, branch.id))
        )

    def _read_spans(self, spans: Iterable[Span]) -> Iterator[StoredMessage]:
        for span in spans:
            rest = span
            while rest.start < rest.stop:
                found = self.tx.read(partial(chains.read_page, owner=self.tx.owner, span=rest))
                yield from found
                rest = rest._replace(start=rest.start + len(found))

    def spans(self, branch: Branch | Head, *, start: int = 0, stop: int | None = None) -> list[Span]:
        """The ranges of rows that hold the messages of a branch."""
        where = branch if isinstance(branch, Head) else self.head(branch)
        end = ChainPosition(where.segment, where.length if stop is None else stop)
        return self.tx.read(lambda connection: chains.spans(connection, self.tx.owner, end, start))

    def find(self, messages: Sequence[Message]) -> KnownHistory | None:
        """The longest stored history that is the beginning of these messages; None if there is none.

        Messages are compared by role, kind and content, so their bytes may differ (see `trace`).
        """
        traces = list(accumulate(messages, lambda before, message: trace(self.owner, before, message), initial=ROOT))
        sql = "SELECT segment, position, key FROM messages WHERE owner = ? AND trace = ? ORDER BY id DESC LIMIT 1"

        def work(connection: Connection) -> KnownHistory | None:
            owner = self.tx.owner

            def is_stored(count: int) -> bool:
                return traces[count] == ROOT or bool(connection.run(sql, (owner.id, traces[count])))

            count = bisect_left(range(1, len(traces)), True, key=lambda count: not is_stored(count))
            if traces[count] == ROOT:
                return None
            segment, position, key = connection.run(sql, (owner.id, traces[count]))[0]
            branch = branch_table.branch_of_segment(connection, owner, segment)
            return KnownHistory(count=count, branch=branch, length=position + 1, key=key)

        return self.tx.read(work)

    # Marks

    def state(self, branch: Branch) -> BranchState:
        """The state of a branch: head, folds and pins."""

        def work(connection: Connection) -> BranchState:
            while True:
                marks = log.marks(connection, self.tx.owner, branch)
                head = log.head(connection, self.tx.owner, branch)
                own = [entry.seq for entry in marks if entry.branch == branch.name]
                if head.mark == (own[-1] if own else 0):  # otherwise a mark was added between the two reads
                    break
            found = derive(marks, head)
            if not found.folds:
                return found
            return replace(found, fold=log.read_fold(connection, self.tx.owner, branch.session, found.folds[-1]))

        return self.tx.read(work)

    def fold(self, branch: Branch, folded: FoldReference) -> Fold:
        """A fold of a branch, with its digest."""
        return self.tx.read(lambda connection: log.read_fold(connection, self.tx.owner, branch.session, folded))

    def note(self, branch: Branch, kind: str, body: Any = None, *, mark: int | None = None, op: str = "") -> Head:
        """Add a log entry of the caller's own `kind`, for example for new settings."""
        if kind in RESERVED:
            raise InputError(f"{kind!r} is a reserved kind of entry", hint="choose another kind")
        return self._mark(branch, kind, lambda _, before: (body, log.position_of(before)), mark, op)

    def append_fold(
        self, branch: Branch, fold: Fold, *, mark: int | None = None, claim: Claim | None = None, op: str = ""
    ) -> Head:
        """Commit a fold, and complete the job of `claim` in the same transaction.

        `mark` is the value of `head.mark` when the fold was planned. Raises `Conflict` if a fold, pin or move was added
        since then, or if the claim was lost. Messages that were appended since then cause no conflict.
        """

        def body(connection: Connection, before: Head) -> tuple[Any, ChainPosition]:
            cut = _check_length(before, fold.cut)
            prefix = chains.position_at(connection, self.tx.owner, log.position_of(before), cut)
            if claim is not None:
                self.jobs.complete(connection, claim, {"seq": before.seq + 1})
            return {"fold": fold_value(fold), "prefix": prefix.key.hex()}, log.position_of(before)

        op = op or (f"{claim.name}:{claim.fence}" if claim is not None else "")
        return self._mark(branch, "fold", body, mark, op)

    def unfold(self, branch: Branch, *, mark: int | None = None, op: str = "") -> Head:
        """Take back the newest fold. The previous fold is then in force again."""

        def body(connection: Connection, before: Head) -> tuple[Any, ChainPosition]:
            folds = derive(log.marks(connection, self.tx.owner, branch), before).folds
            if not folds:
                raise InputError("nothing is folded", hint="make a fold first")
            return {"fold": [folds[-1].branch, folds[-1].seq]}, log.position_of(before)

        return self._mark(branch, "unfold", body, mark, op)

    def refold(self, branch: Branch, *, mark: int | None = None, op: str = "") -> Head:
        """Restore the fold that was taken back last. This fold is then in force again."""

        def body(connection: Connection, before: Head) -> tuple[Any, ChainPosition]:
            undone = derive(log.marks(connection, self.tx.owner, branch), before).undone
            if not undone:
                raise InputError("no fold was taken back since the last fold was made", hint="make a new fold")
            return {"fold": [undone[-1].branch, undone[-1].seq]}, log.position_of(before)

        return self._mark(branch, "refold", body, mark, op)

    def pin(  # noqa: PLR0913  # most are keyword-only
        self,
        branch: Branch,
        name: str,
        what: int | Message,
        *,
        is_note: bool = False,
        mark: int | None = None,
        op: str = "",
    ) -> Head:
        """Pin a message under a name. `what` is the position of the message in the branch, or the message itself.

        `is_note` says that the message is a note that was added only to be pinned.
        """

        def body(_: Connection, before: Head) -> tuple[Any, ChainPosition]:
            if isinstance(what, Message):
                return {"name": name, "message": message_value(what)}, log.position_of(before)
            if not 0 <= what < before.length:
                raise InputError(f"there is no message {what}", hint=f"the branch has {before.length} messages")
            flag = {"is_note": True} if is_note else {}
            return {"name": name, "position": what, **flag}, log.position_of(before)

        return self._mark(branch, "pin", body, mark, op)

    def unpin(
        self, branch: Branch, name: str, *, removed: int | None = None, mark: int | None = None, op: str = ""
    ) -> Head:
        """Remove a pin. If a pinned note leaves the view together with its pin, `removed` is its position."""
        value = {"name": name} if removed is None else {"name": name, "removed": removed}
        return self._mark(branch, "unpin", lambda _, before: (value, log.position_of(before)), mark, op)

    def move(self, branch: Branch, to: int = 0, *, mark: int | None = None, op: str = "") -> Head:
        """Shorten the branch to its first `to` messages; 0 empties it. The removed messages stay in the ledger."""
        return self._mark(branch, "move", lambda connection, before: self._back(connection, before, to), mark, op)

    def _back(self, connection: Connection, before: Head, to: int) -> tuple[Any, ChainPosition]:
        place = chains.position_at(connection, self.tx.owner, log.position_of(before), _check_length(before, to))
        return {"shared": to, "from": before.key.hex()}, place

    def _mark(self, branch: Branch, kind: str, body: _MarkBody, mark: int | None, op: str) -> Head:
        """Add a log entry that is no append, unless an earlier attempt of the operation `op` already added it.

        `mark` is the `Head.mark` that the caller last read. Raises `Conflict` if the branch has a newer one.
        """
        op = op or log.new_operation_id()

        def work(connection: Connection) -> Head:
            before = self.tx.lock(connection, branch)
            if log.has_operation(connection, self.tx.owner, branch, op):
                return before
            if mark is not None and before.mark != mark:
                raise Conflict("the branch was changed meanwhile", hint="read its state again, then retry")
            value, to = body(connection, before)
            return self.tx.add_entry(connection, branch, before, NewEntry(kind, to, op, value))

        return self.tx.write(work)

    # Events

    def event(self, branch: Branch, kind: str, body: Any = None) -> None:
        """Record an event of a branch."""
        self.tx.write(lambda connection: self._add_event(connection, branch, kind, body))

    def _add_event(self, connection: Connection, branch: Branch, kind: str, body: Any) -> None:
        sql = "INSERT INTO events (owner, branch, kind, at, body) VALUES (?, ?, ?, ?, ?)"
        stored = None if body is None else pack(dump(body))
        connection.run(sql, (self.tx.owner.id, branch.id, kind, self.tx.now(connection), stored))

    def events(self, branch: Branch, *, after: int = 0, limit: int = 1_000, kind: str = "") -> list[StoredEvent]:
        """The recorded events of a branch, oldest first. With `kind`, only events of this kind are returned."""
        only, values = (" AND kind = ?", (kind,)) if kind else ("", ())
        return self._events(branch, f"{only} AND id > ? ORDER BY id LIMIT ?", (*values, after, limit))

    def last_event(self, branch: Branch, kind: str) -> StoredEvent | None:
        """The newest event of this kind in a branch; None if there is none."""
        found = self._events(branch, " AND kind = ? ORDER BY id DESC LIMIT 1", (kind,))
        return found[0] if found else None

    def _events(self, branch: Branch, condition: str, values: Values) -> list[StoredEvent]:
        sql = f"SELECT id, kind, at, body FROM events WHERE owner = ? AND branch = ?{condition}"  # noqa: S608  # constants
        rows = self.tx.read(lambda connection: connection.run(sql, (self.tx.owner.id, branch.id, *values)))
        return [
            StoredEvent._make((*row, unpack_value(body, f"an event of session {branch.session!r}")))
            for *row, body in rows
        ]

    # Maintenance

    def verify(self) -> Iterator[IntegrityFault]:
        """Yield a fault for every row that is missing or does not match its key.

        If the ledger is intact, nothing is yielded.
        """
        return verify.verify(self.tx)

    def export(self, sessions: Iterable[str] | None = None) -> Iterator[str]:
        """The named sessions as lines of JSON; all sessions if `sessions` is None."""
        return export_import.export(self.tx, sessions)

    def load(self, lines: Iterable[str]) -> int:
        """Import exported lines and return the number of new messages. If an error occurs, nothing is imported."""
        return export_import.load(self.tx, lines, self.index)

    def prune(self, *, older_than: float) -> tuple[str, ...]:
        """Delete the sessions that were not used since `older_than` (seconds since 1970), and return their names.

        Messages that are also in other sessions are kept, with the same keys.
        """
        return retention.prune(self.tx, older_than, self.index)


def _check_length(head: Head, length: int) -> int:
    if not 0 <= length <= head.length:
        raise InputError(
            f"the branch has {head.length} messages, not {length}", hint=f"pass a number from 0 to {head.length}"
        )
    return length
