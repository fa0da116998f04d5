"""The ledger in one file: SQLite in write-ahead mode, every commit on the disk before it is acknowledged."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path

from foldline.errors import LedgerBusy, LedgerCorrupt, LedgerError, LedgerUnavailable
from foldline.ledger import connections as pool
from foldline.ledger.schema import SQLITE

MEMORY = ":memory:"
WAIT_S = 10.0
"""How long a writer waits for others."""
CACHE_KIB = 8_192
"""Pages kept in memory per connection."""
CONNECTIONS = 4
OLDEST = (3, 35, 0)
"""The first SQLite that gives back the rows it inserted."""


class Sqlite:
    """A ledger file, or one in memory."""

    name = SQLITE
    column_types = {"id": "INTEGER PRIMARY KEY", "blob": "BLOB"}  # noqa: RUF012  # data of the class, never changed
    for_update = ""
    lock_writers = ""
    reclaim_space: tuple[str, ...] = ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)")
    ledger_exists = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'migrations'"

    def __init__(self, path: str, *, wait_s: float = WAIT_S) -> None:
        if sqlite3.sqlite_version_info < OLDEST:
            raise LedgerUnavailable(f"SQLite {sqlite3.sqlite_version} is too old", hint="3.35 or newer is needed")
        self.path, self.wait_s = path, wait_s
        self.connections = 1 if path == MEMORY else CONNECTIONS
        if path != MEMORY and not Path(path).absolute().parent.is_dir():
            raise LedgerUnavailable(f"no folder {Path(path).absolute().parent}", hint="make it first")
        if Path(path).is_dir():
            raise LedgerUnavailable(f"{path} is a folder", hint="name the file in it")

    def is_missing(self) -> bool:
        """Whether there is no file yet, or one without a byte in it."""
        return self.path == MEMORY or not Path(self.path).exists() or Path(self.path).stat().st_size == 0

    def connect(self) -> SqliteConnection:
        """A connection to the file, which becomes a ledger if it is new."""
        link = sqlite3.connect(self.path, timeout=self.wait_s, isolation_level=None, check_same_thread=False)
        try:
            tables = {name for (name,) in link.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if tables and "migrations" not in tables:
                raise LedgerCorrupt(f"{self.path} is a database, but no ledger", hint="choose another file")
            link.execute("PRAGMA journal_mode = WAL")
            link.execute("PRAGMA synchronous = FULL")
            link.execute("PRAGMA foreign_keys = ON")
            link.execute("PRAGMA secure_delete = ON")
            link.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        except BaseException:
            link.close()
            raise
        return SqliteConnection(link)

    def prepare(self, connection: pool.Connection) -> None:
        """Nothing: the file is there, and its transaction keeps others out."""

    def clock(self, connection: pool.Connection) -> float:  # noqa: ARG002  # the other database has to ask
        """The time of this host: all who share a file share it."""
        return time.time()

    def translate_error(self, cause: Exception) -> Exception | None:
        """What went wrong, by SQLite's own name for it."""
        if not isinstance(cause, sqlite3.Error):
            return None
        name = getattr(cause, "sqlite_errorname", "")
        where = f"{self.path}: {cause}"
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return LedgerBusy(where, hint=f"another process held it for more than {self.wait_s:g} s; try again")
        if name.startswith("SQLITE_FULL"):
            return LedgerUnavailable(where, hint="free some space; nothing acknowledged is lost")
        if name.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")):
            return LedgerUnavailable(where, hint="the file and its folder must be writable")
        if name.startswith(("SQLITE_CANTOPEN", "SQLITE_IOERR")):
            return LedgerUnavailable(where, hint="look at the file, its folder and the disk")
        if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            return LedgerCorrupt(where, hint="restore a copy, or export what `verify` still finds sound")
        return LedgerError(where)

    def check_integrity(self, connection: pool.Connection) -> list[str]:
        """What SQLite finds when it reads every page."""
        try:
            found = [str(row[0]) for row in connection.run("PRAGMA integrity_check(20)")]
        except sqlite3.DatabaseError as error:  # so damaged that even this cannot be asked
            return [str(error)]
        return [] if found == ["ok"] else found


class SqliteConnection:
    """One connection."""

    def __init__(self, link: sqlite3.Connection) -> None:
        self.link = link

    def run(self, sql: str, values: pool.Values = ()) -> list[pool.Values]:
        """Run one statement and give all its rows."""
        return self.link.execute(sql, values).fetchall()

    def many(self, sql: str, rows: Iterable[pool.Values]) -> None:
        """Run one statement for many rows."""
        self.link.executemany(sql, rows)

    def begin(self) -> None:
        """Start a transaction, as the only writer from here on."""
        self.link.execute("BEGIN IMMEDIATE")

    def begin_read(self) -> None:
        """Start a transaction that reads one moment from its first statement on."""
        self.link.execute("BEGIN DEFERRED")

    def commit(self) -> None:
        """Wait until it is on the disk."""
        self.link.execute("COMMIT")

    def rollback(self) -> None:
        """Undo what SQLite has not undone by itself."""
        if self.link.in_transaction:
            self.link.execute("ROLLBACK")

    def close(self) -> None:
        """Close the file."""
        self.link.close()
