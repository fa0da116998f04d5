"""Cancellation of a call that makes a fold: possible until its commit begins, refused afterwards."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from foldline.errors import Cancelled

_POLL_S = 0.05


class StopSignal(Protocol):
    """What a fold in progress looks at, and what its digester gets as `call.signal`."""

    def is_set(self) -> bool:
        """Whether the fold must stop."""

    def sleep(self, seconds: float) -> None:
        """Sleep, at most until the fold must stop."""

    def begin_commit(self) -> None:
        """Raise `Cancelled` if the fold must stop; from here on it can no longer be cancelled."""

    def fail_commit(self) -> None:
        """Allow cancellation again, since nothing was committed."""


class Cancellation:
    """The stop signal of one call, set by another thread or by the event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_set = self.is_committing = False

    def cancel(self) -> bool:
        """Stop the call; False if that comes too late or was done before."""
        with self._lock:
            is_new = not self._is_set and not self.is_committing
            self._is_set = True
            return is_new

    def is_set(self) -> bool:
        """Whether the call was cancelled."""
        return self._is_set

    def sleep(self, seconds: float) -> None:
        """Sleep, at most until the call is cancelled."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not self._is_set:
            time.sleep(min(left, _POLL_S))

    def begin_commit(self) -> None:
        """Raise `Cancelled` if the call was cancelled; from here on `cancel` comes too late."""
        with self._lock:
            if self._is_set:
                raise Cancelled("the fold was cancelled", hint="nothing was changed")
            self.is_committing = True

    def fail_commit(self) -> None:
        """Allow cancellation again, since nothing was committed."""
        self.is_committing = False


_CURRENT: ContextVar[Cancellation | None] = ContextVar("foldline-cancellation", default=None)


def current_cancellation() -> Cancellation:
    """The cancellation that the caller of the running call gave; otherwise a new one."""
    return _CURRENT.get() or Cancellation()


@contextmanager
def cancelled_by(cancellation: Cancellation) -> Iterator[None]:
    """Let the calls in the block be cancelled by this cancellation."""
    token = _CURRENT.set(cancellation)
    try:
        yield
    finally:
        _CURRENT.reset(token)
