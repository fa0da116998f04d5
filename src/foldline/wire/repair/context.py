"""State shared by the steps of one repair: the format's grammar and renderer, and the notes of what was changed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from operator import is_not
from typing import Any, NamedTuple, TypeVar

from foldline.message import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult, Wire
from foldline.wire.formats import Format, LossCollector, element_format, format_of, grammar_of
from foldline.wire.grammar import Grammar

AnyPart = TypeVar("AnyPart", Text, ToolCall, ToolResult, Thinking, Media, Opaque)


@dataclass(frozen=True, slots=True)
class RepairNote:
    """One change that repair made: a code, the index of the message in the *input*, and a sentence."""

    code: str
    index: int
    words: str

    def __str__(self) -> str:
        return f"[{self.code}] message {self.index}: {self.words}"


class OutgoingMessage(NamedTuple):
    """A message of the repaired history."""

    origin: int
    """Index of the input message that it comes from."""
    message: Message
    side: str
    """Role on the wire: "user", "assistant" or "system"; "" for a message that renders to nothing."""


@cache
def _full_match(pattern: str) -> Callable[[str], re.Match[str] | None]:
    return re.compile(pattern, re.DOTALL).fullmatch


@dataclass(slots=True)
class RepairContext:
    """What the steps of one repair share."""

    format: str
    grammar: Grammar
    target: Format
    notes: list[RepairNote] = field(default_factory=list)
    items: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Indexes of the messages that hold an item, by the item's id."""
    predecessors: dict[int, int] = field(default_factory=dict)
    """Index of the message in front of each system message inside the list."""
    has_thinking: bool = False
    """True when a message holds thinking or an opaque part."""
    ending: bool = True
    """Whether a placeholder is put behind a history that ends with a reply, if the format demands it."""

    @classmethod
    def of(cls, format: str) -> RepairContext:
        """Context for a wire format; a session log's format stands for the format of the elements it holds."""
        grammar = grammar_of(format)
        name = element_format(format)
        return cls(name, grammar, format_of(name))

    def note(self, code: str, index: int, words: str) -> None:
        """Record a change."""
        self.notes.append(RepairNote(code, index, words))

    def own(self, wire: Wire | None) -> bool:
        """True for a part or message that came in this format; a Codex log holds Responses items."""
        return wire is not None and (
            wire.format == self.format or (wire.format == "codex" and self.format == "openai-responses")
        )

    def exact(self, message: Message) -> bool:
        """True for a message that renders to the very element it came as."""
        return message.wire is not None and message.wire.exact and self.own(message.wire)

    def is_rendered(self, part: Part) -> bool:
        """True for a part that reaches the wire: thinking and opaque parts do so only in their own format."""
        return not isinstance(part, Thinking | Opaque) or self.own(part.wire)

    def is_legal_id(self, text: str) -> bool:
        """True for a call id that the format accepts."""
        return _full_match(self.grammar.id_form)(text) is not None

    def is_legal_name(self, text: str) -> bool:
        """True for a tool name that the format accepts."""
        return _full_match(self.grammar.name_form)(text) is not None

    def is_blank(self, text: str) -> bool:
        """True for a text that the format refuses as blank."""
        blank = self.grammar.blank
        return blank != "allowed" and not (text.strip() if blank == "whitespace" else text)


def edited(part: AnyPart, **fields: Any) -> AnyPart:
    """The part with other fields; its wire form is no longer exact."""
    return replace(part, wire=part.wire and part.wire._replace(raw=None, exact=False), **fields)


def has_same_parts(parts: Sequence[Part], others: Sequence[Part]) -> bool:
    """True when both hold the very same objects in the same order."""
    return len(parts) == len(others) and not any(map(is_not, parts, others))


def side_of(message: Message, context: RepairContext) -> str:
    """Role of the message on the wire: "user", "assistant" or "system"."""
    role, wire, grammar = message.role, message.wire, context.grammar
    if message.kind and grammar.kinds_are_user and not context.exact(message):
        return "user"
    if role != "system":
        return "assistant" if role == "assistant" else "user"
    if grammar.inline_system == "after user":
        return "system" if context.own(wire) and wire and isinstance(wire.value, dict) else "user"
    return "system" if grammar.inline_system == "free" else "user"


def is_silent(message: Message, context: RepairContext) -> bool:
    """True for a message that renders to nothing.

    It stays in the history, so that the report of what could not be rendered names it. Only thinking and opaque parts
    can be unreadable for a format, so only messages that hold nothing else are rendered to find out.
    """
    parts = message.parts
    for part in parts:
        kind = type(part)
        if kind is ToolCall or kind is ToolResult or kind is Media or (isinstance(part, Text) and part.text.strip()):
            return False
    if context.grammar.empty == () and not any(isinstance(part, Thinking | Opaque) for part in parts):
        return message.role == "system" and not parts and context.own(message.wire) and content_of(message.wire) == []
    return not context.target.render(message, LossCollector())


def content_of(wire: Wire | None) -> Any:
    """Value of the field `content` in the wire form."""
    return wire.value.get("content") if wire is not None and isinstance(wire.value, dict) else None
