"""A worker process: it looks for folds that are wanted in a ledger, of one owner or of all, and makes them.

Any number of them may run, on any host. Which one makes a fold is decided by the claim in the ledger; when one is
killed, the next takes the fold up after the lease. On PostgreSQL the news comes by PgQueuer, elsewhere by looking.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from foldline import ledger
from foldline.digest.digester import Digester
from foldline.digest.model_digest import error_cause
from foldline.ledger import Branch, Store
from foldline.ledger.jobs import JobRequest
from foldline.ledger.schema import POSTGRES
from foldline.session import job_queue as dispatch
from foldline.session.worker import FAILED, HANDS, HELD, LEASE_S, NOTHING, Crew

POLL_S = 1.0
"""How often the ledger is looked at."""


class Done(NamedTuple):
    """A job, what came of it, and how long it took."""

    wanted: JobRequest
    came: str
    seconds: float
    cause: str = ""


class Station:
    """What one process does for a ledger."""

    def __init__(  # noqa: PLR0913  # all but one are named at the call
        self,
        store: Store,
        *,
        digester: Digester | None = None,
        everybody: bool = False,
        done: Callable[[Done], None] | None = None,
        lease_s: float = LEASE_S,
        poll_s: float = POLL_S,
    ) -> None:
        self.store, self.digester, self.everybody, self._done = store, digester, everybody, done
        self.lease_s, self.poll_s, self.hands = lease_s, poll_s, HANDS
        self._crews: dict[str, Crew] = {}
        self._lock = threading.Lock()

    def waiting(self) -> list[JobRequest]:
        """What there is to do."""
        return self.store.jobs.pending(everybody=self.everybody)

    def take(self, wanted: JobRequest) -> str:
        """Do one job, unless somebody else does; what came of it."""
        began, cause = time.monotonic(), ""
        try:
            crew, branch = self._crew(wanted.owner), self._branch(wanted)
            came = NOTHING if branch is None else crew.do(branch)
            if branch is not None and came == FAILED:
                cause = str(crew.store.jobs.get(branch).body)
        except Exception as error:  # noqa: BLE001 (told, and looked at again: a worker goes on)
            came, cause = FAILED, error_cause(error)
        if came != HELD and self._done is not None:
            self._done(Done(wanted, came, time.monotonic() - began, cause))
        return came

    def _crew(self, owner: str) -> Crew:
        with self._lock:
            if owner not in self._crews:
                store = self.store if owner == self.store.owner else ledger.for_owner(self.store, owner)
                self._crews[owner] = Crew(store, digester=self.digester, lease_s=self.lease_s)
            return self._crews[owner]

    def _branch(self, wanted: JobRequest) -> Branch | None:
        """The branch that is meant, if it is still there."""
        branches = self._crew(wanted.owner).store.branches(wanted.session)
        return next((branch for branch in branches if branch.name == wanted.branch), None)

    def stop(self) -> None:
        """Drop what is under way and begin nothing more."""
        with self._lock:
            for crew in self._crews.values():
                crew.stop()

    async def run(self, url: str, stop: asyncio.Event, *, once: bool = False) -> None:
        """Work until told to stop, or `once` until nothing is left to do."""
        try:
            if not once and self.store.tx.pool.database.name == POSTGRES and dispatch.installed():
                await dispatch.serve(url, self, stop)
            else:
                await self._look(stop, once=once)
        finally:
            self.stop()

    async def _look(self, stop: asyncio.Event, *, once: bool) -> None:
        """Look for work again and again, and do some of it at once."""
        running: dict[JobRequest, asyncio.Task[str]] = {}
        tried: set[JobRequest] = set()
        while not stop.is_set():
            for wanted in await asyncio.to_thread(self.waiting):
                if wanted not in running and wanted not in tried and len(running) < self.hands:
                    running[wanted] = asyncio.create_task(asyncio.to_thread(self.take, wanted))
                    tried |= {wanted} if once else set()
            if once and not running:
                return
            pausing = asyncio.create_task(dispatch.pause(stop, self.poll_s))
            await asyncio.wait({pausing, *running.values()}, return_when=asyncio.FIRST_COMPLETED)
            pausing.cancel()
            running = {wanted: task for wanted, task in running.items() if not task.done()}
        self.stop()
        await asyncio.gather(*running.values())
