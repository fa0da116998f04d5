"""Claims on background jobs, so that a job's result is committed once.

A job has a name and belongs to a branch. Every change is a new row with the next number; the number is unique in the
database, so two processes cannot both claim a job. The newest row is the job's state. Each claim has a higher fence
number than the one before, and a commit with an older fence is refused. When a lease runs out, the next worker may
claim the job, which counts as a failure of the one before. A renewal never extends a lease past the deadline.

On SQLite a job can also be requested with a row, which worker processes look for.
"""

from __future__ import annotations

import json
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
"""Seconds after which a request that no worker took expires."""


class Claim(NamedTuple):
    """The right to run a job; invalid once there is a claim with a higher fence."""

    branch: Branch
    name: str
    fence: int


class JobState(NamedTuple):
    """State of a job: its newest row."""

    seq: int = 0
    kind: str = ""
    """`wanted` (requested), `claim`, `beat` (renewed), `done`, `failed`, `cancelled`; empty if there is no row."""
    fence: int = 0
    holder: str = ""
    until_at: float = 0.0
    """When it can be claimed: the end of the lease, or of the back-off after a failure."""
    deadline_at: float = 0.0
    """A lease is not renewed past this time."""
    failures: int = 0
    """Failures in a row."""
    at: float = 0.0
    body: Any = None
    """The result of the job, or the cause of its failure."""

    @property
    def is_held(self) -> bool:
        """Whether the newest row is a claim; `until_at` says until when it is valid."""
        return self.kind in HELD_KINDS


class JobRequest(NamedTuple):
    """A job that is requested or queued."""

    owner: str
    session: str
    branch: str
    name: str


_SQL = (
    "SELECT seq, kind, fence, holder, until_at, deadline_at, failures, at, body FROM jobs "
    "WHERE owner = ? AND branch = ? AND name = ? ORDER BY seq DESC LIMIT 1"
)
INSERT = (
    "INSERT INTO jobs (owner, branch, name, seq, kind, fence, holder, until_at, deadline_at, failures, at, body) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class Jobs:
    """The jobs of one tenant."""

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
                return Claim(branch, name, last.fence)  # an earlier attempt was committed, but its answer was lost
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
        """Request a job from worker processes; False if it is requested or held already."""
        if not self.tx.read(lambda connection: self._is_requestable(connection, branch, name)):
            return False

        def work(connection: Connection) -> bool:
            self.tx.lock(connection, branch)
            if not self._is_requestable(connection, branch, name):
                return False
            last = self._newest(connection, branch, name)
            row = last._replace(kind=REQUESTED, failures=last.failures + (last.kind in HELD_KINDS), body=None)
            self._write(connection, branch, name, row)
            return True

        return self.tx.write(work)

    def _is_requestable(self, connection: Connection, branch: Branch, name: str) -> bool:
        """Whether a request would change the state."""
        last, now = self._newest(connection, branch, name), self.tx.now(connection)
        if last.kind == REQUESTED:
            return last.at <= now - REQUEST_EXPIRY_S / 2
        return last.kind not in HELD_KINDS or last.until_at <= now

    def pending(self, *, all_owners: bool = False) -> list[JobRequest]:
        """The requested jobs that no worker holds, oldest first, of this tenant or of all."""
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
        """Extend a lease, at most until the deadline. Raises `Conflict` if the claim was lost."""

        def work(connection: Connection) -> None:
            last = self.check_claim(connection, claim)
            until = min(self.tx.now(connection) + lease_s, last.deadline_at)
            self._write(connection, claim.branch, claim.name, last._replace(kind="beat", until_at=until, body=None))

        self.tx.write(work)

    def check(self, claim: Claim) -> None:
        """Raise `Conflict` if the claim is no longer held."""
        _require(claim, self.get(claim.branch, claim.name))

    def fail(self, claim: Claim, cause: str, *, rest_s: float = 0.0) -> None:
        """Release a job that failed; it can be claimed again after `rest_s` seconds. Idempotent."""

        def work(connection: Connection) -> None:
            self.tx.lock(connection, claim.branch)
            last = self._newest(connection, claim.branch, claim.name)
            if (last.fence, last.kind) == (claim.fence, "failed"):
                return
            last = self.check_claim(connection, claim)
            until, failures = self.tx.now(connection) + rest_s, last.failures + 1
            row = last._replace(kind="failed", until_at=until, failures=failures, body=cause)
            self._write(connection, claim.branch, claim.name, row)

        self.tx.write(work)

    def finish(self, claim: Claim, result: Any = None) -> None:
        """Mark a job as done if it adds nothing to the log of its branch. Idempotent."""

        def work(connection: Connection) -> None:
            self.tx.lock(connection, claim.branch)
            last = self._newest(connection, claim.branch, claim.name)
            if (last.fence, last.kind) != (claim.fence, "done"):
                self.complete(connection, claim, result)

        self.tx.write(work)

    def cancel(self, branch: Branch, name: str = FOLD) -> bool:
        """Invalidate the current claim, so that its result is refused; False if there is none."""

        def work(connection: Connection) -> bool:
            self.tx.lock(connection, branch)
            last = self._newest(connection, branch, name)
            if last.kind not in HELD_KINDS:
                return False
            row = last._replace(kind="cancelled", until_at=self.tx.now(connection), body=None)
            self._write(connection, branch, name, row)
            return True

        return self.tx.write(work)

    def check_claim(self, connection: Connection, claim: Claim) -> JobState:
        """The fencing check: lock the branch, and return the newest row if the claim is still valid."""
        self.tx.lock(connection, claim.branch)
        return _require(claim, self._newest(connection, claim.branch, claim.name))

    def complete(self, connection: Connection, claim: Claim, result: Any = None) -> None:
        """Mark a job as done, in the caller's transaction."""
        last = self.check_claim(connection, claim)
        row = last._replace(kind="done", until_at=self.tx.now(connection), failures=0, body=result)
        self._write(connection, claim.branch, claim.name, row)

    def _newest(self, connection: Connection, branch: Branch, name: str) -> JobState:
        rows = connection.run(_SQL, (self.tx.owner.id, branch.id, name))
        if not rows:
            return JobState()
        *row, body = rows[0]
        return JobState._make((*row, body and json.loads(body)))

    def _write(self, connection: Connection, branch: Branch, name: str, row: JobState) -> None:
        """Insert the row that follows `row`."""
        body, now = None if row.body is None else dump(row.body), self.tx.now(connection)
        where = (self.tx.owner.id, branch.id, name, row.seq + 1, row.kind, row.fence, row.holder)
        connection.run(INSERT, (*where, row.until_at, row.deadline_at, row.failures, now, body))


def _require(claim: Claim, last: JobState) -> JobState:
    """Return `last` if the claim is still valid, else raise `Conflict`."""
    if last.fence != claim.fence or not last.is_held:
        raise Conflict("the job is no longer held", hint="it was cancelled or took too long; its result is discarded")
    return last
