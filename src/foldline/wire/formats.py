"""What a wire format is to the rest of foldline, and the values that reading and rendering give.

A format module (`anthropic`, `openai_chat`, ...) describes itself with one `Codec` named `CODEC`: data and functions,
no class to inherit from. Provider formats parse and render one element of their message list at a time; file formats
(session logs) borrow the elements of the provider they record (their `dialect`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from foldline.errors import ConfigError
from foldline.message import Message, Part, ToolCall, ToolResult

PROVIDERS = ("anthropic", "openai", "openai-responses", "gemini")
"""The formats a request can be rendered in."""

_MODULES = {
    "anthropic": "anthropic.parse",
    "openai": "openai_chat.render",
    "openai-responses": "openai_responses.render_messages",
    "gemini": "gemini.parse",
    "claude-code": "session_logs.claude_code",
    "stream-json": "session_logs.claude_code_stream",
    "codex": "session_logs.codex",
    "pi": "session_logs.pi",
    "gemini-cli": "session_logs.gemini_cli",
}
FORMATS = tuple(_MODULES)
"""Every format that can be read."""
_TIED_BY_ID = ("anthropic", "openai", "openai-responses")
"""Providers that tie a result to its call by id alone."""


class Lost(NamedTuple):
    """Something a rendering could not carry to another provider."""

    message: int
    """Which one, by its place in the list that was rendered."""
    what: str
    """The part, by kind: "thinking", "media image", "opaque web_search_call"."""
    why: str


class Note(NamedTuple):
    """Something a reader did not take as a message, or took with a grain of salt."""

    line: int
    text: str


class Line(NamedTuple):
    """One line of a session file: its number from 1, its JSON value, its exact text."""

    number: int
    value: Any
    raw: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A conversation that was read: messages in the order the model saw them, leading system messages included."""

    format: str
    messages: tuple[Message, ...]
    tools: tuple[Any, ...] = ()
    """Tool definitions as they stand on the wire."""
    model: str = ""
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """Messages in a provider's form: the request fields that hold them, and what could not be carried."""

    provider: str
    body: dict[str, Any]
    lost: tuple[Lost, ...] = ()


class Loss:
    """Collects what is lost while one message after another is rendered.

    `names` and `kinds` know the calls rendered so far, by id: some providers want the function's name in its result,
    others a result of the call's own kind.
    """

    def __init__(self) -> None:
        self.message = 0
        self.items: list[Lost] = []
        self.names: dict[str, str] = {}
        self.kinds: dict[str, str] = {}

    def add(self, what: str, why: str) -> None:
        """Record that `what` of the current message could not be carried."""
        self.items.append(Lost(self.message, what, why))


@dataclass(frozen=True, slots=True, kw_only=True)
class Codec:
    """One wire format.

    `parse(value, raw)` makes a message of one element, raising `WireError` with the field that is wrong; what it does
    not know becomes `Opaque`, never an error. `render(message, loss)` gives the elements of the *dialect* for one
    message (usually one, none when nothing can be carried): the original value when the message's wire is exact and of
    the same dialect, otherwise rebuilt from its parts, using each part's own wire value where that is of the dialect.
    """

    name: str
    dialect: str
    parse: Callable[[Any, str | None], Message]
    render: Callable[[Message, Loss], list[Any]]
    list_key: str = ""
    """The request field that holds the messages; "" for a session file."""
    system_key: str = ""
    """The request field that holds the system text; "" where it is an ordinary message."""
    parse_system: Callable[[Any], Message] | None = None
    """Makes a system message of the value under `system_key`; its wire value is that value."""
    render_system: Callable[[tuple[Message, ...], Loss], Any] | None = None
    """The value under `system_key` for the leading system messages."""
    join: Callable[[Any, Any], Any | None] | None = None
    """Two newly written neighbours as one element, where the provider wants that; None when they stay two."""
    read: Callable[[Iterable[Line]], Transcript] | None = None
    """For a session file: all lines to a transcript."""


@cache
def codec(name: str) -> Codec:
    """The codec of a format, imported when first asked for."""
    module = _MODULES.get(name)
    if module is None:
        raise ConfigError(f"no wire format is called {name!r}", hint=f"use one of {', '.join(FORMATS)}")
    found: Codec = import_module(f"foldline.wire.{module}").CODEC
    return found


