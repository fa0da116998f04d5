"""Many jobs through one seam, an `Executor` of `concurrent.futures`: processes here, or the workers of a Dask cluster.

A job and its result must be values that can be sent to another process. Results come in the order they are finished,
and whoever stops listening stops the rest.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from typing import TypeVar

from foldline.errors import ConfigError

Job = TypeVar("Job")
Result = TypeVar("Result")

DASK = "dask://"
DASK_PORT = 8786
DASK_WAIT = "5s"


def spread(work: Callable[[Job], Result], jobs: Sequence[Job], executor: str, processes: int) -> Iterator[Result]:
    """Do all jobs; one job alone is done right here."""
    if len(jobs) == 1 and not executor:
        yield work(jobs[0])
        return
    with _pool(executor, min(processes, len(jobs))) as pool:
        futures = [pool.submit(work, job) for job in jobs]
        try:
            for done in as_completed(futures):
                yield done.result()
        finally:
            for future in futures:
                future.cancel()


@contextmanager
def _pool(executor: str, processes: int) -> Iterator[Executor]:
    if executor.startswith(DASK):
        with _dask(executor.removeprefix(DASK)) as cluster:
            yield cluster
    elif executor:
        raise ConfigError(f"no executor is called {executor!r}", hint=f"leave it out, or give {DASK}HOST[:PORT]")
    else:
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_leave_ctrl_c) as pool:
            try:
                yield pool
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                for helper in active_children():
                    helper.terminate()
                raise


@contextmanager
def _dask(address: str) -> Iterator[Executor]:
    try:
        from distributed import Client  # noqa: PLC0415  # an extra
    except ImportError:
        raise ConfigError("dask:// needs distributed", hint="pip install 'foldline[dask]'") from None
    host, _, port = address.partition(":")
    try:
        client = Client(f"tcp://{host}:{port or DASK_PORT}", timeout=DASK_WAIT)
    except (OSError, TimeoutError) as error:
        raise ConnectionError(f"no Dask scheduler at {address}: is it running, and the address right?") from error
    with client:
        yield client.get_executor()


def _leave_ctrl_c() -> None:
    """Ctrl-C is for the process that was started, not for its helpers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def cores() -> int:
    """How many processes make sense here."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
