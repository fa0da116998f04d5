"""A ledger as its users know it: sessions by name, and everything that can be asked of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from typing import Any, Literal, Self, TypeAlias, get_args

from foldline import ledger
from foldline.digest.digester import Digester
from foldline.errors import ConfigError
from foldline.events import Listener
from foldline.ledger import MAIN, Store
from foldline.ledger.records import IntegrityFault, SessionInfo
from foldline.policy import Policy
from foldline.recall.text_index import TextIndex
from foldline.session.record import Tip
from foldline.session.session import Session
from foldline.session.worker import RemoteWorker, ThreadWorker, Worker

WorkerKind: TypeAlias = Literal["thread", "process"]
"""Where background folds are made: in threads of this process, or by `foldline worker` processes."""


class Ledger:
    """The permanent record of one owner's sessions."""

    def __init__(
        self,
        store: Store,
        *,
        digester: Digester | None = None,
        listener: Listener | None = None,
        worker: WorkerKind = "thread",
    ) -> None:
        if worker not in get_args(WorkerKind):
            raise ConfigError(f"unknown worker {worker!r}", hint=f"use one of: {', '.join(get_args(WorkerKind))}")
        self.store, self.digester, self.listener = store, digester, listener
        self.worker: Worker
        if worker == "process":
            self.worker = RemoteWorker(store)
        else:
            self.worker = ThreadWorker(store, digester=digester, listener=listener)

    def session(
        self,
        name: str,
        *,
        model: str | None = None,
        policy: Policy | str | None = None,
        tools: Sequence[Any] | None = None,
        branch: str = MAIN,
    ) -> Session:
        """A session by name, begun here if it is new. What is not said is as it was left."""
        return Session(
            model=model,
            policy=policy,
            tools=tools,
            digester=self.digester,
            record=Tip(self.store, self.store.session(name, branch)),
            name=name,
            listener=self.listener,
            worker=self.worker,
        )

    def sessions(self) -> tuple[SessionInfo, ...]:
        """Every session with its figures, the one used last first."""
        return self.store.sessions()

    def verify(self) -> Iterator[IntegrityFault]:
        """Everything that is not as it was once written."""
        return self.store.verify()

    def export(self, sessions: Iterable[str] | None = None) -> Iterator[str]:
        """Some sessions, or all, as lines of JSON."""
        return self.store.export(sessions)

    def load(self, lines: Iterable[str]) -> int:
        """Add what was exported; how many messages were new."""
        return self.store.load(lines)

    def prune(self, *, older_than: float) -> tuple[str, ...]:
        """Delete the sessions that nobody has used since a time (seconds since 1970)."""
        return self.store.prune(older_than=older_than)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until no fold is being made in this process; False when it took longer."""
        return self.worker.wait(seconds)

    def close(self) -> None:
        """Close it. A fold that is being made is dropped."""
        self.worker.close()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open(  # noqa: A001, PLR0913  # called as foldline.open; all but one are named at the call
    url: str | PathLike[str],
    *,
    owner: str = "",
    digester: Digester | None = None,
    listener: Listener | None = None,
    clock: Callable[[], float] | None = None,
    worker: WorkerKind = "thread",
) -> Ledger:
    """A ledger at a path, on a PostgreSQL server ("postgresql://…"), or in memory (":memory:").

    Folds that can wait for a model's digest are made in a thread, or left to `foldline worker` (`process`).
    """
    store = ledger.open(url, owner=owner, clock=clock, index=TextIndex())
    try:
        return Ledger(store, digester=digester, listener=listener, worker=worker)
    except BaseException:
        store.close()
        raise
