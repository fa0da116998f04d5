"""The ledger that `foldline.open` returns: sessions by name, and operations on all sessions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from typing import Any, Literal, Self, TypeAlias, get_args

from foldline import ledger
from foldline.digest.digester import Digester, DigesterCall
from foldline.digesters import digester_of
from foldline.errors import ConfigError
from foldline.events import Listener
from foldline.ledger import MAIN, Store
from foldline.ledger.records import IntegrityFault, SessionInfo
from foldline.policy import Policy
from foldline.recall.text_index import TextIndex
from foldline.session.record import BranchRecord
from foldline.session.session import Session
from foldline.session.worker import RemoteWorker, ThreadWorker, Worker

WorkerKind: TypeAlias = Literal["thread", "process"]
"""Where background folds are made: in threads of this process, or by `foldline worker` processes."""


class Ledger:
    """The permanent record of one tenant's sessions."""

    def __init__(
        self,
        store: Store,
        *,
        digester: Digester | Callable[[DigesterCall], Any] | None = None,
        listener: Listener | None = None,
        worker: WorkerKind = "thread",
    ) -> None:
        if worker not in get_args(WorkerKind):
            raise ConfigError(f"unknown worker {worker!r}", hint=f"use one of: {', '.join(get_args(WorkerKind))}")
        self.store, self.digester, self.listener = store, digester_of(digester), listener
        self.worker: Worker
        if worker == "process":
            self.worker = RemoteWorker(store)
        else:
            self.worker = ThreadWorker(store, digester=self.digester, listener=listener)

    def session(  # noqa: PLR0913 (all but one are keyword-only)
        self,
        name: str,
        *,
        model: str | None = None,
        policy: Policy | str | None = None,
        tools: Sequence[Any] | None = None,
        format: str | None = None,
        branch: str = MAIN,
    ) -> Session:
        """The session with this name; a new name creates a session.

        Settings that are not given keep their stored values.
        """
        return Session(
            model=model,
            policy=policy,
            tools=tools,
            format=format,
            digester=self.digester,
            record=BranchRecord(self.store, self.store.session(name, branch)),
            name=name,
            listener=self.listener,
            worker=self.worker,
            clock=self.store.tx.clock or time.time,
        )

    def sessions(self) -> tuple[SessionInfo, ...]:
        """All sessions with their counts and times, the most recently used first."""
        return self.store.sessions()

    def verify(self) -> Iterator[IntegrityFault]:
        """Yield the integrity faults: rows that are missing or do not match their keys."""
        return self.store.verify()

    def export(self, sessions: Iterable[str] | None = None) -> Iterator[str]:
        """The named sessions as lines of JSON; all sessions if none are named."""
        return self.store.export(sessions)

    def load(self, lines: Iterable[str]) -> int:
        """Import exported lines and return the number of new messages."""
        return self.store.load(lines)

    def prune(self, *, older_than: float) -> tuple[str, ...]:
        """Delete the sessions that were last used before a time (seconds since 1970), and return their names."""
        return self.store.prune(older_than=older_than)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until no fold is being made in this process. Returns False if that takes more than `seconds`."""
        return self.worker.wait(seconds)

    def close(self) -> None:
        """Close the ledger. A fold that is still being made is discarded."""
        try:
            self.worker.close()
        finally:
            self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open(  # noqa: A001, PLR0913  # called as foldline.open; all but one are keyword-only
    url: str | PathLike[str],
    *,
    owner: str = "",
    digester: Digester | Callable[[DigesterCall], Any] | None = None,
    listener: Listener | None = None,
    clock: Callable[[], float] | None = None,
    worker: WorkerKind = "thread",
) -> Ledger:
    """Open a ledger at a path, on a PostgreSQL server ("postgresql://…"), or in memory (":memory:").

    `owner` is the tenant id. Folds in the background are made in threads of this process or, with `worker="process"`,
    by `foldline worker` processes.
    """
    store = ledger.open(url, owner=owner, clock=clock, index=TextIndex())
    try:
        return Ledger(store, digester=digester, listener=listener, worker=worker)
    except BaseException:
        store.close()
        raise
