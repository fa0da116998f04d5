"""Queue of fold jobs for workers on several hosts. The queue uses PgQueuer in the ledger's own PostgreSQL schema.

PgQueuer provides the queue, the heartbeat, the retries with back-off and the concurrency limit. While a job is queued
or running, no second job with the same key is accepted. If a worker is killed, its job is delivered again. The ledger
adds a claim with a fence number. So a fold is committed only once, even if PgQueuer delivers its job twice.

PgQueuer selects jobs by the exact name of their entrypoint, so each tenant has an entrypoint of its own. A worker for
all tenants registers the entrypoints that it finds in the queue. This module needs the extra `foldline[worker]`: import
it lazily.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
from pgqueuer.adapters.persistence import qb, schema_plan
from pgqueuer.core.executors import DatabaseRetryEntrypointExecutor
from pgqueuer.db import PsycopgDriver, SyncPsycopgDriver
from pgqueuer.domain.errors import FailingListenerError, RetryRequested
from pgqueuer.domain.settings import DBSettings
from pgqueuer.models import Job as QueuedJob
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries, SyncQueries
from pgqueuer.types import Channel, QueueExecutionMode

from foldline.ledger import Branch, Store
from foldline.ledger.connections import Connection
from foldline.ledger.databases.postgres import SCHEMA
from foldline.ledger.jobs import FOLD, JobRequest
from foldline.session.worker import BACKOFF_S, MAX_BACKOFF_S, JobOutcome
from foldline.session.worker_process import WorkerProcess, pause

ENTRYPOINT = "fold:"
"""The first part of an entrypoint's name. The tenant id follows."""
CHANNEL = "foldline_folds"
MAX_ATTEMPTS = 6
"""After this many failed attempts a job is removed from the queue. The session's next view enqueues the job again."""
RECONNECT_S = 2.0
"""Seconds to wait before a lost connection is opened again."""

_LOG = logging.getLogger("foldline")


def _settings() -> DBSettings:
    """The names of PgQueuer's tables.

    All names are given, because PgQueuer would read missing names from the environment.
    """
    tables = {"queue_table": "", "queue_table_log": "_log", "statistics_table": "_statistics"}
    tables |= {"schedules_table": "_schedules", "queue_status_type": "_status"}
    names = {name: f"pgqueuer{end}" for name, end in tables.items()}
    names |= {"function": "fn_pgqueuer_changed", "trigger": "tg_pgqueuer_changed", "channel": CHANNEL}
    return DBSettings(prefix="", db_schema=SCHEMA, durability="durable", **names)  # type: ignore[arg-type]  # names


class FoldQueue:
    """Enqueues the fold jobs of one tenant."""

    def __init__(self, store: Store) -> None:
        self.store, self._settings, self._has_tables = store, _settings(), False

    def enqueue(self, branch: Branch) -> bool:
        """Queue the fold job of a branch. Returns False if the job is already queued or running."""
        request, key = self._request_and_key(branch)
        if not self._has_tables:
            self.store.tx.write(self._create_tables)
            self._has_tables = True
        elif self.store.tx.read(lambda connection: self._is_queued(connection, key)):
            return False  # an insert that fails as a duplicate would still notify every worker

        def work(connection: Connection) -> bool:
            queries = SyncQueries(SyncPsycopgDriver(_link(connection)), qbq=qb.QueryQueueBuilder(self._settings))
            entrypoint, payload = ENTRYPOINT + request.owner, json.dumps(request).encode()
            return queries.enqueue(entrypoint, payload, dedupe_key=key, on_conflict="skip") != [None]

        return self.store.tx.write(work)

    def cancel(self, branch: Branch) -> bool:
        """Remove the fold job of a branch from the queue, or tell its worker to stop.

        Returns False if there is no such job.
        """
        table, key = self._settings.qualified.queue_table, self._request_and_key(branch)[1]

        def work(connection: Connection) -> tuple[bool, bool]:
            if not connection.run("SELECT 1 WHERE to_regclass(?) IS NOT NULL", (table,)):
                return False, False
            sql = f"DELETE FROM {table} WHERE dedupe_key = ? AND status = 'queued' RETURNING id"  # noqa: S608  # ours
            return bool(connection.run(sql, (key,))), self._is_queued(connection, key)

        is_removed, is_taken = self.store.tx.write(work)
        return is_removed or (is_taken and self.store.jobs.cancel(branch, is_queued=True))

    def _request_and_key(self, branch: Branch) -> tuple[JobRequest, str]:
        request = JobRequest(self.store.owner, branch.session, branch.name, FOLD)
        return request, ENTRYPOINT + json.dumps(request)

    def _is_queued(self, connection: Connection, key: str) -> bool:
        table = self._settings.qualified.queue_table
        sql = f"SELECT 1 FROM {table} WHERE dedupe_key = ? AND status IN ('queued', 'picked')"  # noqa: S608  # ours
        return bool(connection.run(sql, (key,)))

    def _create_tables(self, connection: Connection) -> None:
        """Create PgQueuer's tables unless they exist. This uses the same lock as PgQueuer's own upgrade."""
        connection.run("SELECT pg_advisory_xact_lock(?)", (schema_plan.advisory_key(self._settings),))
        table = self._settings.qualified.queue_table
        if not connection.run("SELECT 1 WHERE to_regclass(?) IS NOT NULL", (table,)):
            install = qb.QueryBuilderEnvironment(self._settings).build_install_query(create_schema=False)
            _link(connection).execute(install)


