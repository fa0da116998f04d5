"""A session for callers that must not block: the same session, each call in a thread, one after the other.

    session = AsyncSession(ledger.session("ticket-42", model="claude-sonnet-5"))
    await session.add(message)
    view = await session.view()

There is no second session behind it. A caller that is cancelled does not wait any longer; what it asked for is done to
its end all the same, and the next call comes after that.
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
    """One conversation under one policy, with every call to be awaited."""

    def __init__(self, session: Session) -> None:
        self.session = session
        """What it stands for: ask it for whatever does not wait (`path`, `policy`, `model`, `folds`)."""
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        """Whose turn it is, in each event loop; threads of several loops take turns by the session's own lock."""

    async def _do(self, work: Callable[[], T]) -> T:
        """Work in a thread, when all that was asked for before is done."""
        turn = self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        await turn.acquire()
        task = asyncio.ensure_future(asyncio.to_thread(work))
        task.add_done_callback(lambda _: turn.release())
        return await asyncio.shield(task)

    async def add(self, *things: Any) -> None:
        """Add messages at the end."""
        await self._do(lambda: self.session.add(*things))

    async def view(self) -> View:
        """What to send now."""
        return await self._do(self.session.view)

    async def plan(self) -> Plan:
        """What would be done now, without doing it."""
        return await self._do(self.session.plan)

    async def fold(self, *, instructions: str = "", force: bool = False, digest: str | None = None) -> Fold | None:
        """Fold now, because somebody asks for it."""
        return await self._do(lambda: self.session.fold(instructions=instructions, force=force, digest=digest))

    async def preview(self, *, instructions: str = "", force: bool = False) -> Preview | None:
        """What `fold` would do now."""
        return await self._do(lambda: self.session.preview(instructions=instructions, force=force))

    async def approve(self, preview: Preview, *, digest: str | None = None) -> Fold:
        """Make the fold of a preview."""
        return await self._do(lambda: self.session.approve(preview, digest=digest))

    async def unfold(self) -> None:
        """Take back the newest fold."""
        await self._do(self.session.unfold)

    async def pin(self, text: str = "", *, handle: str = "", name: str = "") -> tuple[str, ...]:
        """Let no fold touch messages, or a text."""
        return await self._do(lambda: self.session.pin(text, handle=handle, name=name))

    async def unpin(self, name: str) -> None:
        """Let go of a pin."""
        await self._do(lambda: self.session.unpin(name))

    async def branch(self, name: str, *, at: int | None = None) -> AsyncSession:
        """Another session that shares the first `at` messages."""
        return AsyncSession(await self._do(lambda: self.session.branch(name, at=at)))

    async def recall(self, query: str = "", *, handle: str = "", tokens: int = TOKENS, everywhere: bool = False) -> Any:
        """What was said about something, or exactly by its handle."""
        return await self._do(lambda: self.session.recall(query, handle=handle, tokens=tokens, everywhere=everywhere))

    async def clear(self) -> None:
        """Begin anew with an empty view."""
        await self._do(self.session.clear)

    async def use(
        self, *, model: str | None = None, policy: Policy | str | None = None, tools: Sequence[Any] | None = None
    ) -> None:
        """Go on with another model, policy or set of tools."""
        await self._do(lambda: self.session.use(model=model, policy=policy, tools=tools))
