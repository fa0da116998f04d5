"""Renders messages as Anthropic elements and as the `system` field.

An unchanged message is rendered as its original value. A reply has fields that a request must not have, so only the
role and the content of a reply are rendered.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from foldline.message import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from foldline.wire import part_mapping as carry
from foldline.wire.anthropic.parse import NAME, is_reply
from foldline.wire.formats import LossCollector

_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_PDF = "application/pdf"
_PDF_ADDRESSES = (("document", ""), ("document", _PDF))
_bad_id = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME = 128


def render(message: Message, loss: LossCollector) -> list[Any]:
    """The element for one message; an empty list if no part of the message can be written in this format."""
    base = carry.wire_object(message.wire, NAME)
    if base and message.wire is not None and message.wire.exact:
        return [{"role": base["role"], "content": base["content"]} if is_reply(base) else base]
    content = _content(message.parts, loss)
    if content == []:
        return []
    if base and not is_reply(base):
        return [{**base, "content": content}]
    if message.role == "system":
        loss.add("system role", "only leading messages may have the role system: sent as a user message")
    return [{"role": "assistant" if message.role == "assistant" else "user", "content": content}]


def render_system(messages: tuple[Message, ...], loss: LossCollector) -> Any:
    """The value under `system`: the original value of a single unchanged message, else the texts of all messages."""
    only = messages[0].wire if len(messages) == 1 else None
    if only is not None and only.format == NAME and only.exact:
        return only.value
    texts: list[Part] = []
    for index, message in enumerate(messages):
        loss.message = index
        for part in message.parts:
            if isinstance(part, Text):
                texts.append(part)
            else:
                loss.add(f"{type(part).__name__.lower()} in system", "a system prompt holds text only")
    return _content(tuple(texts), loss)


def beta_of(part: Opaque) -> str:
    """The value for the header `anthropic-beta` that a block needs; "" if the block needs none.

    Signed and unsigned compaction blocks belong to different betas.
    """
    value = part.wire.value if part.wire is not None and part.wire.format == NAME else None
    if part.kind != "compaction" or not isinstance(value, dict):
        return ""
    return "compact-2026-09-04" if value.get("signature") else "compact-2026-01-12"


def join(before: Any, after: Any) -> Any | None:
    """One element that replaces two elements of the same role; None if they must stay separate.

    All calls of a step belong in one message, and all results of these calls belong in the next message. Results must
    come first in their message. So two elements stay separate if a result would come after other content.
    """
    if before["role"] != after["role"] or before.keys() != after.keys() or before["role"] not in ("user", "assistant"):
        return None
    first, second = _blocks(before["content"]), _blocks(after["content"])
    late = any(_is_result(block) for block in second) and not _is_result(first[-1])
    return None if late else {**before, "content": first + second}


def _content(parts: tuple[Part, ...], loss: LossCollector) -> str | list[Any]:
    """The parts as content. A single text is written as a string, unless its original was a block."""
    only = parts[0] if len(parts) == 1 else None
    if isinstance(only, Text) and (only.wire is None or only.wire.format != NAME):
        return only.text
    return [block for part in parts if (block := _block(part, loss)) is not None]


def _blocks(content: str | list[Any]) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _is_result(block: dict[str, Any]) -> bool:
    return block.get("type") == "tool_result"


def _block(part: Part, loss: LossCollector) -> Any | None:
    """A part of a message in Anthropic's form, as a content block.

    An unchanged part keeps its original block. An edited part gets its original block with new values. A part from
    another format gets a new block.
    """
    base: dict[str, Any] = {}
    if part.wire is not None and part.wire.format == NAME:
        if part.wire.exact:
            return part.wire.value
        base = part.wire.value
    match part:
        case Text(text=text):
            return {**(base or {"type": "text"}), "text": text} if text else None
        case ToolCall():
            fields = {
                "id": _id(part.id),
                "name": _bad_id.sub("_", part.name)[:_LONGEST_NAME],
                "input": carry.arguments_value(part),
            }
            return {**(base or {"type": "tool_use"}), **fields}
        case ToolResult():
            return _result_block(part, base or {"type": "tool_result"}, loss)
        case Media():
            return _media_block(part, base or {"type": part.kind}, loss)
        case Thinking():
            loss.add("thinking", "only the model that wrote it can read it, and only if it is unchanged")
        case Opaque(kind=kind):
            loss.add(f"opaque {kind}".strip(), "unknown to Anthropic")
    return None


def _result_block(result: ToolResult, base: dict[str, Any], loss: LossCollector) -> dict[str, Any]:
    block = {key: value for key, value in base.items() if key not in ("content", "is_error")}
    block["tool_use_id"] = _id(result.call_id)
    if content := _content(result.parts, loss):
        block["content"] = content
    if result.is_error:
        block["is_error"] = True
    return block


def _media_block(media: Media, base: dict[str, Any], loss: LossCollector) -> dict[str, Any]:
    held = carry.split_data_url(media.url)
    mime, data = held or (media.mime, media.data)
    source: dict[str, Any] | None = None
    if data and mime in (_IMAGES if media.kind == "image" else (_PDF,)):
        source = {"type": "base64", "media_type": mime, "data": data}
    elif media.kind == "document" and (text := media.text or carry.decoded_text(mime, data)):
        source = {"type": "text", "media_type": "text/plain", "data": text}
    elif carry.is_public_address(media.url) and (media.kind == "image" or (media.kind, mime) in _PDF_ADDRESSES):
        source = {"type": "url", "url": media.url}
    if source is not None:
        return {**(base if base.get("type") in ("image", "document") else {"type": media.kind}), "source": source}
    why = "Anthropic accepts JPEG, PNG, GIF, WebP, PDF and plain text, as data or as an address"
    return {"type": "text", "text": carry.media_placeholder(media, loss, why).text}


def _id(text: str) -> str:
    """The id with only the characters that Anthropic allows; different ids stay different."""
    if not _bad_id.search(text):
        return text
    return f"{_bad_id.sub('_', text)}_{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
