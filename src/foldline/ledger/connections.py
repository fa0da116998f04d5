"""Connection pool, transactions, and the protocols that a database implements.

A store may be used from many threads. A forked process starts with an empty pool.

To support another database, implement `Database` and `Connection` in a file of `databases/`, and
select it by its URL in __init__.py.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from foldline.errors import LedgerBusy, LedgerError, LedgerUnavailable

if TYPE_CHECKING:
    from foldline.ledger.group_commit import GroupCommit

T = TypeVar("T")
Values = tuple[Any, ...]
_POLL_S = 0.002
"""Seconds between two attempts to find a free connection."""


class WriteConflict(LedgerBusy):
    """The transaction conflicted with another transaction, and can be retried."""


class ConnectionLost(LedgerUnavailable):
    """The connection broke; it is unknown whether the transaction was committed."""


class Connection(Protocol):
    """A database connection. SQL uses `?` for values."""

    def run(self, sql: str, values: Values = ()) -> list[Values]:
        """Run one statement and return all its rows."""

    def many(self, sql: str, rows: Iterable[Values]) -> None:
        """Run one statement for many rows."""

    def write(self, work: Callable[[Connection], T]) -> T:
        """Call `work` in a write transaction, and commit it durably if `work` returns."""

    def begin_read(self) -> None:
        """Start a read-only transaction that sees one snapshot."""

    def reset(self) -> bool:
        """Roll back a transaction that is still open. Returns False if the connection is unusable."""

    def close(self) -> None:
        """Close the connection."""


class Database(Protocol):
    """A kind of database: its SQL dialect, connections and errors."""

    name: str
    connections: int
    """Maximum number of open connections."""
    wait_s: float
    """Seconds to wait for locks and connections."""
    schema_sql: dict[str, str]
    """The SQL for each placeholder in the schema: `{id}`, `{blob}` and `{words}` (the table of the text index)."""
    delete_words: str
    """Statement that removes a message from the table `words`, by its row id and its terms."""
    joined_ids: str
    """Expression that joins all values of `rowid` with commas. One long text is read faster than thousands of rows."""
    for_update: str
    """Suffix of a SELECT statement. With this suffix, the statement locks the rows that it returns."""
    lock_writers: str
    """Statement that blocks all other writers until the transaction ends. "" if every write transaction blocks other
    writers.
    """
    reclaim_space: tuple[str, ...]
    """Statements that free disk space after rows were deleted."""
    has_job_queue: bool
    """Whether background jobs can be queued with PgQueuer."""
    ledger_exists: str
    """Query that returns a row if the ledger's tables exist."""

    def is_missing(self) -> bool:
        """Whether there is no database file yet, so that connecting would create it."""

    def connect(self) -> Connection:
        """Open a connection."""

    def prepare(self, connection: Connection) -> None:
        """Create the schema for the tables, and block migrations by other processes."""

    def clock(self, connection: Connection) -> float:
        """Current time as seconds since 1970, the same for all clients of the ledger."""

    def translate_error(self, cause: Exception) -> Exception | None:
        """The foldline error for an exception of the database driver; None for other exceptions."""

    def match_words(self, groups: list[list[int]]) -> tuple[str, list[Any]]:
        """A search query and its values.

        The query returns the ids of the rows in `words` that contain at least one term of every group.
        """

    def check_integrity(self, connection: Connection) -> list[str]:
        """Errors that the database finds in its own files."""


