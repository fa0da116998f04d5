"""The neutral message, which planning works on, together with its wire form.

Planning needs roles, calls and sizes. Sending needs the bytes that the provider once sent, because signed thinking,
unknown fields and key order must survive. So a message has both: parts to read and a `Wire` to send back.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

ROLES = ("system", "user", "assistant", "tool")
"""The known roles. Any other role is kept and treated like a note of the user."""

KINDS = ("", "shell", "note", "digest", "branch_digest")
"""The kinds of message: ordinary, shell run, note, digest, digest of another branch."""


class Wire(NamedTuple):
    """The form in which a message or a part arrived.

    `value` is the parsed JSON value, which foldline never changes; `raw` its exact text if it came as bytes. `exact` is
    False after an edit of the neutral form: rendering then writes the edited fields over `value`.
    """

    format: str
    value: Any
    raw: str | None = None
    exact: bool = True


class Usage(NamedTuple):
    """The provider's figures for a request, normalised: the three input figures never overlap.

    >>> Usage(input=10, cache_read=90, output=5).prompt
    100
    """

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    cache_write_1h: int = 0
    """The part of `cache_write` that was written for an hour, at a higher price."""

    @property
    def prompt(self) -> int:
        """All tokens of the request, cached ones included."""
        return self.input + self.cache_read + self.cache_write


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Plain text."""

    text: str
    wire: Wire | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinking:
    """The model's reasoning. With a signature or an encrypted body it is sent unchanged or not at all."""

    text: str = ""
    signature: str = ""
    wire: Wire | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call that the client must answer. `arguments` is JSON text, or free text if `kind` is not "function".

    In formats without ids (legacy `function_call`, older Gemini) `id` is "", and results are paired by name and order.
    """

    id: str
    name: str
    arguments: str = "{}"
    kind: str = "function"
    wire: Wire | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The result of a `ToolCall`. After an `interim` result ("still running"), another result is expected."""

    call_id: str
    name: str = ""
    parts: tuple[Part, ...] = ()
    is_error: bool = False
    interim: bool = False
    wire: Wire | None = field(default=None, compare=False, repr=False)

    @property
    def text(self) -> str:
        """All text of the result, in order."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """An image, document, sound or video, by value (`data`, base64), by address (`url`) or as a text document."""

    kind: str
    mime: str = ""
    data: str = field(default="", repr=False)
    url: str = ""
    text: str = ""
    wire: Wire | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque:
    """A part that foldline does not interpret. It is sent byte for byte, or removed with its message."""

    kind: str
    value: Any = None
    wire: Wire | None = field(default=None, compare=False, repr=False)


Part: TypeAlias = Text | Thinking | ToolCall | ToolResult | Media | Opaque


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """Facts about a message that are not part of its content."""

    reply: str = ""
    """The provider's id of the model reply that holds the message; one reply may be several messages."""
    model: str = ""
    stop: str = ""
    """Why the model stopped, in the provider's term."""
    usage: Usage | None = None
    """The provider's figures: tokens of the request before this message (input) and of the message itself (output)."""
    at: float | None = None
    """The time of the message, in seconds since 1970."""
    hidden: bool = False
    """Whether the message is internal to the host application; no digest shows such a message."""
    source: str = ""
    """Where the message was read, for display: a line number or an id."""


NO_META = Meta()


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message. Messages with the same role, parts and kind are equal, whatever their wire form."""

    role: str
    parts: tuple[Part, ...] = ()
    kind: str = ""
    meta: Meta = field(default=NO_META, compare=False)
    wire: Wire | None = field(default=None, compare=False, repr=False)

    @property
    def text(self) -> str:
        """The text parts, joined: no thinking, no calls, no results."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls this message makes."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The tool results this message carries."""
        return tuple(part for part in self.parts if isinstance(part, ToolResult))

    @property
    def is_prompt(self) -> bool:
        """True for a message that a person wrote: the user's, not only results, and no digest, note or shell run."""
        return (
            self.role == "user"
            and not self.kind
            and (not self.parts or any(not isinstance(part, ToolResult) for part in self.parts))
        )

    def with_parts(self, *parts: Part) -> Message:
        """The message with other parts. Of its wire form, only the other fields are still used."""
        return replace(self, parts=parts, wire=self.wire and self.wire._replace(raw=None, exact=False))


def system(text: str) -> Message:
    """A system message."""
    return Message(role="system", parts=(Text(text=text),))


def user(text: str, *, kind: str = "") -> Message:
    """A user message, or with a `kind` a note, digest or shell run in the user's role."""
    return Message(role="user", parts=(Text(text=text),), kind=kind)


def assistant(text: str = "", *calls: ToolCall) -> Message:
    """An assistant message with text, calls, or both."""
    parts: tuple[Part, ...] = (Text(text=text),) if text else ()
    return Message(role="assistant", parts=parts + calls)


def tool(call_id: str, text: str, *, name: str = "", is_error: bool = False) -> Message:
    """The result of one call."""
    result = ToolResult(call_id=call_id, name=name, parts=(Text(text=text),), is_error=is_error)
    return Message(role="tool", parts=(result,))
