"""A session for asyncio: each call runs in a thread, one after the other.

    session = AsyncSession(ledger.session("ticket-42", model="claude-sonnet-5"))
    await session.add(message)
    view = await session.view()

An `AsyncSession` wraps a `Session`. If a caller is cancelled while its call makes a fold, the fold is cancelled, too.
The digester is told to stop, and the fold is not committed. If the commit has already begun, the call returns its
result. A cancelled call that makes no fold runs to its end. The next call begins only after the cancelled call has
ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from foldline.errors import Cancelled, InputError
from foldline.events import LOG
from foldline.message import Message
from foldline.models.table import Model
from foldline.policy import Policy
from foldline.session.cancellation import Cancellation, cancelled_by
from foldline.session.record import Refusal
from foldline.session.reply_tee import ReplyTee
from foldline.session.session import Session
from foldline.view.compose import View
from foldline.view.identity import ViewIdentity

P = ParamSpec("P")
T = TypeVar("T")


def _awaited(
    method: Callable[Concatenate[Session, P], T],
) -> Callable[Concatenate[AsyncSession, P], Coroutine[Any, Any, T]]:
    """An async version of a `Session` method: it runs the method in a thread, after all earlier calls."""
    name = method.__name__

    @wraps(method)
    async def call(self: AsyncSession, /, *args: P.args, **options: P.kwargs) -> T:
        lock = self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        await lock.acquire()
        bound: Callable[P, T] = getattr(self.session, name)
        cancellation = Cancellation()
        with cancelled_by(cancellation):
            task = asyncio.ensure_future(asyncio.to_thread(bound, *args, **options))
        task.add_done_callback(lambda _: lock.release())
        while True:
            try:
                return await asyncio.shield(task)
            except asyncio.CancelledError:
                cancellation.cancel()
                if task.cancelled() or not cancellation.is_committing:
                    task.add_done_callback(_log_failure)
                    raise
            except Cancelled:
                if cancellation.is_set():
                    raise asyncio.CancelledError from None
                raise

    return call


def _log_failure(task: asyncio.Task[Any]) -> None:
    """Log the exception of a call whose caller was cancelled."""
    error = None if task.cancelled() else task.exception()
    if error is not None and not isinstance(error, Cancelled):
        LOG.warning("a call failed after its caller was cancelled: %s", error)


class AsyncSession:
    """One conversation under one policy. Its methods are coroutines."""

    def __init__(self, session: Session) -> None:
        if not isinstance(session, Session):
            hint = 'AsyncSession(Session(model="…")) or AsyncSession(ledger.session("…"))'
            raise InputError(f"AsyncSession wraps a Session, not {type(session).__name__}", hint=hint)
        self.session = session
        """The synchronous session."""
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        """One lock for each event loop. The session's own lock orders calls from different loops."""

    _add = _awaited(Session.add)
    view = _awaited(Session.view)
    plan = _awaited(Session.plan)
    fold = _awaited(Session.fold)
    preview = _awaited(Session.preview)
    approve = _awaited(Session.approve)
    revise = _awaited(Session.revise)
    unfold = _awaited(Session.unfold)
    refold = _awaited(Session.refold)
    pin = _awaited(Session.pin)
    unpin = _awaited(Session.unpin)
    recall = _awaited(Session.recall)
    clear = _awaited(Session.clear)
    rewind = _awaited(Session.rewind)
    use = _awaited(Session.use)
    continuation = _awaited(Session.continuation)
    _branch = _awaited(Session.branch)

    async def add(self, *things: Any, format: str | None = None, view: View | ViewIdentity | str | None = None) -> None:
        """Add messages at the end, like `Session.add`. An async stream is read to its end."""
        for index, thing in enumerate(things):
            if isinstance(thing, AsyncIterable):
                await self._add(*things[:index], format=format, view=view)
                async for _ in self.stream(thing, format=format, view=view):
                    pass
                await self.add(*things[index + 1 :], format=format, view=view)
                return
        await self._add(*things, format=format, view=view)

    def stream(
        self, stream: Any, *, format: str | None = None, view: View | ViewIdentity | str | None = None
    ) -> ReplyTee:
        """The events of a streamed reply, like `Session.stream`: `async for event in session.stream(stream)`."""
        return self.session.stream(stream, format=format, view=view).added_by(self)

    # These members only read the state in memory, so they need no `await`

    @property
    def name(self) -> str:
        """The name of the session in its ledger; "" without a ledger."""
        return self.session.name

    @property
    def model(self) -> Model:
        """The data of the model in the model table."""
        return self.session.model

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self.session.policy

    @property
    def format(self) -> str:
        """The wire format of the conversation."""
        return self.session.format

    @property
    def window(self) -> int:
        """The context window in tokens."""
        return self.session.window

    @property
    def usable(self) -> int:
        """The largest request allowed, in tokens."""
        return self.session.usable

    @property
    def folds(self) -> int:
        """The number of folds, without those that were undone."""
        return self.session.folds

    @property
    def refusal(self) -> Refusal | None:
        """The last fold that was refused, with the cause; None if a fold was made since then."""
        return self.session.refusal

    @property
    def skip_reason(self) -> str:
        """The reason why the last call of `fold` or `preview` returned None; "" if it returned a fold or a preview."""
        return self.session.skip_reason

    def size(self, message: Message) -> int:
        """The size of a message in tokens, counted with the session's counter."""
        return self.session.size(message)

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages, folded or not.

        They are read from the record in the calling thread. On a ledger, this blocks the event loop.
        """
        return self.session.messages

    @property
    def reply(self) -> Message | None:
        """The model's newest reply. Like `messages`, it is read in the calling thread."""
        return self.session.reply

    @property
    def pins(self) -> dict[str, Message]:
        """The pinned messages by the name of their pin. Like `messages`, they are read in the calling thread."""
        return self.session.pins

    def __len__(self) -> int:
        """The number of messages, folded or not."""
        return len(self.session)

    def __bool__(self) -> bool:
        """True, even for a session without messages."""
        return True

    def __repr__(self) -> str:
        return f"<Async{repr(self.session).removeprefix('<')}"

    async def cancel(self) -> bool:
        """Cancel the fold that is being made, without waiting for other calls.

        Returns False if no fold is being made.
        """
        return await asyncio.to_thread(self.session.cancel)

    async def branch(self, name: str, *, at: int | None = None) -> AsyncSession:
        """Another session that starts with the first `at` messages."""
        return AsyncSession(await self._branch(name, at=at))
