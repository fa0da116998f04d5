"""Assembles a streamed reply into the messages and usage that the non-streamed reply would give.

The format's parser reads the JSON value that the provider would have sent without streaming. If the stream breaks off
or carries an error, only parts that may be sent back to the provider are kept; the rest is reported as lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from foldline.errors import ConfigError, WireError
from foldline.json_text import loads
from foldline.message import Message, Usage
from foldline.wire.field_access import list_at, object_at
from foldline.wire.formats import LossCollector, Lost, request_format
from foldline.wire.streaming.sse import EVENT_BYTES, EventReader, ServerSentEvent

CUT = "cut"
"""The value of `stop` for a reply that ended without a stop reason."""
ERROR = "error"
"""The value of `stop` for a reply that ended with an error from the provider."""
_NO_MESSAGE = "the provider reported an error without a message"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedReply:
    """The reply of a provider, as far as it was received."""

    messages: tuple[Message, ...]
    """The messages that may be recorded and sent back; empty if nothing was complete."""
    usage: Usage | None
    """The latest usage; None if the stream had no usage.

    The last message has this usage only if the reply is complete. The output figure is a running total, and token
    counting must not rely on an incomplete total.
    """
    stop: str
    """Why the model stopped: the provider's stop reason, "cut" or "error"."""
    complete: bool
    """True if the provider ended the reply itself, without an error."""
    error: dict[str, Any] | None = None
    """The error in the stream, as the provider sent it; None if there was none."""
    lost: tuple[Lost, ...] = ()
    """The parts that are missing from the messages. A call that is listed here was not run."""
    value: dict[str, Any] | None = None
    """The reply as the JSON value of a non-streamed reply."""


class Assembler:
    r"""Assembles the bytes of one reply, streamed or not.

    >>> assembler = Assembler("openai")
    >>> assembler.feed(b'data: {"choices": [{"delta": {"content": "Hel"}}]}\n\nda')
    >>> assembler.feed(b'ta: {"choices": [{"delta": {"content": "lo"}, "finish_reason": "stop"}]}\n\n')
    >>> reply = assembler.finish()
    >>> reply.messages[0].text, reply.stop, reply.complete
    ('Hello', 'stop', True)
    """

    def __init__(self, format: str, *, event_bytes: int = EVENT_BYTES) -> None:
        replies = request_format(format).reply
        if replies is None:
            raise ConfigError(f"replies in the format {format!r} cannot be read")
        self._format = replies
        self._events = EventReader(event_bytes=event_bytes)
        self._stream = self._format.stream()
        self._error: dict[str, Any] | None = None

    def feed(self, chunk: bytes) -> None:
        """Read the next bytes. Never raises."""
        for event in self._events.feed(chunk):
            self._take(event)

    def take(self, value: Mapping[str, Any]) -> None:
        """Process one event that was parsed already. Never raises."""
        self._take_value(dict(value), "")

    def finish(self) -> StreamedReply | None:
        """The reply, after all bytes were fed; None if nothing was received."""
        for event in self._events.close():
            self._take(event)
        loss = LossCollector()
        if self._events.overflow:
            loss.add("event", "it was larger than allowed, and the rest of the reply was not read")
        complete = bool(self._stream.stop) and self._error is None and not self._events.overflow
        value = self._stream.value(cut=not complete, loss=loss)
        usage = self._format.usage(object_at(value, self._format.usage_key))
        messages = self._messages(value, loss)
        stop = ERROR if self._error is not None else CUT
        if not (messages or usage or self._error or loss.items or complete):
            return None
        if complete:
            stop = (messages[-1].meta.stop if messages else "") or self._stream.stop
        elif messages:
            last = messages[-1]
            messages = (*messages[:-1], last.with_meta(replace(last.meta, stop=stop, usage=None)))
        return StreamedReply(
            messages=messages,
            usage=usage,
            stop=stop,
            complete=complete,
            error=self._error,
            lost=tuple(loss.items),
            value=value,
        )

    def _take(self, event: ServerSentEvent) -> None:
        try:
            value = loads(event.data)
        except WireError:
            if event.name == "error" and self._error is None:
                self._error = {"message": event.data}
            return
        for found in value if isinstance(value, list) else [value]:
            if isinstance(found, dict):
                self._take_value(found, event.name)

    def _take_value(self, value: dict[str, Any], name: str) -> None:
        self._error = self._error or _error(name, value)
        self._stream.take(value)

    def _messages(self, value: dict[str, Any] | None, loss: LossCollector) -> tuple[Message, ...]:
        """The messages of the assembled value; empty if the format's parser refuses the value."""
        if not list_at(value, self._format.list_key):
            return ()
        try:
            return tuple(self._format.parse(value))
        except WireError as error:
            loss.add("message", str(error))
            return ()


def _error(name: str, value: dict[str, Any]) -> dict[str, Any] | None:
    """The error in an event: its field `error`, the event itself, or the error of a failed response.

    None if the event is not an error.
    """
    kind = value.get("type")
    if kind == "response.failed":
        found = object_at(value, "response").get("error") or _NO_MESSAGE
    elif ERROR in (name, kind, value.get("object")):
        found = value.get("error") or value or _NO_MESSAGE
    else:
        found = value.get("error")
        if not found and (choices := list_at(value, "choices")):
            found = object_at(choices[0], "error")
    if not found:
        return None
    if isinstance(found, dict):
        return found
    return {"message": found if isinstance(found, str) else _NO_MESSAGE}