def _link(connection: Connection) -> Any:
    """The psycopg connection that a connection of the ledger uses."""
    return connection.link  # type: ignore[attr-defined]  # a PostgresConnection


async def serve(url: str, process: WorkerProcess, stop: asyncio.Event, *, once: bool = False) -> None:
    """Run queued jobs until `stop` is set. With `once`, run jobs until no job is queued.

    If the connection is lost, connect again.
    """
    connect = partial(psycopg.AsyncConnection.connect, url, autocommit=True)
    while not stop.is_set():
        try:
            async with await connect() as listening, await connect() as querying:
                await _run_jobs(QueueDriver(listening, querying), process, stop, once=once)
            if once:
                return
        except (psycopg.OperationalError, OSError, FailingListenerError) as error:
            _LOG.warning("lost the connection to PostgreSQL, reconnecting in %g s: %s", RECONNECT_S, error)
        await pause(stop, RECONNECT_S)


class QueueDriver(PsycopgDriver):
    """PgQueuer's psycopg driver with a second connection for queries.

    While PgQueuer waits for notifications, it blocks its own connection for up to a second at a time. Queries on that
    connection would have to wait.
    """

    def __init__(self, listening: psycopg.AsyncConnection, querying: psycopg.AsyncConnection) -> None:
        super().__init__(listening)
        self._querying = PsycopgDriver(querying)

    async def fetch(self, query: str, *args: object) -> list[dict[str, object]]:
        """Run a query and return its rows."""
        return await self._querying.fetch(query, *args)

    async def execute(self, query: str, *args: object) -> str:
        """Run a statement and return its status."""
        return await self._querying.execute(query, *args)


async def _run_jobs(driver: PsycopgDriver, process: WorkerProcess, stop: asyncio.Event, *, once: bool) -> None:
    """Run PgQueuer's manager on one connection."""
    names = _settings()
    queries = Queries(
        driver,
        qbe=qb.QueryBuilderEnvironment(names),
        qbq=qb.QueryQueueBuilder(names),
        qbs=qb.QuerySchedulerBuilder(names),
    )
    await queries.apply_upgrade()  # creates missing tables, too
    manager = TenantQueueManager(queries, Channel(CHANNEL))
    manager.process = process
    running = asyncio.create_task(
        manager.run(
            dequeue_timeout=timedelta(seconds=process.poll_s),
            batch_size=1,
            mode=QueueExecutionMode.drain if once else QueueExecutionMode.continuous,
            max_concurrent_tasks=process.concurrency,
            shutdown_on_listener_failure=True,
            heartbeat_timeout=timedelta(seconds=process.lease_s),
        )
    )
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not running.done():
            process.stop()  # jobs that are still running end soon and are put back into the queue
            manager.shutdown.set()
        stopping.cancel()
        await running


class TenantQueueManager(QueueManager):
    """PgQueuer's manager with one entrypoint for each tenant that the worker serves."""

    process: WorkerProcess

    async def fetch_jobs(self, *args: Any, **options: Any) -> AsyncGenerator[QueuedJob, None]:
        """Register the entrypoints of new tenants, then dequeue."""
        for entrypoint in await self._entrypoints():
            if entrypoint not in self.entrypoint_registry:
                back_off = partial(
                    DatabaseRetryEntrypointExecutor,
                    max_attempts=MAX_ATTEMPTS,
                    initial_delay=timedelta(seconds=BACKOFF_S),
                    max_delay=timedelta(seconds=MAX_BACKOFF_S),
                )
                self.entrypoint(entrypoint, accepts_context=False, executor_factory=back_off)(self._fold)
        async for job in super().fetch_jobs(*args, **options):
            yield job

    async def _entrypoints(self) -> list[Any]:
        if not self.process.all_owners:
            return [ENTRYPOINT + self.process.store.owner]
        table = self.queries.qbe.settings.qualified.queue_table
        sql = f"SELECT DISTINCT entrypoint FROM {table} WHERE starts_with(entrypoint, $1)"  # noqa: S608  # ours
        return [row["entrypoint"] for row in await self.queries.driver.fetch(sql, ENTRYPOINT)]

    async def _fold(self, job: QueuedJob) -> None:
        """Run one job. If this raises an exception, PgQueuer delivers the job again after a back-off."""
        request = JobRequest(*json.loads(job.payload or b""))
        report = await asyncio.to_thread(
            self.process.run_job, request, delivery=f"pgqueuer:{job.id}", requested_at=job.created.timestamp()
        )
        if report.outcome is JobOutcome.FAILED:
            raise RuntimeError(report.cause)
        if report.outcome is JobOutcome.HELD:
            raise RetryRequested(timedelta(seconds=self.process.lease_s), "another worker has the claim")
        if report.outcome is JobOutcome.DROPPED and self.shutdown.is_set():
            raise RetryRequested(reason="the worker was stopped")
