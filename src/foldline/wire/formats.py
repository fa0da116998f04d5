"""The wire formats: what each one registers, and the types that reading and rendering share.

Each format defines one `Format` value with the name `FORMAT`, which holds data and functions. There is no class to
inherit from. A request format (`anthropic`, `openai`, ...) is a folder. A session log is a module in `session_logs/`. A
session log records requests, so its message elements have the format of these requests (its `element_format`). To add a
format, write its folder and add one line to the registry below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from foldline.errors import ConfigError
from foldline.measure.message_size import Framing
from foldline.message import Message, Opaque, Usage
from foldline.models.table import MediaRule, Model
from foldline.wire.grammar import Grammar

_REQUEST_MODULES = {
    "anthropic": "foldline.wire.anthropic",
    "openai": "foldline.wire.openai_chat",
    "openai-responses": "foldline.wire.openai_responses",
    "gemini": "foldline.wire.gemini",
}
_LOG_MODULES = {
    "claude-code": "foldline.wire.session_logs.claude_code",
    "stream-json": "foldline.wire.session_logs.claude_code_stream",
    "codex": "foldline.wire.session_logs.codex",
    "pi": "foldline.wire.session_logs.pi",
    "gemini-cli": "foldline.wire.session_logs.gemini_cli",
    "openhands": "foldline.wire.session_logs.openhands",
}
REQUEST_FORMATS = tuple(_REQUEST_MODULES)
"""The formats that a request can be written in."""
FORMATS = (*_REQUEST_MODULES, *_LOG_MODULES)
"""All formats that can be read."""

_PLAIN_FORMATS = ("anthropic", "openai", "openai-responses")
"""Formats in which a message may consist of only a role and a text."""


class Lost(NamedTuple):
    """A piece of content that was lost, because the target format cannot hold it."""

    message: int
    """The index, in the rendered list, of the message that held this content."""
    what: str
    """The kind of content that was lost: "thinking", "media image", "opaque web_search_call"."""
    why: str


class LossCollector:
    """Collects the content that is lost while messages are rendered one after another.

    `names` maps the id of each rendered call to its name, because some formats repeat the name in the result. `kinds`
    maps the id of each rendered call to its kind, because some formats have a type of result for each kind of call.
    """

    def __init__(self) -> None:
        self.message = 0
        self.items: list[Lost] = []
        self.names: dict[str, str] = {}
        self.kinds: dict[str, str] = {}
        self.betas: dict[str, None] = {}
        """The values for the provider's beta header that the rendered blocks need, in the order of the blocks."""

    def add(self, what: str, why: str) -> None:
        """Record that `what` in the current message cannot be rendered, and why."""
        self.items.append(Lost(self.message, what, why))


class JsonLine(NamedTuple):
    """One line of a session file: its number (counted from 1), its JSON value, its exact text."""

    number: int
    value: Any
    raw: str | None


class ReadNote(NamedTuple):
    """A note about a line: the line is not a message, or the reader had to make an assumption about the line."""

    line: int
    text: str


BROKEN_LINE = "broken line left out: "
"""The beginning of every note about a file line that cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRequest:
    """A request that an agent sent, as recorded in the agent's log: the values of the request body."""

    messages: tuple[dict[str, Any], ...]
    system: Any = None
    tools: tuple[Any, ...] = ()
    model: str = ""
    is_proven: bool = False
    """Whether each value of the request has the hash that the log names for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A conversation that was read.

    The messages, including leading system messages, are in the order in which the model saw them.
    """

    format: str
    messages: tuple[Message, ...]
    tools: tuple[Any, ...] = ()
    """Tool definitions as they are on the wire."""
    model: str = ""
    notes: tuple[ReadNote, ...] = ()
    window: int = 0
    """The size of the model's window in tokens, as the log states it; 0 if the log does not state it."""
    sent: SentRequest | None = None
    """The newest request that the agent sent; None if the log does not hold it."""
    session: str = ""
    """The agent's own id of the session, as the log states it; "" if the log does not state it.

    The id of a sub-agent of Claude Code is `SESSION/AGENT`, as the proxy names it.
    """

    @property
    def broken_lines(self) -> tuple[ReadNote, ...]:
        """The lines that could not be read, each with the reason."""
        broken = (note for note in self.notes if note.text.startswith(BROKEN_LINE))
        return tuple(note._replace(text=note.text.removeprefix(BROKEN_LINE)) for note in broken)


