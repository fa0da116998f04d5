"""The ledger in one SQLite file, in write-ahead mode; a commit returns when the data is on disk."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from foldline.errors import LedgerBusy, LedgerCorrupt, LedgerError, LedgerUnavailable
from foldline.ledger import connections as pool

T = TypeVar("T")

MEMORY = ":memory:"
CACHE_KIB = 8_192
CONNECTIONS = 4
LOCK_STEP_S = 0.1
"""Seconds that SQLite itself waits for a lock. A longer wait consists of several attempts of this length."""
RETRY_S = 0.001
"""Seconds to sleep between two attempts to get a lock, because SQLite itself does not wait for some locks."""
OLDEST = (3, 35, 0)
"""The oldest SQLite version that can be used: the first one with RETURNING."""


class Sqlite:
    """A SQLite database, in a file or in memory."""

    name = "sqlite"
    schema_sql = {  # noqa: RUF012  # constant
        "id": "INTEGER PRIMARY KEY",
        "blob": "BLOB",
        "words": "CREATE VIRTUAL TABLE words "
        "USING fts5(terms, content='', detail='none', columnsize=0, tokenize='ascii')",
    }
    joined_ids = "group_concat(rowid)"
    delete_words = "INSERT INTO words (words, rowid, terms) VALUES ('delete', ?, ?)"
    for_update = ""
    lock_writers = ""
    has_job_queue = False
    reclaim_space: tuple[str, ...] = ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)")
    ledger_exists = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'migrations'"

    def __init__(self, path: str, *, wait_s: float) -> None:
        if sqlite3.sqlite_version_info < OLDEST:
            raise LedgerUnavailable(f"SQLite {sqlite3.sqlite_version} is too old", hint="use 3.35 or newer")
        if not path.strip():
            raise LedgerUnavailable("the path of the ledger is empty", hint="give the path of a file")
        self.path, self.wait_s = path, wait_s
        self.connections = 1 if path == MEMORY else CONNECTIONS
        if path != MEMORY and not Path(path).absolute().parent.is_dir():
            raise LedgerUnavailable(f"folder {Path(path).absolute().parent} does not exist", hint="create it first")
        if Path(path).is_dir():
            raise LedgerUnavailable(f"{path} is a folder", hint="give the path of a file")

    def is_missing(self) -> bool:
        """Whether the file does not exist or is empty."""
        return self.path == MEMORY or not Path(self.path).exists() or Path(self.path).stat().st_size == 0

    def connect(self) -> SqliteConnection:
        """Open the file, and create it if it does not exist."""
        lock_s, where = min(LOCK_STEP_S, self.wait_s), self._address()
        is_uri = where != self.path
        link = sqlite3.connect(where, timeout=lock_s, isolation_level=None, check_same_thread=False, uri=is_uri)
        connection = SqliteConnection(link, wait_s=self.wait_s)
        try:
            tables = {name for (name,) in connection.run("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if tables and "migrations" not in tables:
                raise LedgerCorrupt(f"{self.path} is a SQLite database, but not a ledger", hint="choose another file")
            # If another process sets this mode at the same time, SQLite does not wait for it; `run` retries
            connection.run("PRAGMA journal_mode = WAL")
            connection.run("PRAGMA synchronous = FULL")
            connection.run("PRAGMA foreign_keys = ON")
            connection.run("PRAGMA secure_delete = ON")
            connection.run(f"PRAGMA cache_size = -{CACHE_KIB}")
        except BaseException:
            link.close()
            raise
        return connection

    def _address(self) -> str:
        """The path; for a file on a read-only file system, a URI that opens the file for reading.

        Write-ahead mode needs two more files, which SQLite cannot create there. Without these files, SQLite opens the
        ledger only as an immutable file.
        """
        path = Path(self.path).absolute()
        if self.path == MEMORY or not hasattr(os, "statvfs") or not path.exists():
            return self.path
        if not os.statvfs(path).f_flag & os.ST_RDONLY:
            return self.path
        has_log = path.with_name(f"{path.name}-wal").exists()
        return f"{path.as_uri()}?{'mode=ro' if has_log else 'immutable=1'}"

    def prepare(self, connection: pool.Connection) -> None:
        """Do nothing: SQLite has no namespace for tables, and its write transaction already blocks other migrations."""

    def clock(self, connection: pool.Connection) -> float:  # noqa: ARG002  # required by the protocol
        """The time of this host. All processes that use the file run on this host."""
        return time.time()

    def translate_error(self, cause: Exception) -> Exception | None:
        """The foldline error for a SQLite error name."""
        if not isinstance(cause, sqlite3.Error):
            return None
        name = getattr(cause, "sqlite_errorname", "")
        where = f"{self.path}: {cause}"
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return LedgerBusy(where, hint=f"another process held the lock for more than {self.wait_s:g} s; retry")
        if name.startswith("SQLITE_FULL"):
            return LedgerUnavailable(where, hint="free disk space; committed data is not affected")
        if name.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")):
            return LedgerUnavailable(where, hint="make the file and its folder writable")
        if name.startswith(("SQLITE_CANTOPEN", "SQLITE_IOERR")):
            return LedgerUnavailable(where, hint="check the file, its folder and the disk")
        if name.startswith("SQLITE_NOTADB"):
            hint = "choose another file; if this file was a ledger, its beginning is damaged, so restore a backup"
            return LedgerCorrupt(f"{self.path} is not a ledger ({cause})", hint=hint)
        if name.startswith("SQLITE_CORRUPT"):
            return LedgerCorrupt(where, hint="restore a backup, or export the sessions that are intact")
        return LedgerError(where)

    def match_words(self, groups: list[list[int]]) -> tuple[str, list[Any]]:
        """A search query and its values.

        The query returns the ids of the rows in `words` that contain at least one term of every group.
        """
        terms = " AND ".join(f"({' OR '.join(map(str, group))})" for group in groups)
        return "SELECT rowid FROM words WHERE words MATCH ?", [terms]

    def check_integrity(self, connection: pool.Connection) -> list[str]:
        """The errors that SQLite's own check of every page finds."""
        try:
            found = [str(row[0]) for row in connection.run("PRAGMA integrity_check(20)")]
        except sqlite3.DatabaseError as error:  # too damaged for the check
            return [str(error)]
        return [] if found == ["ok"] else found


