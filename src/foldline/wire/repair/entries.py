"""The unit that repair works on: one message with its calls and results, each tied to its counterpart."""

from __future__ import annotations

from dataclasses import dataclass

from foldline.message import Message, ToolCall, ToolResult


@dataclass(slots=True, eq=False)
class CallSlot:
    """A tool call and the result that answers it."""

    entry: RepairEntry
    call: ToolCall
    answer: ResultSlot | None = None
    dropped: bool = False


@dataclass(slots=True, eq=False)
class ResultSlot:
    """A tool result and the call that it answers. Without a call it is an orphan, unless it was dropped."""

    entry: RepairEntry
    result: ToolResult
    slot: CallSlot | None = None
    dropped: bool = False

    @property
    def is_orphan(self) -> bool:
        """True for a result that answers no call and is still sent."""
        return self.slot is None and not self.dropped

    @property
    def is_early(self) -> bool:
        """True for a result that stands in front of the call it answers, or answers none."""
        return self.slot is None or self.slot.entry.index >= self.entry.index


class RepairEntry:
    """A message that is being repaired."""

    __slots__ = ("answers", "emitted", "index", "message", "reply", "side", "silent", "slots")

    def __init__(self, index: int, message: Message, side: str) -> None:
        self.index = index
        self.message = message
        self.side = side
        self.reply = -1
        """Number of the model reply that the message belongs to; a reply may be several messages."""
        self.slots: list[CallSlot] = []
        self.answers: list[ResultSlot] = []
        self.silent: list[tuple[int, Message]] = []
        """Messages behind this one that render to nothing, with their indexes."""
        self.emitted = False
