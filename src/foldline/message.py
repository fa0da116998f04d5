"""The message type: content in a neutral form, together with the form in which the message arrived.

Planning needs roles, calls and sizes. A request must contain the bytes that the provider sent, because signed thinking,
unknown fields and key order must not change. So a message has both: `parts` to plan with, and a `Wire` to send.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, TypeAlias, TypeVar

ROLES = ("system", "user", "assistant", "tool")
"""The known roles. A message with any other role is treated like a note of the user."""

NOTE = "note"
"""The kind of a message that foldline added to a session, such as a pinned text."""
KINDS = ("", "shell", NOTE, "digest", "branch_digest")
"""The kinds of message: ordinary message, shell command with its output, note, digest, digest of another branch."""

REPLY_TO_VIEW = "reply-to-view-"
"""Prefix of the ids that a session makes for replies without an id."""


class Wire(NamedTuple):
    """The form in which a message or a part arrived.

    `value` is the parsed JSON value, which foldline never changes. `raw` is the exact text of `value` if it arrived as
    bytes, else None. `exact` is False after the parts were edited. Rendering then takes the edited fields from the
    parts, and all other fields from `value`.
    """

    format: str
    value: Any
    raw: str | None = None
    exact: bool = True


class Usage(NamedTuple):
    """The provider's token figures for a request.

    Each prompt token is counted once: in `input`, in `cache_read` or in `cache_write`.

    >>> Usage(input=10, cache_read=90, output=5).prompt
    100
    """

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    cache_write_1h: int = 0
    """The part of `cache_write` that the cache keeps for an hour, at a higher price."""

    @property
    def prompt(self) -> int:
        """All tokens of the request, including those from the cache."""
        return self.input + self.cache_read + self.cache_write


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Plain text."""

    text: str
    wire: Wire | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinking:
    """The model's reasoning. Reasoning with a signature or an encrypted body is sent unchanged or not at all."""

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
    """An image, document, sound or video.

    The content is in `data` (base64), at the address `url`, or in `text` for a text document.
    """

    kind: str
    mime: str = ""
    data: str = field(default="", repr=False)
    url: str = ""
    text: str = ""
    wire: Wire | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque:
    """A part that foldline does not interpret. The part is sent byte for byte, or removed with its message."""

    kind: str
    value: Any = None
    wire: Wire | None = field(default=None, compare=False, repr=False)


Part: TypeAlias = Text | Thinking | ToolCall | ToolResult | Media | Opaque
AnyPart = TypeVar("AnyPart", Text, ToolCall, ToolResult, Thinking, Media, Opaque)


def edited(part: AnyPart, **fields: Any) -> AnyPart:
    """A copy of the part with these fields replaced; its wire form is no longer exact."""
    return replace(part, wire=part.wire and part.wire._replace(raw=None, exact=False), **fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """Facts about a message that are not part of its content."""

    reply: str = ""
    """The provider's id of the model reply that contains the message. A reply may consist of several messages.

    If a reply has no id, and the session knows which view the reply answers, the session makes an id.
    """
    model: str = ""
    stop: str = ""
    """The reason why the model stopped, as the provider names it."""
    usage: Usage | None = None
    """The provider's token figures. The input figures are for the request that led to this message. The output figure
    is for the message itself.
    """
    at: float | None = None
    """The time of the message, in seconds since 1970."""
    hidden: bool = False
    """Whether the message is internal to the agent program. A digest does not show the text of such a message."""
    source: str = ""
    """Where the message was read, for display: a line number or an id."""
    view: str = ""
    """The id of the view that was sent to get this reply; "" if the id is unknown."""


NO_META = Meta()


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message. Two messages are equal if they have the same role, parts and kind; the wire form is not compared."""

    role: str
    parts: tuple[Part, ...] = ()
    kind: str = ""
    meta: Meta = field(default=NO_META, compare=False)
    wire: Wire | None = field(default=None, compare=False, repr=False)

    @property
    def text(self) -> str:
        """The text parts, joined. Thinking, calls and results are left out."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls this message makes."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The tool results in this message."""
        return tuple(part for part in self.parts if isinstance(part, ToolResult))

    @property
    def shown_role(self) -> str:
        """The role as reports show it: "tool" if the message has only tool results, which are sent as a user message in
        some formats.
        """
        return "tool" if self.parts and len(self.results) == len(self.parts) else self.role

    @property
    def is_prompt(self) -> bool:
        """Whether the message asks for a reply: its role is user, it has no kind, and it contains more than tool
        results. A prompt was written by a person or by the agent program (see `human_input.is_human_prompt`).
        """
        return (
            self.role == "user"
            and not self.kind
            and (not self.parts or any(not isinstance(part, ToolResult) for part in self.parts))
        )

    def with_parts(self, *parts: Part) -> Message:
        """The message with new parts.

        When the message is rendered, the new parts are used. All other fields are taken from the message's wire form.
        """
        return replace(self, parts=parts, wire=self.wire and self.wire._replace(raw=None, exact=False))

    def with_meta(self, meta: Meta) -> Message:
        """The message with other metadata. Takes a third of the time of `replace`, because a session may call it for
        every message.
        """
        copy = object.__new__(Message)
        _set_role(copy, self.role)
        _set_parts(copy, self.parts)
        _set_kind(copy, self.kind)
        _set_meta(copy, meta)
        _set_wire(copy, self.wire)
        return copy


_set_role, _set_parts, _set_kind, _set_meta, _set_wire = (
    getattr(Message, field.name).__set__ for field in fields(Message)
)
"""Set the fields of a new message. The message is frozen after that."""


def joined_reply(messages: Sequence[Message]) -> Message | None:
    """One message with the parts of all messages of a reply; None if there are no messages.

    Some wire formats split a reply: OpenAI Responses has an item for each text and for each call. The joined message is
    for reading only: it has no wire form.
    """
    if len(messages) < 2:
        return messages[0] if messages else None
    return replace(messages[-1], parts=tuple([part for message in messages for part in message.parts]), wire=None)


def system(text: str) -> Message:
    """A system message."""
    return Message(role="system", parts=(Text(text=text),))


def user(text: str, *, kind: str = "") -> Message:
    """A user message. With `kind`, it is a note, a digest, or a shell command with its output, in the user's role."""
    return Message(role="user", parts=(Text(text=text),), kind=kind)


def assistant(text: str = "", *calls: ToolCall) -> Message:
    """An assistant message with text, calls, or both."""
    parts: tuple[Part, ...] = (Text(text=text),) if text else ()
    return Message(role="assistant", parts=parts + calls)


def tool(call_id: str, text: str, *, name: str = "", is_error: bool = False) -> Message:
    """The result of one call."""
    result = ToolResult(call_id=call_id, name=name, parts=(Text(text=text),), is_error=is_error)
    return Message(role="tool", parts=(result,))
