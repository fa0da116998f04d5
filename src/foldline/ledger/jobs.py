"""Work that must run once, whoever starts it: a log of claims for every branch and job name.

The newest row is the whole state: who holds the job and until when, or when it may be tried again, and how often it
failed in a row. A claim, a heartbeat and an end are each the next row, whose number is unique in the database, so two
processes cannot both hold a job. A claim has a number of its own, the fence: what a holder commits is refused once
somebody else has taken over. A holder that died is followed by the next one when its lease has run out, and that
counts as a failure. No heartbeat carries a lease past the deadline. A job may also be asked for, so that whoever looks
for work finds it: that is a row too, and a job whose holder died is found again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from foldline.errors import Conflict
from foldline.ledger.connections import Connection
from foldline.ledger.log import Transactions, new_operation_id
from foldline.ledger.records import Branch
from foldline.ledger.serialize import dump

FOLD = "fold"
HELD_KINDS = ("claim", "beat")
REQUESTED = "wanted"
REQUEST_EXPIRY_S = 86_400.0
"""What was asked for longer ago than this is forgotten, unless it is asked for again."""


class Claim(NamedTuple):
    """The right to do a job, for as long as nobody has a later one."""

    branch: Branch
    name: str
    fence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """What the newest row says."""

    seq: int = 0
    kind: str = ""
    """`wanted`, `claim`, `beat`, `done`, `failed`, `cancelled`; nothing when it was never asked for."""
    fence: int = 0
    holder: str = ""
    until_at: float = 0.0
    """When the next one may claim it: the end of the lease, or of the rest after a failure."""
    deadline_at: float = 0.0
    """No heartbeat leads past this."""
    failures: int = 0
    """How often in a row it failed."""
    at: float = 0.0
    body: Any = None
    """The result, or the cause of the failure."""

    @property
    def is_held(self) -> bool:
        """Whether somebody has it (look at `until_at` for how long)."""
        return self.kind in HELD_KINDS


class JobRequest(NamedTuple):
    """A job that waits for somebody: nobody holds it, or no longer."""

    owner: str
    session: str
    branch: str
    name: str


_SQL = (
    "SELECT seq, kind, fence, holder, until_at, deadline_at, failures, at, body FROM jobs "
    "WHERE owner = ? AND branch = ? AND name = ? ORDER BY seq DESC LIMIT 1"
)


class Jobs:
    """The jobs of one owner."""

    def __init__(self, tx: Transactions) -> None:
        self.tx = tx

    def get(self, branch: Branch, name: str = FOLD) -> JobState:
        """The state of a job."""
        return self.tx.read(lambda connection: self._newest(connection, branch, name))

    def claim(  # noqa: PLR0913  # all but two are keywords
        self,
        branch: Branch,
        name: str = FOLD,
        *,
        lease_s: float,
        deadline_s: float,
        holder: str = "",
        take_over: bool = False,
    ) -> Claim | None:
        """Claim a job; None while another holder has it, or until its back-off ends.

        `take_over` replaces a claim of the same holder: a queue that delivers a job again gave it up before.
        """
        op = new_operation_id()

        def work(connection: Connection) -> Claim | None:
            self.tx.lock(connection, branch)
            last, now = self._newest(connection, branch, name), self.tx.now(connection)
            if last.body == op:
                return Claim(branch, name, last.fence)  # the answer was lost, not the work
            if last.until_at > now and not (take_over and last.is_held and last.holder == holder):
                return None
            deadline = now + deadline_s
            row = JobState(
                seq=last.seq,
                kind="claim",
                fence=last.fence + 1,
                holder=holder,
                until_at=min(now + lease_s, deadline),
                deadline_at=deadline,
                failures=last.failures + (last.kind in HELD_KINDS),
                body=op,
            )
            self._write(connection, branch, name, row)
            return Claim(branch, name, row.fence)

        return self.tx.write(work)

    def request(self, branch: Branch, name: str = FOLD) -> bool:
        """Ask for a job to be done by whoever looks for work; False when that was done already, or somebody has it."""
        if not self.tx.read(lambda connection: self._open(connection, branch, name)):
            return False

        def work(connection: Connection) -> bool:
            self.tx.lock(connection, branch)
            if not self._open(connection, branch, name):
                return False
            last = self._newest(connection, branch, name)
            row = replace(last, kind=REQUESTED, failures=last.failures + (last.kind in HELD_KINDS), body=None)
            self._write(connection, branch, name, row)
            return True

        return self.tx.write(work)

    def _open(self, connection: Connection, branch: Branch, name: str) -> bool:
        """Whether asking for a job would change anything."""
        last, now = self._newest(connection, branch, name), self.tx.now(connection)
        if last.kind == REQUESTED:
            return last.at <= now - REQUEST_EXPIRY_S / 2
        return last.kind not in HELD_KINDS or last.until_at <= now

    def pending(self, *, all_owners: bool = False) -> list[JobRequest]:
        """The jobs that wait, the oldest first: those of this owner, or of all."""
        sql = (
            "SELECT o.name, s.name, b.name, w.name FROM jobs w "
            "JOIN branches b ON b.owner = w.owner AND b.id = w.branch "
            "JOIN sessions s ON s.owner = w.owner AND s.id = b.session JOIN owners o ON o.id = w.owner "
            "WHERE w.kind = 'wanted' AND w.at > ? AND w.until_at <= ? AND (w.owner = ? OR ?) AND NOT EXISTS ("
            "SELECT 1 FROM jobs e WHERE e.owner = w.owner AND e.branch = w.branch AND e.name = w.name "
            "AND e.seq > w.seq AND (e.kind NOT IN ('claim', 'beat') OR e.until_at > ?)) ORDER BY w.at"
        )

        def work(connection: Connection) -> list[JobRequest]:
            now = self.tx.now(connection)
            rows = connection.run(sql, (now - REQUEST_EXPIRY_S, now, self.tx.owner.id, all_owners, now))
            return [JobRequest(*row) for row in rows]

        return self.tx.read(work)

    def renew(self, claim: Claim, *, lease_s: float) -> None:
        """Keep a job for longer, at most until its deadline. `Conflict` when it is somebody else's by now."""

        def work(connection: Connection) -> None:
            last = self.check_claim(connection, claim)
            until = min(self.tx.now(connection) + lease_s, last.deadline_at)
            self._write(connection, claim.branch, claim.name, replace(last, kind="beat", until_at=until, body=None))

        self.tx.write(work)

    def check(self, claim: Claim) -> None:
        """Raise `Conflict` if the claim is no longer held."""
        _require(claim, self.get(claim.branch, claim.name))

    def fail(self, claim: Claim, cause: str, *, rest_s: float = 0.0) -> None:
        """Give a job back without a result; it may be claimed again after a rest. Twice is once."""

        def work(connection: Connection) -> None:
            self.tx.lock(connection, claim.branch)
            last = self._newest(connection, claim.branch, claim.name)
            if (last.fence, last.kind) == (claim.fence, "failed"):
                return
            last = self.check_claim(connection, claim)
            until, failures = self.tx.now(connection) + rest_s, last.failures + 1
            row = replace(last, kind="failed", until_at=until, failures=failures, body=cause)
            self._write(connection, claim.branch, claim.name, row)

        self.tx.write(work)

    def finish(self, claim: Claim, result: Any = None) -> None:
        """End a job that leaves nothing in the log of its branch. Twice is once."""

        def work(connection: Connection) -> None:
            self.tx.lock(connection, claim.branch)
            last = self._newest(connection, claim.branch, claim.name)
            if (last.fence, last.kind) != (claim.fence, "done"):
                self.complete(connection, claim, result)

        self.tx.write(work)

    def cancel(self, branch: Branch, name: str = FOLD) -> bool:
        """Take a job from whoever holds it; what they still bring is refused."""

        def work(connection: Connection) -> bool:
            self.tx.lock(connection, branch)
            last = self._newest(connection, branch, name)
            if last.kind not in HELD_KINDS:
                return False
            row = replace(last, kind="cancelled", until_at=self.tx.now(connection), body=None)
            self._write(connection, branch, name, row)
            return True

        return self.tx.write(work)

    def check_claim(self, connection: Connection, claim: Claim) -> JobState:
        """The newest row, if the claim still holds: the fencing check. The branch is held until the end."""
        self.tx.lock(connection, claim.branch)
        return _require(claim, self._newest(connection, claim.branch, claim.name))

    def complete(self, connection: Connection, claim: Claim, result: Any = None) -> None:
        """End a job in a transaction of the caller's: with it, or not at all."""
        last = self.check_claim(connection, claim)
        row = replace(last, kind="done", until_at=self.tx.now(connection), failures=0, body=result)
        self._write(connection, claim.branch, claim.name, row)

    def _newest(self, connection: Connection, branch: Branch, name: str) -> JobState:
        rows = connection.run(_SQL, (self.tx.owner.id, branch.id, name))
        if not rows:
            return JobState()
        seq, kind, fence, holder, until, deadline, failures, at, body = rows[0]
        return JobState(
            seq=seq,
            kind=kind,
            fence=fence,
            holder=holder,
            until_at=until,
            deadline_at=deadline,
            failures=failures,
            at=at,
            body=None if body is None else json.loads(body),
        )

    def _write(self, connection: Connection, branch: Branch, name: str, row: JobState) -> None:
        """Write what comes after the row that `row` was made of."""
        sql = (
            "INSERT INTO jobs "
            "(owner, branch, name, seq, kind, fence, holder, until_at, deadline_at, failures, at, body) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        )
        where = (self.tx.owner.id, branch.id, name, row.seq + 1, row.kind, row.fence, row.holder)
        said = None if row.body is None else dump(row.body)
        now = self.tx.now(connection)
        connection.run(sql, (*where, row.until_at, row.deadline_at, row.failures, now, said))


def _require(claim: Claim, last: JobState) -> JobState:
    """The newest row of a job, if the claim is still held."""
    if last.fence != claim.fence or not last.is_held:
        raise Conflict("the job is no longer held", hint="it took too long or was cancelled; its result is dropped")
    return last