class SqliteConnection:
    """A sqlite3 connection."""

    def __init__(self, link: sqlite3.Connection, *, wait_s: float) -> None:
        self.link, self.wait_s = link, wait_s

    def run(self, sql: str, values: pool.Values = ()) -> list[pool.Values]:
        """Run one statement and return all its rows.

        A long wait for a lock is split into short waits, so that Ctrl-C can end it.
        """
        end = 0.0
        while True:
            try:
                return self.link.execute(sql, values).fetchall()
            except sqlite3.OperationalError as error:
                end = end or time.monotonic() + self.wait_s - LOCK_STEP_S
                # an error that Python's sqlite3 module raises itself has no name
                name = getattr(error, "sqlite_errorname", "")
                if not name.startswith("SQLITE_BUSY") or time.monotonic() >= end:
                    raise
                time.sleep(RETRY_S)

    def many(self, sql: str, rows: Iterable[pool.Values]) -> None:
        """Run one statement for many rows."""
        self.link.executemany(sql, rows)

    def write(self, work: Callable[[pool.Connection], T]) -> T:
        """Call `work` as the only writer, and commit when `work` returns. After the commit, the data is on disk.

        The `with` statement of a sqlite3 connection commits or rolls back in C code. No interrupt can stop this code
        halfway.
        """
        with self.link:
            self.run("BEGIN IMMEDIATE")
            return work(self)

    def begin_read(self) -> None:
        """Start a transaction that sees one snapshot. The snapshot is taken at the first statement."""
        self.link.execute("BEGIN DEFERRED")

    def reset(self) -> bool:
        """Roll back an open transaction, unless SQLite has already rolled it back."""
        self.link.rollback()
        return True

    def close(self) -> None:
        """Close the file."""
        self.link.close()
