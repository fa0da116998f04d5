"""Cancellation of a call that makes a fold. A call can be cancelled until its commit begins."""

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
    """Tells a fold in progress whether to stop. The digester of the fold gets this object as `call.signal`."""

    def is_set(self) -> bool:
        """Whether the fold must stop."""

    def sleep(self, seconds: float) -> None:
        """Sleep. Return early if the fold must stop."""

    def begin_commit(self) -> None:
        """Raise `Cancelled` if the fold must stop. After this call, the fold can no longer be cancelled."""

    def fail_commit(self) -> None:
        """Allow cancellation again, because the commit failed."""


class Cancellation:
    """The stop signal of one call, set by another thread or by the event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_set = self.is_committing = False

    def cancel(self) -> bool:
        """Stop the call. Returns False if the call is already committing or was already cancelled."""
        with self._lock:
            is_new = not self._is_set and not self.is_committing
            self._is_set = True
            return is_new

    def is_set(self) -> bool:
        """Whether the call was cancelled."""
        return self._is_set

    def sleep(self, seconds: float) -> None:
        """Sleep. Return early if the call is cancelled."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not self._is_set:
            time.sleep(min(left, _POLL_S))

    def begin_commit(self) -> None:
        """Raise `Cancelled` if the call was cancelled. After this call, `cancel` has no effect."""
        with self._lock:
            if self._is_set:
                raise Cancelled("the fold was cancelled", hint="nothing was changed")
            self.is_committing = True

    def fail_commit(self) -> None:
        """Allow cancellation again, because the commit failed."""
        self.is_committing = False


_CURRENT: ContextVar[Cancellation | None] = ContextVar("foldline-cancellation", default=None)


def current_cancellation() -> Cancellation:
    """The cancellation that was set with `cancelled_by`; otherwise a new one."""
    return _CURRENT.get() or Cancellation()


@contextmanager
def cancelled_by(cancellation: Cancellation) -> Iterator[None]:
    """Make `cancellation` the stop signal of the calls in the `with` block, so that its method `cancel` stops them."""
    token = _CURRENT.set(cancellation)
    try:
        yield
    finally:
        _CURRENT.reset(token)
