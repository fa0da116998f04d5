"""Renders calls, results and content as items of OpenAI's Responses API. Each kind of call has its own item types.

An unchanged part is rendered as its own wire value. An edited part is rendered as its wire value with the new fields.
The item id is left out, because it refers to the old version that the server has stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from foldline.errors import WireError
from foldline.json_text import dumps, loads
from foldline.message import Media, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from foldline.wire.formats import LossCollector
from foldline.wire.openai_responses import parse as items
from foldline.wire.openai_responses.parse import CALLS, NAME, OUTPUTS, TEXTUAL
from foldline.wire.openai_responses.sendable import sendable_item
from foldline.wire.part_mapping import (
    arguments_object,
    data_url,
    document_name,
    is_public_address,
    media_placeholder,
    openai_file_id,
    split_data_url,
    wire_object,
    with_error_text,
)

_CALL_TYPES = {kind: (name, key) for name, (kind, key) in CALLS.items()}
_OUTPUT_TYPES = {kind: name for name, kind in OUTPUTS.items()}
_BLANK_IMAGE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
)
"""An image of one transparent pixel. A computer call must be answered with an image, even if its image was pruned."""
_SCREENSHOT = "computer_screenshot"
"""The type of an image in the output of a computer call. In all other places an image has the type `input_image`."""
_PICTURE_KEYS = ("image_url", "file_id")


def kind_of(part: Part) -> str:
    """The name of a part's kind, for the report of lost content."""
    if isinstance(part, Media):
        return f"media {part.kind}"
    return f"opaque {part.kind}" if isinstance(part, Opaque) else type(part).__name__.lower()


def call_item(call: ToolCall, loss: LossCollector) -> dict[str, Any]:
    """The item for a call. If the call's own kind cannot hold the arguments, the call becomes a function call."""
    name, key = _CALL_TYPES.get(call.kind, ("", ""))
    source = wire_object(call.wire, NAME)
    if source.get("type") != name:
        source = {"status": "completed"} if call.kind in ("local_shell", "shell", "apply_patch", "computer") else {}
    try:
        held = items.payload(call) if name else None
    except WireError:
        held = None
    if call.kind == "function":
        held = arguments_object(call)
        if held != call.arguments:
            loss.add("call function", "its arguments were not a JSON object: rewritten")
    if held is None:
        loss.add(f"call {call.kind}", "sent as a function call")
        loss.kinds[call.id] = "function"
        return {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments_object(call)}
    approval = call.kind == "mcp_approval_request"
    replaced = () if approval else ("id", "action", "actions") if call.kind == "computer" else ("id",)
    rest = {field: value for field, value in source.items() if field not in replaced}
    fields: dict[str, Any] = {"type": name, "id" if approval else "call_id": call.id}
    if "name" in source or call.kind in TEXTUAL:
        fields["name"] = call.name
    if call.kind == "computer":
        key = "actions" if isinstance(held, list) else "action"
    item: dict[str, Any] = sendable_item({**rest, **fields, key: held})
    return item


def result_item(result: ToolResult, base: dict[str, Any], loss: LossCollector) -> dict[str, Any]:
    """The item for a result, in the form that the call's kind requires."""
    source = base if base.get("type") in OUTPUTS else {}
    kind = loss.kinds.get(result.call_id) or (OUTPUTS[source["type"]] if source else "function")
    if source and OUTPUTS[source["type"]] != kind:
        source = {}
    fields: dict[str, Any] = {"type": _OUTPUT_TYPES.get(kind, "function_call_output"), "call_id": result.call_id}
    if kind == "apply_patch":
        fields |= {"status": "failed" if result.is_error else "completed", "output": _words(result, loss)}
        return {**source, **fields}
    error, result = result.is_error, with_error_text(result, loss)
    if kind == "local_shell":
        text = _words(result, loss)
        fields = {"type": fields["type"], "id": result.call_id, "output": text if source else _json_words(text)}
    elif kind == "shell":
        own = [unchanged_value(part) for part in result.parts]
        if None in own:
            outcome = {"type": "exit", "exit_code": int(error)}
            own = [{"stdout": _words(result, loss), "stderr": "", "outcome": outcome}]
        fields["output"] = own
    elif kind == "computer":
        fields["output"] = _screenshot(result, loss)
    elif kind == "tool_search":
        fields["tools"] = _found_tools(result, loss)
    elif kind == "mcp_approval_request":
        verdict, _, reason = _words(result, loss).partition(": ")
        if verdict not in ("approved", "denied"):
            verdict, reason = "denied", result.text
        fields = {"type": fields["type"], "approval_request_id": result.call_id, "approve": verdict == "approved"}
        fields |= {"reason": reason} if reason else {}
    else:
        fields["output"] = content(result.parts, "tool", loss, listed=isinstance(source.get("output"), list))
    return {**source, **fields}


