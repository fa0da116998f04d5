"""The neutral message: what planning reasons about, with the wire form kept beside it.

Planning needs roles, calls and sizes, whatever the provider; sending needs the very bytes the provider once sent,
because signed thinking, unknown fields and key order must survive. So a message has both: parts for reading and a
`Wire` for sending back. Values are frozen; a changed message is a new message, and its `Wire` then says that it is no
longer exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

ROLES = ("system", "user", "assistant", "tool")
"""The roles planning knows. Any other role is carried as it is and treated like a user's note."""

KINDS = ("", "shell", "note", "digest", "branch_digest")
"""What a message is beyond its role: ordinary talk, a shell run, a note, a digest, the digest of another branch."""


class Wire(NamedTuple):
    """The form a message or a part arrived in.

    `value` is the JSON value as parsed (never changed by foldline), `raw` its exact text when it came as bytes.
    `exact` turns False when the neutral side was edited: rendering then rebuilds the edited fields on top of `value`.
    """

    format: str
    value: Any
    raw: str | None = None
    exact: bool = True


class Usage(NamedTuple):
    """What the provider says a request held, normalised: the three input figures never overlap.

    >>> Usage(input=10, cache_read=90, output=5).prompt
    100
    """

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    cache_write_1h: int = 0
    """The share of `cache_write` that was written for an hour (it costs more)."""

    @property
    def prompt(self) -> int:
        """All tokens of the request: cached tokens fill the window too."""
        return self.input + self.cache_read + self.cache_write


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Plain text."""

    text: str
    wire: Wire | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinking:
    """The model's reasoning. A signature or encrypted body makes it immutable: it travels whole or not at all."""

    text: str = ""
    signature: str = ""
    wire: Wire | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call the client must answer. `arguments` is JSON text, or free text when `kind` is not "function".

    Formats without ids (legacy `function_call`, older Gemini) have `id` "": such calls pair by name and order.
    """

    id: str
    name: str
    arguments: str = "{}"
    kind: str = "function"
    wire: Wire | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The answer to a `ToolCall`. An `interim` one ("still running") does not close its call."""

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
    """Something foldline does not interpret: it passes byte for byte or leaves with its whole message."""

    kind: str
    value: Any = None
    wire: Wire | None = field(default=None, compare=False, repr=False)


Part: TypeAlias = Text | Thinking | ToolCall | ToolResult | Media | Opaque


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """Facts that came with a message and are not part of what is said."""

    reply: str = ""
    """The provider's id of the model reply a message belongs to; one reply may be several messages."""
    model: str = ""
    stop: str = ""
    """Why the model stopped, in the provider's own word."""
    usage: Usage | None = None
    """Measured everything before this message (input) and the message itself (output)."""
    at: float | None = None
    """When it was said, in seconds since 1970."""
    hidden: bool = False
    """Internal to the host: no digest may show it."""
    source: str = ""
    """Where it was read, for people: a line number or an id."""


NO_META = Meta()


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation. Two messages are equal when they say the same, however they arrived."""

    role: str
    parts: tuple[Part, ...] = ()
    kind: str = ""
    meta: Meta = field(default=NO_META, compare=False)
    wire: Wire | None = field(default=None, compare=False, repr=False)

    @property
    def text(self) -> str:
        """The text that is said: no thinking, no calls, no results."""
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
        """True for what a person asked: a user message that is not only results, nor a digest, note or shell run."""
        return (
            self.role == "user"
            and not self.kind
            and (not self.parts or any(not isinstance(part, ToolResult) for part in self.parts))
        )

    def with_parts(self, *parts: Part) -> Message:
        """The same message with other parts; its wire form then only lends its remaining fields."""
        wire = self.wire and self.wire._replace(raw=None, exact=False)
        return replace(self, parts=parts, wire=wire)


def system(text: str) -> Message:
    """A system message."""
    return Message(role="system", parts=(Text(text=text),))


def user(text: str, *, kind: str = "") -> Message:
    """A user message, or a note, digest or shell run in the user's role."""
    return Message(role="user", parts=(Text(text=text),), kind=kind)


def assistant(text: str = "", *calls: ToolCall) -> Message:
    """An assistant message with text, calls, or both."""
    said: tuple[Part, ...] = (Text(text=text),) if text else ()
    return Message(role="assistant", parts=said + calls)


def tool(call_id: str, text: str, *, name: str = "", is_error: bool = False) -> Message:
    """The result of one call."""
    result = ToolResult(call_id=call_id, name=name, parts=(Text(text=text),), is_error=is_error)
    return Message(role="tool", parts=(result,))
