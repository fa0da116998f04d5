"""Connections, and the one way to change anything: a transaction that is committed whole or leaves nothing.

A store may be used from many threads (an event loop's workers, a background fold). Each transaction takes a connection
of its own from a small stock, and a connection that broke is thrown away. A process that was forked starts a new stock.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from foldline.errors import LedgerBusy, LedgerError

Values = tuple[Any, ...]


class WriteConflict(Exception):
    """Two transactions met: the same work done anew will go through."""


class ConnectionLost(Exception):
    """The connection broke, and whether the work was committed is not known."""


class Connection(Protocol):
    """One connection: SQL with `?` for values."""

    def run(self, sql: str, values: Values = ()) -> list[Values]:
        """Run one statement and give all its rows."""
        ...

    def many(self, sql: str, rows: Iterable[Values]) -> None:
        """Run one statement for many rows."""
        ...

    def begin(self) -> None:
        """Start a transaction that will write."""
        ...

    def begin_read(self) -> None:
        """Start a transaction that only reads, and sees nothing of what is written meanwhile."""
        ...

    def commit(self) -> None:
        """Make it last."""
        ...

    def rollback(self) -> None:
        """Undo it."""
        ...

    def close(self) -> None:
        """Let go."""
        ...


class Database(Protocol):
    """What the two databases differ in."""

    name: str
    connections: int
    """How many connections may be open at once."""
    wait_s: float
    """How long to wait for others."""
    column_types: dict[str, str]
    """How they spell what the schema leaves open."""
    for_update: str
    """What keeps others from a row that was read."""
    lock_writers: str
    """What keeps everybody else from writing until the transaction ends, if starting it did not."""
    reclaim_space: tuple[str, ...]
    """What gives room back after rows were deleted."""
    ledger_exists: str
    """Has a row where a ledger is."""

    def is_missing(self) -> bool:
        """Whether there is nothing that could be asked: connecting would make it."""
        ...

    def connect(self) -> Connection:
        """Another connection."""
        ...

    def prepare(self, connection: Connection) -> None:
        """Make room for the tables, in the transaction that will make them."""
        ...

    def clock(self, connection: Connection) -> float:
        """The time by which leases are judged, the same for all who share the ledger."""
        ...

    def translate_error(self, cause: Exception) -> Exception | None:
        """The error a caller can act on, for what the database raised; none for what it did not raise."""
        ...

    def check_integrity(self, connection: Connection) -> list[str]:
        """What the database itself finds wrong with its file."""
        ...


class ConnectionPool:
    """The stock of connections."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._closed = False
        self._inherited: list[Connection] = []
        """The connections of the process this one was forked from: closing them would close that one's."""
        self._reset()

    def _reset(self) -> None:
        self._process = os.getpid()
        self._free = threading.BoundedSemaphore(self.database.connections)
        self._idle: list[Connection] = []

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection for single statements that only read."""
        with self._borrowed() as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A connection for many statements that read the same moment."""
        with self._borrowed() as connection:
            connection.begin_read()
            try:
                yield connection
            finally:
                connection.rollback()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction: committed when the block ends, undone when it raises."""
        with self._borrowed() as connection:
            connection.begin()
            try:
                yield connection
                connection.commit()
            except BaseException:
                connection.rollback()
                raise

    @contextmanager
    def _borrowed(self) -> Iterator[Connection]:
        if self._closed:
            raise LedgerError("the ledger was closed", hint="open it again")
        if self._process != os.getpid():
            self._inherited += self._idle
            self._reset()
        if not self._free.acquire(timeout=self.database.wait_s):
            raise LedgerBusy(f"all {self.database.connections} connections are in use", hint="finish reading first")
        connection: Connection | None = None
        try:
            connection = self._next()
            yield connection
        except Exception as cause:
            error = self.database.translate_error(cause)
            if isinstance(error, ConnectionLost):
                self._discard(connection)
                connection = None
            if error is None:
                raise
            raise error from cause
        finally:
            if connection is not None:
                self._idle.append(connection)
            self._free.release()
            if self._closed:
                self.close()  # it was closed while this connection was in use

    def _next(self) -> Connection:
        try:
            return self._idle.pop()
        except IndexError:
            return self.database.connect()

    def _discard(self, connection: Connection | None) -> None:
        """Throw away a connection that broke, and the idle ones, which will have broken with it."""
        for broken in (connection, *self._idle):
            if broken is not None:
                _close(broken)
        self._idle = []

    def close(self) -> None:
        """Close all connections."""
        self._closed = True
        while self._idle:
            _close(self._idle.pop())


def _close(connection: Connection) -> None:
    with suppress(Exception):  # it is gone either way
        connection.close()
