"""The ledger of one owner: everything ever said, and every fold, pin and branch, in rows that are only added.

    store = open("agent.db")
    main = store.session("ticket-42")
    store.append(main, [user("Why does the build fail?")])
    for stored in store.read(main):
        print(stored.position, stored.message.text)

All methods block for as long as the database takes; an event loop calls them in a thread (`asyncio.to_thread`). A
method that writes does all of it in one transaction, or raises and has written nothing.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from foldline.errors import Conflict, InputError
from foldline.fold import Fold
from foldline.ledger import branches as branch_table
from foldline.ledger import chains, log, retention, verify
from foldline.ledger import export_import as transfer
from foldline.ledger.chains import ChainPosition, ChainWriter, Tenant
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
from foldline.ledger.serialize import dump, fold_value, message_value, pack, unpack
from foldline.message import Message

RESERVED = (log.APPEND, "fold", "unfold", "pin", "unpin", "move", "branch")
"""Entries that mean something to the ledger itself."""


class Store:
    """One owner's part of a ledger."""

    def __init__(
        self,
        pool: ConnectionPool,
        owner: Tenant,
        *,
        clock: Callable[[], float] | None = None,
        index: MessageIndex | None = None,
    ) -> None:
        self.tx = log.Transactions(pool, owner, clock)
        self.index = index
        self.jobs = Jobs(self.tx)

    @property
    def owner(self) -> str:
        """Whose rows this store reads and writes."""
        return self.tx.owner.name

    def close(self) -> None:
        """Close the ledger, for all owners that were opened with it."""
        self.tx.pool.close()

    # Sessions and branches

    def session(self, name: str, branch: str = MAIN) -> Branch:
        """A branch of a session, which begins here if it is new."""
        branch_table.check_name("a session", name)
        found = self.tx.read(lambda connection: branch_table.find(connection, self.tx.owner, name, branch))
        if found is not None:
            return found
        if branch != MAIN:
            raise InputError(f"session {name!r} has no branch {branch!r}", hint="make it with fork")
        return self.tx.write(
            lambda connection: branch_table.begin_session(connection, self.tx.owner, name, self.tx.now(connection))
        )

    def sessions(self) -> tuple[SessionInfo, ...]:
        """Every session with its figures, the one used last first."""
        return self.tx.read(lambda connection: branch_table.session_infos(connection, self.tx.owner))

    def branches(self, session: str) -> tuple[Branch, ...]:
        """The branches of a session, oldest first."""
        return self.tx.read(lambda connection: branch_table.branches_of(connection, self.tx.owner, session))

    def fork(self, branch: Branch, name: str, *, at: int | None = None) -> Branch:
        """Another branch of the session, which shares the first `at` messages (all of them unless said).

        Folds and pins that lie within them hold on the new branch too.
        """
        branch_table.check_name("a branch", name)
        owner, op = self.tx.owner, log.new_operation_id()

        def work(connection: Connection) -> Branch:
            before, now = self.tx.lock(connection, branch), self.tx.now(connection)
            length = _within(before, before.length if at is None else at)
            known = branch_table.find(connection, owner, branch.session, name)
            if known is not None:
                if log.find_operation(connection, owner, known, op, None) is not None:
                    return known  # the answer was lost, not the work
                raise InputError(f"session {branch.session!r} has a branch {name!r} already", hint="take another name")
            to = chains.position_at(connection, owner, log.position_of(before), length)
            plan = Branch(id=0, session=branch.session, name=name, origin=branch.id, origin_seq=before.seq)
            made = branch_table.add_branch(connection, owner, plan, now)
            start = Head(log=log.root_key(owner, made))
            body = {"shared": length, "origin": branch.name, "seq": before.seq}
            self.tx.add_entry(connection, made, start, NewEntry("branch", to, op, body))
            return made

        return self.tx.write(work)

    # Messages

    def head(self, branch: Branch) -> Head:
        """Where a branch stands."""
        return self.tx.read(lambda connection: log.head(connection, self.tx.owner, branch))

    def append(
        self, branch: Branch, messages: Sequence[Message], *, expected: bytes | None = None, at: int | None = None
    ) -> AppendResult:
        """Add messages at the end, or behind the first `at` messages. What is known already is not written again.

        `expected` is the key of the newest message that the caller knows (`ROOT` for an empty branch): when the branch
        has moved on, nothing is written and `Conflict` is raised.
        """
        drafts, op = [chains.encode(message) for message in messages], log.new_operation_id()
        first: list[int] = []

        def work(connection: Connection) -> AppendResult:
            before = self.tx.lock(connection, branch)
            if first and log.find_operation(connection, self.tx.owner, branch, op, first[0]) is not None:
                return AppendResult(head=before, written=0)  # the answer to the first attempt was lost, not its work
            first[:] = [before.seq]
            if expected is not None and before.key != expected:
                raise Conflict("the branch has moved on", hint="read what is new and decide anew")
            if at is not None and _within(before, at) < before.length:
                body, to = self._back(connection, before, at)
                before = self.tx.add_entry(connection, branch, before, NewEntry("move", to, op, body))
            if not drafts:
                return AppendResult(head=before, written=0)
            writer = ChainWriter(connection, self.tx.owner, self.tx.now(connection))
            to = writer.put(branch.id, log.position_of(before), drafts)
            add_unindexed(self.tx, self.index, connection, writer.written)
            after = self.tx.add_entry(connection, branch, before, NewEntry(log.APPEND, to, op))
            return AppendResult(head=after, written=len(writer.written))

        return self.tx.write(work)

    def read(self, branch: Branch | Head, *, start: int = 0, stop: int | None = None) -> Iterator[StoredMessage]:
        """The messages of a path from position `start` on, a page at a time."""
        where = branch if isinstance(branch, Head) else self.head(branch)
        length = where.length if stop is None else min(stop, where.length)
        for span in self.spans(where, start=max(0, start), stop=length):
            rest = span
            while rest.start < rest.stop:
                found = self._page(rest)
                yield from found
                rest = rest._replace(start=rest.start + len(found))

    def _page(self, span: Span) -> list[StoredMessage]:
        return self.tx.read(lambda connection: chains.read_page(connection, self.tx.owner, span))

    def spans(self, branch: Branch | Head, *, start: int = 0, stop: int | None = None) -> list[Span]:
        """The ranges of rows that a path consists of: all a search in it may look at."""
        where = branch if isinstance(branch, Head) else self.head(branch)
        end = ChainPosition(where.strand, where.length if stop is None else stop)
        return self.tx.read(lambda connection: chains.spans(connection, self.tx.owner, end, start))

    def find(self, messages: Sequence[Message]) -> KnownHistory | None:
        """The longest known history that the messages begin with, by what is said in them."""
        owner = self.tx.owner
        traces = list(accumulate(messages, lambda before, message: trace(owner.name, before, message), initial=ROOT))
        sql = "SELECT strand, position, key FROM messages WHERE owner = ? AND trace = ? ORDER BY id DESC LIMIT 1"

        def work(connection: Connection) -> KnownHistory | None:
            def known(count: int) -> bool:
                return traces[count] == ROOT or bool(connection.run(sql, (owner.id, traces[count])))

            count = bisect_left(range(1, len(traces)), True, key=lambda count: not known(count))
            if traces[count] == ROOT:
                return None
            strand, position, key = connection.run(sql, (owner.id, traces[count]))[0]
            branch = branch_table.branch_of_strand(connection, owner, strand)
            return KnownHistory(count=count, branch=branch, length=position + 1, key=key)

        return self.tx.read(work)

    # Marks

    def state(self, branch: Branch) -> BranchState:
        """What holds on a branch: where it stands, its folds and its pins."""

        def work(connection: Connection) -> BranchState:
            while True:
                marks = log.marks(connection, self.tx.owner, branch)
                head = log.head(connection, self.tx.owner, branch)
                own = [entry.seq for entry in marks if entry.branch == branch.name]
                if head.mark == (own[-1] if own else 0):  # else somebody add_unindexed in between
                    break
            found = derive(marks, head)
            if not found.folds:
                return found
            return replace(found, fold=log.read_fold(connection, self.tx.owner, branch.session, found.folds[-1]))

        return self.tx.read(work)

    def fold(self, branch: Branch, folded: FoldReference) -> Fold:
        """All that one of the folds of a branch says."""
        return self.tx.read(lambda connection: log.read_fold(connection, self.tx.owner, branch.session, folded))

    def note(self, branch: Branch, kind: str, body: Any = None, *, mark: int | None = None, op: str = "") -> Head:
        """Add an entry of the caller's own kind to the log: a model or a policy from here on, an approval."""
        if kind in RESERVED:
            raise InputError(f"{kind!r} is the ledger's own word", hint="choose another one")
        return self._mark(branch, kind, lambda _, before: (body, log.position_of(before)), mark, op)

    def append_fold(
        self, branch: Branch, fold: Fold, *, mark: int | None = None, claim: Claim | None = None, op: str = ""
    ) -> Head:
        """Commit a fold, and with it the job that made it.

        `mark` is what `head.mark` was when the fold was decided on: appends in the meantime do no harm, but another
        fold, a pin or a move does, and raises `Conflict`, as does a claim that somebody else holds by now.
        """

        def body(connection: Connection, before: Head) -> tuple[Any, ChainPosition]:
            prefix = chains.position_at(connection, self.tx.owner, log.position_of(before), _within(before, fold.cut))
            if claim is not None:
                self.jobs.complete(connection, claim, {"seq": before.seq + 1})
            return {"fold": fold_value(fold), "prefix": prefix.key.hex()}, log.position_of(before)

        op = op or (f"{claim.name}:{claim.fence}" if claim is not None else "")
        return self._mark(branch, "fold", body, mark, op)

    def unfold(self, branch: Branch, *, mark: int | None = None, op: str = "") -> Head:
        """Take back the newest fold: the one before it is in force again."""

        def body(connection: Connection, before: Head) -> tuple[Any, ChainPosition]:
            folds = derive(log.marks(connection, self.tx.owner, branch), before).folds
            if not folds:
                raise InputError("nothing is folded")
            return {"fold": [folds[-1].branch, folds[-1].seq]}, log.position_of(before)

        return self._mark(branch, "unfold", body, mark, op)

    def pin(self, branch: Branch, name: str, what: int | Message, *, mark: int | None = None, op: str = "") -> Head:
        """Pin a message of the path by its position, or a message of its own, under a name."""

        def body(_: Connection, before: Head) -> tuple[Any, ChainPosition]:
            if isinstance(what, Message):
                return {"name": name, "message": message_value(what)}, log.position_of(before)
            if not 0 <= what < before.length:
                raise InputError(f"there is no message {what}", hint=f"the path has {before.length}")
            return {"name": name, "position": what}, log.position_of(before)

        return self._mark(branch, "pin", body, mark, op)

    def unpin(self, branch: Branch, name: str, *, mark: int | None = None, op: str = "") -> Head:
        """Let go of a pin."""
        return self._mark(branch, "unpin", lambda _, before: ({"name": name}, log.position_of(before)), mark, op)

    def move(self, branch: Branch, to: int = 0, *, mark: int | None = None, op: str = "") -> Head:
        """Go back to where the path had `to` messages (0: an empty one). What came after stays in the ledger."""
        return self._mark(branch, "move", lambda connection, before: self._back(connection, before, to), mark, op)

    def _back(self, connection: Connection, before: Head, to: int) -> tuple[Any, ChainPosition]:
        place = chains.position_at(connection, self.tx.owner, log.position_of(before), _within(before, to))
        return {"shared": to, "from": before.key.hex()}, place

    def _mark(
        self,
        branch: Branch,
        kind: str,
        body: Callable[[Connection, Head], tuple[Any, ChainPosition]],
        mark: int | None,
        op: str,
    ) -> Head:
        """Add a mark, once for each operation, if nothing but appends came since `mark`."""
        op = op or log.new_operation_id()

        def work(connection: Connection) -> Head:
            before = self.tx.lock(connection, branch)
            if log.find_operation(connection, self.tx.owner, branch, op, None) is not None:
                return before
            if mark is not None and before.mark != mark:
                raise Conflict("the branch was changed meanwhile", hint="look at what holds now and decide anew")
            said, to = body(connection, before)
            return self.tx.add_entry(connection, branch, before, NewEntry(kind, to, op, said))

        return self.tx.write(work)

    # Events

    def event(self, branch: Branch, kind: str, body: Any = None) -> None:
        """Record that something happened, for people who ask later."""
        sql = "INSERT INTO events (owner, branch, kind, at, body) VALUES (?, ?, ?, ?, ?)"
        stored = None if body is None else pack(dump(body))

        def work(connection: Connection) -> None:
            connection.run(sql, (self.tx.owner.id, branch.id, kind, self.tx.now(connection), stored))

        self.tx.write(work)

    def events(self, branch: Branch, *, after: int = 0, limit: int = 1_000) -> list[StoredEvent]:
        """What happened on a branch, oldest first."""
        sql = "SELECT id, kind, at, body FROM events WHERE owner = ? AND branch = ? AND id > ? ORDER BY id LIMIT ?"
        values: Values = (self.tx.owner.id, branch.id, after, limit)
        rows = self.tx.read(lambda connection: connection.run(sql, values))
        return [
            StoredEvent(row[0], row[1], row[2], None if row[3] is None else json.loads(unpack(row[3]))) for row in rows
        ]

    # The whole of it

    def verify(self) -> Iterator[IntegrityFault]:
        """Everything that is not as it was once written, and where; nothing when all is sound."""
        return verify.verify(self.tx)

    def export(self, sessions: Iterable[str] | None = None) -> Iterator[str]:
        """Some sessions, or all, as lines of JSON."""
        return transfer.export(self.tx, sessions)

    def load(self, lines: Iterable[str]) -> int:
        """Add what was exported, all of it or nothing; how many messages were new."""
        return transfer.load(self.tx, lines, self.index)

    def prune(self, *, older_than: float) -> tuple[str, ...]:
        """Delete the sessions that nobody has used since a time (seconds since 1970), and give their names.

        What other sessions share with them stays, and so do its keys.
        """
        return retention.prune(self.tx, older_than, self.index)


def _within(head: Head, length: int) -> int:
    if not 0 <= length <= head.length:
        raise InputError(f"the path has {head.length} messages, not {length}")
    return length
