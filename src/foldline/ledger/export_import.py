"""Export of a ledger as lines of JSON, and import of such lines.

An export lists sessions and branches first, then the segments with their messages, then logs, jobs and events. A
segment that was forked from another segment comes after that segment. Export and import handle one line at a time. An
import checks every message against its key. A key includes the tenant, so an import for another tenant gives every
message a new key.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

from foldline.errors import InputError
from foldline.ledger import branches as branch_table
from foldline.ledger import log
from foldline.ledger.chains import KEY_AT, READ, ChainPosition, ChainWriter, EncodedMessage, position_at, reachable
from foldline.ledger.connections import Connection
from foldline.ledger.index_feed import MessageIndex, add_unindexed, catch_up
from foldline.ledger.jobs import INSERT
from foldline.ledger.log import NewEntry, Transactions
from foldline.ledger.message_keys import ROOT, link
from foldline.ledger.records import Branch, Head
from foldline.ledger.serialize import dump, pack, read_message, reading, unpack, unpack_value

FORMAT = 1
PAGE = 64
BATCH = 256


def export(tx: Transactions, sessions: Iterable[str] | None = None) -> Iterator[str]:
    """The lines of an export of the named sessions. If `sessions` is None, all sessions are exported."""

    def lines(connection: Connection) -> Iterator[str]:
        names = sessions
        if names is None:
            names = [info.name for info in branch_table.session_infos(connection, tx.owner)]
        branches = [branch for name in names for branch in branch_table.branches_of(connection, tx.owner, name)]
        yield _line({"foldline": FORMAT, "owner": tx.owner.name})
        yield from _branches(connection, tx, branches)
        yield from _segments(connection, tx, branches)
        for branch in branches:
            yield from _logs(connection, tx, branch)

    return tx.snapshot(lines)


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":")) + "\n"


def _branches(connection: Connection, tx: Transactions, branches: list[Branch]) -> Iterator[str]:
    names = {branch.id: branch.name for branch in branches}
    sql = (
        "SELECT s.made_at, b.made_at FROM branches b JOIN sessions s ON s.id = b.session AND s.owner = b.owner "
        "WHERE b.owner = ? AND b.id = ?"
    )
    for branch in branches:
        begun_at, made_at = connection.run(sql, (tx.owner.id, branch.id))[0]
        origin = None if branch.origin is None else [names[branch.origin], branch.origin_seq]
        value = {"branch": branch.name, "session": branch.session, "origin": origin}
        yield _line({**value, "begun_at": begun_at, "made_at": made_at})


def _segments(connection: Connection, tx: Transactions, branches: list[Branch]) -> Iterator[str]:
    needed = reachable(connection, tx.owner, [branch.id for branch in branches])
    inside = {branch.id for branch in branches}
    sql = "SELECT id, branch, base, start FROM segments WHERE owner = ? ORDER BY id"
    for segment, number, base, start in connection.run(sql, (tx.owner.id,)):
        if segment not in needed:
            continue
        source = branch_table.branch_by_id(connection, tx.owner, number if number in inside else branches[0].id)
        after = ROOT if base is None else connection.run(KEY_AT, (tx.owner.id, base, start - 1))[0][0]
        value = {"segment": segment, "base": base, "start": start, "after": after.hex()}
        yield _line({**value, "session": source.session, "branch": source.name})
        yield from _messages(connection, tx, segment, needed[segment])


def _messages(connection: Connection, tx: Transactions, segment: int, stop: int) -> Iterator[str]:
    first = 0
    while rows := connection.run(READ, (tx.owner.id, segment, first, stop, PAGE)):
        for position, key, at, body, meta in rows:
            with reading(f"message {position} of segment {segment}"):
                value = {"message": json.loads(unpack(body)), "meta": meta and json.loads(meta), "at": at}
            yield _line({**value, "key": key.hex()})
        first = rows[-1][0] + 1


_LOG = (
    "SELECT seq, kind, segment, length, at, op, body FROM entries "
    "WHERE owner = ? AND branch = ? AND seq > ? ORDER BY seq"
)
_JOBS = (
    "SELECT name, seq, kind, fence, holder, until_at, deadline_at, failures, at, body FROM jobs "
    "WHERE owner = ? AND branch = ? AND seq > ? ORDER BY seq, name"
)
_EVENTS = "SELECT id, kind, at, body FROM events WHERE owner = ? AND branch = ? AND id > ? ORDER BY id"


def _logs(connection: Connection, tx: Transactions, branch: Branch) -> Iterator[str]:
    yield _line({"log": branch.name, "session": branch.session})
    last = 0
    while rows := connection.run(f"{_LOG} LIMIT {PAGE}", (tx.owner.id, branch.id, last)):
        for seq, kind, segment, length, at, op, body in rows:
            place = None if segment is None else [segment, length]
            yield _line({"entry": kind, "at": at, "to": place, "op": op, "body": _body(body)})
            last = seq
    for name, seq, *rest, body in connection.run(_JOBS, (tx.owner.id, branch.id, 0)):
        yield _line({"job": name, "row": [seq, *rest], "body": _body(body)})
    last = 0
    while rows := connection.run(f"{_EVENTS} LIMIT {PAGE}", (tx.owner.id, branch.id, last)):
        for number, kind, at, body in rows:
            yield _line({"event": kind, "at": at, "body": _body(body)})
            last = number


def _body(stored: bytes | None) -> Any:
    return unpack_value(stored, "a row of a log")


def load(tx: Transactions, lines: Iterable[str], index: MessageIndex | None = None) -> int:
    """Import exported lines and return the number of new messages. If an error occurs, nothing is imported.

    Other writers must wait until the transaction ends. Indexing takes most of the time, so the messages are indexed
    after the transaction.
    """

    def work(connection: Connection) -> int:
        reader = ImportReader(connection, tx)
        for number, line in enumerate(lines, 1):
            try:
                reader.read(json.loads(line))
            except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
                raise InputError(f"line {number} is malformed ({error})", hint="nothing was imported") from None
            except InputError as error:
                raise InputError(f"line {number}: {error.message}", hint=error.hint or "nothing was imported") from None
        reader.flush()
        return reader.written

    tx.add_owner()
    written = tx.pool.write(work)
    if index is not None:
        catch_up(tx, index)
    return written


class ImportReader:
    """Reads the lines of an export in order."""

    def __init__(self, connection: Connection, tx: Transactions) -> None:
        self.connection, self.tx = connection, tx
        self.owner: str | None = None
        self.branches: dict[tuple[str, str], Branch] = {}
        self.segments: dict[int, list[tuple[int, int]]] = {}
        """Maps the number of an exported segment to its parts.

        For each part: the start position, and the segment in this ledger that stores the part.
        """
        self.number, self.branch, self.place = 0, Branch(id=0, session=""), ChainPosition()
        self.before = ROOT
        """The key of the previous message in the export."""
        self.encoded: list[EncodedMessage] = []
        self.head = Head()
        self.written = 0

    def read(self, value: dict[str, Any]) -> None:
        """Read one line."""
        if self.owner is None:
            if value.get("foldline") != FORMAT:
                raise InputError("not an export of a ledger", hint=f'its first line must have "foldline": {FORMAT}')
            self.owner = str(value["owner"])
        elif "message" in value:
            self._message(value)
        else:
            self.flush()
            step = next((step for name, step in self._readers.items() if name in value), None)
            if step is None:
                raise InputError("unknown kind of line")
            step(self, value)

    def _message(self, value: dict[str, Any]) -> None:
        body = dump(value["message"])
        meta = None if value["meta"] is None else dump(value["meta"])
        message = read_message(body, meta)
        self.before = link(self.owner or "", self.before, body)
        if self.before.hex() != value["key"]:
            raise InputError("the message does not match its key")
        self.encoded.append(EncodedMessage(message, body, pack(body), meta, float(value["at"])))
        if len(self.encoded) >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Write the messages read so far."""
        if not self.encoded:
            return
        writer = ChainWriter(self.connection, self.tx.owner, 0.0)
        first = self.place.length
        self.place = writer.put(self.branch.id, self.place, self.encoded)
        self.encoded = []
        add_unindexed(self.tx, None, self.connection, writer.inserted)
        self.written += len(writer.inserted)
        parts = self.segments[self.number]
        for position, segment in enumerate(writer.segments, first):
            if not parts or parts[-1][1] != segment:
                parts.append((position, segment))

    def _position(self, segment: int, length: int) -> ChainPosition:
        """The position in this ledger that corresponds to the exported position (`segment`, `length`)."""
        parts = self.segments[segment]
        actual = parts[bisect_right(parts, length - 1, key=lambda part: part[0]) - 1][1]
        rows = self.connection.run(KEY_AT, (self.tx.owner.id, actual, length - 1))
        return ChainPosition(actual, length, rows[0][0])

    def _segment(self, value: dict[str, Any]) -> None:
        self.number = value["segment"] if "segment" in value else value["strand"]
        self.branch = self.branches[value["session"], value["branch"]]
        base, start = value["base"], value["start"]
        self.place = ChainPosition() if base is None else self._position(base, start)
        self.segments[self.number], self.before = [], bytes.fromhex(value["after"])

    def _branch(self, value: dict[str, Any]) -> None:
        session, name, origin = value["session"], value["branch"], value["origin"]
        branch_table.check_name("a session", session)
        branch_table.check_name("a branch", name)
        if branch_table.find(self.connection, self.tx.owner, session, name) is not None:
            raise InputError(
                f"session {session!r} already exists", hint="import it under another owner, or into another ledger"
            )
        if origin is None:
            branch = branch_table.begin_session(self.connection, self.tx.owner, session, value["begun_at"])
        else:
            source = self.branches[session, origin[0]]
            plan = Branch(id=0, session=session, name=name, origin=source.id, origin_seq=origin[1])
            branch = branch_table.add_branch(self.connection, self.tx.owner, plan, value["made_at"])
        self.branches[session, name] = branch

    def _log(self, value: dict[str, Any]) -> None:
        self.branch = self.branches[value["session"], value["log"]]
        self.head = Head(log=log.root_key(self.tx.owner, self.branch))

    def _entry(self, value: dict[str, Any]) -> None:
        to = ChainPosition() if value["to"] is None else self._position(*value["to"])
        body = value["body"]
        if value["entry"] == "fold":
            prefix = position_at(self.connection, self.tx.owner, to, body["fold"]["cut"])
            body = {**body, "prefix": prefix.key.hex()}
        line = NewEntry(value["entry"], to, value["op"], body, value["at"])
        self.head = self.tx.add_entry(self.connection, self.branch, self.head, line)

    def _job(self, value: dict[str, Any]) -> None:
        body = None if value["body"] is None else dump(value["body"])
        self.connection.run(INSERT, (self.tx.owner.id, self.branch.id, value["job"], *value["row"], body))

    def _event(self, value: dict[str, Any]) -> None:
        sql = "INSERT INTO events (owner, branch, kind, at, body) VALUES (?, ?, ?, ?, ?)"
        body = None if value["body"] is None else pack(dump(value["body"]))
        self.connection.run(sql, (self.tx.owner.id, self.branch.id, value["event"], value["at"], body))

    _readers = {  # noqa: RUF012  # maps a field to the reader of the lines that have this field
        "segment": _segment,
        "strand": _segment,  # the name in exports of foldline 0.1
        "log": _log,
        "entry": _entry,
        "job": _job,
        "event": _event,
        "branch": _branch,
    }
