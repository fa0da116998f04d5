"""Converts the items of a framework's history (dicts or objects) to messages, and messages to items."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foldline.errors import WireError
from foldline.message import Media, Message, Opaque, Part, Text, ToolCall, ToolResult, Usage, Wire
from foldline.wire.formats import LossCollector, request_format

_MEDIA_KINDS = {"image": "image", "audio": "audio", "video": "video", "file": "document", "document": "document"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemCodec:
    """The two conversions for one kind of item."""

    read: Callable[[Any], Sequence[Message]]
    """Returns the messages of an item. Most items have one."""
    write: Callable[[Sequence[Message], Any], Sequence[Any]]
    """Returns new items for changed messages.

    The second argument is the item that the messages were read from. It is None for a message that foldline has added.
    """


def wire_codec(
    name: str,
    *,
    dump: Callable[[Any], Any] | None = None,
    load: Callable[[Any], Any] | None = None,
    keeps_unreadable: bool = False,
) -> ItemCodec:
    """The codec for the elements of a request format.

    If the items are objects, `dump` returns the element for an item, and `load` returns the item for an element. With
    `keeps_unreadable`, an item that cannot be read becomes a message with an opaque part instead of an error.
    """
    format = request_format(name)

    def read(item: Any) -> Sequence[Message]:
        element = item if dump is None else dump(item)
        try:
            return (format.parse(element, None),)
        except WireError:
            if not keeps_unreadable:
                raise
            wire = Wire(name, element)
            return (Message(role="assistant", parts=(Opaque(kind="unknown", value=element, wire=wire),), wire=wire),)

    def write(messages: Sequence[Message], _item: Any) -> Sequence[Any]:
        loss = LossCollector()
        elements = [element for message in messages for element in format.render(message, loss)]
        return elements if load is None else [load(element) for element in elements]

    return ItemCodec(read=read, write=write)


def message_codec(read: Callable[[Any], Message], write: Callable[[Message, Any], Any]) -> ItemCodec:
    """The codec for items that have one message each."""
    return ItemCodec(
        read=lambda item: (read(item),), write=lambda messages, item: [write(message, item) for message in messages]
    )


def kept_blocks(
    parts: Sequence[Part],
    blocks: Sequence[Any],
    read: Callable[[Any], Sequence[Part]],
    write: Callable[[Part], Sequence[Any]],
) -> list[Any]:
    """The blocks for the parts of a changed message. A block whose parts are unchanged is the framework's own object.

    `blocks` are the blocks of the item that the message was read from. `read` returns the parts of a block. `write`
    returns the new blocks for a part.
    """
    left = [(block, own) for block in blocks if (own := tuple(read(block)))]
    found: list[Any] = []
    index = 0
    while index < len(parts):
        for at, (block, own) in enumerate(left):
            if tuple(parts[index : index + len(own)]) == own:
                found.append(block)
                index += len(own)
                del left[at]
                break
        else:
            found += write(parts[index])
            index += 1
    return found


def function_definition(name: str, description: str | None, parameters: Any) -> dict[str, Any]:
    """The definition of a tool. It is used to measure the size of a request."""
    function = {"name": name, "description": description or "", "parameters": parameters}
    return {"type": "function", "function": function}


def result_text(result: ToolResult) -> str:
    """The text of a tool result. Each part that is not text is replaced by a note."""
    return "\n".join(part.text if isinstance(part, Text) else f"[{part_kind(part)}]" for part in result.parts)


def part_kind(part: Part) -> str:
    """One word for a part: its kind, or the name of its class if it has no kind."""
    return getattr(part, "kind", "") or type(part).__name__.lower()


def json_of(arguments: Any) -> str:
    """The arguments of a call as JSON text. Arguments that are already a text are returned unchanged."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """The arguments of a call as a dict; empty if they are not a JSON object."""
    try:
        value = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def usage_of(total: int, *, cache_read: int = 0, cache_write: int = 0, output: int = 0) -> Usage:
    """The usage for these token counts.

    `total` is the whole prompt, including the tokens read from and written to the cache.
    """
    read, written = cache_read or 0, cache_write or 0
    return Usage(input=max(total - read - written, 0), cache_read=read, cache_write=written, output=output)


def media_kind(mime: str) -> str:
    """The kind of media with this MIME type.

    >>> media_kind("image/png"), media_kind("application/pdf")
    ('image', 'document')
    """
    kind = mime.partition("/")[0]
    return kind if kind in ("image", "audio", "video") else "document"


def media_of(block: Mapping[str, Any]) -> Media | None:
    """The media in a content block of a framework; None if the block has none.

    >>> media_of({"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}).url
    'https://example.com/a.png'
    """
    kind = str(block.get("type") or "").removesuffix("_url").removeprefix("input_")
    if kind not in _MEDIA_KINDS:
        return None
    source = block.get("source") or block.get(f"{kind}_url") or block.get(kind) or block
    found = {"url": source} if isinstance(source, str) else source if isinstance(source, Mapping) else block
    url, data = str(found.get("url") or ""), str(found.get("base64") or found.get("data") or "")
    mime = str(found.get("mime_type") or found.get("media_type") or "")
    if url.startswith("data:"):
        head, _, data = url.partition(",")
        url, mime = "", head.removeprefix("data:").partition(";")[0]
    if not url and not data:
        return None
    return Media(kind=_MEDIA_KINDS[kind], mime=mime, data=data, url=url)
