"""Anthropic Messages: `{role, content}` with content a text or a list of blocks.

Signed thinking, server-side calls and block kinds of tomorrow must go back exactly as they came, so every part keeps
its block and an untouched message is its own rendering. A reply of the API is a message too, but with fields that a
request must not have; it renders as role and content alone.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable
from typing import Any

from foldline.errors import WireError
from foldline.json_text import dumps
from foldline.message import Media, Message, Meta, Opaque, Part, Text, Thinking, ToolCall, ToolResult, Wire
from foldline.wire import part_mapping as carry
from foldline.wire.formats import Codec, Loss
from foldline.wire.usage import anthropic_usage

NAME = "anthropic"
_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_PDF = "application/pdf"
_bad_id = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME = 128


def parse(value: Any, raw: str | None = None) -> Message:
    """A message of one element of `messages`, or of a whole reply."""
    if not isinstance(value, dict):
        value, raw = plain(value), None
    role = value.get("role")
    if not isinstance(role, str):
        raise WireError("a message needs a role", field="role", hint='"user" or "assistant"')
    content = value.get("content")
    if isinstance(content, list) and not all(isinstance(block, dict) for block in content):
        content = [plain(block, f"content[{index}]") for index, block in enumerate(content)]
        value, raw = {**value, "content": content}, None
    parts = parse_content(content)
    if role == "user" and parts and all(isinstance(part, ToolResult) for part in parts):
        role = "tool"
    if is_reply(value):
        return Message(role=role, parts=parts, meta=reply_meta(value), wire=Wire(NAME, value))
    return Message(role=role, parts=parts, wire=Wire(NAME, value, raw))


def parse_content(content: Any) -> tuple[Part, ...]:
    """The parts of a message's content; each keeps its block, and a plain text has none to keep."""
    if isinstance(content, str):
        return (Text(text=content),)
    if not isinstance(content, list):
        raise WireError("content must be a text or a list of blocks", field="content")
    return tuple([_part(block) for block in content])


def is_reply(value: dict[str, Any]) -> bool:
    """True for an answer of the API, which has fields that no request may have."""
    return value.get("type") == "message" or "stop_reason" in value or "usage" in value


def reply_meta(value: dict[str, Any]) -> Meta:
    """What a reply says about itself."""
    reply, model, stop = value.get("id"), value.get("model"), value.get("stop_reason")
    return Meta(
        reply=reply if isinstance(reply, str) else "",
        model=model if isinstance(model, str) else "",
        stop=stop if isinstance(stop, str) else "",
        usage=anthropic_usage(value.get("usage")),
    )


def plain(value: Any, field: str = "") -> dict[str, Any]:
    """A message or block as an object: histories in Python often hold the SDK's own reply objects."""
    if isinstance(value, dict):
        return value
    dump = getattr(value, "model_dump", None)
    found = dump(mode="json", exclude_unset=True) if callable(dump) else None
    if not isinstance(found, dict):
        raise WireError(f"{'a block' if field else 'a message'} must be an object", field=field)
    return found


def _part(block: Any) -> Part:
    """One block. A kind that is unknown, or not as it should be, is opaque."""
    if not isinstance(block, dict):
        raise WireError("a block must be an object", field="content")
    wire = Wire(NAME, block)
    kind = block.get("type")
    read = _READERS.get(kind) if isinstance(kind, str) else None
    part = read(block, wire) if read else None
    return part or Opaque(kind=kind if isinstance(kind, str) else "", value=block, wire=wire)


def _text(block: dict[str, Any], wire: Wire) -> Part | None:
    text = block.get("text")
    return Text(text=text, wire=wire) if isinstance(text, str) else None


def _thinking(block: dict[str, Any], wire: Wire) -> Part | None:
    text, signature = block.get("thinking"), block.get("signature")
    if not isinstance(text, str):
        return None
    return Thinking(text=text, signature=signature if isinstance(signature, str) else "", wire=wire)