class Sign(NamedTuple):
    """A test that recognises values of one format, and the feature that it looks for."""

    description: str
    """The feature in words, for error messages, for example `contents with parts`."""
    test: Callable[[Mapping[str, Any]], bool]


class ReplyStream(Protocol):
    """Assembles the events of a streamed reply into the JSON value that the reply would have without streaming."""

    stop: str
    """The provider's stop reason; "" until the provider sends it."""

    def take(self, value: dict[str, Any]) -> None:
        """Process the JSON value of one event. An unknown event has no effect. The method never raises."""

    def value(self, *, cut: bool, loss: LossCollector) -> dict[str, Any] | None:
        """The reply so far; None if nothing was received.

        `cut` is true if the stream broke off. If so, the result holds only those parts of the reply that may be sent
        back to the provider.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyFormat:
    """The replies of a request format: how they are parsed, streamed and counted."""

    parse: Callable[[Any], tuple[Message, ...]]
    stream: Callable[[], ReplyStream]
    is_event: Callable[[Mapping[str, Any]], bool]
    """Whether a JSON value is an event of a stream in this format."""
    usage: Callable[[Any], Usage | None]
    list_key: str
    """The field that holds the content of a reply."""
    usage_key: str = "usage"
    object_type: str | None = None
    """The value of the field `object` in every reply of this format; "" if replies do not have this field.

    None if a reply looks like an element of the request's message list. Such a reply is read like an element.
    """
    blocked_key: str = ""
    """The field that a reply has if the provider blocked the reply. A blocked reply has no content."""
    chunked: bool = False
    """True if a streamed reply may be a list of chunks, and each chunk has the form of a reply."""


class StoredElements(NamedTuple):
    """The request elements that a line of a session log holds."""

    items: list[Any]
    complete: bool = True
    """Whether `items` can be sent unchanged. If False, the elements are rendered from the message's parts."""
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LogWriter:
    """How new lines of a session log are written."""

    make: Callable[[Message, Mapping[str, Any], LossCollector], list[dict[str, Any]]]
    """Returns the lines for a message. Session, folder and time are copied from the given line."""
    without_usage: Callable[[dict[str, Any]], dict[str, Any]] = lambda line: line
    """Returns the line with its usage set to 0. A line without usage is returned as the same object."""
    head_types: tuple[str, ...] = ()
    """Types of the leading lines. The first type describes the session. The other types describe its settings.

    If there are several lines of the first type, the first of them is kept. For every other type, the last line is
    kept.
    """
    id_fields: tuple[str, str] | None = None
    """The fields that hold a line's id and the id of its parent line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One wire format.

    `parse(value, raw)` returns the message for one element. If a field is wrong, `parse` raises a `WireError` that
    names the field. An unknown kind of part becomes `Opaque`.

    `render(message, loss)` returns the elements for one message, in the format `element_format`. If the message is
    unchanged and was read from this format, its original value is returned. Otherwise, new elements are written: an
    unchanged part keeps its original value, and an edited part gets its original value with the new fields. The list is
    empty if no part of the message can be written in this format.
    """

    name: str
    element_format: str
    """The format of the message elements.

    For a session log, this is the format of the requests that the log records. For a request format, it is `name`.
    """
    parse: Callable[[Any, str | None], Message]
    render: Callable[[Message, LossCollector], list[Any]]
    sign: Sign
    """The test that recognises an element of this format or, for a session log, a line."""
    framing: Framing
    """The tokens that the provider adds to messages, parts, calls and tools."""
    grammar: Grammar | None = None
    """What the provider accepts; None for a session log."""
    model_grammar: Callable[[Model], Grammar] | None = None
    """Returns what the provider accepts for one model, if that differs between models."""
    plain_fields: tuple[str, ...] = ()
    """An element whose format is not clear can be read in this format if it has one of these fields."""
    body_sign: Sign | None = None
    """The test that recognises a request body by fields other than the messages.

    The test is used if the format of the messages is not clear.
    """
    list_key: str = ""
    """The request field that holds the messages; "" for a session log."""
    text_list: bool = False
    """True if the field `list_key` may hold a string instead of a list."""
    system_key: str = ""
    """The request field that holds the system text; "" if the system text is an ordinary message."""
    parse_system: Callable[[Any], Message] | None = None
    """Returns the system message for the value under `system_key`, with that value as its wire value."""
    render_system: Callable[[tuple[Message, ...], LossCollector], Any] | None = None
    """Returns the value under `system_key` for the leading system messages; None to leave the field out."""
    join: Callable[[Any, Any], Any | None] | None = None
    """Merges two neighbouring elements that were newly written, if the provider expects a single element.

    Returns None if they stay separate.
    """
    join_turns: Callable[[list[Any]], list[Any]] | None = None
    """Merges consecutive elements of one role before a request is sent.

    None if the provider never demands merged elements.
    """
    beta_of: Callable[[Opaque], str] | None = None
    """Returns the value for the provider's beta header that a block needs; "" for a block that needs none."""
    has_call_ids: bool = True
    """False if results are matched to calls by name and order, so that ids may be missing."""
    reply: ReplyFormat | None = None
    read: Callable[[Iterable[JsonLine]], Transcript] | None = None
    """For a session log: returns the transcript of all its lines."""
    stored_elements: Callable[[Any], StoredElements] | None = None
    """For a session log that stores request elements: returns the elements in the wire value of a message."""
    writer: LogWriter | None = None
    """How new lines of a session log are written; None for other formats, and for logs that cannot be written."""


