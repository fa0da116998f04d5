"""Run jobs in parallel on an `Executor`: local processes, or the workers of a Dask cluster.

Jobs and results must be picklable. Each result is yielded when its job has finished. Closing the iterator cancels the
remaining jobs.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from logging.handlers import BufferingHandler
from multiprocessing import active_children, get_context
from typing import TypeVar

from foldline.errors import ConfigError, extra_hint

JobT = TypeVar("JobT")
ResultT = TypeVar("ResultT")

_MOST_WARNINGS = 1_000
"""How many warnings of a job are kept. After that many, the older warnings are dropped."""
DASK = "dask://"
DASK_PORT = 8786
DASK_WAIT = "5s"


def run_parallel(
    work: Callable[[JobT], ResultT], jobs: Sequence[JobT], executor: str, processes: int
) -> Iterator[ResultT]:
    """Run the jobs, and yield each result when its job has finished. A single job runs in this process."""
    if len(jobs) == 1 and not executor:
        yield work(jobs[0])
        return
    with _pool(executor, min(processes, len(jobs))) as pool:
        futures = [pool.submit(_with_warnings, work, job) for job in jobs]
        try:
            for done in as_completed(futures):
                result, warnings = done.result()
                for record in warnings:
                    logging.getLogger(record.name).handle(record)
                yield result
        finally:
            for future in futures:
                future.cancel()


def _with_warnings(work: Callable[[JobT], ResultT], job: JobT) -> tuple[ResultT, list[logging.LogRecord]]:
    """The result of a job, and the warnings that foldline logged. The parent process logs the warnings again."""
    log, kept = logging.getLogger("foldline"), BufferingHandler(_MOST_WARNINGS)
    kept.setLevel(logging.WARNING)
    log.addHandler(kept)
    try:
        return work(job), list(kept.buffer)
    finally:
        log.removeHandler(kept)


@contextmanager
def _pool(executor: str, processes: int) -> Iterator[Executor]:
    if executor.startswith(DASK):
        with _dask(executor.removeprefix(DASK)) as cluster:
            yield cluster
    elif executor:
        raise ConfigError(f"unknown executor {executor!r}", hint=f"use {DASK}HOST[:PORT], or omit --executor")
    else:
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_ignore_interrupt) as pool:
            try:
                yield pool
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                for process in active_children():
                    process.terminate()
                raise


@contextmanager
def _dask(address: str) -> Iterator[Executor]:
    try:
        from distributed import Client  # noqa: PLC0415  # an extra
    except ImportError:
        raise ConfigError("dask:// needs distributed", hint=extra_hint("dask")) from None
    host, _, port = address.partition(":")
    try:
        client = Client(f"tcp://{host}:{port or DASK_PORT}", timeout=DASK_WAIT)
    except (OSError, TimeoutError) as error:
        raise ConnectionError(f"no Dask scheduler answers at {address}: check that it runs") from error
    with client:
        yield client.get_executor()


def _ignore_interrupt() -> None:
    """Ignore Ctrl-C in a worker process; the parent process handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def usable_cores() -> int:
    """Number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
