"""Renders messages as OpenAI chat elements; each tool result is a separate element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foldline.message import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from foldline.wire.formats import LossCollector
from foldline.wire.openai_chat import parse as messages
from foldline.wire.openai_chat.parse import NAME, OTHER_CALL, SIDE_FIELDS, is_call_part, is_side_fields
from foldline.wire.part_mapping import (
    arguments_object,
    data_url,
    document_name,
    is_public_address,
    media_placeholder,
    openai_file_id,
    request_role,
    split_data_url,
    wire_object,
    with_error_text,
)

_CONTENT_FIELDS = frozenset((*SIDE_FIELDS, "content", "tool_calls"))
_SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}


def render(message: Message, loss: LossCollector) -> list[Any]:
    """The elements for one message: one for each result, then one for all other parts of the message."""
    wire = message.wire
    if wire is not None and wire.format == NAME and wire.exact:
        return [wire.value]
    base = wire_object(wire, NAME)
    is_result = base.get("role") in ("tool", "function")
    results = message.results
    result_base = base if is_result and len(results) == 1 else {}
    elements: list[Any] = [_render_result(result, result_base, loss) for result in results]
    others = tuple(part for part in message.parts if not isinstance(part, ToolResult))
    if others or not results:
        element = _render_content(message, others, {} if is_result else base, loss)
        elements.extend([element] if element else [])
    return elements


def _render_result(result: ToolResult, base: dict[str, Any], loss: LossCollector) -> dict[str, Any]:
    result = with_error_text(result, loss)
    pieces = [piece for part in result.parts if (piece := _piece(part, "tool", loss)) is not None]
    if base.get("role") == "function" or (result.name and not result.call_id):
        text = "".join(str(piece.get("text", "")) for piece in pieces if isinstance(piece, dict))
        return _onto(base, {"role": "function", "name": result.name, "content": text})
    content = _content(pieces, base) if pieces else ""
    return _onto(base, {"role": "tool", "tool_call_id": result.call_id, "content": content})


def _render_content(
    message: Message, parts: tuple[Part, ...], base: dict[str, Any], loss: LossCollector
) -> dict[str, Any] | None:
    role = request_role(message, base, loss)
    content: list[Any] = []
    calls: list[Any] = []
    beside: dict[str, Any] = {}
    single = len(message.calls) == 1
    for part in parts:
        unchanged = _unchanged_value(part)
        if unchanged is not None and is_side_fields(unchanged):
            beside.update(unchanged)
        elif isinstance(part, ToolCall) and not part.id and single:
            beside["function_call"] = {"name": part.name, "arguments": arguments_object(part)}
        elif isinstance(part, ToolCall):
            calls.append(unchanged or _render_call(part, loss))
        elif unchanged is not None and isinstance(part, Opaque) and part.kind.startswith(OTHER_CALL):
            calls.append(unchanged)
        elif (piece := _piece(part, role, loss)) is not None:
            if calls and not base:
                loss.add("order", "the text after a call was moved before the call")
            content.append(piece)
    if parts and not (content or calls or beside):
        return None
    fields: dict[str, Any] = {"role": role}
    if content or not (calls or beside) or "content" in base or not base:
        fields["content"] = _content(content, base) if content else (None if calls or beside else "")
    fields.update(beside)
    if calls:
        fields["tool_calls"] = calls
    return _onto(base, fields)


def _onto(base: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """The old element with the new fields. Old fields that hold content are removed; other old fields are kept."""
    return {**{key: value for key, value in base.items() if key in fields or key not in _CONTENT_FIELDS}, **fields}


def _content(pieces: Sequence[Any], base: dict[str, Any]) -> Any:
    """The content as a string or a list of parts. A single text becomes a string, unless its original was in a list."""
    only = pieces[0] if len(pieces) == 1 and not isinstance(base.get("content"), list) else None
    if isinstance(only, dict) and only.keys() == {"type", "text"}:
        return only["text"]
    return list(pieces)


def _piece(part: Part, role: str, loss: LossCollector) -> Any | None:
    """A part of a message in the form of Chat Completions, as an element of `content`.

    If the part cannot be written in this format, the loss is reported and None is returned.
    """
    unchanged = _unchanged_value(part)
    if unchanged is not None:
        return unchanged
    if isinstance(part, Media):
        mapped = _media(part, role)
        if mapped is not None:
            return mapped
        part = media_placeholder(part, loss, f"a {role} message of Chat Completions cannot hold it")
    if isinstance(part, Text):
        value = part.wire.value if part.wire is not None and isinstance(part.wire.value, dict) else {}
        if role == "assistant" and value.get("type") == "refusal":
            return {"type": "refusal", "refusal": part.text}
        base = _own(part)
        return {**(base if base.get("type") == "text" else {"type": "text"}), "text": part.text}
    what = "thinking" if isinstance(part, Thinking) else f"opaque {getattr(part, 'kind', '')}"
    loss.add(what, "Chat Completions has no place for it")
    return None


def _media(media: Media, role: str) -> dict[str, Any] | None:
    if media.text:
        return {"type": "text", "text": media.text}
    if role != "user":
        return None
    if file_id := openai_file_id(media):
        return {"type": "file", "file": {"file_id": file_id}}
    if media.kind == "image" and (media.data or is_public_address(media.url) or split_data_url(media.url)):
        return {"type": "image_url", "image_url": {"url": media.url or data_url(media)}}
    if media.kind == "document" and media.data:
        return {"type": "file", "file": {"filename": document_name(media), "file_data": data_url(media)}}
    if media.kind == "audio" and media.data and media.mime in _SOUNDS:
        return {"type": "input_audio", "input_audio": {"data": media.data, "format": _SOUNDS[media.mime]}}
    return None


def _render_call(call: ToolCall, loss: LossCollector) -> dict[str, Any]:
    own = _own(call)
    if call.kind == "custom_tool":
        fields = {"name": call.name, "input": call.arguments}
        return {**own, "id": call.id, "type": "custom", "custom": {**own.get("custom", {}), **fields}}
    if call.kind != "function":
        loss.add(f"call {call.kind}", "Chat Completions knows only function and custom calls: sent as a function call")
    fields = {"name": call.name, "arguments": arguments_object(call)}
    return {**own, "id": call.id, "type": "function", "function": {**own.get("function", {}), **fields}}


def _own(part: Part) -> dict[str, Any]:
    """The wire value that the part was read from, so that its fields are sent again; {} if it has another format."""
    value = wire_object(part.wire, NAME)
    return {} if is_side_fields(value) or is_call_part(value) else value


def _unchanged_value(part: Part) -> Any | None:
    """The part's wire value if the value has this format and the part is unchanged, else None."""
    wire = part.wire
    if wire is None or wire.format != NAME or not wire.exact:
        return None
    value = wire.value
    if is_side_fields(value):
        same = part in (*messages.thinking(value), *messages.side_parts(value))
    elif is_call_part(value):
        return None
    elif isinstance(part, ToolCall) or (isinstance(part, Opaque) and part.kind.startswith(OTHER_CALL)):
        same = part == messages.call(value, "tool_calls")
    else:
        same = part == messages.content_part(value)
    return value if same else None


def join(before: Any, after: Any) -> Any | None:
    """One element that replaces two neighbouring elements of the same reply; None if they must stay separate.

    All calls of a reply belong in one message.
    """
    if before["role"] != "assistant" or after["role"] != "assistant":
        return None
    calls = [*before.get("tool_calls", ()), *after.get("tool_calls", ())]
    if not calls or "function_call" in before or "function_call" in after:
        return None
    pieces = [*_content_list(before.get("content")), *_content_list(after.get("content"))]
    content = _content(pieces, {}) if pieces else None
    return {**before, **after, "content": content, "tool_calls": calls}


def _content_list(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []
