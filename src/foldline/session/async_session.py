"""A session for asyncio: each call runs in a thread, one after the other.

    session = AsyncSession(ledger.session("ticket-42", model="claude-sonnet-5"))
    await session.add(message)
    view = await session.view()

It wraps a `Session`. When a caller is cancelled, its call still runs to its end, and the next call comes after that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from foldline.session.session import Session

P = ParamSpec("P")
T = TypeVar("T")


def _awaited(
    method: Callable[Concatenate[Session, P], T],
) -> Callable[Concatenate[AsyncSession, P], Coroutine[Any, Any, T]]:
    """The method of `AsyncSession` that runs this method of its session in a thread, after all earlier calls."""
    name = method.__name__

    @wraps(method)
    async def call(self: AsyncSession, /, *args: P.args, **options: P.kwargs) -> T:
        lock = self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        await lock.acquire()
        bound: Callable[P, T] = getattr(self.session, name)
        task = asyncio.ensure_future(asyncio.to_thread(bound, *args, **options))
        task.add_done_callback(lambda _: lock.release())
        return await asyncio.shield(task)

    return call


class AsyncSession:
    """One conversation under one policy; every call is awaited."""

    def __init__(self, session: Session) -> None:
        self.session = session
        """The synchronous session, for members that need no `await` (`timeline`, `policy`, `model`, `folds`)."""
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        """One lock for each event loop; between loops the session's own lock holds."""

    add = _awaited(Session.add)
    view = _awaited(Session.view)
    plan = _awaited(Session.plan)
    fold = _awaited(Session.fold)
    preview = _awaited(Session.preview)
    approve = _awaited(Session.approve)
    unfold = _awaited(Session.unfold)
    pin = _awaited(Session.pin)
    unpin = _awaited(Session.unpin)
    recall = _awaited(Session.recall)
    clear = _awaited(Session.clear)
    use = _awaited(Session.use)
    _branch = _awaited(Session.branch)

    async def branch(self, name: str, *, at: int | None = None) -> AsyncSession:
        """Another session that starts with the first `at` messages."""
        return AsyncSession(await self._branch(name, at=at))
