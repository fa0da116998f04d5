"""Folds that nobody waits for: a worker reads the record as any other process does, makes the fold, and commits it.

A session says that a fold is due and goes on with its view as it is. Whoever claims the job first, in this process or
in another, plans it anew from the record, has the digest written while it keeps its lease alive, and commits fold and
job in one transaction, if nothing but messages was added meanwhile. The session finds the fold at its next call, like
everything else that others wrote.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import suppress
from typing import Protocol

from foldline.digest.digester import Digester
from foldline.digest.model_digest import error_cause
from foldline.errors import Conflict, FoldlineError, LedgerError
from foldline.events import Listener
from foldline.ledger import Branch, Store
from foldline.ledger.jobs import Claim, Jobs
from foldline.session.job_queue import announce
from foldline.session.record import Tip
from foldline.session.session import Session

LEASE_S = 30.0
"""How long a worker holds a job without a sign of life: so long does the next one wait when it was killed."""
BEATS = 3
"""Signs of life in a lease."""
SLACK_S = 60.0
"""What a job may take beside its digest."""
BREAKER = 3
"""After so many failures in a row no model is asked: the local digest is made."""
REST_S, LONGEST_REST_S = 5.0, 600.0
"""The rest after a failure, twice as long after each."""
HANDS = 4
"""Folds that one process makes at once."""
SESSIONS = 16
"""Sessions that a worker keeps open, so that it reads what is new and not all of it."""
CLOSE_S = 2.0
"""How long closing waits for work that was told to stop."""

COMMITTED, NOTHING, HELD, DROPPED, FAILED = "committed", "nothing", "held", "dropped", "failed"
"""What came of a job: a fold; none was due; somebody else has it; what it read has changed; it could not be done."""


class Worker(Protocol):
    """Whoever makes the folds of a ledger's sessions."""

    elsewhere: bool
    """Whether it has a digester of its own."""

    def due(self, branch: Branch) -> None:
        """A fold is due on a branch. Comes back at once; saying it twice is the same as saying it once."""
        ...

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until nothing is under way; False when it took longer."""
        ...

    def close(self) -> None:
        """Stop; what is under way is dropped, and others may take it up at once."""
        ...


class Heart:
    """Keeps a claim alive for as long as its work is wanted."""

    def __init__(self, jobs: Jobs, claim: Claim, lease_s: float, stop: threading.Event) -> None:
        self.jobs, self.claim, self.lease_s, self.stop = jobs, claim, lease_s, stop
        self.lost = False
        self._next = time.monotonic() + lease_s / BEATS

    def is_set(self) -> bool:
        """Whether to stop: everything is closing, or the job is somebody else's by now. Gives a sign of life if due."""
        if not self.lost and time.monotonic() >= self._next:
            self._next = time.monotonic() + self.lease_s / BEATS
            try:
                self.jobs.renew(self.claim, lease_s=self.lease_s)
            except Conflict:
                self.lost = True
            except LedgerError:
                return self.stop.is_set()  # it may be there again at the next beat
        return self.lost or self.stop.is_set()

    def sleep(self, seconds: float) -> None:
        """Wait so long, or until it must stop."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not self.is_set():
            self.stop.wait(min(left, self.lease_s / BEATS))


def make(
    session: Session, jobs: Jobs, branch: Branch, *, lease_s: float = LEASE_S, stop: threading.Event | None = None
) -> str:
    """Make the fold that is due on a branch, unless somebody else does; what came of it."""
    holder = f"{socket.gethostname()}:{os.getpid()}"
    claim = jobs.claim(branch, lease_s=lease_s, deadline_s=session.policy.digest_seconds + SLACK_S, holder=holder)
    if claim is None:
        return HELD
    failures = jobs.get(branch).failures
    heart = Heart(jobs, claim, lease_s, stop or threading.Event())
    local = f"it failed {failures} times in a row" if failures >= BREAKER else ""
    try:
        came = COMMITTED if session.work(claim, heart, local=local) else NOTHING
    except Conflict as conflict:
        came = DROPPED
        session.teller.tell("skipped", reason=conflict.message)
    except Exception as error:  # noqa: BLE001 (whatever it is, the job is given back and its cause told)
        cause = error_cause(error)
        with suppress(FoldlineError):
            jobs.fail(claim, cause, rest_s=min(LONGEST_REST_S, REST_S * 2**failures))
        session.teller.tell("failed", cause=cause)
        return FAILED
    if came != COMMITTED:
        with suppress(FoldlineError):  # it is somebody else's by now, or its lease will run out
            jobs.finish(claim, {"came": came})
    return came


class Crew:
    """Makes folds in threads of this process, which are there only while there is something to do.

    They are daemons: a process that ends does not wait for them, and what they held is free when its lease is over.
    """

    elsewhere = False

    def __init__(
        self, store: Store, *, digester: Digester | None, listener: Listener | None = None, lease_s: float = LEASE_S
    ) -> None:
        self.store, self.digester, self.listener, self.lease_s = store, digester, listener, lease_s
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._change = threading.Condition()
        self._queue: dict[int, Branch] = {}
        self._busy: set[int] = set()
        self._threads: set[threading.Thread] = set()
        self._stop = threading.Event()
        self._sessions: dict[int, Session] = {}

    def _here(self) -> None:
        """Begin anew in a process that was forked: threads do not come along, and their locks may be held for ever."""
        if self._process != os.getpid():
            self._begin()

    def due(self, branch: Branch) -> None:
        """Put a branch in the queue, and see that somebody looks at it."""
        self._here()
        with self._change:
            if self._stop.is_set() or branch.id in self._busy or branch.id in self._queue:
                return
            self._queue[branch.id] = branch
            if len(self._threads) < HANDS:
                thread = threading.Thread(target=self._run, name="foldline-fold", daemon=True)
                self._threads.add(thread)
                thread.start()

    def _run(self) -> None:
        while (branch := self._next()) is not None:
            with suppress(FoldlineError):  # the record cannot be reached now: the session will say so itself
                self.do(branch)

    def _next(self) -> Branch | None:
        with self._change:
            number = next(iter(self._queue), None)
            if number is not None:
                return self._queue.pop(number)
            self._threads.discard(threading.current_thread())
            self._change.notify_all()
            return None

    def do(self, branch: Branch) -> str:
        """Make the fold that is due on a branch, here and now; what came of it."""
        self._here()
        with self._change:
            if branch.id in self._busy:
                return HELD
            self._busy.add(branch.id)
        try:
            return make(self._session(branch), self.store.jobs, branch, lease_s=self.lease_s, stop=self._stop)
        except BaseException:
            self._sessions.pop(branch.id, None)
            raise
        finally:
            with self._change:
                self._busy.discard(branch.id)

    def _session(self, branch: Branch) -> Session:
        """The worker's own session on a branch, kept for the next time."""
        with self._change:
            found = self._sessions.pop(branch.id, None)
        if found is None:
            record = Tip(self.store, branch)
            found = Session(digester=self.digester, record=record, name=branch.session, listener=self.listener)
        with self._change:
            self._sessions[branch.id] = found
            idle = [number for number in self._sessions if number not in self._busy]
            for number in idle[: max(0, len(self._sessions) - SESSIONS)]:
                del self._sessions[number]
        return found

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until nothing is under way; False when it took longer."""
        self._here()
        mine = {threading.current_thread()}  # whoever listens is told by one of them, and need not wait for itself
        with self._change:
            return self._change.wait_for(lambda: self._threads <= mine, timeout=seconds)

    def stop(self) -> None:
        """Drop what is under way and begin nothing more; does not wait."""
        self._here()
        with self._change:
            self._stop.set()
            self._queue.clear()

    def close(self) -> None:
        """Stop; what is under way is dropped and given back."""
        self.stop()
        self.wait(CLOSE_S)


class Elsewhere:
    """Leaves the folds to `foldline worker` processes: the ledger says that one is due, and they look for it."""

    elsewhere = True

    def __init__(self, store: Store) -> None:
        self.store = store

    def due(self, branch: Branch) -> None:
        """Ask for the fold, and tell whoever waits for work."""
        if self.store.jobs.request(branch):
            announce(self.store, branch)

    def wait(self, seconds: float | None = None) -> bool:  # noqa: ARG002  # nothing is under way here
        """Nothing is ever under way here."""
        return True

    def close(self) -> None:
        """Nothing is held."""
