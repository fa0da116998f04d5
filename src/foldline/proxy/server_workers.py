"""Worker processes that serve one listening socket. A worker that dies is replaced at once.

The parent process imports everything, then forks, so a new worker answers after milliseconds. Connections that no
worker has accepted yet stay in the queue of the socket, and the next worker accepts them.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress

EARLY_S = 5.0
"""A worker that ends after fewer seconds than this has ended early."""
RESTART_S = 0.1
"""Seconds to wait before a worker that ended early with an error is replaced. The time doubles each time a worker ends
early.
"""
MAX_RESTART_S = 5.0
KILL_S = 45
"""A worker that was told to stop is killed if it still runs after this many seconds."""


def fork_workers(count: int) -> int | None:
    """Fork the workers. In a worker, returns its index. In the parent, returns None after all workers have stopped.

    If a worker fails directly after the start, for example because it cannot open the ledger, the parent stops all
    workers and raises `SystemExit`. If the parent receives SIGTERM or SIGINT, it stops all workers.
    """
    return _WorkerParent(count).run()


class _WorkerParent:
    """The parent process. It forks the workers, replaces workers that die, and stops all workers at the end."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._workers: dict[int, tuple[int, float]] = {}
        """Index and start time of each worker, by process id."""
        self._stopping = False
        self._started = time.monotonic()
        self._alive = os.pipe()
        """A pipe. Only the parent keeps the write end open, so the workers read an end of file when the parent dies."""

    def run(self) -> int | None:
        """Fork the workers and replace those that die."""
        handled = (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)
        before = {number: signal.signal(number, self._stop) for number in handled}
        for index in range(self._count):
            if self._fork(index):
                return self._become_worker(index, before)
        pause = RESTART_S
        while self._workers:
            pid, status = os.wait()
            if pid not in self._workers:
                continue
            index, started = self._workers.pop(pid)
            if self._stopping:
                continue
            code, is_early = os.waitstatus_to_exitcode(status), time.monotonic() - started < EARLY_S
            if code > 0 and is_early and started - self._started < EARLY_S:
                self._stop(signal.SIGTERM)
                self._wait_for_all()
                raise SystemExit(code)
            if code >= 0 and is_early:
                time.sleep(pause)
                pause = min(pause * 2, MAX_RESTART_S)
            else:
                pause = RESTART_S
            if self._is_wanted() and self._fork(index):
                return self._become_worker(index, before)
        return None

    def _is_wanted(self) -> bool:
        """Whether a worker that ended is to be replaced. A signal may change the result at any time."""
        return not self._stopping

    def _fork(self, index: int) -> bool:
        """Fork a worker. Returns True in the worker, and False in the parent."""
        held = {signal.SIGTERM, signal.SIGINT}
        signal.pthread_sigmask(signal.SIG_BLOCK, held)  # a signal waits until the new worker is in the table
        pid = os.fork()
        if pid:
            self._workers[pid] = (index, time.monotonic())
        signal.pthread_sigmask(signal.SIG_UNBLOCK, held)
        return not pid

    def _become_worker(self, index: int, handlers: dict[signal.Signals, Callable[..., object] | int | None]) -> int:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        reading, writing = self._alive
        os.close(writing)
        threading.Thread(target=_stop_with_parent, args=(reading,), daemon=True).start()
        return index

    def _stop(self, number: int, _frame: object = None) -> None:
        self._stopping = True
        signal.alarm(KILL_S)
        for pid in list(self._workers):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL if number == signal.SIGALRM else signal.SIGTERM)

    def _wait_for_all(self) -> None:
        while self._workers:
            pid, _ = os.wait()
            self._workers.pop(pid, None)


def _stop_with_parent(reading: int) -> None:
    """Stop this worker gracefully when its parent dies. A new parent forks its own workers."""
    os.read(reading, 1)
    os.kill(os.getpid(), signal.SIGTERM)
