"""Passes on the events of a streamed reply, and adds the reply to a session when the stream ends.

    for event in session.stream(client.messages.create(**request, stream=True)):
        ...                             # the SDK's own events, unchanged
    async for event in session.stream(await client.messages.create(**request, stream=True)): ...

The stream may end early: you leave the loop, the connection breaks, or the task is cancelled. Then the part that was
received is added as a valid message. Its text and complete calls stay, and an incomplete call is left out.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from foldline.errors import InputError
from foldline.message import Message, joined_reply
from foldline.view.identity import ViewIdentity
from foldline.wire.streaming.assembler import StreamedReply
from foldline.wire.streaming.stream_events import EventAssembler, is_stream_manager

if TYPE_CHECKING:
    from foldline.session.async_session import AsyncSession
    from foldline.session.session import Session


class ReplyTee:
    """The events of one streamed reply. Iterate over it with `for` or with `async for`."""

    def __init__(self, session: Session, stream: Any, *, format: str | None, view: ViewIdentity | None) -> None:
        if is_stream_manager(stream):
            what = f"{type(stream).__name__} is not a stream yet"
            how = "with client.messages.stream(…) as stream: session.stream(stream)"
            raise InputError(what, hint=f"open the stream with `with` first: {how}")
        if not isinstance(stream, (Iterable, AsyncIterable)) or isinstance(stream, (str, bytes)):
            raise InputError(f"not a stream: {type(stream).__name__}", hint="pass the stream that the SDK returned")
        self._session, self._stream, self._view = session, stream, view
        self._async_session: AsyncSession | None = None
        self._assembler = EventAssembler(format or "", default=session.format)
        self._is_finished = False
        self.reply: StreamedReply | None = None
        """The received reply: its messages, stop reason, usage, error, and what was lost. None until the end of the
        stream.
        """

    @property
    def message(self) -> Message | None:
        """The model's reply, with its text and all its calls. None before the end of the stream, and if no part of the
        reply was complete.
        """
        return joined_reply(self.reply.messages) if self.reply is not None else None

    def __iter__(self) -> Iterator[Any]:
        if not isinstance(self._stream, Iterable):
            raise InputError("this stream is async", hint="write: async for event in session.stream(stream)")
        try:
            for event in self._stream:
                self._assembler.take(event)
                yield event
        finally:
            self.close()

    def __aiter__(self) -> AsyncIterator[Any]:
        return _AsyncEvents(self, self._stream, self._assembler)

    def added_by(self, session: AsyncSession) -> ReplyTee:
        """Make `async for` add the reply to this session with `await session.add(…)`. Returns the same object."""
        self._async_session = session
        return self

    def close(self) -> None:
        """Add the received part of the reply to the session. You need not call this: it is called whenever the loop
        ends.
        """
        reply = self._finish()
        if reply is not None:
            self._session.add(*reply.messages, view=self._view)
            self._session.report_reply(reply)

    async def aclose(self) -> None:
        """Like `close`, without blocking the event loop if the session is an `AsyncSession`."""
        if self._async_session is None:
            self.close()
            return
        reply = self._finish()
        if reply is not None:
            await self._async_session.add(*reply.messages, view=self._view)
            self._session.report_reply(reply)

    def _finish(self) -> StreamedReply | None:
        """The received reply at the first call; None at later calls, or if nothing was received."""
        if self._is_finished:
            return None
        self._is_finished = True
        self.reply = self._assembler.finish()
        return self.reply


class _AsyncEvents:
    """The asynchronous iterator. Only the loop holds this object, so it is deleted as soon as the loop is left."""

    def __init__(self, tee: ReplyTee, stream: Any, assembler: EventAssembler) -> None:
        self._tee, self._assembler = tee, assembler
        self._events = aiter(stream) if isinstance(stream, AsyncIterable) else _as_async(stream)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        try:
            event = await anext(self._events)
            self._assembler.take(event)
        except BaseException:  # also at the end of the stream, or if the task is cancelled
            await self._tee.aclose()
            raise
        return event

    def __del__(self) -> None:
        self._tee.close()


async def _as_async(events: Iterable[Any]) -> AsyncIterator[Any]:
    for event in events:
        yield event
