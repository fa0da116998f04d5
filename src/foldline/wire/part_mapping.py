"""Converts parts for formats that have no field for them. All formats use these functions.

Media that cannot be converted are replaced by a readable placeholder and reported as lost.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from foldline import json_text
from foldline.message import Media, Message, Text, ToolCall, ToolResult, Wire
from foldline.placeholders import TOOL_ERROR, unsupported_media
from foldline.wire.formats import LossCollector
from foldline.wire.json_values import finite_json, is_json_object, sendable_value

_DATA_URL = re.compile(r"data:([^;,]*)(?:;[^;,]*)*;base64,", re.IGNORECASE).match


def sdk_json(value: Any) -> Any:
    """The JSON value of an SDK's object; any other value unchanged."""
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
    """The media part for a document's data. OpenAI sends a data URL; some clients send only base64."""
    mime, text = split_data_url(data) or ("", data)
    return Media(kind="document", mime=mime, data=text, wire=wire)


def document_name(media: Media) -> str:
    """A file name for a document, because OpenAI requires a name with the data."""
    return f"document.{media.mime.rpartition('/')[2] or 'pdf'}"


def wire_object(wire: Wire | None, format: str) -> dict[str, Any]:
    """The wire value if it is an object in this format, else an empty dict."""
    return wire.value if wire is not None and wire.format == format and isinstance(wire.value, dict) else {}


def request_role(message: Message, base: Mapping[str, Any], loss: LossCollector) -> str:
    """The role of a message in a request. If the role in the message's old element (`base`) still fits the message, it
    is kept.

    Otherwise messages with a kind, tool messages and messages with an unknown role get the role "user".
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


def media_placeholder(media: Media, loss: LossCollector, why: str) -> Text:
    """The placeholder for media that the format cannot hold. The lost media are reported."""
    loss.add(f"media {media.kind}", why)
    return Text(text=unsupported_media(media))


def with_error_text(result: ToolResult, loss: LossCollector) -> ToolResult:
    """A failed result with an added text that says that the call failed.

    Formats without an error field use this function.
    """
    if not result.is_error:
        return result
    loss.add("is_error", "the format has no field for it: marked in the text instead")
    place, first = next(
        ((place, part) for place, part in enumerate(result.parts) if isinstance(part, Text)), (-1, None)
    )
    marked = Text(text=TOOL_ERROR + (first.text if first else ""))
    rest = (part for index, part in enumerate(result.parts) if index != place)
    return ToolResult(call_id=result.call_id, name=result.name, parts=(marked, *rest))


def arguments_value(call: ToolCall) -> dict[str, Any]:
    """The arguments of a call as an object.

    A blank text becomes `{}`, and a text that is not a JSON object becomes `{"input": text}`.

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
    """The arguments of a call as the text of a JSON object; the same text if it already is one."""
    if is_json_object(call.arguments):
        return call.arguments
    return json_text.dumps(arguments_value(call))
