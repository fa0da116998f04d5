"""A session for asyncio: each call runs in a thread, one after the other.

    session = AsyncSession(ledger.session("ticket-42", model="claude-sonnet-5"))
    await session.add(message)
    view = await session.view()

It wraps a `Session`. When a caller is cancelled, its call still runs to its end, and the next call comes after that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from foldline.fold import Fold
from foldline.plan.plan import Plan
from foldline.policy import Policy
from foldline.recall.search import TOKENS
from foldline.session.preview import Preview
from foldline.session.session import Session
from foldline.view.compose import View

T = TypeVar("T")


class AsyncSession:
    """One conversation under one policy; every call is awaited."""

    def __init__(self, session: Session) -> None:
        self.session = session
        """The session itself, for what does not wait (`timeline`, `policy`, `model`, `folds`)."""
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        """One lock for each event loop; between loops the session's own lock holds."""

    async def _run(self, call: Callable[[], T]) -> T:
        """Run a call in a thread after all earlier ones."""
        lock = self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        await lock.acquire()
        task = asyncio.ensure_future(asyncio.to_thread(call))
        task.add_done_callback(lambda _: lock.release())
        return await asyncio.shield(task)

    async def add(self, *things: Any, format: str | None = None) -> None:
        """Add messages at the end."""
        await self._run(lambda: self.session.add(*things, format=format))

    async def view(self) -> View:
        """What to send now."""
        return await self._run(self.session.view)

    async def plan(self) -> Plan:
        """What `view` would do now, without doing it."""
        return await self._run(self.session.plan)

    async def fold(self, *, instructions: str = "", force: bool = False, digest: str | None = None) -> Fold | None:
        """Fold now."""
        return await self._run(lambda: self.session.fold(instructions=instructions, force=force, digest=digest))

    async def preview(self, *, instructions: str = "", force: bool = False) -> Preview | None:
        """What `fold` would do now."""
        return await self._run(lambda: self.session.preview(instructions=instructions, force=force))

    async def approve(self, preview: Preview, *, digest: str | None = None) -> Fold:
        """Make the fold of a preview."""
        return await self._run(lambda: self.session.approve(preview, digest=digest))

    async def unfold(self) -> None:
        """Take back the newest fold."""
        await self._run(self.session.unfold)

    async def pin(self, text: str = "", *, handle: str = "", name: str = "") -> tuple[str, ...]:
        """Keep messages, or a text, in every view."""
        return await self._run(lambda: self.session.pin(text, handle=handle, name=name))

    async def unpin(self, name: str) -> None:
        """Remove a pin."""
        await self._run(lambda: self.session.unpin(name))

    async def branch(self, name: str, *, at: int | None = None) -> AsyncSession:
        """Another session that starts with the first `at` messages."""
        return AsyncSession(await self._run(lambda: self.session.branch(name, at=at)))

    async def recall(self, query: str = "", *, handle: str = "", tokens: int = TOKENS, everywhere: bool = False) -> Any:
        """The messages that match a query, or those of a handle."""
        return await self._run(lambda: self.session.recall(query, handle=handle, tokens=tokens, everywhere=everywhere))

    async def clear(self) -> None:
        """Start again with an empty view."""
        await self._run(self.session.clear)

    async def use(
        self,
        *,
        model: str | None = None,
        policy: Policy | str | None = None,
        tools: Sequence[Any] | None = None,
        format: str | None = None,
    ) -> None:
        """Go on with another model, policy, set of tools or wire format."""
        await self._run(lambda: self.session.use(model=model, policy=policy, tools=tools, format=format))
