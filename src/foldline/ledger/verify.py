"""Integrity check: computes every key again and compares it with the stored key.

A changed, missing or damaged row is reported with its position, and the check goes on. Nothing is repaired.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from foldline.errors import FoldlineError
from foldline.ledger import branches as branch_table
from foldline.ledger import log
from foldline.ledger.chains import ChainPosition, Tenant, position_at
from foldline.ledger.connections import Connection, Values
from foldline.ledger.log import Transactions
from foldline.ledger.message_keys import ROOT, link, trace
from foldline.ledger.records import Branch, Head, IntegrityFault
from foldline.ledger.serialize import DAMAGED, fold_of, read_message, unpack

PAGE = 256


def verify(tx: Transactions) -> Iterator[IntegrityFault]:
    """Yield every fault, with its position."""

    def faults(connection: Connection) -> Iterator[IntegrityFault]:
        for where, found in _parts(connection, tx):
            try:
                yield from found
            except Exception as cause:
                error = tx.pool.database.translate_error(cause)
                if not isinstance(error, FoldlineError):
                    raise
                yield IntegrityFault(where=where, what=error.message)

    return tx.snapshot(faults)


def _parts(connection: Connection, tx: Transactions) -> Iterator[tuple[str, Iterator[IntegrityFault]]]:
    """The parts of the ledger to check, each with its name.

    If a part cannot be read, the check goes on with the next part.
    """
    owner = tx.owner
    yield "file", (IntegrityFault(where="file", what=what) for what in tx.pool.database.check_integrity(connection))
    rows = connection.run("SELECT id, base, start FROM segments WHERE owner = ? ORDER BY id", (owner.id,))
    for segment, base, start in rows:
        yield f"segment {segment}", _segment(connection, owner, segment, base, start)
    yield "segments", _strays(connection, owner)
    for (number,) in connection.run("SELECT id FROM branches WHERE owner = ? ORDER BY id", (owner.id,)):
        branch = branch_table.branch_by_id(connection, owner, number)
        yield f"branch {branch.name!r} of session {branch.session!r}", _log(connection, owner, branch)
        yield f"jobs of session {branch.session!r}", _jobs(connection, owner, branch)


def _segment(
    connection: Connection, owner: Tenant, segment: int, base: int | None, start: int
) -> Iterator[IntegrityFault]:
    """Check that every message of a segment exists, can be read, and matches its key and trace."""
    key, trace_ = ROOT, ROOT
    if base is not None:
        sql = "SELECT key, trace FROM messages WHERE owner = ? AND segment = ? AND position = ?"
        before = connection.run(sql, (owner.id, base, start - 1))
        if not before:
            what = f"the message before its first message (message {start - 1}) is missing"
            yield IntegrityFault(where=f"segment {segment}", what=what)
            return
        key, trace_ = before[0]
    position = start
    for row in _messages(connection, owner, segment):
        where = f"message {row[0]} of segment {segment}"
        if row[0] != position:
            yield IntegrityFault(where=where, what=f"the previous message (message {position}) is missing")
        position = row[0] + 1
        try:
            body = unpack(row[3])
            expected = link(owner.name, key, body)
            trace_ = trace(owner.name, trace_, read_message(body, row[4]))
        except DAMAGED as error:
            yield IntegrityFault(where=where, what=f"cannot be read ({error})")
            expected, trace_ = row[1], row[2]
        if expected != row[1]:
            yield IntegrityFault(where=where, what="its content does not match its key")
        if trace_ != row[2]:
            yield IntegrityFault(where=where, what="its trace does not match its content")
        key, trace_ = row[1], row[2]


def _messages(connection: Connection, owner: Tenant, segment: int) -> Iterator[Values]:
    sql = (
        "SELECT position, key, trace, body, meta FROM messages "
        "WHERE owner = ? AND segment = ? AND position > ? ORDER BY position LIMIT ?"
    )
    last = -1
    while rows := connection.run(sql, (owner.id, segment, last, PAGE)):
        yield from rows
        last = rows[-1][0]


def _strays(connection: Connection, owner: Tenant) -> Iterator[IntegrityFault]:
    sql = (
        "SELECT m.segment, COUNT(*) FROM messages m LEFT JOIN segments s ON s.owner = m.owner AND s.id = m.segment "
        "WHERE m.owner = ? AND s.id IS NULL GROUP BY m.segment"
    )
    for segment, count in connection.run(sql, (owner.id,)):
        yield IntegrityFault(where=f"segment {segment}", what=f"is missing, but has {count} messages")


def _log(connection: Connection, owner: Tenant, branch: Branch) -> Iterator[IntegrityFault]:
    """Check that every entry of a log exists, matches its key, and points to a stored message."""
    sql = (
        "SELECT e.seq, e.kind, e.length, e.tip, e.at, e.op, e.body, e.key, e.mark, e.segment, e.cut, m.key "
        "FROM entries e "
        "LEFT JOIN messages m ON m.owner = e.owner AND m.segment = e.segment AND m.position = e.length - 1 "
        "WHERE e.owner = ? AND e.branch = ? AND e.seq > ? ORDER BY e.seq LIMIT ?"
    )
    before = Head(log=log.root_key(owner, branch))
    while rows := connection.run(sql, (owner.id, branch.id, before.seq, PAGE)):
        for row in rows:
            where = f"entry {row[0]} ({row[1]}) of branch {branch.name!r} of session {branch.session!r}"
            for what in _entry(connection, owner, before, row):
                yield IntegrityFault(where=where, what=what)
            before = Head(seq=row[0], mark=row[8], length=row[2], key=row[3], at=row[4], segment=row[9], log=row[7])


def _entry(connection: Connection, owner: Tenant, before: Head, row: Values) -> Iterator[str]:
    seq, kind, length, tip, _, _, stored, key, mark, segment, cut, found = row
    if seq != before.seq + 1:
        yield f"the previous entry (entry {before.seq + 1}) is missing"
    if mark != (before.mark if kind == log.APPEND else seq):
        yield "its mark does not match the previous entry"
    if (found or ROOT) != tip or (segment is None) != (length == 0):
        yield "the message it points to is missing"
    try:
        body = None if stored is None else unpack(stored)
        if log.entry_key(owner, before.log, row[:6], body) != key:
            yield "its content does not match its key"
        if kind == log.FOLD:
            value = json.loads(body or b"")
            if fold_of(value["fold"]).cut != cut:
                yield "its cut does not match its content"
            if position_at(connection, owner, ChainPosition(segment, length, tip), cut).key.hex() != value["prefix"]:
                yield "the messages it folds were changed"
    except DAMAGED as error:
        yield f"cannot be read ({error})"


def _jobs(connection: Connection, owner: Tenant, branch: Branch) -> Iterator[IntegrityFault]:
    sql = "SELECT name, COUNT(*), MAX(seq), MIN(seq) FROM jobs WHERE owner = ? AND branch = ? GROUP BY name"
    for name, count, newest, oldest in connection.run(sql, (owner.id, branch.id)):
        if count != newest - oldest + 1:
            where = f"job {name!r} of branch {branch.name!r} of session {branch.session!r}"
            yield IntegrityFault(where=where, what="rows are missing")
