"""The traces of a session's messages. A trace is a hash of message contents, by which a client's history is found.

A client sends its whole history with every request, but often with other bytes than were stored. `TraceChain.find` and
`TraceChain.has_at` compare traces (see message_keys.py), so such a history is still found.

The client does not know the notes in the session, such as a pinned text. So a note does not change the trace.
"""

from __future__ import annotations

from collections.abc import Sequence

from foldline.ledger.message_keys import ROOT, trace
from foldline.message import NOTE, Message


class TraceChain:
    """The traces of a session's messages, starting at the position `start`.

    The place of a message is its number in the session, counted from 1.
    """

    __slots__ = ("_notes", "_traces", "start")

    def __init__(self, start: int = 0, messages: Sequence[Message] = ()) -> None:
        self.start = start
        self._traces: list[bytes] = []
        """For each message from `start` on, the trace of the history that ends with it."""
        self._notes: set[int] = set()
        """The indexes of the notes in `_traces`."""
        self.extend(messages)

    @property
    def end(self) -> int:
        """The number of messages in the session."""
        return self.start + len(self._traces)

    def extend(self, messages: Sequence[Message]) -> None:
        """Add messages at the end."""
        before = self._traces[-1] if self._traces else ROOT
        for message in messages:
            if message.kind == NOTE:
                self._notes.add(len(self._traces))
            before = _step(before, message)
            self._traces.append(before)

    def first(self, place: int) -> TraceChain:
        """A new chain with only the first `place` messages of the session."""
        chain = TraceChain(self.start)
        chain._traces = self._traces[: max(place - self.start, 0)]
        chain._notes = {index for index in self._notes if index < len(chain._traces)}
        return chain

    def truncate(self, place: int) -> None:
        """Keep only the first `place` messages of the session."""
        del self._traces[max(place - self.start, 0) :]
        self._notes = {index for index in self._notes if index < len(self._traces)}

    def after_notes(self, place: int) -> int:
        """The place of the last of the notes that directly follow `place`; `place` if no note follows it."""
        while place - self.start in self._notes:
            place += 1
        return place

    def trace_before(self, place: int) -> bytes:
        """The trace of the first `place` messages of the session."""
        return self._traces[place - self.start - 1] if place > self.start else ROOT

    def find(self, place: int, before: bytes, step: bytes) -> int | None:
        """The place of a client's message in the session; None if the session continues with a different message.

        `step` is the trace of the client's message. `place` and `before` are the place and the trace of the client's
        previous message. A message without content has the same trace as the message before it. Such a message may be
        missing in the session or in the client's history.
        """
        if step == before:
            return place + (self._trace_at(place) == before)
        while self._trace_at(place) == before:
            place += 1
        return place + 1 if self._trace_at(place) == step else None

    def has_at(self, place: int, messages: Sequence[Message]) -> bool:
        """Whether the session has these messages after its first `place` messages."""
        before = self.trace_before(place)
        for index, message in enumerate(messages, start=place):
            before = _step(before, message)
            if self._trace_at(index) != before:
                return False
        return True

    def _trace_at(self, place: int) -> bytes | None:
        """The trace of the message after the first `place` messages; None if there is no such message."""
        index = place - self.start
        return self._traces[index] if 0 <= index < len(self._traces) else None


def _step(before: bytes, message: Message) -> bytes:
    """The trace of a history that ends with a message of the session; `before` is the trace of the earlier messages."""
    return before if message.kind == NOTE else trace("", before, message)