class ConnectionPool:
    """Pool of connections to one database.

    Ctrl-C, a signal handler or another thread can raise an exception at any point of the code, for example between
    reserving a connection and using it. The connection must not stay reserved then. So each use of a connection has its
    own object (`loan`). The pool reserves a connection by storing this object in its slot. At the end of the use, the
    pool frees every slot that has this object.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.group_commit: GroupCommit | None = None
        """Commits transactions of several threads together; None if each transaction is committed alone."""
        self._closed = False
        self._inherited: list[_PoolSlot] = []
        """Slots of the parent process, after a fork.

        The connections in these slots stay open, because closing them would close the parent's connections.
        """
        self._start()

    def _start(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._slots = [_PoolSlot() for _ in range(self.database.connections)]

    def read(self, work: Callable[[Connection], T]) -> T:
        """Call `work` with a connection, without a transaction, and return its result."""
        loan = object()
        try:
            return work(self._borrow(loan))
        except Exception as cause:
            self._raise_translated(cause)
            raise
        finally:
            try:
                self._give_back(loan)
            except BaseException:  # after an interrupt, the first attempt may have stopped at any point
                self._give_back(loan)
                raise

    def write(self, work: Callable[[Connection], T]) -> T:
        """Call `work` in a transaction.

        The transaction is committed when `work` returns, and rolled back when it raises.
        """
        return self.read(lambda connection: connection.write(work))

    def snapshot(self, work: Callable[[Connection], Iterator[T]]) -> Iterator[T]:
        """Yield the items that `work` yields. All statements of `work` see the same snapshot of the database."""
        loan = object()
        try:
            connection = self._borrow(loan)
            connection.begin_read()
            yield from work(connection)
        except Exception as cause:
            self._raise_translated(cause)
            raise
        finally:
            try:
                self._give_back(loan)
            except BaseException:  # after an interrupt, the first attempt may have stopped at any point
                self._give_back(loan)
                raise

    def _borrow(self, loan: object) -> Connection:
        """Reserve a free slot for one use (`loan`), and return its connection.

        If all slots are in use, wait until one is free.
        """
        if self._closed:
            raise LedgerError("the ledger is closed", hint="open it again")
        if self._process != os.getpid():
            self._inherited += self._slots
            self._start()
        end = time.monotonic() + self.database.wait_s
        while (slot := self._mark_free_slot(loan)) is None:
            if time.monotonic() >= end:
                used = f"all {self.database.connections} connections are in use"
                raise LedgerBusy(used, hint="finish open reads first")
            time.sleep(_POLL_S)
        if slot.connection is None:
            slot.connection = self.database.connect()
        return slot.connection

    @property
    def has_open_connection(self) -> bool:
        """Whether a connection is open and free, so that the next use need not wait."""
        free = next((slot for slot in self._slots if slot.loan is None), None)
        return free is not None and free.connection is not None

    def _mark_free_slot(self, loan: object) -> _PoolSlot | None:
        with self._lock:
            for slot in self._slots:
                if slot.loan is None:
                    slot.loan = loan
                    return slot
        return None

    def _give_back(self, loan: object) -> None:
        """End one use of a connection: roll back an open transaction, and free the slot.

        A second call has no effect.
        """
        for slot in self._slots:
            if slot.loan is loan:
                connection = slot.connection
                if connection is not None and (not connection.reset() or self._closed):
                    slot.connection = None
                    connection.close()
                slot.loan = None

    def _raise_translated(self, cause: Exception) -> None:
        """If the exception comes from the database driver, raise the corresponding error of foldline; otherwise do
        nothing.
        """
        error = self.database.translate_error(cause)
        if isinstance(error, ConnectionLost):
            self._close_free()  # these connections are lost, too
        if error is not None:
            raise error from cause

    def _close_free(self) -> None:
        """Close the connections that are not in use."""
        loan = object()
        while (slot := self._mark_free_slot(loan)) is not None:
            connection, slot.connection = slot.connection, None
            if connection is not None:
                with suppress(Exception):  # the connection may be broken already
                    connection.close()
        for slot in self._slots:
            if slot.loan is loan:
                slot.loan = None

    def close(self) -> None:
        """Close all connections. Connections in use are closed when their use ends."""
        self._closed = True
        self._close_free()


class _PoolSlot:
    """One slot of the pool, which holds at most one connection."""

    __slots__ = ("connection", "loan")

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self.loan: object = None
        """The object that represents the current use of the connection; None if the slot is free."""
