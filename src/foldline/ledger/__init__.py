"""The permanent record of all messages: in one SQLite file, on a PostgreSQL server, or in memory.

from foldline import ledger

store = ledger.open("agent.db")     # or "postgresql://…", or ":memory:"
main = store.session("ticket-42")
store.append(main, [user("Why does the build fail?")])
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike, fspath
from pathlib import Path

from foldline.errors import InputError, check_type
from foldline.ledger import branches as branch_table
from foldline.ledger import schema
from foldline.ledger.address import SERVER_SCHEMES, check_address
from foldline.ledger.connections import Connection, ConnectionPool, Database
from foldline.ledger.group_commit import GroupCommit
from foldline.ledger.index_feed import MessageIndex
from foldline.ledger.message_keys import ROOT
from foldline.ledger.records import MAIN, Branch, Head
from foldline.ledger.store import Store

__all__ = ["MAIN", "ROOT", "Branch", "Head", "MessageIndex", "Store", "for_owner", "open", "owners", "schema_version"]


def open(  # noqa: A001, PLR0913  # called as ledger.open; all but one are keyword arguments
    url: str | PathLike[str],
    *,
    owner: str = "",
    clock: Callable[[], float] | None = None,
    index: MessageIndex | None = None,
    wait_s: float = 10.0,
    groups_commits: bool = False,
) -> Store:
    """Open the ledger of one tenant, and create it if it does not exist.

    `url` is a path, "postgresql://…" or ":memory:"; `owner` is the tenant id. With `groups_commits`, transactions that
    several threads of this process write to a SQLite file at the same time are committed together. Committing them
    together is faster, but no other thread and no signal handler may raise an exception in a thread that writes.
    """
    branch_table.check_name("an owner", owner)
    check_type(url, (str, PathLike), "a ledger", hint='pass a path, "postgresql://…" or ":memory:"')
    pool = ConnectionPool(_database(fspath(url), wait_s))
    try:
        _upgrade(pool)
        if groups_commits and not pool.database.lock_writers:
            pool.group_commit = GroupCommit(pool.write)
        return Store(pool, owner, clock=clock, index=index)
    except BaseException:
        pool.close()
        raise


def schema_version(url: str | PathLike[str], *, wait_s: float = 10.0) -> int:
    """The schema version of the ledger at `url`; 0 if there is no ledger. Creates and changes nothing."""
    database = _database(fspath(url), wait_s)
    if database.is_missing():
        return 0
    pool = ConnectionPool(database)
    try:
        return _applied_version(pool)
    finally:
        pool.close()


def for_owner(store: Store, owner: str) -> Store:
    """A store of the same ledger for another tenant. `owner` is the tenant id."""
    branch_table.check_name("an owner", owner)
    return Store(store.tx.pool, owner, clock=store.tx.clock, index=store.index)


def owners(store: Store) -> tuple[str, ...]:
    """The ids of all tenants, for administration."""
    rows = store.tx.pool.read(lambda connection: connection.run("SELECT name FROM owners ORDER BY name"))
    return tuple([name for (name,) in rows])


def _database(url: str, wait_s: float) -> Database:
    if "\0" in url:
        raise InputError(
            f"invalid ledger address {url.rpartition('@')[2]!r:.60}", hint='use a path, "postgresql://…" or ":memory:"'
        )
    check_address(url)
    if url.startswith(SERVER_SCHEMES):
        from foldline.ledger.databases.postgres import Postgres  # noqa: PLC0415  # an extra

        return Postgres(url, wait_s=wait_s)
    from foldline.ledger.databases.sqlite import MEMORY, Sqlite  # noqa: PLC0415  # loaded only for SQLite

    return Sqlite(str(Path(url).expanduser()) if url not in (MEMORY, "") else url, wait_s=wait_s)


def _applied_version(pool: ConnectionPool) -> int:
    """The number of the newest applied migration; 0 if there are no tables."""

    def work(connection: Connection) -> int:
        return schema.version(connection) if connection.run(pool.database.ledger_exists) else 0

    return pool.read(work)


def _upgrade(pool: ConnectionPool) -> None:
    """Apply the missing migrations, one per transaction.

    Raises `LedgerTooNew` if a newer version of foldline wrote the schema. If the schema is current, no write lock is
    taken. So a reader can open a ledger while another process writes to it.
    """
    if _applied_version(pool) == len(schema.MIGRATIONS):
        return
    database = pool.database

    def migrate_one(connection: Connection) -> bool:
        database.prepare(connection)
        connection.run(schema.RECORD)
        if not schema.pending(connection):
            return False
        schema.migrate(connection, database.schema_sql, database.clock(connection))
        return True

    while pool.write(migrate_one):
        pass
