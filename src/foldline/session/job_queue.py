"""How workers on any host hear of folds that are due: PgQueuer, in the schema that the ledger's own tables stand in.

It only carries the news, and quickly: that a fold is made once, by one worker, and only where it still belongs, is held
by the ledger (claim, lease and fence). What PgQueuer lost, or was never told because it is not installed where the
session runs, the ledger still knows to be wanted, and a worker looks there every few seconds.
"""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import suppress
from datetime import timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from foldline.ledger import Branch, Store
from foldline.ledger.connections import Connection
from foldline.ledger.jobs import FOLD, JobRequest
from foldline.ledger.schema import POSTGRES

if TYPE_CHECKING:
    from pgqueuer.domain.settings import DBSettings
    from pgqueuer.queries import Queries

    from foldline.session.worker_process import Station

ENTRYPOINT = "foldline_fold"
CHANNEL = "foldline_folds"
RECONNECT_S = 2.0
"""The pause before a lost server is tried again."""
_LOG = logging.getLogger("foldline")


def installed() -> bool:
    """Whether PgQueuer is there."""
    return find_spec("pgqueuer") is not None


def announce(store: Store, branch: Branch) -> None:
    """Tell the workers that a fold is wanted, where they listen; whatever fails, they find it by looking."""
    if store.tx.pool.database.name != POSTGRES or not installed():
        return
    wanted = JobRequest(store.owner, branch.session, branch.name, FOLD)
    try:
        store.tx.write(lambda connection: _enqueue(connection, wanted))
    except Exception:  # noqa: BLE001 (a session does not fail because a queue does)
        _LOG.warning("workers could not be told of a fold; they will find it", exc_info=True)


def _enqueue(connection: Connection, wanted: JobRequest) -> None:
    from pgqueuer.adapters.persistence.qb import QueryQueueBuilder  # noqa: PLC0415  # an extra
    from pgqueuer.db import SyncPsycopgDriver  # noqa: PLC0415
    from pgqueuer.queries import SyncQueries  # noqa: PLC0415

    names = _names()
    if not connection.run("SELECT 1 WHERE to_regclass(?) IS NOT NULL", (names.qualified.queue_table,)):
        return  # no worker was ever started here
    link: Any = connection
    queries = SyncQueries(SyncPsycopgDriver(link.link), qbq=QueryQueueBuilder(names))
    queries.enqueue(ENTRYPOINT, _payload(wanted), dedupe_key=_key(wanted), on_conflict="skip")


def _names() -> DBSettings:
    """What PgQueuer's tables are called; nothing of it comes from the environment."""
    from pgqueuer.domain.settings import DBSettings  # noqa: PLC0415  # an extra

    from foldline.ledger.postgres import SCHEMA  # noqa: PLC0415

    tables = {"queue_table": "", "queue_table_log": "_log", "statistics_table": "_statistics"}
    tables |= {"schedules_table": "_schedules", "queue_status_type": "_status"}
    named = {name: f"pgqueuer{end}" for name, end in tables.items()}
    named |= {"function": "fn_pgqueuer_changed", "trigger": "tg_pgqueuer_changed", "channel": CHANNEL}
    return DBSettings(prefix="", db_schema=SCHEMA, durability="durable", **named)  # type: ignore[arg-type]  # names


def _payload(wanted: JobRequest) -> bytes:
    return json.dumps(wanted).encode()


def _key(wanted: JobRequest) -> str:
    """What is unique among all that is queued or under way."""
    return json.dumps(wanted)


async def serve(url: str, station: Station, stop: asyncio.Event) -> None:
    """Take what PgQueuer brings and what the ledger wants, until told to stop; a server that is lost is tried again."""
    import psycopg  # noqa: PLC0415  # an extra

    while not stop.is_set():
        try:
            async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
                await _listen(await _installed(connection), station, stop)
        except (psycopg.OperationalError, OSError) as lost:
            _LOG.warning("the server was lost: %s", lost)
        await pause(stop, RECONNECT_S)


async def _installed(connection: Any) -> Queries:
    """PgQueuer's own tables, made by the first worker there ever was."""
    from pgqueuer.adapters.persistence import qb  # noqa: PLC0415  # an extra
    from pgqueuer.db import PsycopgDriver  # noqa: PLC0415
    from pgqueuer.queries import Queries  # noqa: PLC0415

    names = _names()
    queries = Queries(
        PsycopgDriver(connection),
        qbe=qb.QueryBuilderEnvironment(names),
        qbq=qb.QueryQueueBuilder(names),
        qbs=qb.QuerySchedulerBuilder(names),
    )
    async with queries.schema_lock():
        if not await queries.schema_is_installed():
            await queries.install(create_schema=False)
    return queries


async def _listen(queries: Queries, station: Station, stop: asyncio.Event) -> None:
    from pgqueuer.models import Job  # noqa: PLC0415  # an extra
    from pgqueuer.qm import QueueManager  # noqa: PLC0415
    from pgqueuer.types import Channel  # noqa: PLC0415

    manager = QueueManager(queries, Channel(CHANNEL))

    async def fold(job: Job) -> None:
        await asyncio.to_thread(station.take, JobRequest(*json.loads(job.payload or b"")))

    async def look() -> None:
        while not stop.is_set():
            for wanted in await asyncio.to_thread(station.waiting):
                await queries.enqueue(ENTRYPOINT, _payload(wanted), dedupe_key=_key(wanted), on_conflict="skip")
            await pause(stop, station.poll_s)
        manager.shutdown.set()

    manager.entrypoint(ENTRYPOINT, accepts_context=False)(fold)
    looking = asyncio.ensure_future(look())
    try:
        await manager.run(
            dequeue_timeout=timedelta(seconds=station.poll_s),
            batch_size=1,
            max_concurrent_tasks=max(2, station.hands),
            shutdown_on_listener_failure=True,
            heartbeat_timeout=timedelta(seconds=station.lease_s),
        )
    finally:
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking


async def pause(stop: asyncio.Event, seconds: float) -> None:
    """Wait so long, or until it is time to stop."""
    with suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), timeout=seconds)
