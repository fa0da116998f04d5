"""Tables of sessions and branches: look-up by name and by id, within one tenant."""

from __future__ import annotations

from dataclasses import replace

from foldline.errors import InputError, check_type
from foldline.ledger.chains import Tenant
from foldline.ledger.connections import Connection, Values
from foldline.ledger.records import MAIN, Branch, SessionInfo

NAME_CHARS = 512

_BRANCH = (
    "SELECT b.id, s.name, b.name, b.origin, b.origin_seq FROM branches b "
    "JOIN sessions s ON s.id = b.session AND s.owner = b.owner "
)
_NEWEST = "SELECT {} FROM entries e WHERE e.owner = b.owner AND e.branch = b.id ORDER BY e.seq DESC LIMIT 1"
_INFO = f"""
SELECT s.name, s.made_at, b.name, ({_NEWEST.format("e.length")}), ({_NEWEST.format("e.at")}),
    (SELECT COALESCE(SUM(CASE e.kind WHEN 'unfold' THEN -1 ELSE 1 END), 0) FROM entries e
     WHERE e.owner = b.owner AND e.branch = b.id AND e.kind IN ('fold', 'unfold', 'refold') AND e.kind <> 'append')
FROM sessions s JOIN branches b ON b.session = s.id AND b.owner = s.owner WHERE s.owner = ? ORDER BY b.id
"""  # noqa: S608  # built from the constants above


def check_name(what: str, name: str) -> None:
    """Raise `InputError` for a name that is not a text, is too long or is not printable."""
    check_type(name, str, f"the name of {what}", hint='pass a text such as "ticket-42"')
    if len(name) > NAME_CHARS or not name.isprintable():
        hint = f"use at most {NAME_CHARS} printable characters"
        raise InputError(f"invalid name for {what}: {name!r:.80}", hint=hint)


def find(connection: Connection, owner: Tenant, session: str, name: str) -> Branch | None:
    """The branch with this name in a session; None if the session has no such branch."""
    rows = connection.run(_BRANCH + "WHERE b.owner = ? AND s.name = ? AND b.name = ?", (owner.id, session, name))
    return _branch(rows[0]) if rows else None


def branch_by_id(connection: Connection, owner: Tenant, number: int) -> Branch:
    """The branch with the id `number`."""
    return _branch(connection.run(_BRANCH + "WHERE b.owner = ? AND b.id = ?", (owner.id, number))[0])


def branches_of(connection: Connection, owner: Tenant, session: str) -> tuple[Branch, ...]:
    """The branches of a session, oldest first."""
    rows = connection.run(_BRANCH + "WHERE b.owner = ? AND s.name = ? ORDER BY b.id", (owner.id, session))
    return tuple([_branch(row) for row in rows])


def branch_of_segment(connection: Connection, owner: Tenant, segment: int) -> Branch:
    """The branch that created a segment."""
    sql = "SELECT branch FROM segments WHERE owner = ? AND id = ?"
    return branch_by_id(connection, owner, connection.run(sql, (owner.id, segment))[0][0])


def begin_session(connection: Connection, owner: Tenant, name: str, at: float) -> Branch:
    """The main branch of a session. If the session is new, the session and its main branch are inserted."""
    found = find(connection, owner, name, MAIN)
    if found is not None:
        return found
    connection.run("INSERT INTO sessions (owner, name, made_at) VALUES (?, ?, ?)", (owner.id, name, at))
    return add_branch(connection, owner, Branch(id=0, session=name), at)


def add_branch(connection: Connection, owner: Tenant, branch: Branch, at: float) -> Branch:
    """Insert a branch into a session."""
    sql = (
        "INSERT INTO branches (owner, session, name, origin, origin_seq, made_at) "
        "SELECT owner, id, ?, ?, ?, ? FROM sessions WHERE owner = ? AND name = ? RETURNING id"
    )
    values = (branch.name, branch.origin, branch.origin_seq, at, owner.id, branch.session)
    return replace(branch, id=connection.run(sql, values)[0][0])


def session_infos(connection: Connection, owner: Tenant) -> tuple[SessionInfo, ...]:
    """Every session with its counts and times, most recently used first."""
    sessions: dict[str, list[Values]] = {}
    for row in connection.run(_INFO, (owner.id,)):
        sessions.setdefault(row[0], []).append(row)
    infos = [
        SessionInfo(
            name=name,
            made_at=rows[0][1],
            last_at=max(row[4] or row[1] for row in rows),
            branches=tuple([row[2] for row in rows]),
            messages=max(row[3] or 0 for row in rows),
            folds=sum(row[5] for row in rows),
        )
        for name, rows in sessions.items()
    ]
    return tuple(sorted(infos, key=lambda info: info.last_at, reverse=True))


def _branch(row: Values) -> Branch:
    return Branch(id=row[0], session=row[1], name=row[2], origin=row[3], origin_seq=row[4])