@cache
def format_of(name: str) -> Format:
    """The format with that name. The module of the format is imported at the first call."""
    module = _REQUEST_MODULES.get(name) or _LOG_MODULES.get(name)
    if module is None:
        raise ConfigError(f"unknown wire format {name!r}", hint=f"use one of {', '.join(FORMATS)}")
    found: Format = import_module(module).FORMAT
    return found


def plain_message(value: Any, name: str) -> Message | None:
    """The message for a dict with only a role and a text, read in the format `name`; None for any other value."""
    if (
        type(value) is dict
        and len(value) == 2
        and type(value.get("content")) is str
        and value.get("role") in ("user", "assistant")
        and name in _PLAIN_FORMATS
    ):
        return format_of(name).parse(value, None)
    return None


def request_format(name: str) -> Format:
    """The request format with this name. Raises `ConfigError` for any other name."""
    if name not in _REQUEST_MODULES:
        what = f"{name!r} is not a request format" if name in FORMATS else f"unknown wire format {name!r}"
        raise ConfigError(what, hint=f"use one of {', '.join(REQUEST_FORMATS)}")
    return format_of(name)


def grammar_of(name: str, model: Model | None = None) -> Grammar:
    """The grammar of a request format. If a model is given, the grammar is the one for this model.

    For a session log, the grammar of the request format that the log records is returned.
    """
    format = request_format(element_format(name))
    found = format.model_grammar(model) if format.model_grammar and model else format.grammar
    if found is None:
        raise ConfigError(f"the wire format {name!r} has no grammar", hint="register one as FORMAT.grammar")
    return found


def framing_of(name: str, media: MediaRule | None = None) -> Framing:
    """The framing of a format: the tokens that the provider adds to messages, parts, calls and tools.

    If `media` is given, it replaces the format's media rule. An unknown format gets OpenAI's framing.
    """
    framing = format_of(name if name in FORMATS else "openai").framing
    return replace(framing, media=media) if media else framing


def element_format(name: str) -> str:
    """The name of the request format in which a format writes its messages.

    >>> element_format("claude-code"), element_format("openai")
    ('anthropic', 'openai')
    """
    return format_of(name).element_format
