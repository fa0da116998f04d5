"""The data that the stages of one repair share: format, notes, and messages with their calls and results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from operator import is_not
from typing import Any, NamedTuple, TypeGuard

from foldline.message import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult, Wire
from foldline.models.table import Model
from foldline.wire.formats import Format, LossCollector, element_format, format_of, grammar_of
from foldline.wire.grammar import Grammar
from foldline.wire.provider_tools import as_text


@dataclass(frozen=True, slots=True)
class RepairNote:
    """One change that repair made: a code, the index of the *input* message, and a sentence about the change."""

    code: str
    index: int
    words: str

    def __str__(self) -> str:
        return f"[{self.code}] message {self.index}: {self.words}"


class OutgoingMessage(NamedTuple):
    """A message of the repaired history."""

    origin: int
    """Index of the input message that this message comes from."""
    message: Message
    side: str
    """Role on the wire: "user", "assistant" or "system"; "" for a message that renders to nothing."""


@dataclass(slots=True, eq=False)
class CallSlot:
    """A tool call and the result that answers it (None if there is no result)."""

    entry: RepairEntry
    call: ToolCall
    answer: ResultSlot | None = None
    dropped: bool = False


@dataclass(slots=True, eq=False)
class ResultSlot:
    """A tool result and the call that it answers (None if there is no call)."""

    entry: RepairEntry
    result: ToolResult
    slot: CallSlot | None = None
    dropped: bool = False
    late: bool = False
    """Whether another reply comes between the call and this result.

    Such a late result does not count as the call's result.
    """
    second: bool = False
    """Whether the call already has another result, with other content. This result is then sent as text."""

    @property
    def is_orphan(self) -> bool:
        """True for a result that answers no call and was not dropped."""
        return self.slot is None and not self.dropped

    @property
    def is_early(self) -> bool:
        """True if no earlier message has the call of this result: there is no such call, or it is in the same or a
        later message.
        """
        return self.slot is None or self.slot.entry.index >= self.entry.index

    @property
    def may_stay(self) -> bool:
        """True for a result in a user message after its call.

        In formats that accept results anywhere after their calls, such a result is not moved.
        """
        return self.entry.side == "user" and not self.is_early


@dataclass(slots=True, eq=False)
class RepairEntry:
    """A message that is being repaired."""

    index: int
    message: Message
    side: str
    reply: int = -1
    """Number of the model's reply that the message belongs to; -1 for a message that is not part of a reply.

    A reply may consist of several messages.
    """
    turn: int = 0
    """The number of turns that the model has had up to this message. Each request that was sent begins a new turn."""
    slots: list[CallSlot] = field(default_factory=list)
    answers: list[ResultSlot] = field(default_factory=list)
    silent: list[tuple[int, Message]] = field(default_factory=list)
    """The messages directly after this one that render to nothing, with their indexes."""
    emitted: bool = False


@dataclass(slots=True)
class RepairContext:
    """The data that the stages of one repair share."""

    format: str
    grammar: Grammar
    target: Format
    notes: list[RepairNote] = field(default_factory=list)
    items: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """For each item id, the indexes of the messages that hold an item with that id."""
    replies: dict[Hashable, list[int]] = field(default_factory=dict)
    """For each key of a reply, the indexes of the messages with that key (see `repeated_replies`)."""
    predecessors: dict[int, int] = field(default_factory=dict)
    """For each system message in the list: its index, and the index of the last earlier message that is not a system
    message.
    """
    has_thinking: bool = False
    """Whether any message holds thinking or an opaque part."""
    is_first: bool = False
    """Whether the message that is being repaired is the first of the conversation."""
    ending: bool = True
    """Whether a placeholder is added if the history ends with a reply and the format demands a user message there."""

    @classmethod
    def of(cls, format: str, model: Model | None = None) -> RepairContext:
        """The context for a wire format, and for a model if one is given.

        For a session log, this is the context for the messages inside the log.
        """
        name = element_format(format)
        return cls(name, grammar_of(format, model), format_of(name))

    def note(self, code: str, index: int, words: str) -> None:
        """Record a change."""
        self.notes.append(RepairNote(code, index, words))

    def own(self, wire: Wire | None) -> TypeGuard[Wire]:
        """Whether a wire form is in the format of this context (`format`).

        A wire form from a Codex log is also in the format `openai-responses`, because the log holds Responses items.
        """
        return wire is not None and (
            wire.format == self.format or (wire.format == "codex" and self.format == "openai-responses")
        )

    def exact(self, wire: Wire | None) -> TypeGuard[Wire]:
        """Whether a wire form is sent exactly as it was received."""
        return wire is not None and wire.exact and self.own(wire)

    def is_rendered(self, part: Part) -> bool:
        """Whether the request contains the part. Thinking and opaque parts are sent only in their own format."""
        return not isinstance(part, Thinking | Opaque) or self.own(part.wire)


def has_same_parts(parts: Sequence[Part], others: Sequence[Part]) -> bool:
    """True if both sequences hold the same objects (by identity) in the same order."""
    return len(parts) == len(others) and not any(map(is_not, parts, others))


def is_same_reply(one: RepairEntry, other: RepairEntry) -> bool:
    """True for two messages that the provider sent as one reply."""
    return bool(one.message.meta.reply) and one.message.meta.reply == other.message.meta.reply


def are_two_replies(one: Message, other: Message) -> bool:
    """True for two messages of the assistant with different reply ids. Such messages answer two requests.

    Two messages without a reply id count as one reply.
    """
    return one.meta.reply != other.meta.reply


def side_of(message: Message, context: RepairContext) -> str:
    """The role of the message on the wire: "user", "assistant" or "system"."""
    role, wire, grammar = message.role, message.wire, context.grammar
    if message.kind and grammar.kinds_are_user and not context.exact(wire):
        return "user"
    if role != "system":
        return "assistant" if role == "assistant" else "user"
    if grammar.inline_system == "after user":
        return "system" if context.own(wire) and isinstance(wire.value, dict) else "user"
    return "system" if grammar.inline_system == "free" else "user"


def native_summary(part: Part) -> str:
    """The text of a provider's own compaction block; "" for any other part, and for a block without a text."""
    if not isinstance(part, Opaque) or part.kind != "compaction" or not isinstance(part.value, dict):
        return ""
    content = part.value.get("content")
    return content if isinstance(content, str) and content.strip() else ""


def is_signed_summary(part: Part) -> bool:
    """True for a compaction block that the provider accepts only as the first block of a conversation."""
    return bool(native_summary(part)) and bool(part.value.get("signature"))  # type: ignore[union-attr]


def is_silent(message: Message, context: RepairContext) -> bool:
    """True for a message that renders to nothing.

    Such a message stays in the history, so that the report of lost content names it. The message is rendered only if no
    part is a call, a result, media or visible text, because each of these renders to something.
    """
    parts = message.parts
    for part in parts:
        kind = type(part)
        if kind is ToolCall or kind is ToolResult or kind is Media or (isinstance(part, Text) and part.text.strip()):
            return False
        if kind is Opaque and (native_summary(part) or (not context.own(part.wire) and as_text(part))):
            return False
    if context.grammar.empty == () and not any(isinstance(part, Thinking | Opaque) for part in parts):
        return message.role == "system" and not parts and context.own(message.wire) and content_of(message.wire) == []
    return not context.target.render(message, LossCollector())


def content_of(wire: Wire | None) -> Any:
    """The value of the field `content` in the wire form; None if there is none."""
    return wire.value.get("content") if wire is not None and isinstance(wire.value, dict) else None
