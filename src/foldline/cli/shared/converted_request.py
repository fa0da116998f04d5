"""Writes a transcript as a request in a given format: messages, tools, model and the length of the reply.

All other fields have different meanings in different formats. They are copied if the format stays the same. Otherwise
they are left out, and the report names them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from foldline.cli.shared.files import Conversation, read_text
from foldline.errors import InputError
from foldline.json_text import loads
from foldline.models.table import model as model_of
from foldline.session.transcript_session import request_tools
from foldline.view.breakpoints import with_legal_marks
from foldline.view.compose import View
from foldline.view.request_body import http_body, lacks_tools, tool_fault
from foldline.wire.detect import detect
from foldline.wire.field_access import key_in, pick
from foldline.wire.formats import REQUEST_FORMATS, Lost, element_format, request_format
from foldline.wire.rendering import Rendered
from foldline.wire.tool_definitions import convert_tools, single_tools, tool_names

REQUEST = -1
"""The message index in `Lost` for a loss that belongs to the whole request, not to one message."""
_LENGTHS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_CONFIG = "generationConfig"
_GEMINI_LENGTH = "maxOutputTokens"


class MissingField(NamedTuple):
    """Something that a request needs, and that the transcript does not have."""

    what: str
    why: str


class ConvertedRequest(NamedTuple):
    """The body of a request, what was lost, and what must be added before the request can be sent."""

    body: dict[str, Any]
    lost: tuple[Lost, ...]
    missing: tuple[MissingField, ...]


def converted_request(view: View, found: Conversation, to: str, format: str | None = None) -> ConvertedRequest:
    """The request for a view in the format `to`. `format` is the format that the user named for the file."""
    source, model = found.transcript.format, view.model or model_of("")
    rendered = view.render(to)
    fields, lost = _request_fields(found, format), [*rendered.lost]
    length = None
    if source != to:
        length, lost_fields = _length(fields, view)
        lost += lost_fields
        lost += [Lost(REQUEST, name, f"set it again, in the form of {to}") for name in _other_fields(fields)]
        fields = {}
    if to == "anthropic" and "max_tokens" not in fields and length is None:
        length = view.window - view.usable
    definitions, lost_tools = _definitions(request_tools(found.transcript), to, is_same=element_format(source) == to)
    name = {"model": model.name} if model.name and to != "gemini" else {}
    body = {**name, **fields, **http_body(rendered, model=model, definitions=definitions, max_tokens=length)}
    body = with_legal_marks(body) if to == "anthropic" else body
    return ConvertedRequest(body, (*lost, *lost_tools), tuple(_missing(rendered, body)))


def _missing(rendered: Rendered, body: Mapping[str, Any]) -> Iterator[MissingField]:
    """What must be added before the request can be sent."""
    if "model" not in body and rendered.format != "gemini":
        yield MissingField("model", "the file names no model: name it with --model")
    if "tools" not in body and lacks_tools(rendered):
        yield MissingField("tools", "the messages have tool calls, but the file has no tool definitions")
    for beta in rendered.betas:
        yield MissingField(f"header anthropic-beta: {beta}", "a block of the messages needs it")


def _request_fields(found: Conversation, format: str | None) -> dict[str, Any]:
    """The fields of the request in a file, without messages, system text, tools and model; {} without a request."""
    if found.transcript.format not in REQUEST_FORMATS or not found.is_whole_file:
        return {}
    try:
        value = loads(read_text(found.file))
    except InputError:  # one message per line
        return {}
    detected = detect(value, format)
    if not isinstance(value, Mapping) or detected is None or detected.shape != "body":
        return {}
    form = request_format(detected.format)
    known = {key_in(value, form.list_key), key_in(value, form.system_key), "tools", "functions", "model", "response"}
    return {key: held for key, held in value.items() if key not in known and held is not None}


def _other_fields(fields: Mapping[str, Any]) -> Iterator[str]:
    """The names of the fields that have no counterpart in another format."""
    config = key_in(fields, _CONFIG)
    for name, value in fields.items():
        if name == config and isinstance(value, Mapping):
            yield from (f"{name}.{inner}" for inner in value if inner != key_in(value, _GEMINI_LENGTH))
        elif name not in _LENGTHS:
            yield name


def _length(fields: Mapping[str, Any], view: View) -> tuple[int | None, list[Lost]]:
    """The maximum length of the reply, but not more than the policy reserves; None if the request sets no length."""
    named = [*(fields.get(name) for name in _LENGTHS), pick(pick(fields, _CONFIG) or {}, _GEMINI_LENGTH)]
    asked = next((value for value in named if isinstance(value, int) and value > 0), None)
    room = view.window - view.usable
    if asked is None or asked <= room:
        return asked, []
    why = f"lowered to {room:,}, which the policy reserves for the reply (reply_tokens)"
    return room, [Lost(REQUEST, f"reply of {asked:,} tokens", why)]


def _definitions(tools: Sequence[Any], to: str, *, is_same: bool) -> tuple[list[Any], list[Lost]]:
    """The tool definitions in the format `to`, and the tools that cannot be written in it."""
    usable, lost = [], []
    for tool in tools if is_same else single_tools(tools):
        try:
            (made,) = convert_tools([tool], to)
            fault = None if is_same else tool_fault(made, to)
        except InputError as error:
            fault = error
        if fault is None:
            usable.append(tool)
        else:
            name = next(iter(tool_names(tool)), None) or tool.get("type") or ", ".join(map(str, tool))
            lost.append(Lost(REQUEST, f"tool {name}", fault.message))
    return convert_tools(usable, to), lost
