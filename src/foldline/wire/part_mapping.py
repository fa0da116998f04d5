"""Functions that convert parts to and from the fields of a format. All formats share these functions.

Media that cannot be converted are replaced by a readable placeholder and reported as lost.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping
from mimetypes import guess_extension
from typing import Any

from foldline import json_text
from foldline.message import Media, Message, Text, ToolCall, ToolResult, Wire
from foldline.placeholders import TOOL_ERROR, unsupported_media
from foldline.wire.formats import LossCollector
from foldline.wire.json_values import finite_json, is_json_object, sendable_value

_GOOGLE_FILES = re.compile(
    r"https?://(?:generativelanguage\.googleapis\.com|(?:www\.|m\.)?youtube\.com|youtu\.be)/", re.IGNORECASE
).match
"""Addresses that only Gemini can read: uploaded files, and web pages of videos."""
_TEXT_TYPES = frozenset(
    f"application/{kind}" for kind in ("json", "xml", "yaml", "x-yaml", "toml", "javascript", "sql")
)
"""Types of documents that are plain text, although their names do not begin with `text/`."""
_DATA_URL = re.compile(r"data:([^;,]*)(?:;[^;,]*)*;base64,", re.IGNORECASE).match


def sdk_json(value: Any) -> Any:
    """The JSON value of an SDK's object; any other value is returned unchanged."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json", by_alias=True, exclude_unset=True) if callable(dump) else value


def split_data_url(url: str) -> tuple[str, str] | None:
    """The media type and the base64 text of a data URL; None for any other URL.

    >>> split_data_url("data:image/png;base64,AAAA")
    ('image/png', 'AAAA')
    """
    found = _DATA_URL(url, 0, 256)
    return (found[1], url[found.end() :]) if found else None


def data_url(media: Media) -> str:
    """The data URL for media with data."""
    kind = {"image": "image/png", "document": "application/pdf"}.get(media.kind, "application/octet-stream")
    return f"data:{media.mime or kind};base64,{media.data}"


def media_from(kind: str, url: str, wire: Wire) -> Media:
    """The media part for a URL, which may be a data URL."""
    held = split_data_url(url)
    return Media(kind=kind, mime=held[0], data=held[1], wire=wire) if held else Media(kind=kind, url=url, wire=wire)


def document(data: str, wire: Wire) -> Media:
    """The media part for a document. `data` is a data URL, as OpenAI requires, or base64 text, as some clients write
    it.
    """
    mime, text = split_data_url(data) or ("", data)
    return Media(kind="document", mime=mime, data=text, wire=wire)


def document_name(media: Media) -> str:
    """The file name of a document. A document without a name gets one, because OpenAI requires a name with the data.

    >>> document_name(Media(kind="document", mime="text/plain"))
    'document.txt'

    """
    value = _file_fields(media)
    name = value.get("filename") or value.get("title")
    return name if isinstance(name, str) and name else f"document{guess_extension(media.mime) or '.pdf'}"


def decoded_text(mime: str, data: str) -> str:
    """The text of a plain-text document; "" for other documents."""
    if not data or not (mime.startswith("text/") or mime in _TEXT_TYPES):
        return ""
    try:
        return b64decode(data, validate=True).decode()
    except (ValueError, UnicodeDecodeError):
        return ""


def openai_file_id(media: Media) -> str:
    """The id of a file that was uploaded to OpenAI; "" for other media."""
    is_openai = media.wire is not None and media.wire.format in ("openai", "openai-responses", "codex")
    return str(_file_fields(media).get("file_id") or "") if is_openai and media.kind == "document" else ""


def _file_fields(media: Media) -> dict[str, Any]:
    """The fields of the wire value that describe a file. Chat Completions has these fields under the key `file`."""
    value = media.wire.value if media.wire is not None and isinstance(media.wire.value, dict) else {}
    inner = value.get("file")
    return inner if isinstance(inner, dict) else value


def is_public_address(url: str) -> bool:
    """True for an address that every provider can open. False for Google's storage, which needs the owner's key.

    >>> is_public_address("https://example.com/a.pdf"), is_public_address("gs://bucket/a.pdf")
    (True, False)
    """
    return url.startswith(("https://", "http://")) and not _GOOGLE_FILES(url)


def wire_object(wire: Wire | None, format: str) -> dict[str, Any]:
    """The wire value if it is an object in this format, else an empty dict."""
    return wire.value if wire is not None and wire.format == format and isinstance(wire.value, dict) else {}


def request_role(message: Message, base: Mapping[str, Any], loss: LossCollector) -> str:
    """The role of a message in a request.

    `base` is the wire form that the message had before it was edited, or empty. If the role in `base` still fits the
    message, that role is kept. Otherwise, the role is "user" for a message that has a `kind` (such as a digest or a
    note), for a tool message, and for a message with an unknown role.
    """
    role = base.get("role")
    if isinstance(role, str) and not message.kind and message.role == ("system" if role == "developer" else role):
        return role
    if message.kind or message.role in ("user", "tool"):
        return "user"
    if message.role in ("system", "assistant"):
        return message.role
    loss.add(f"role {message.role}", "unknown to the provider: sent as a user message")
    return "user"


def words_of(value: Any) -> str:
    """The value of a result as text: a string unchanged, any other value as JSON."""
    return value if isinstance(value, str) else json_text.dumps(value)


def media_placeholder(media: Media, loss: LossCollector, why: str) -> Text:
    """The placeholder for media that the format cannot hold. The media are added to `loss` with the reason `why`."""
    loss.add(f"media {media.kind}", why)
    return Text(text=unsupported_media(media))


def with_error_text(result: ToolResult, loss: LossCollector) -> ToolResult:
    """The result. If it is a failure, a text is added that says that the call failed.

    This function is for formats without an error field.
    """
    if not result.is_error:
        return result
    loss.add("is_error", "the format has no error field: a text says that the call failed")
    place, first = next(
        ((place, part) for place, part in enumerate(result.parts) if isinstance(part, Text)), (-1, None)
    )
    marked = Text(text=TOOL_ERROR + (first.text if first else ""))
    rest = (part for index, part in enumerate(result.parts) if index != place)
    return ToolResult(call_id=result.call_id, name=result.name, parts=(marked, *rest))


def arguments_value(call: ToolCall) -> dict[str, Any]:
    """The arguments of a call as an object.

    A blank text becomes `{}`, and a text that is not a JSON object becomes `{"input": text}`. In an object, a number
    that is not finite becomes a text.

    >>> arguments_value(ToolCall(id="1", name="f", arguments='{"a": NaN}'))
    {'a': 'NaN'}
    """
    if not call.arguments.strip():
        return {}
    try:
        value = sendable_value(finite_json(call.arguments))
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"input": call.arguments}


def arguments_object(call: ToolCall) -> str:
    """The arguments of a call as the text of a JSON object. A text that already is a JSON object is not changed."""
    if is_json_object(call.arguments):
        return call.arguments
    return json_text.dumps(arguments_value(call))
