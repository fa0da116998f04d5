"""How a part travels where the other provider has no place for it, said once for every format.

What maps is mapped; what does not is replaced by a mark that both the model and a person can read, so that a message
never silently says less than it did.
"""

from __future__ import annotations

import re
from typing import Any

from foldline import json_text
from foldline.errors import WireError
from foldline.message import Media, Message, Text, ToolCall, ToolResult, Wire
from foldline.placeholders import TOOL_ERROR, unsupported_media
from foldline.wire.formats import LossCollector

_DATA_URL = re.compile(r"data:([^;,]*)(?:;[^;,]*)*;base64,", re.IGNORECASE).match


def sdk_json(value: Any) -> Any:
    """The JSON value of an SDK's own object, which histories in Python often hold; anything else as it is."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json", by_alias=True, exclude_unset=True) if callable(dump) else value


def split_data_url(url: str) -> tuple[str, str] | None:
    """The media type and the base64 text of a data URL, or None for any other address.

    >>> split_data_url("data:image/png;base64,AAAA")
    ('image/png', 'AAAA')
    """
    found = _DATA_URL(url, 0, 256)
    return (found[1], url[found.end() :]) if found else None


def data_url(media: Media) -> str:
    """The data URL for media held by value."""
    kind = {"image": "image/png", "document": "application/pdf"}.get(media.kind, "application/octet-stream")
    return f"data:{media.mime or kind};base64,{media.data}"


def media_from(kind: str, url: str, wire: Wire) -> Media:
    """Media that stands on the wire as an address, which may be a data URL."""
    held = split_data_url(url)
    return Media(kind=kind, mime=held[0], data=held[1], wire=wire) if held else Media(kind=kind, url=url, wire=wire)


def document(data: str, wire: Wire) -> Media:
    """A document held by value: OpenAI writes its data as a data URL, some clients as bare base64."""
    mime, text = split_data_url(data) or ("", data)
    return Media(kind="document", mime=mime, data=text, wire=wire)


def document_name(media: Media) -> str:
    """A file name for a document that has none: OpenAI wants one beside the data."""
    return f"document.{media.mime.rpartition('/')[2] or 'pdf'}"


def request_role(message: Message, loss: LossCollector) -> str:
    """The role in which a provider takes a message: kinds and roles of others are what the user says."""
    if message.kind or message.role in ("user", "tool"):
        return "user"
    if message.role in ("system", "assistant"):
        return message.role
    loss.add(f"role {message.role}", "unknown to the provider: sent as the user's")
    return "user"


def media_placeholder(media: Media, loss: LossCollector, why: str) -> Text:
    """Report media that cannot be carried, and give the mark that stands in its place."""
    loss.add(f"media {media.kind}", why)
    return Text(text=unsupported_media(media))


def with_error_text(result: ToolResult, loss: LossCollector) -> ToolResult:
    """A failed result as one whose text says so, for formats that have no field for it."""
    if not result.is_error:
        return result
    loss.add("is_error", "the format has no field for it: the text says so instead")
    first = next((place for place, part in enumerate(result.parts) if isinstance(part, Text)), None)
    said = result.parts[first] if first is not None else None
    mark = Text(text=TOOL_ERROR + (said.text if isinstance(said, Text) else ""))
    rest = tuple(part for place, part in enumerate(result.parts) if place != first)
    return ToolResult(call_id=result.call_id, name=result.name, parts=(mark, *rest))


def arguments_object(call: ToolCall) -> str:
    """The arguments of a call that takes free text, as the JSON object that a function call demands."""
    try:
        if isinstance(json_text.loads(call.arguments), dict):
            return call.arguments
    except WireError:
        pass
    return json_text.dumps({"input": call.arguments})
