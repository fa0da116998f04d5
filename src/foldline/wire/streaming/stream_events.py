"""Reads the events of a streamed reply that an SDK yields: converts them to JSON, and finds their request format."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from typing import Any

from foldline.errors import InputError
from foldline.message import Message
from foldline.wire.formats import REQUEST_FORMATS, format_of
from foldline.wire.sdk_objects import is_sdk_object, sdk_json
from foldline.wire.streaming.assembler import Assembler, StreamedReply

_SNAPSHOTS = ("snapshot",)
"""Fields in which an SDK repeats everything that was received so far.

These fields are not read, because reading them at every event takes quadratic time.
"""


def is_stream(thing: Any) -> bool:
    """True for an object that yields the events of a reply: an SDK's stream, a generator, an async generator."""
    if isinstance(thing, (Message, Mapping, Sequence, str, bytes, bytearray, memoryview)):
        return False
    if hasattr(thing, "model_dump") or hasattr(thing, "role"):
        return False
    return isinstance(thing, (Iterable, AsyncIterable))


def is_stream_manager(thing: Any) -> bool:
    """True for a context manager of an SDK that returns a stream when it is entered (`client.messages.stream(…)`)."""
    return type(thing).__name__.endswith("StreamManager") and (
        hasattr(thing, "__enter__") or hasattr(thing, "__aenter__")
    )


def event_value(event: Any) -> Mapping[str, Any] | None:
    """The JSON value of an event, which is a dict or an object of an SDK; None for any other value."""
    if isinstance(event, Mapping):
        return event
    if getattr(event, "type", None) == "chunk" and hasattr(event, "chunk"):  # of client.chat.completions.stream
        event = event.chunk
    return sdk_json(event, without=_SNAPSHOTS) if is_sdk_object(event) else None


def stream_format(value: Mapping[str, Any]) -> str:
    """The request format whose streams contain events like this one; "" if the format is not clear."""
    for name in REQUEST_FORMATS:
        reply = format_of(name).reply
        if reply is not None and reply.is_event(value):
            return name
    return ""


def is_event_list(value: Any) -> bool:
    """True for a list that holds the events of one streamed reply. False for a list of whole replies."""
    if not isinstance(value, list) or not value or isinstance(value[0], Message):
        return False
    first = event_value(value[0])
    return first is not None and stream_format(first) not in ("", "gemini")


class EventAssembler:
    """Assembles the events of one reply. The format is taken from the first event that clearly shows it."""

    def __init__(self, format: str = "", *, default: str = "openai") -> None:
        self.format = format
        self._default = default
        self._assembler: Assembler | None = Assembler(format) if format else None

    def take(self, event: Any) -> None:
        """Process an event: a dict, an SDK's object, or bytes of the stream."""
        if isinstance(event, (bytes, bytearray)):
            self._assembler_for(self._default).feed(bytes(event))
            return
        value = event_value(event)
        if value is None:
            what = f"the stream yields {type(event).__name__} objects, not events of a reply"
            raise InputError(what, hint="pass the stream of the SDK, its events, or bytes")
        self._assembler_for(stream_format(value) if self._assembler is None else "").take(value)

    def finish(self) -> StreamedReply | None:
        """The reply, as far as it was received; None if nothing was received."""
        return self._assembler.finish() if self._assembler is not None else None

    def _assembler_for(self, format: str) -> Assembler:
        if self._assembler is None:
            self.format = format or self._default
            self._assembler = Assembler(self.format)
        return self._assembler
