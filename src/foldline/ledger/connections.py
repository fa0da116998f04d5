"""Connection pool, transactions, and the protocols that a database implements.

A store may be used from many threads. A forked process starts an empty pool.

To support another database, implement `Database` and `Connection` in a file of `databases/`, and
select it by its URL in __init__.py.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from foldline.errors import LedgerBusy, LedgerError, LedgerUnavailable

Values = tuple[Any, ...]


class WriteConflict(LedgerBusy):
    """The transaction conflicted with another one and can be retried."""


class ConnectionLost(LedgerUnavailable):
    """The connection broke; it is unknown whether the transaction was committed."""


class Connection(Protocol):
    """A database connection. SQL uses `?` for values."""

    def run(self, sql: str, values: Values = ()) -> list[Values]:
        """Run one statement and return all its rows."""

    def many(self, sql: str, rows: Iterable[Values]) -> None:
        """Run one statement for many rows."""

    def begin(self) -> None:
        """Start a write transaction."""

    def begin_read(self) -> None:
        """Start a read-only transaction that sees one snapshot."""

    def commit(self) -> None:
        """Commit the transaction durably."""

    def rollback(self) -> None:
        """Roll the transaction back."""

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
    """SQL that replaces the schema's placeholders: `{id}`, `{blob}`, and `{words}`, the table of the text index."""
    delete_words: str
    """Statement that removes a message from the table `words`, by its row id and its terms."""
    for_update: str
    """Suffix of a SELECT that locks the rows it returns."""
    lock_writers: str
    """Statement that blocks all other writers until the transaction ends; "" if `begin` already blocks them."""
    reclaim_space: tuple[str, ...]
    """Statements that free disk space after rows were deleted."""
    has_job_queue: bool
    """Whether background jobs can be queued with PgQueuer."""
    ledger_exists: str
    """Query that returns a row if the ledger's tables exist."""

    def is_missing(self) -> bool:
        """Whether connecting would create the database file."""

    def connect(self) -> Connection:
        """Open a connection."""

    def prepare(self, connection: Connection) -> None:
        """Create the schema for the tables, and lock out concurrent migrations."""

    def clock(self, connection: Connection) -> float:
        """Current time as seconds since 1970, the same for all clients of the ledger."""

    def translate_error(self, cause: Exception) -> Exception | None:
        """The foldline error for an exception of the database driver; None for other exceptions."""

    def match_words(self, groups: list[list[int]]) -> tuple[str, list[Any]]:
        """A query for the ids of the rows in `words` that contain a term of every group, and the query's values."""

    def check_integrity(self, connection: Connection) -> list[str]:
        """Errors that the database finds in its own files."""


class ConnectionPool:
    """Pool of connections to one database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._closed = False
        self._inherited: list[Connection] = []
        """Connections that a forked process inherited; they stay open, since closing them would close the parent's."""
        self._reset()

    def _reset(self) -> None:
        self._process = os.getpid()
        self._free = threading.BoundedSemaphore(self.database.connections)
        self._idle: list[Connection] = []

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Borrow a connection for several statements that read one snapshot."""
        with self.connection() as connection:
            connection.begin_read()
            try:
                yield connection
            finally:
                connection.rollback()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Run a transaction: committed when the block ends, rolled back when it raises."""
        with self.connection() as connection:
            connection.begin()
            try:
                yield connection
                connection.commit()
            except BaseException:
                connection.rollback()
                raise

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Borrow a connection for single read statements."""
        if self._closed:
            raise LedgerError("the ledger is closed", hint="open it again")
        if self._process != os.getpid():
            self._inherited += self._idle
            self._reset()
        if not self._free.acquire(timeout=self.database.wait_s):
            raise LedgerBusy(f"all {self.database.connections} connections are in use", hint="finish open reads first")
        is_broken = False
        connection: Connection | None = None
        try:
            with suppress(IndexError):
                connection = self._idle.pop()
            connection = connection or self.database.connect()
            yield connection
        except Exception as cause:
            error = self.database.translate_error(cause)
            is_broken = isinstance(error, ConnectionLost)  # and so are the idle connections
            if error is None:
                raise
            raise error from cause
        finally:
            if connection is not None:
                self._idle.append(connection)
            if is_broken or self._closed:
                self._close_idle()
            self._free.release()

    def _close_idle(self) -> None:
        while self._idle:
            with suppress(Exception):  # it may be broken already
                self._idle.pop().close()

    def close(self) -> None:
        """Close all connections."""
        self._closed = True
        self._close_idle()
