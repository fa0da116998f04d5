"""Parses Anthropic messages. A message is `{role, content}`, and its content is a text or a list of blocks.

Signed thinking, server-side calls and unknown block types must be sent back exactly as they came, so every part keeps
its block. A whole reply of the API is read as one message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from foldline.errors import WireError
from foldline.json_text import dumps
from foldline.message import Media, Message, Meta, Opaque, Part, Text, Thinking, ToolCall, ToolResult, Wire
from foldline.wire.anthropic.usage import anthropic_usage
from foldline.wire.field_access import text_of
from foldline.wire.part_mapping import words_of

NAME = "anthropic"


def parse(value: Any, raw: str | None = None) -> Message:
    """The message for one element of `messages`, or for a reply."""
    if not isinstance(value, dict):
        value, raw = as_object(value), None
    role = value.get("role")
    if not isinstance(role, str):
        raise WireError("a message needs a role", field="role", hint='"user" or "assistant"')
    content = value.get("content")
    if isinstance(content, list) and not all(isinstance(block, dict) for block in content):
        content = [as_object(block, f"content[{index}]") for index, block in enumerate(content)]
        value, raw = {**value, "content": content}, None
    parts = parse_content(content)
    if role == "user" and parts and all(isinstance(part, ToolResult) for part in parts):
        role = "tool"
    if is_reply(value):
        return Message(role=role, parts=parts, meta=reply_meta(value), wire=Wire(NAME, value))
    return Message(role=role, parts=parts, wire=Wire(NAME, value, raw))


def parse_reply(value: Any) -> tuple[Message, ...]:
    """The message for a reply."""
    return (parse(value),)


def parse_content(content: Any) -> tuple[Part, ...]:
    """The parts of a message's content, each with its block as wire value.

    The part of a plain text has no wire value.
    """
    if isinstance(content, str):
        return (Text(text=content),)
    if not isinstance(content, list):
        raise WireError("content must be a string or a list of blocks", field="content")
    return tuple([_part(block) for block in content])


def is_reply(value: dict[str, Any]) -> bool:
    """True for a reply of the API, which has fields that no request may have."""
    return value.get("type") == "message" or "stop_reason" in value or "usage" in value


def reply_meta(value: dict[str, Any]) -> Meta:
    """The id, model, stop reason and usage of a reply."""
    reply, model, stop = (text_of(value.get(key)) for key in ("id", "model", "stop_reason"))
    return Meta(reply=reply, model=model, stop=stop, usage=anthropic_usage(value.get("usage")))


def as_object(value: Any, field: str = "") -> dict[str, Any]:
    """A message or block as a dict.

    The value may be an object of the SDK, because histories in Python often contain the SDK's reply objects.
    """
    if isinstance(value, dict):
        return value
    dump = getattr(value, "model_dump", None)
    found = dump(mode="json", exclude_unset=True) if callable(dump) else None
    if not isinstance(found, dict):
        raise WireError(f"{'a block' if field else 'a message'} must be an object", field=field)
    return found


def _part(block: Any) -> Part:
    """The part for one block; `Opaque` if its type is unknown or its fields are malformed."""
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
    text, signature = block.get("thinking"), text_of(block.get("signature"))
    return Thinking(text=text, signature=signature, wire=wire) if isinstance(text, str) else None


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
    else:
        parts = parse_content(result_content(content))
    return ToolResult(call_id=call, parts=parts, is_error=is_true(block.get("is_error")), wire=wire)


def result_content(content: Any) -> Any:
    """The content of a result in the form that the API accepts: text or blocks. Other values become JSON text."""
    if isinstance(content, list):
        if all(isinstance(inner, dict) for inner in content):
            return content
        return [inner if isinstance(inner, dict) else {"type": "text", "text": words_of(inner)} for inner in content]
    return words_of(content)


def is_true(value: Any) -> bool:
    """True for the JSON value true, and for the text "true" that some agents write."""
    return value is True or value in ("true", "True")


def _media(block: dict[str, Any], wire: Wire) -> Part | None:
    source = block.get("source")
    if not isinstance(source, dict):
        return None
    kind, how, mime = str(block["type"]), source.get("type"), text_of(source.get("media_type"))
    data, url, content = source.get("data"), source.get("url"), source.get("content")
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


def _search_result(block: dict[str, Any], wire: Wire) -> Part | None:
    """A search result as a text document: its title, its source and its text."""
    content = block.get("content")
    if not isinstance(content, list):
        return None
    texts = [found for item in content if isinstance(item, dict) and isinstance(found := item.get("text"), str)]
    named = [text_of(block.get(key)) for key in ("title", "source")]
    return Media(kind="document", mime="text/plain", text="\n".join(filter(None, (*named, *texts))), wire=wire)


_READERS: dict[str, Callable[[dict[str, Any], Wire], Part | None]] = {
    "text": _text,
    "tool_use": _call,
    "tool_result": _result,
    "thinking": _thinking,
    "redacted_thinking": _redacted,
    "image": _media,
    "document": _media,
    "search_result": _search_result,
}


def parse_system(value: Any) -> Message:
    """The system message for the value under `system`, which is a text or a list of text blocks."""
    if isinstance(value, list):
        value = [as_object(block, f"system[{index}]") for index, block in enumerate(value)]
    elif not isinstance(value, str):
        raise WireError("system must be a string or a list of text blocks", field="system")
    return Message(role="system", parts=parse_content(value), wire=Wire(NAME, value))
