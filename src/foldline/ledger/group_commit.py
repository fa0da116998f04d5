"""Commits transactions of several threads together.

SQLite has one writer at a time, and a commit waits until the data is on disk. So if every thread commits alone, the
disk limits the number of commits per second. Here, threads that want to write wait in a queue while another thread
commits. The next commit contains the work of all waiting threads. Each thread returns only after the commit that
contains its work.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

from foldline.errors import LedgerBusy, LedgerUnavailable
from foldline.ledger.connections import Connection, WriteConflict

T = TypeVar("T")
MAX_GROUP = 64
"""The largest number of transactions that are committed together."""


class _WaitingWork:
    """The work of one thread, and its outcome."""

    __slots__ = ("error", "is_done", "result", "turn", "work")

    def __init__(self, work: Callable[[Connection], Any]) -> None:
        self.work = work
        self.turn = threading.Event()
        """Set when the work is done, or when its thread has to lead the next group."""
        self.is_done = False
        self.result: Any = None
        self.error: BaseException | None = None

    def finish(self, result: Any = None, error: BaseException | None = None) -> None:
        self.result, self.error, self.is_done = result, error, True
        self.turn.set()


class GroupCommit:
    """Runs the write transactions of several threads in groups.

    The first thread of a group is its leader. The leader runs the work of the whole group in one transaction. If this
    transaction fails, the leader runs the work of each thread in a separate transaction, so that an error reaches only
    the thread whose work raised it. So work may run twice.
    """

    def __init__(self, write: Callable[[Callable[[Connection], Any]], Any]) -> None:
        self._write = write
        """Runs work in a transaction, and returns its result after the commit."""
        self._lock = threading.Lock()
        self._queue: list[_WaitingWork] = []
        self._is_led = False
        """Whether a thread is committing a group. That thread then starts the leader of the next group."""

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in a transaction, possibly together with the work of other threads."""
        own = _WaitingWork(work)
        with self._lock:
            self._queue.append(own)
            leads, self._is_led = not self._is_led, True
        if not leads:
            own.turn.wait()
        if not own.is_done:
            self._lead()
        if own.error is not None:
            raise own.error
        return cast("T", own.result)

    def _lead(self) -> None:
        """Commit the work of all threads that wait now, then start the leader of the next group."""
        with self._lock:
            group, self._queue = self._queue[:MAX_GROUP], self._queue[MAX_GROUP:]
        try:
            if len(group) == 1 or not self._run_together(group):
                for one in group:
                    self._run_alone(one)
        except BaseException as error:
            for one in group:
                if not one.is_done:
                    one.finish(error=error)
            raise
        finally:
            with self._lock:
                self._is_led = bool(self._queue)
                if self._queue:
                    self._queue[0].turn.set()

    def _run_together(self, group: list[_WaitingWork]) -> bool:
        """Run the work of a group in one transaction. Returns False if some work raised an error."""
        try:
            results = self._write(lambda connection: [one.work(connection) for one in group])
        except WriteConflict:
            return False
        except (LedgerBusy, LedgerUnavailable) as error:  # no other transaction would succeed now
            for one in group:
                one.finish(error=error)
            return True
        except Exception:  # noqa: BLE001  # the error is raised again when the work runs alone
            return False
        for one, result in zip(group, results, strict=True):
            one.finish(result)
        return True

    def _run_alone(self, one: _WaitingWork) -> None:
        try:
            one.finish(self._write(one.work))
        except Exception as error:  # noqa: BLE001  # raised in the thread that the work belongs to
            one.finish(error=error)
