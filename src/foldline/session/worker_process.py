"""A worker process makes the folds that the sessions of a ledger request. It works for one tenant or for all tenants.

Any number of worker processes may run at the same time. On PostgreSQL, worker processes run on any host and get their
jobs from PgQueuer (job_queue.py). On SQLite, worker processes run on the host of the file, look for requests in its
jobs table, and claim each job with a lease.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from foldline import ledger
from foldline.digest.digester import Digester
from foldline.ledger import Store
from foldline.ledger.jobs import JobRequest
from foldline.redact.redact import redact_error
from foldline.session.lease import LEASE_S
from foldline.session.worker import CONCURRENCY, JobOutcome, ThreadWorker, job_queue_module

POLL_S = 1.0
"""Seconds between two checks of the jobs table (SQLite), or of the jobs of killed workers (PostgreSQL)."""


class JobReport(NamedTuple):
    """One attempt at a job, with its outcome and duration."""

    request: JobRequest
    outcome: JobOutcome
    seconds: float
    cause: str = ""
    """Why the attempt failed."""


class WorkerProcess:
    """Runs the fold jobs of a ledger in this process."""

    def __init__(  # noqa: PLR0913  # all but one are keyword-only
        self,
        store: Store,
        *,
        digester: Digester | None = None,
        all_owners: bool = False,
        on_report: Callable[[JobReport], None] | None = None,
        lease_s: float = LEASE_S,
        poll_s: float = POLL_S,
    ) -> None:
        self.store, self.digester, self.all_owners, self._on_report = store, digester, all_owners, on_report
        self.lease_s, self.poll_s, self.concurrency = lease_s, poll_s, CONCURRENCY
        self._workers: dict[str, ThreadWorker] = {}
        self._lock = threading.Lock()

    def run_job(self, request: JobRequest, *, delivery: str = "", requested_at: float = 0.0) -> JobReport:
        """Run one job in the calling thread and report it, unless another worker has claimed it."""
        start, cause = time.monotonic(), ""
        try:
            worker = self._worker(request.owner)
            branches = worker.store.branches(request.session)  # a deleted branch is not in this list
            branch = next((branch for branch in branches if branch.name == request.branch), None)
            outcome = (
                JobOutcome.NOTHING
                if branch is None
                else worker.run_job(branch, delivery=delivery, requested_at=requested_at)
            )
            if branch is not None and outcome is JobOutcome.FAILED:
                cause = str(worker.store.jobs.get(branch).body)
        except Exception as error:  # noqa: BLE001 (the failure is reported and the job retried; the worker goes on)
            outcome, cause = JobOutcome.FAILED, redact_error(error)
        report = JobReport(request, outcome, time.monotonic() - start, cause)
        if outcome is not JobOutcome.HELD and self._on_report is not None:
            self._on_report(report)
        return report

    def _worker(self, owner: str) -> ThreadWorker:
        with self._lock:
            if owner not in self._workers:
                store = self.store if owner == self.store.owner else ledger.for_owner(self.store, owner)
                self._workers[owner] = ThreadWorker(store, digester=self.digester, lease_s=self.lease_s)
            return self._workers[owner]

    def stop(self) -> None:
        """Tell running jobs to stop, and start no more jobs."""
        with self._lock:
            for worker in self._workers.values():
                worker.stop()

    async def run(self, url: str, stop: asyncio.Event, *, once: bool = False) -> None:
        """Run jobs until `stop` is set. With `once`, run jobs until no job is left."""
        try:
            if self.store.tx.pool.database.has_job_queue:
                await job_queue_module().serve(url, self, stop, once=once)
            else:
                await self._poll(stop, once=once)
        finally:
            self.stop()

    async def _poll(self, stop: asyncio.Event, *, once: bool) -> None:
        """Check the jobs table for requests at intervals, and run several jobs at the same time."""
        running: dict[JobRequest, asyncio.Task[JobReport]] = {}
        tried: set[JobRequest] = set()
        while not stop.is_set():
            for request in await asyncio.to_thread(self.store.jobs.pending, all_owners=self.all_owners):
                if request not in running and request not in tried and len(running) < self.concurrency:
                    running[request] = asyncio.create_task(asyncio.to_thread(self.run_job, request))
                    tried |= {request} if once else set()
            if once and not running:
                return
            waiting = asyncio.create_task(pause(stop, self.poll_s))
            await asyncio.wait({waiting, *running.values()}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            running = {request: task for request, task in running.items() if not task.done()}
        self.stop()
        await asyncio.gather(*running.values())


async def pause(stop: asyncio.Event, seconds: float) -> None:
    """Wait some seconds, or until `stop` is set."""
    with suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)
