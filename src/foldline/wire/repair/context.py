"""What one repair knows and marks: the provider's rules, whose words are whose, and the notes of what was done.

All steps of repair share these few things and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, TypeVar

from foldline.message import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult, Wire
from foldline.wire.formats import Codec, Loss, dialect
from foldline.wire.rules.grammar import Rules

SERVER_CALLS = ("server_tool_use", "mcp_tool_use")
"""Anthropic's blocks for calls that it runs itself."""
_LOGGED = ("codex", "openai-responses")

AnyPart = TypeVar("AnyPart", Text, ToolCall, ToolResult, Thinking, Media, Opaque)


@dataclass(frozen=True, slots=True)
class Mend:
    """One thing repair did: a code, the place of the message in the *input*, and plain words."""

    code: str
    index: int
    words: str

    def __str__(self) -> str:
        return f"[{self.code}] message {self.index}: {self.words}"


@cache
def _form(pattern: str) -> Callable[[str], re.Match[str] | None]:
    return re.compile(pattern, re.DOTALL).fullmatch


@dataclass(slots=True)
class Work:
    """What one repair knows: the provider's name and rules, its codec, and the notes so far."""

    provider: str
    rules: Rules
    target: Codec
    notes: list[Mend] = field(default_factory=list)
    items: set[str] = field(default_factory=set)
    """Ids of the provider's own items seen so far."""
    stood: dict[int, int] = field(default_factory=dict)
    """Behind which message each system message stood."""
    thinks: bool = False
    """Whether there is thinking, or one of the provider's own tools, that its rules look at once more at the end."""

    def note(self, code: str, index: int, words: str) -> None:
        """Mark something that was done."""
        self.notes.append(Mend(code, index, words))

    def own(self, wire: Wire | None) -> bool:
        """True for what came in this provider's form; a Codex log holds Responses items."""
        return wire is not None and (wire.format == self.provider or (wire.format, self.provider) == _LOGGED)

    def exact(self, message: Message) -> bool:
        """True for a message that will go back as it came."""
        return message.wire is not None and message.wire.exact and self.own(message.wire)

    def kin(self, message: Message) -> bool:
        """True for a message of this provider's elements, whatever file it was read from."""
        return message.wire is not None and dialect(message.wire.format) == self.target.dialect

    def seen(self, part: Part) -> bool:
        """True for a part that will be sent: only the provider that wrote it reads thinking and opaque parts."""
        return not isinstance(part, Thinking | Opaque) or self.own(part.wire)

    def id_form(self, text: str) -> bool:
        """True for a call id that this provider takes."""
        return _form(self.rules.id_form)(text) is not None

    def name_form(self, text: str) -> bool:
        """True for a tool name that this provider takes."""
        return _form(self.rules.name_form)(text) is not None

    def refuses(self, text: str) -> bool:
        """True for a text this provider calls blank."""
        blank = self.rules.blank
        return blank != "allowed" and not (text.strip() if blank == "whitespace" else text)


def edited(part: AnyPart, **fields: Any) -> AnyPart:
    """A part with other fields, whose wire form no longer speaks for it."""
    return replace(part, wire=part.wire and part.wire._replace(raw=None, exact=False), **fields)


def side_of(message: Message, work: Work) -> str:
    """Whose message it will be on the wire: the user's, the assistant's, or the system's."""
    role, wire = message.role, message.wire
    if message.kind and work.provider.startswith("openai") and not work.exact(message):
        return "user"
    if role != "system":
        return "assistant" if role == "assistant" else "user"
    if work.provider == "anthropic":
        return "system" if work.own(wire) and wire and isinstance(wire.value, dict) else "user"
    return "user" if work.provider == "gemini" else "system"


def is_silent(message: Message, work: Work) -> bool:
    """True for a message of which nothing will be sent: it stays for the report of what was lost, and changes nothing.

    Only parts that other providers cannot read may leave a message silent, so only such messages are tried.
    """
    parts = message.parts
    for part in parts:
        kind = type(part)
        if kind is ToolCall or kind is ToolResult or kind is Media or (isinstance(part, Text) and part.text.strip()):
            return False
    if work.rules.empty == () and not any(isinstance(part, Thinking | Opaque) for part in parts):
        return message.role == "system" and not parts and work.own(message.wire) and content_of(message.wire) == []
    return not work.target.render(message, Loss())


def content_of(wire: Wire | None) -> Any:
    """The content of an element as it came."""
    return wire.value.get("content") if wire is not None and isinstance(wire.value, dict) else None


def is_server_part(part: Opaque) -> bool:
    """True for a call that the provider runs itself, and for the result of one."""
    return part.kind in SERVER_CALLS or part.kind.endswith("_tool_result")