def _words(result: ToolResult, loss: LossCollector) -> str:
    """The text of a result. Some kinds of calls can be answered only with text."""
    text = ""
    for part in result.parts:
        if isinstance(part, Text):
            text += part.text
        elif isinstance(part, Media):
            text += media_placeholder(part, loss, "this kind of call is answered with text only").text
        else:
            loss.add(kind_of(part), "this kind of call is answered with text only")
    return text


def _json_words(text: str) -> str:
    """The output of a local shell call, which must be JSON: the text itself if it is JSON, else a JSON string."""
    try:
        loads(text)
    except WireError:
        return dumps(text)
    return text


def _screenshot(result: ToolResult, loss: LossCollector) -> dict[str, Any]:
    picture: dict[str, Any] = {"type": _SCREENSHOT, "image_url": _BLANK_IMAGE}
    for part in result.parts:
        own = unchanged_value(part)
        if own is not None and own.get("type") in (_SCREENSHOT, "input_image"):
            picture = own if own["type"] == _SCREENSHOT else _picture(_SCREENSHOT, own)
        elif isinstance(part, Media) and part.kind == "image" and (part.url or part.data):
            picture = {"type": _SCREENSHOT, "image_url": part.url or data_url(part)}
        else:
            loss.add(kind_of(part), "a computer call is answered with a picture only")
    return picture


def _picture(kind: str, value: dict[str, Any]) -> dict[str, Any]:
    """The image `value` as an object of the type `kind`. The source of the image stays the same."""
    return {"type": kind, **{key: value[key] for key in _PICTURE_KEYS if value.get(key) is not None}}


def _found_tools(result: ToolResult, loss: LossCollector) -> Any:
    tools: Any = []
    for part in result.parts:
        if isinstance(part, Opaque) and part.kind == "tools":
            tools = part.value
        else:
            loss.add(kind_of(part), "a tool search is answered with tools only")
    return tools


def content(parts: tuple[Part, ...], role: str, loss: LossCollector, *, listed: bool) -> Any:
    """The content or output as a string or a list of parts.

    A single text becomes a string, unless its original was in a list.
    """
    pieces = [piece for part in parts if (piece := _piece(part, role, loss)) is not None]
    plain = not listed and len(pieces) == 1 and pieces[0].keys() == {"type", "text"}
    return pieces[0]["text"] if plain else pieces or ""


def _piece(part: Part, role: str, loss: LossCollector) -> Any | None:
    """A part of a message in the form of the Responses API, as an element of an item's `content` or `output`.

    If the part cannot be written in this format, the loss is reported and None is returned.
    """
    own = unchanged_value(part)
    if own is not None and own.get("type") == _SCREENSHOT:
        own = {"detail": "auto", **_picture("input_image", own)} if role != "assistant" else None
    if isinstance(part, Media) and own is None:
        mapped = None if role == "assistant" else _media(part)
        if mapped is not None:
            return mapped
        part = media_placeholder(part, loss, f"a {role} item of the Responses API cannot hold it")
    if isinstance(part, Text):
        kind = "output_text" if role == "assistant" else "input_text"
        value = part.wire.value if part.wire is not None and isinstance(part.wire.value, dict) else {}
        if role == "assistant" and value.get("type") == "refusal":
            return {"type": "refusal", "refusal": part.text}
        base = value if value.get("type") == kind else {"type": kind}
        if base.get("annotations") and base.get("text") != part.text:
            base = {**base, "annotations": []}  # annotations refer to positions in the old text
        return {**base, "text": part.text}
    if own is None:
        loss.add(kind_of(part), "the Responses API has no place for it")
    return own


def _media(media: Media) -> dict[str, Any] | None:
    if media.text:
        return {"type": "input_text", "text": media.text}
    if file_id := openai_file_id(media):
        return {"type": "input_file", "file_id": file_id}
    if media.kind == "image" and (media.data or is_public_address(media.url) or split_data_url(media.url)):
        return {"type": "input_image", "image_url": media.url or data_url(media), "detail": "auto"}
    if media.kind == "document" and is_public_address(media.url):
        return {"type": "input_file", "file_url": media.url}
    if media.kind == "document" and media.data:
        return {"type": "input_file", "filename": document_name(media), "file_data": data_url(media)}
    return None


def unchanged_value(part: Part) -> Any | None:
    """The part's wire value if the value has this format and the part is unchanged, else None."""
    wire = part.wire
    if wire is None or wire.format != NAME or not wire.exact or not isinstance(wire.value, dict):
        return None
    value = wire.value
    if isinstance(part, Opaque):
        return value if part.value == value else None
    read: Callable[[Any], Part] = items.content_part
    if isinstance(part, (ToolCall, Thinking)):
        read = items.call if isinstance(part, ToolCall) else items.thinking
    return value if part == read(value) else None