def _redacted(block: dict[str, Any], wire: Wire) -> Part | None:
    data = block.get("data")
    return Thinking(signature=data, wire=wire) if isinstance(data, str) else None


def _call(block: dict[str, Any], wire: Wire) -> Part | None:
    call, name = block.get("id") or "", block.get("name")
    if not (isinstance(call, str) and isinstance(name, str)):
        return None
    return ToolCall(id=call, name=name, arguments=dumps(block.get("input", {})), wire=wire)


def _result(block: dict[str, Any], wire: Wire) -> Part | None:
    call, content = block.get("tool_use_id") or "", block.get("content")
    if not isinstance(call, str):
        return None
    if content is None:
        parts: tuple[Part, ...] = ()
    elif isinstance(content, str) or (isinstance(content, list) and all(isinstance(inner, dict) for inner in content)):
        parts = parse_content(content)
    else:
        return None
    return ToolResult(call_id=call, parts=parts, is_error=block.get("is_error") is True, wire=wire)


def _media(block: dict[str, Any], wire: Wire) -> Part | None:
    source = block.get("source")
    if not isinstance(source, dict):
        return None
    kind, how, mime = str(block["type"]), source.get("type"), source.get("media_type")
    data, url, content = source.get("data"), source.get("url"), source.get("content")
    mime = mime if isinstance(mime, str) else ""
    if how == "base64" and isinstance(data, str):
        return Media(kind=kind, mime=mime, data=data, wire=wire)
    if how == "url" and isinstance(url, str):
        return Media(kind=kind, mime=mime, url=url, wire=wire)
    if how == "text" and isinstance(data, str):
        return Media(kind=kind, mime=mime or "text/plain", text=data, wire=wire)
    if how == "content" and isinstance(content, str | list):
        inner = content if isinstance(content, list) else [{"text": content}]
        texts = [found for item in inner if isinstance(item, dict) and isinstance(found := item.get("text"), str)]
        return Media(kind=kind, mime="text/plain", text="\n".join(texts), wire=wire)
    if how == "file":
        return Media(kind=kind, mime=mime, wire=wire)
    return None


_READERS: dict[str, Callable[[dict[str, Any], Wire], Part | None]] = {
    "text": _text,
    "tool_use": _call,
    "tool_result": _result,
    "thinking": _thinking,
    "redacted_thinking": _redacted,
    "image": _media,
    "document": _media,
}


def render(message: Message, loss: Loss) -> list[Any]:
    """The element for one message; none when nothing of it can be carried."""
    wire = message.wire
    base = wire.value if wire is not None and wire.format == NAME and isinstance(wire.value, dict) else None
    if base is not None and wire is not None and wire.exact:
        return [{"role": base["role"], "content": base["content"]} if is_reply(base) else base]
    content = _content(message.parts, loss)
    if content == []:
        return []
    if base is not None and not is_reply(base):
        return [{**base, "content": content}]
    if message.role == "system":
        loss.add("system role", "only leading system messages have it: sent as the user's")
    return [{"role": "assistant" if message.role == "assistant" else "user", "content": content}]


def join(before: Any, after: Any) -> Any | None:
    """Two elements of one side as one: all calls of a step, and all their results, belong together.

    A result after other content stays apart, because results must come first in their message.
    """
    if before["role"] != after["role"] or before.keys() != after.keys() or before["role"] not in ("user", "assistant"):
        return None
    first, second = _blocks(before["content"]), _blocks(after["content"])
    late = any(_is_result(block) for block in second) and not _is_result(first[-1])
    return None if late else {**before, "content": first + second}


def _content(parts: tuple[Part, ...], loss: Loss) -> str | list[Any]:
    """Parts as content. A single text that never was a block stays a text."""
    if len(parts) == 1 and isinstance(parts[0], Text) and not _is_own(parts[0]):
        return parts[0].text
    return [block for part in parts if (block := _block(part, loss)) is not None]


def _blocks(content: str | list[Any]) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _is_result(block: dict[str, Any]) -> bool:
    return block.get("type") == "tool_result"


def _is_own(part: Part) -> bool:
    return part.wire is not None and part.wire.format == NAME


def _block(part: Part, loss: Loss) -> Any | None:
    """One part as a block: its own if it has one, else written on top of that, else new."""
    base: dict[str, Any] = {}
    if part.wire is not None and part.wire.format == NAME:
        if part.wire.exact:
            return part.wire.value
        base = part.wire.value
    match part:
        case Text(text=text):
            return {**(base or {"type": "text"}), "text": text} if text else None
        case ToolCall():
            fields = {"id": _id(part.id), "name": _bad_id.sub("_", part.name)[:_LONGEST_NAME], "input": _input(part)}
            return {**(base or {"type": "tool_use"}), **fields}
        case ToolResult():
            return _result_block(part, base or {"type": "tool_result"}, loss)
        case Media():
            return _media_block(part, base or {"type": part.kind}, loss)
        case Thinking():
            loss.add("thinking", "only the model that wrote it can read it, and only unchanged")
        case Opaque(kind=kind):
            loss.add(f"opaque {kind}".strip(), "unknown to Anthropic")
    return None


def _result_block(result: ToolResult, base: dict[str, Any], loss: Loss) -> dict[str, Any]:
    block = {key: value for key, value in base.items() if key not in ("content", "is_error")}
    block["tool_use_id"] = _id(result.call_id)
    if content := _content(result.parts, loss):
        block["content"] = content
    if result.is_error:
        block["is_error"] = True
    return block


def _media_block(media: Media, base: dict[str, Any], loss: Loss) -> dict[str, Any]:
    held = carry.split_data_url(media.url)
    mime, data = held or (media.mime, media.data)
    source: dict[str, Any] | None = None
    if data and mime in (_IMAGES if media.kind == "image" else (_PDF,)):
        source = {"type": "base64", "media_type": mime, "data": data}
    elif media.kind == "document" and media.text:
        source = {"type": "text", "media_type": "text/plain", "data": media.text}
    elif media.kind in ("image", "document") and media.url.startswith(("https://", "http://")):
        source = {"type": "url", "url": media.url}
    if source is None:
        mark = carry.left_out(
            media, loss, "Anthropic takes JPEG, PNG, GIF, WebP, PDF and plain text, by value or address"
        )
        return {"type": "text", "text": mark.text}
    return {**base, "source": source}


def _id(text: str) -> str:
    """An id in the letters Anthropic allows; the same for a call and its result, different for different ids."""
    if not _bad_id.search(text):
        return text
    return f"{_bad_id.sub('_', text)}_{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def _input(call: ToolCall) -> dict[str, Any]:
    """The arguments as the object that Anthropic demands; what is none goes in as text."""
    if not call.arguments.strip():
        return {}
    try:
        value = json.loads(call.arguments, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"input": call.arguments}


def _finite(text: str) -> float:
    """A number that can be written as JSON again: `NaN` and `1e999` cannot."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def parse_system(value: Any) -> Message:
    """The system message under `system`: a text or a list of text blocks."""
    if isinstance(value, list):
        value = [plain(block, f"system[{index}]") for index, block in enumerate(value)]
    elif not isinstance(value, str):
        raise WireError("system must be a text or a list of text blocks", field="system")
    return Message(role="system", parts=parse_content(value), wire=Wire(NAME, value))


def render_system(messages: tuple[Message, ...], loss: Loss) -> Any:
    """The value under `system`: what was there if it is untouched, else its texts."""
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


CODEC = Codec(
    name=NAME,
    dialect=NAME,
    parse=parse,
    render=render,
    list_key="messages",
    system_key="system",
    parse_system=parse_system,
    render_system=render_system,
    join=join,
)
