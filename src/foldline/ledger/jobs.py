"""Claims on background jobs. The claims ensure that a job's result is committed only once.

Every change of a job is a new row with the next number. The database accepts each number only once, so two processes
cannot both claim a job. The newest row is the job's state. Each claim has a higher fence number than the previous
claim, and a commit with an older fence is refused. When a lease runs out, another worker may claim the job, and the
expired claim counts as a failure. On SQLite, a session requests a job with a row in this table; worker processes
look for such rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from foldline.errors import Conflict
from foldline.ledger.connections import Connection
from foldline.ledger.log import Transactions, new_operation_id
from foldline.ledger.records import Branch
from foldline.ledger.serialize import dump

FOLD = "fold"
DIRECT = "direct:"
"""Prefix of the job names of folds that a session makes itself, without a worker. A random id follows."""
HELD_KINDS = ("claim", "beat")
REQUESTED, CANCELLED = "wanted", "cancelled"
REQUEST_EXPIRY_S = 86_400.0
"""A request expires after this many seconds if no worker has claimed it."""


class Claim(NamedTuple):
    """The right to run a job. A claim becomes invalid when another claim with a higher fence number exists."""

    branch: Branch
    name: str
    fence: int


class JobState(NamedTuple):
    """State of a job: its newest row."""

    seq: int = 0
    kind: str = ""
    """`wanted` (requested), `claim`, `beat` (renewed), `done`, `failed`, `cancelled`; "" if the job has no row."""
    fence: int = 0
    holder: str = ""
    until_at: float = 0.0
    """The time from which the job can be claimed: the end of its lease, or of the back-off after a failure."""
    deadline_at: float = 0.0
    """The lease cannot be extended beyond this time."""
    failures: int = 0
    """Number of failures since the last success."""
    at: float = 0.0
    body: Any = None
    """The result of the job, or the cause of its failure."""

    @property
    def is_held(self) -> bool:
        """Whether the newest row is a claim. The claim is valid until `until_at`."""
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
        requested_at: float | None = None,
    ) -> Claim | None:
        """Claim a job. Returns None if the job cannot be claimed now.

        A job cannot be claimed while another worker has a valid lease, or before the back-off after a failure has
        ended. It also cannot be claimed if the request was cancelled.

        With `take_over`, a valid claim that `holder` already has is replaced. A queue needs this when it delivers a job
        a second time. `requested_at` is the time of the request that the caller works on; None if there is no request.
        """
        op = new_operation_id()

        def work(connection: Connection) -> Claim | None:
            self.tx.lock(connection, branch)
            last, now = self._newest(connection, branch, name), self.tx.now(connection)
            if last.body == op:
                return Claim(branch, name, last.fence)  # an earlier attempt was committed, but its answer was lost
            if requested_at is not None and last.kind == CANCELLED and last.at >= requested_at:
                return None
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
                failures=last.failures + last.is_held,
                body=op,
            )
            self._write(connection, branch, name, row)
            return Claim(branch, name, row.fence)

        return self.tx.write(work)

    def request(self, branch: Branch, name: str = FOLD) -> bool:
        """Request a job from worker processes. Returns False if the job is already requested or claimed."""

        def next_row(last: JobState, now: float) -> JobState | None:
            is_requested = last.kind == REQUESTED and last.at > now - REQUEST_EXPIRY_S / 2
            if is_requested or (last.is_held and last.until_at > now):
                return None
            return last._replace(kind=REQUESTED, failures=last.failures + last.is_held, body=None)

        def would_change(connection: Connection) -> bool:
            return next_row(self._newest(connection, branch, name), self.tx.now(connection)) is not None

        return self.tx.read(would_change) and self._change(branch, name, next_row)

    def pending(self, *, all_owners: bool = False) -> list[JobRequest]:
        """The requested jobs that no worker has claimed, oldest first.

        With `all_owners`, the jobs of all tenants are returned.
        """
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

        def next_row(last: JobState, now: float) -> JobState:
            until = min(now + lease_s, last.deadline_at)
            return _require(claim, last)._replace(kind="beat", until_at=until, body=None)

        self._change(claim.branch, claim.name, next_row)

    def check(self, claim: Claim) -> None:
        """Raise `Conflict` if the claim is no longer held."""
        _require(claim, self.get(claim.branch, claim.name))

    def fail(self, claim: Claim, cause: str, *, rest_s: float = 0.0) -> None:
        """Record that a job failed.

        The job can be claimed again after `rest_s` seconds. A second call has no effect.
        """

        def next_row(last: JobState, now: float) -> JobState | None:
            if (last.fence, last.kind) == (claim.fence, "failed"):
                return None
            failures = _require(claim, last).failures + 1
            return last._replace(kind="failed", until_at=now + rest_s, failures=failures, body=cause)

        self._change(claim.branch, claim.name, next_row)

    def finish(self, claim: Claim, result: Any = None) -> None:
        """Mark a job as done.

        Use this for a job whose result is not an entry in the log of the branch. A second call has no effect.
        """

        def next_row(last: JobState, now: float) -> JobState | None:
            return None if (last.fence, last.kind) == (claim.fence, "done") else _done(claim, last, now, result)

        self._change(claim.branch, claim.name, next_row)

    def cancel(self, branch: Branch, name: str = FOLD, *, is_queued: bool = False) -> bool:
        """Invalidate the current claim or request.

        The result of a worker that has the old claim is then refused. Returns False if there is no claim or request.
        Set `is_queued` if the job was requested in a queue outside this table.
        """

        def next_row(last: JobState, now: float) -> JobState | None:
            if not (last.is_held or last.kind == REQUESTED or is_queued):
                return None
            return last._replace(kind=CANCELLED, until_at=now, body=None)

        return self._change(branch, name, next_row)

    def claim_direct(self, branch: Branch, *, lease_s: float, deadline_s: float) -> Claim:
        """Claim a fold that the caller makes itself, so that `cancel_direct` can invalidate the claim."""
        name = DIRECT + new_operation_id()
        claim = self.claim(branch, name, lease_s=lease_s, deadline_s=deadline_s)
        return claim or Claim(branch, name, 0)  # never None: no other job has this name

    def cancel_direct(self, branch: Branch) -> bool:
        """Invalidate the claims of `claim_direct`. Returns False if there is no valid claim."""
        sql = "SELECT DISTINCT name FROM jobs WHERE owner = ? AND branch = ? AND name LIKE ? AND until_at > ?"

        def held(connection: Connection) -> list[str]:
            names = connection.run(sql, (self.tx.owner.id, branch.id, f"{DIRECT}%", self.tx.now(connection)))
            return [name for (name,) in names if self._newest(connection, branch, name).is_held]

        cancelled = [self.cancel(branch, name) for name in self.tx.read(held)]
        return any(cancelled)

    def complete(self, connection: Connection, claim: Claim, result: Any = None) -> None:
        """Mark a job as done, in the caller's transaction."""
        self.tx.lock(connection, claim.branch)
        last = self._newest(connection, claim.branch, claim.name)
        row = _done(claim, last, self.tx.now(connection), result)
        self._write(connection, claim.branch, claim.name, row)

    def _change(self, branch: Branch, name: str, next_row: Callable[[JobState, float], JobState | None]) -> bool:
        """Call `next_row` with the newest row and the current time, and insert the row that it returns.

        Returns False if `next_row` returns None.
        """

        def work(connection: Connection) -> bool:
            self.tx.lock(connection, branch)
            row = next_row(self._newest(connection, branch, name), self.tx.now(connection))
            if row is not None:
                self._write(connection, branch, name, row)
            return row is not None

        return self.tx.write(work)

    def _newest(self, connection: Connection, branch: Branch, name: str) -> JobState:
        rows = connection.run(_SQL, (self.tx.owner.id, branch.id, name))
        if not rows:
            return JobState()
        *row, body = rows[0]
        return JobState._make((*row, body and json.loads(body)))

    def _write(self, connection: Connection, branch: Branch, name: str, row: JobState) -> None:
        """Insert a new row with the values of `row` and the next number."""
        body, now = None if row.body is None else dump(row.body), self.tx.now(connection)
        where = (self.tx.owner.id, branch.id, name, row.seq + 1, row.kind, row.fence, row.holder)
        connection.run(INSERT, (*where, row.until_at, row.deadline_at, row.failures, now, body))


def _done(claim: Claim, last: JobState, now: float, result: Any) -> JobState:
    return _require(claim, last)._replace(kind="done", until_at=now, failures=0, body=result)


def _require(claim: Claim, last: JobState) -> JobState:
    if last.fence != claim.fence or not last.is_held:
        raise Conflict(
            "the claim on the job is no longer valid",
            hint="the job was cancelled or took too long, so its result is discarded",
        )
    return last
