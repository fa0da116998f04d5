"""What a wire format is to the rest of foldline, and the values that reading and rendering give.

A format module (`anthropic`, `openai_chat`, ...) describes itself with one `Codec` named `CODEC`: data and functions,
no class to inherit from. Provider formats parse and render one element of their message list at a time; file formats
(session logs) borrow the elements of the provider they record (their `dialect`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

from foldline.errors import ConfigError
from foldline.message import Message

PROVIDERS = ("anthropic", "openai", "openai-responses", "gemini")
"""The formats a request can be rendered in."""

_MODULES = {
    "anthropic": "anthropic",
    "openai": "openai_chat",
    "openai-responses": "openai_responses",
    "gemini": "gemini",
    "claude-code": "claude_code",
    "stream-json": "claude_code_stream",
    "codex": "codex",
    "pi": "pi",
}
FORMATS = tuple(_MODULES)
"""Every format that can be read."""


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
    """Collects what is lost while one message after another is rendered."""

    def __init__(self) -> None:
        self.message = 0
        self.items: list[Lost] = []

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
    read: Callable[[Iterable[Line]], Transcript] | None = None
    """For a session file: all lines to a transcript."""


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
    system = tuple(_leading_system(everything, target)) if target.render_system else ()
    body: dict[str, Any] = {}
    if system and target.render_system:
        body[target.system_key] = target.render_system(system, loss)
    elements: list[Any] = []
    for index, message in enumerate(everything[len(system) :], start=len(system)):
        loss.message = index
        elements.extend(target.render(message, loss))
    body[target.list_key] = elements
    return Rendered(provider=provider, body=body, lost=tuple(loss.items))


def _leading_system(messages: tuple[Message, ...], target: Codec) -> Iterator[Message]:
    """System messages that belong into the request's own field.

    One that stood *inside* the list of the same provider (newer Anthropic models allow it) is an element and stays one.
    """
    for message in messages:
        wire = message.wire
        inline = wire is not None and dialect(wire.format) == target.dialect and _has_role(wire.value)
        if message.role != "system" or inline:
            return
        yield message


def _has_role(value: Any) -> bool:
    return isinstance(value, Mapping) and "role" in value
