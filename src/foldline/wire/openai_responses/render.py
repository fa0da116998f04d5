"""Renders messages as items of OpenAI's Responses API.

New items have no item id, because an item id refers to an item that the server has stored.
"""

from __future__ import annotations

from typing import Any

from foldline.message import Media, Message, Opaque, Part, Text, ToolCall, ToolResult
from foldline.wire.formats import LossCollector, StoredElements, element_format, format_of
from foldline.wire.openai_responses.parse import NAME
from foldline.wire.openai_responses.render_items import call_item, content, kind_of, result_item, unchanged_value
from foldline.wire.openai_responses.sendable import sendable_to_openai
from foldline.wire.part_mapping import media_placeholder, request_role

_CONTENT = frozenset(("input_text", "output_text", "input_image", "input_file", "input_audio", "refusal", "text"))


def render(message: Message, loss: LossCollector) -> list[Any]:
    """The items for one message: its results first, then its content and calls in their order."""
    wire = message.wire
    base: dict[str, Any] = {}
    if wire is not None and wire.format == NAME:
        if wire.exact:
            return [wire.value]
        base = wire.value if isinstance(wire.value, dict) else {}
    elif wire is not None and element_format(wire.format) == NAME:
        read = format_of(wire.format).stored_elements
        stored = read(wire.value) if read else StoredElements([], complete=False)
        if wire.exact and stored.complete:
            for kind in stored.lost:
                loss.add(kind, "the log does not hold it in a form that can be sent")
            return [sendable_to_openai(item) for item in stored.items]
        base = sendable_to_openai(stored.items[0]) if len(stored.items) == 1 else {}
    base = {key: value for key, value in base.items() if key != "id"}
    items: list[Any] = [result_item(result, base, loss) for result in message.results]
    pending: list[Part] = []
    for part in message.parts:
        if isinstance(part, ToolResult):
            continue
        if isinstance(part, (Text, Media)) or (isinstance(part, Opaque) and _is_content(part, base)):
            pending.append(part)
            continue
        item = unchanged_value(part)
        if item is None and isinstance(part, ToolCall):
            item = call_item(part, loss)
        if item is None:
            loss.add(kind_of(part), "the Responses API has no place for it")
        else:
            items += [*_message_item(message, pending, base, loss), item]
            pending = []
    if not message.parts and base.get("type", "message") == "message":
        return [{"type": "message", **base, "role": request_role(message, base, loss), "content": ""}]
    return items + _message_item(message, pending, base, loss)


def render_system(messages: tuple[Message, ...], loss: LossCollector) -> str:
    """The `instructions` for leading system messages."""
    only = messages[0].wire if len(messages) == 1 else None
    if only is not None and only.format == NAME and only.exact and isinstance(only.value, str):
        return only.value
    for index, message in enumerate(messages):
        loss.message = index
        for part in message.parts:
            if not isinstance(part, Text):
                loss.add(kind_of(part), "instructions are text")
    return "\n\n".join(message.text for message in messages if message.text)


def _is_content(part: Opaque, base: dict[str, Any]) -> bool:
    """True for an opaque part that belongs in the content of a message item.

    Other opaque parts become separate items.
    """
    own = part.wire is not None and part.wire.format == NAME and isinstance(part.wire.value, dict)
    return part.kind in _CONTENT or (own and base.get("type", "message") == "message" and bool(base))


def _message_item(message: Message, parts: list[Part], base: dict[str, Any], loss: LossCollector) -> list[Any]:
    """The message item for text and media.

    The content of a new assistant item is a string, because an item with a list of content parts needs an item id.
    """
    if not parts:
        return []
    source = base if base.get("type", "message") == "message" else {}
    role = request_role(message, source, loss)
    if role == "assistant" and not source:
        texts = [text for part in parts if (text := _plain_text(part, loss)) is not None]
        return [{"type": "message", "role": role, "content": text} for text in texts]
    value = content(tuple(parts), role, loss, listed=isinstance(source.get("content"), list))
    if value == "" and not any(isinstance(part, Text) for part in parts):
        return []
    first = {} if source else {"type": "message"}
    return [{**first, **source, "role": role, "content": value}]


def _plain_text(part: Part, loss: LossCollector) -> str | None:
    if isinstance(part, Media):
        return media_placeholder(part, loss, "an assistant item of the Responses API cannot hold it").text
    if not isinstance(part, Text):
        loss.add(kind_of(part), "the Responses API has no place for it")
        return None
    value = part.wire.value if part.wire is not None else None
    if isinstance(value, dict) and "refusal" in value:
        loss.add("refusal", "sent as plain text")
    return part.text
