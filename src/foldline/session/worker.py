"""Background folds: the job that makes a fold in the background, and the two kinds of workers that run such jobs.

A session requests a fold and returns its view without this fold. A worker claims the job in the ledger, plans the fold
again from the record, and writes the digest. Then it commits the fold and completes the job in one transaction. The
commit is refused if the claim was lost. It is also refused if the record was changed in the meantime, except by added
messages. The session reads the fold at its next call.

`ThreadWorker` makes folds in threads of this process, and renews the lease of its claim. `RemoteWorker` leaves folds to
`foldline worker` processes (worker_process.py).
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from types import ModuleType
from typing import Any, TypeAlias

from foldline.digest.digester import Digester
from foldline.errors import Cancelled, ConfigError, Conflict, FoldlineError, extra_hint
from foldline.events import Listener
from foldline.ledger import Branch, Store
from foldline.ledger.jobs import CANCELLED, Jobs
from foldline.redact.redact import redact_error
from foldline.session.cancellation import Cancellation
from foldline.session.lease import LEASE_S, SLACK_S, JobStop, LeaseKeeper
from foldline.session.record import BranchRecord
from foldline.session.session import Session

BREAKER_FAILURES = 3
"""After this many failures in a row, the digest is written locally, without a model."""
BACKOFF_S, MAX_BACKOFF_S = 5.0, 600.0
"""Seconds of back-off after the first failure, and the limit. The back-off is doubled after each further failure."""
CONCURRENCY = 4
"""Number of folds that one process makes at the same time."""
MAX_OPEN_SESSIONS = 16
"""Number of sessions that a worker keeps open between jobs, so that it needs to read only new messages."""
CLOSE_WAIT_S = 2.0
"""Seconds that `close` waits for running jobs to stop."""

_LOG = logging.getLogger("foldline")


class JobOutcome(StrEnum):
    """The outcome of one attempt at a job."""

    COMMITTED = "committed"
    NOTHING = "nothing"
    """No fold was due, or the branch is gone."""
    HELD = "held"
    """Another worker has the claim, or the job waits after a failure."""
    DROPPED = "dropped"
    """The branch changed, the claim was lost or the worker stopped, so the result was discarded."""
    FAILED = "failed"


def run_fold_job(  # noqa: PLR0913  # half of them are keyword-only
    session: Session,
    jobs: Jobs,
    branch: Branch,
    *,
    lease_s: float = LEASE_S,
    stop: JobStop | None = None,
    delivery: str = "",
    requested_at: float | None = None,
) -> JobOutcome:
    """Claim the fold job of a branch and make the fold.

    If `requested_at` is the time of a request that was cancelled, no fold is made. `delivery` names the queued job that
    this call runs; "" if there is no queue. A queue handles the heartbeat, the retries and the back-off itself. So with
    `delivery`, the claim is not renewed: it lasts as long as the whole job may take. If the queue delivers the same job
    a second time, the second call takes the claim over.
    """
    deadline_s = session.policy.digest_seconds + SLACK_S
    claim = jobs.claim(
        branch,
        lease_s=deadline_s if delivery else lease_s,
        deadline_s=deadline_s,
        holder=delivery or f"{socket.gethostname()}:{os.getpid()}",
        take_over=bool(delivery),
        requested_at=requested_at,
    )
    if claim is None:
        is_cancelled = requested_at is not None and jobs.get(branch).kind == CANCELLED
        return JobOutcome.NOTHING if is_cancelled else JobOutcome.HELD
    failures = jobs.get(branch).failures
    stop = stop or JobStop(threading.Event(), Cancellation())
    keeper = LeaseKeeper(jobs, claim, stop, None if delivery else lease_s)
    local = f"the job failed {failures} times in a row" if failures >= BREAKER_FAILURES else ""
    try:
        outcome = JobOutcome.COMMITTED if session.work(claim, keeper, local=local) else JobOutcome.NOTHING
    except (Conflict, Cancelled) as dropped:
        outcome = JobOutcome.DROPPED
        session.emit("skipped", reason=dropped.message)
    except Exception as error:  # noqa: BLE001 (any failure: the job is released and its cause recorded)
        cause = redact_error(error)
        rest_s = 0.0 if delivery else min(MAX_BACKOFF_S, BACKOFF_S * 2**failures)
        with suppress(FoldlineError):
            jobs.fail(claim, cause, rest_s=rest_s)
        session.emit("failed", cause=cause)
        return JobOutcome.FAILED
    except BaseException:
        with suppress(FoldlineError):  # the job can be claimed again at once
            jobs.finish(claim, {"outcome": JobOutcome.DROPPED})
        raise
    if outcome is not JobOutcome.COMMITTED:
        with suppress(FoldlineError):  # the claim was lost, or its lease will run out
            jobs.finish(claim, {"outcome": outcome})
    return outcome


class ThreadWorker:
    """Makes folds in daemon threads, which exist only while there are jobs.

    A process that ends does not wait for these threads. The jobs of the threads can be claimed again when their leases
    have run out.
    """

    is_remote = False

    def __init__(
        self, store: Store, *, digester: Digester | None, listener: Listener | None = None, lease_s: float = LEASE_S
    ) -> None:
        self.store, self.digester, self.listener, self.lease_s = store, digester, listener, lease_s
        self._reset()

    def _reset(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._queue: dict[int, Branch] = {}
        self._busy: dict[int, Cancellation] = {}
        """The branches whose jobs are running now, with the cancellation of each job."""
        self._threads: set[threading.Thread] = set()
        self._stop = threading.Event()
        self._sessions: dict[int, Session] = {}

    def _reset_after_fork(self) -> None:
        """Reset everything in a forked process. The process has no threads, and inherited locks may stay locked."""
        if self._process != os.getpid():
            self._reset()

    def request_fold(self, branch: Branch) -> None:
        """Queue the fold job of a branch, and start a thread if fewer than `CONCURRENCY` threads are running."""
        self._reset_after_fork()
        with self._lock:
            if self._stop.is_set() or branch.id in self._busy or branch.id in self._queue:
                return
            self._queue[branch.id] = branch
            if len(self._threads) < CONCURRENCY:
                thread = threading.Thread(target=self._run, name="foldline-fold", daemon=True)
                self._threads.add(thread)
                try:
                    thread.start()
                except BaseException:  # for example Ctrl-C: otherwise, a thread that never started would stay counted
                    if thread.ident is None:
                        self._threads.discard(thread)
                    raise

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._queue:
                    self._threads.discard(threading.current_thread())
                    return
                branch = self._queue.pop(next(iter(self._queue)))
            with suppress(FoldlineError):  # the ledger is unreachable: the session's own calls report it
                self.run_job(branch)

    def run_job(self, branch: Branch, *, delivery: str = "", requested_at: float | None = None) -> JobOutcome:
        """Make the fold that is due on a branch, in the calling thread. The arguments are those of `run_fold_job`."""
        self._reset_after_fork()
        stop = JobStop(self._stop, Cancellation())
        with self._lock:
            if branch.id in self._busy:
                return JobOutcome.HELD
            self._busy[branch.id] = stop.cancellation
        try:
            options: dict[str, Any] = {"stop": stop, "delivery": delivery, "requested_at": requested_at}
            return run_fold_job(self._session(branch), self.store.jobs, branch, lease_s=self.lease_s, **options)
        except BaseException:
            self._sessions.pop(branch.id, None)
            raise
        finally:
            with self._lock:
                self._busy.pop(branch.id, None)

    def _session(self, branch: Branch) -> Session:
        """The worker's own session on a branch, kept open for the next job."""
        with self._lock:
            found = self._sessions.pop(branch.id, None)
        if found is None:
            record = BranchRecord(self.store, branch)
            found = Session(digester=self.digester, record=record, name=branch.session, listener=self.listener)
        with self._lock:
            self._sessions[branch.id] = found
            idle = [number for number in self._sessions if number not in self._busy]
            for number in idle[: max(0, len(self._sessions) - MAX_OPEN_SESSIONS)]:
                del self._sessions[number]
        return found

    def cancel(self, branch: Branch) -> bool:
        """Cancel the queued or running job of a branch in this process. Returns False if there is none."""
        self._reset_after_fork()
        with self._lock:
            is_queued = self._queue.pop(branch.id, None) is not None
            running = self._busy.get(branch.id)
        return (running is not None and running.cancel()) or is_queued

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until no job runs in this process. Returns False after a timeout."""
        self._reset_after_fork()
        end = time.monotonic() + (threading.TIMEOUT_MAX if seconds is None else seconds)
        current = threading.current_thread()  # a listener runs in a worker thread, which must not wait for itself
        while others := [thread for thread in tuple(self._threads) if thread is not current]:
            left = end - time.monotonic()
            if left <= 0:
                return False
            others[0].join(min(left, threading.TIMEOUT_MAX))
            self._threads.discard(others[0]) if not others[0].is_alive() else None
        return True

    def stop(self) -> None:
        """Tell running jobs to stop, and start no more jobs. Does not wait until the jobs have stopped."""
        self._reset_after_fork()
        with self._lock:
            self._stop.set()
            self._queue.clear()

    def close(self) -> None:
        """Stop, and wait a moment for running jobs to release their claims."""
        self.stop()
        self.wait(CLOSE_WAIT_S)


class RemoteWorker:
    """Requests folds from `foldline worker` processes, through PgQueuer (PostgreSQL) or the jobs table (SQLite)."""

    is_remote = True

    def __init__(self, store: Store) -> None:
        self._request: Callable[[Branch], object] = store.jobs.request
        self._queue = job_queue_module().FoldQueue(store) if store.tx.pool.database.has_job_queue else None
        if self._queue is not None:
            self._request = self._queue.enqueue

    def request_fold(self, branch: Branch) -> None:
        """Request the fold. A failure is logged but not raised, because the next view requests the fold again."""
        try:
            self._request(branch)
        except FoldlineError as error:
            _LOG.warning("could not request a background fold of session %r: %s", branch.session, error)

    def cancel(self, branch: Branch) -> bool:
        """Cancel a job in PgQueuer's queue. Returns False if there is none."""
        return self._queue is not None and bool(self._queue.cancel(branch))

    def wait(self, seconds: float | None = None) -> bool:  # noqa: ARG002  # no job runs here
        """Always True, because no job runs in this process."""
        return True

    def close(self) -> None:
        """Do nothing: no job runs in this process."""


Worker: TypeAlias = ThreadWorker | RemoteWorker
"""Makes background folds. If `is_remote` is true, other processes make the folds, with their own digesters."""


def job_queue_module() -> ModuleType:
    """Import and return the module `job_queue`. Raises `ConfigError` if PgQueuer is not installed."""
    try:
        from foldline.session import job_queue  # noqa: PLC0415  # an extra
    except ImportError:
        hint = f'{extra_hint("worker")}; or open the ledger with worker="thread"'
        raise ConfigError("worker processes on PostgreSQL need PgQueuer, which is not installed", hint=hint) from None
    return job_queue
