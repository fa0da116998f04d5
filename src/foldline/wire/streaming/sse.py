"""Reads server-sent events from chunks of bytes, which may end anywhere.

The reader buffers only the incomplete event, in bounded memory, and never raises. The reader also accepts some
deviations from the standard. A server may send plain JSON instead of events: an error with status 200, a reply that
ignores `stream`, or Gemini's JSON array. A server may also send a bare JSON line between events, or an `error:` line
(older llama.cpp).
"""

from __future__ import annotations

from typing import NamedTuple

from foldline import json_text

EVENT_BYTES = 64 * 1024 * 1024
"""The maximum size of one event in bytes, far above what providers send."""

_BOM = b"\xef\xbb\xbf"


class ServerSentEvent(NamedTuple):
    """One event: its name ("" if it has none) and its data lines."""

    name: str
    data: str


class EventReader:
    r"""Reads events from chunks of bytes.

    >>> events = EventReader()
    >>> events.feed(b"event: ping\r\nda") + events.feed(b"ta: {}\r\n\r") + events.feed(b"\n: a comment")
    [ServerSentEvent(name='ping', data='{}')]
    """

    def __init__(self, *, event_bytes: int = EVENT_BYTES) -> None:
        self.overflow = False
        """True after an event that was larger than allowed. After such an event, nothing more is read."""
        self._event_bytes = event_bytes
        self._line: list[bytes] = []
        self._line_bytes = 0
        self._after_cr = False
        self._begun = False
        self._plain = False
        self._name = ""
        self._data: list[bytes] = []
        self._data_bytes = 0

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """The events that this chunk completes."""
        if not chunk or self.overflow:
            return []
        if self._after_cr and chunk[:1] == b"\n":
            chunk = chunk[1:]
        self._after_cr = chunk[-1:] == b"\r"
        self._line.append(chunk)
        self._line_bytes += len(chunk)
        found: list[ServerSentEvent] = []
        if b"\n" in chunk or b"\r" in chunk:
            lines = b"".join(self._line).splitlines()
            rest = b"" if chunk[-1:] in (b"\n", b"\r") else lines.pop()
            self._line, self._line_bytes = [rest], len(rest)
            found = [event for line in lines if (event := self._take(line)) is not None]
        self._bound()
        return found

    def close(self) -> list[ServerSentEvent]:
        """The last event, if the stream ended without the blank line after it; some servers omit this line."""
        line, self._line = b"".join(self._line), []
        if line:
            self._take(line)
        event = self._event()
        return [] if event is None else [event]

    def _take(self, line: bytes) -> ServerSentEvent | None:
        """Read one line. A blank line ends an event, and this event is returned."""
        if not self._begun:  # the first line with content shows whether this is an event stream or plain JSON
            line = line.removeprefix(_BOM)
            head = line.lstrip()[:1]
            self._begun, self._plain = bool(head), head in (b"{", b"[")
        if self._plain:
            self._hold(line)
        elif not line:
            return self._event()
        elif line.startswith(b"data:"):
            self._hold(_value(line, 5))
        elif line.startswith(b"event:"):
            self._name = json_text.decode(_value(line, 6))
        elif line.startswith(b"error:"):
            self._name = "error"
            self._hold(_value(line, 6))
        elif line == b"data" or line.startswith(b"{"):
            self._hold(line.removeprefix(b"data"))
        return None

    def _hold(self, data: bytes) -> None:
        self._data.append(data)
        self._data_bytes += len(data)
        self._bound()

    def _bound(self) -> None:
        if self.overflow or self._line_bytes + self._data_bytes > self._event_bytes:
            self.overflow = True
            self._line, self._data = [], []

    def _event(self) -> ServerSentEvent | None:
        name, data = self._name, b"\n".join(self._data)
        self._name, self._data, self._data_bytes = "", [], 0
        return ServerSentEvent(name, json_text.decode(data)) if data else None


def _value(line: bytes, at: int) -> bytes:
    """The value of a field. The value begins at index `at`; one leading space is left out."""
    return line[at + 1 :] if line[at : at + 1] == b" " else line[at:]
