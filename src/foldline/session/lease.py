"""Checks and renews the claim on a fold that is being made, so that any process can cancel the fold."""

from __future__ import annotations

import threading
import time
from typing import NamedTuple

from foldline.errors import Cancelled, Conflict, LedgerError
from foldline.ledger.jobs import Claim, Jobs
from foldline.session.cancellation import Cancellation

LEASE_S = 30.0
"""A claim expires this many seconds after its last renewal (or heartbeat). Then another worker can claim the job."""
RENEWALS_PER_LEASE = 3
CHECK_S = 0.5
"""Seconds between two checks that the claim of a running job is still valid."""
SLACK_S = 60.0
"""Seconds that a job may take in addition to the time for its digest."""


class JobStop(NamedTuple):
    """The two signals that end a job early in this process: its worker stops, or the job is cancelled."""

    worker: threading.Event
    cancellation: Cancellation

    def is_set(self) -> bool:
        """Whether the job must stop."""
        return self.worker.is_set() or self.cancellation.is_set()


class LeaseKeeper:
    """The stop signal of a running job. It also renews the claim of the job, and stops the job if the claim is lost."""

    def __init__(self, jobs: Jobs, claim: Claim, stop: JobStop, lease_s: float | None) -> None:
        self._jobs, self._claim, self._stop, self._lease_s = jobs, claim, stop, lease_s
        self.is_lost = False
        every_s = (lease_s or LEASE_S) / RENEWALS_PER_LEASE
        self._renew_s, self._check_s = every_s, min(CHECK_S, every_s)
        self._checked = self._renewed = time.monotonic()

    def is_set(self) -> bool:
        """Whether the job must stop: the worker is closing, the job was cancelled, or the claim was lost."""
        now = time.monotonic()
        if not self.is_lost and now >= self._checked + self._check_s:
            self._checked = now
            try:
                if self._lease_s is not None and now >= self._renewed + self._renew_s:
                    self._renewed = now
                    self._jobs.renew(self._claim, lease_s=self._lease_s)
                else:
                    self._jobs.check(self._claim)
            except Conflict:
                self.is_lost = True
            except LedgerError:
                return self._stop.is_set()  # the ledger cannot be reached now; the next check may succeed
        return self.is_lost or self._stop.is_set()

    def sleep(self, seconds: float) -> None:
        """Sleep. Return early if the job must stop."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not self.is_set():
            self._stop.cancellation.sleep(min(left, self._check_s))

    def begin_commit(self) -> None:
        """Raise `Cancelled` if the job must stop.

        If the claim is lost after this check, the ledger refuses the commit.
        """
        self._checked = 0.0
        if self.is_set():
            raise Cancelled("the fold was cancelled, or its claim was lost", hint="nothing was changed")
        self._stop.cancellation.begin_commit()

    def fail_commit(self) -> None:
        """Allow cancellation again, because the commit failed. The next call of `is_set` checks the claim."""
        self._checked = 0.0
        self._stop.cancellation.fail_commit()
