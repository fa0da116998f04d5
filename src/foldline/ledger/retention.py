"""Deletion of sessions that were not used since a given time. Nothing else deletes messages from the ledger.

Messages that are also in another session are kept. SQLite overwrites the deleted rows, so that their content is gone.
"""

from __future__ import annotations

from contextlib import suppress

from foldline.ledger import branches as branch_table
from foldline.ledger.chains import reachable
from foldline.ledger.connections import Connection
from foldline.ledger.index_feed import MessageIndex, drop_unindexed
from foldline.ledger.log import Transactions

PAGE = 500


def prune(tx: Transactions, older_than: float, index: MessageIndex | None = None) -> tuple[str, ...]:
    """Delete the sessions whose newest entry is older than the time `older_than`, and return their names."""

    def work(connection: Connection) -> tuple[str, ...]:
        if tx.pool.database.lock_writers:
            connection.run(tx.pool.database.lock_writers)
        infos = branch_table.session_infos(connection, tx.owner)
        old = tuple([info.name for info in infos if info.last_at < older_than])
        for name in old:
            _session(connection, tx, name)
        rows = connection.run("SELECT id FROM branches WHERE owner = ?", (tx.owner.id,))
        _segments(connection, tx, reachable(connection, tx.owner, [number for (number,) in rows]), index)
        connection.run("DELETE FROM events WHERE owner = ? AND at < ?", (tx.owner.id, older_than))
        return old

    found = tx.write(work)
    for statement in tx.pool.database.reclaim_space:
        with suppress(Exception):  # best effort: another connection may hold a lock
            tx.pool.read(lambda connection, statement=statement: connection.run(statement))  # type: ignore[misc]
    return found


def _session(connection: Connection, tx: Transactions, name: str) -> None:
    owner = tx.owner.id
    for branch in branch_table.branches_of(connection, tx.owner, name):
        for table in ("entries", "jobs", "events"):
            sql = f"DELETE FROM {table} WHERE owner = ? AND branch = ?"  # noqa: S608  # table names from the line above
            connection.run(sql, (owner, branch.id))
        connection.run("DELETE FROM branches WHERE owner = ? AND id = ?", (owner, branch.id))
    connection.run("DELETE FROM sessions WHERE owner = ? AND name = ?", (owner, name))


def _segments(connection: Connection, tx: Transactions, needed: dict[int, int], index: MessageIndex | None) -> None:
    """Delete the messages that no branch uses any more.

    If the branch of a segment was deleted, assign the segment to another branch.
    """
    owner = tx.owner.id
    new_branches: dict[int, int] = {}
    rows = connection.run("SELECT id, branch, base FROM segments WHERE owner = ? ORDER BY id DESC", (owner,))
    for segment, branch, base in rows:  # forks have higher ids, so they come first
        stop = needed.get(segment, 0)
        _messages(connection, tx, segment, stop, index)
        if not stop:
            connection.run("DELETE FROM segments WHERE owner = ? AND id = ?", (owner, segment))
            continue
        if not connection.run("SELECT 1 FROM branches WHERE owner = ? AND id = ?", (owner, branch)):
            user = connection.run("SELECT MIN(branch) FROM entries WHERE owner = ? AND segment = ?", (owner, segment))
            branch = new_branches[segment] if user[0][0] is None else user[0][0]  # noqa: PLW2901  # the new branch
            connection.run("UPDATE segments SET branch = ? WHERE owner = ? AND id = ?", (branch, owner, segment))
        if base is not None:
            new_branches[base] = branch


def _messages(connection: Connection, tx: Transactions, segment: int, stop: int, index: MessageIndex | None) -> None:
    sql = "SELECT id, position FROM messages WHERE owner = ? AND segment = ? AND position >= ? ORDER BY 2 LIMIT ?"
    first = stop
    while index is not None and (rows := connection.run(sql, (tx.owner.id, segment, first, PAGE))):
        index.drop(tx, connection, [row[0] for row in rows])
        first = rows[-1][1] + 1
    drop_unindexed(connection, tx.owner.id, segment, stop)
    for table in ("messages", "remarks"):
        sql = f"DELETE FROM {table} WHERE owner = ? AND segment = ? AND position >= ?"  # noqa: S608  # table names from the line above
        connection.run(sql, (tx.owner.id, segment, stop))
