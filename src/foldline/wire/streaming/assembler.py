"""Assembles a streamed reply to the messages and usage of the non-streamed one.

The format's reply parser reads the JSON value that the provider would have sent without streaming. Of a stream that
broke off or carries an error, only what may be sent back to the provider is kept; the rest is reported as lost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from foldline.errors import ConfigError, WireError
from foldline.json_text import loads
from foldline.message import Message, Usage
from foldline.wire.field_access import list_at, object_at
from foldline.wire.formats import LossCollector, Lost, request_format
from foldline.wire.streaming.sse import EVENT_BYTES, EventReader, ServerSentEvent

CUT = "cut"
"""The stop of a reply that ended without a stop reason."""
ERROR = "error"
"""The stop of a reply that ended with an error of the provider."""
_NO_MESSAGE = "the provider reported an error without a message"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedReply:
    """The reply of a provider, as far as it was received."""

    messages: tuple[Message, ...]
    """The messages that may be recorded and sent back; empty when nothing was complete."""
    usage: Usage | None
    """The latest usage. The message has it only if the reply is complete: the output figure is a running total, and
    an anchor must not use an incomplete one."""
    stop: str
    """Why the model stopped, in the provider's word, or "cut" or "error"."""
    complete: bool
    """True if the provider ended the reply itself, without an error."""
    error: dict[str, Any] | None = None
    """The error in the stream, as the provider sent it."""
    lost: tuple[Lost, ...] = ()
    """What is missing from the messages: a call named here did not run."""
    value: dict[str, Any] | None = None
    """The reply as non-streamed JSON."""


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
            raise ConfigError(f"the format {format!r} has no replies that can be read")
        self._format = replies
        self._events = EventReader(event_bytes=event_bytes)
        self._stream = self._format.stream()
        self._error: dict[str, Any] | None = None

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes; nothing raises."""
        for event in self._events.feed(chunk):
            self._take(event)

    def finish(self) -> StreamedReply | None:
        """The reply after the last bytes; None if nothing came."""
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
            messages = (*messages[:-1], replace(last, meta=replace(last.meta, stop=stop, usage=None)))
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
                self._error = self._error or _error(event.name, found)
                self._stream.take(found)

    def _messages(self, value: dict[str, Any] | None, loss: LossCollector) -> tuple[Message, ...]:
        """The messages of the assembled value; empty if its format's parser refuses it."""
        if not list_at(value, self._format.list_key):
            return ()
        try:
            return tuple(self._format.parse(value))
        except WireError as error:
            loss.add("message", str(error))
            return ()


def _error(name: str, value: dict[str, Any]) -> dict[str, Any] | None:
    """The error in an event: under `error`, the event itself, or that of a failed response."""
    kind = value.get("type")
    if kind == "response.failed":
        found = object_at(value, "response").get("error") or _NO_MESSAGE
    elif ERROR in (name, kind, value.get("object")):
        found = value.get("error") or value or _NO_MESSAGE
    else:
        found = value.get("error") or next((object_at(choice, "error") for choice in list_at(value, "choices")), None)
    if not found:
        return None
    if isinstance(found, dict):
        return found
    return {"message": found if isinstance(found, str) else _NO_MESSAGE}