def dialect(name: str) -> str:
    """The provider whose message elements a format uses."""
    return codec(name).dialect


def render(messages: Iterable[Message], provider: str) -> Rendered:
    """Messages in a provider's form. Untouched messages of that provider come out as they came in."""
    target = codec(provider)
    if target.name not in PROVIDERS:
        raise ConfigError(f"{provider!r} cannot be sent", hint=f"render to one of {', '.join(PROVIDERS)}")
    loss = Loss()
    everything = tuple(messages)
    system = leading_system(everything, target)
    body: dict[str, Any] = {}
    if system and target.render_system:
        body[target.system_key] = target.render_system(system, loss)
    body[target.list_key] = [element for element, _ in elements(everything, target, loss, start=len(system))]
    return Rendered(provider=provider, body=body, lost=tuple(loss.items))


def elements(messages: Sequence[Message], target: Codec, loss: Loss, *, start: int = 0) -> list[tuple[Any, str | None]]:
    """The list elements for the messages from `start` on, each with its original text if that is still true."""
    messages = with_ids(messages, target)
    made: list[tuple[Any, str | None]] = []
    fresh = False
    for index in range(start, len(messages)):
        message = messages[index]
        loss.message = index
        for call in message.calls:
            loss.names[call.id] = call.name
            loss.kinds[call.id] = call.kind
        exact = is_exact(message, target)
        raw = message.wire.raw if exact and message.wire and message.wire.format == target.name else None
        for element in target.render(message, loss):
            joined = target.join(made[-1][0], element) if target.join and fresh and not exact else None
            if joined is None:
                made.append((element, raw))
            else:
                made[-1] = (joined, None)
            fresh = not exact
    return made


def with_ids(messages: Sequence[Message], target: Codec) -> Sequence[Message]:
    """Messages for a provider that ties by id, with ids for the calls that another format tied by name and order.

    An id is made of what is called and how often it was called before, so the same messages always get the same ids.
    """
    if target.name not in _TIED_BY_ID or not any(_lacks_id(message) for message in messages):
        return messages
    waiting: list[ToolCall] = []
    seen: dict[str, int] = {}
    return [
        replace(message, parts=tuple([_tie(part, waiting, seen) for part in message.parts]))
        if _lacks_id(message) and not (message.wire and dialect(message.wire.format) == target.dialect)
        else message
        for message in messages
    ]


def _lacks_id(message: Message) -> bool:
    return any(
        (isinstance(part, ToolCall) and not part.id) or (isinstance(part, ToolResult) and not part.call_id)
        for part in message.parts
    )


def _tie(part: Part, waiting: list[ToolCall], seen: dict[str, int]) -> Part:
    """A call without id with one; a result without id with that of the first call of its name that still waits."""
    if isinstance(part, ToolCall) and not part.id:
        said = f"{part.name}\0{part.arguments}".encode("utf-8", "surrogatepass")
        base = "call_" + hashlib.sha256(said).hexdigest()[:16]
        count = seen[base] = seen.get(base, 0) + 1
        call = replace(part, id=base if count == 1 else f"{base}_{count}")
        waiting.append(call)
        return call
    if isinstance(part, ToolResult) and not part.call_id:
        for place, call in enumerate(waiting):
            if part.name in ("", call.name):
                del waiting[place]
                return replace(part, call_id=call.id)
    return part


def is_exact(message: Message, target: Codec) -> bool:
    """True if the message is untouched and came in the elements of this provider."""
    wire = message.wire
    return wire is not None and wire.exact and dialect(wire.format) == target.dialect


def leading_system(messages: Sequence[Message], target: Codec) -> tuple[Message, ...]:
    """System messages that belong into the request's own field.

    One that stood *inside* the list of the same provider (newer Anthropic models allow it) is an element and stays one.
    """
    count = 0
    while target.render_system and count < len(messages) and messages[count].role == "system":
        wire = messages[count].wire
        if wire is not None and dialect(wire.format) == target.dialect and _is_element(wire.value):
            break
        count += 1
    return tuple(messages[:count])


def _is_element(value: Any) -> bool:
    """A Gemini system instruction may have a role as well, but never a `content`; a Codex line wraps its element."""
    inner = value.get("payload", value) if isinstance(value, Mapping) else None
    return isinstance(inner, Mapping) and "role" in inner and "content" in inner
