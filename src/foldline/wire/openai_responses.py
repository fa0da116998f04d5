"""OpenAI Responses: one message per item, so that an item's bytes are a message's bytes.

A reply is several items (reasoning, text, calls) that belong together; where the reply is known they share its id in
`Meta.reply`. Items written here never carry an item id: such an id names something a server holds, and another server,
or the same one with storage off, does not hold it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from foldline.errors import WireError
from foldline.message import Media, Message, Meta, Opaque, Part, Text, Thinking, ToolCall, ToolResult, Wire
from foldline.wire import openai_items as items
from foldline.wire.carry import as_object, data_url, document_name, dumped, failed, left_out
from foldline.wire.codec import Codec, Loss
from foldline.wire.codex_log import sendable
from foldline.wire.openai_items import CALLS, NAME, OUTPUTS
from foldline.wire.usage import responses_usage

_CONTENT = frozenset(("input_text", "output_text", "input_image", "input_file", "input_audio", "refusal", "text"))
_CALL_TYPES = {kind: (name, key) for name, (kind, key) in CALLS.items()}
_OUTPUT_TYPES = {kind: name for name, kind in OUTPUTS.items()}
_BLANK_IMAGE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
)
"""One transparent pixel: a computer call must be answered with a picture, also after the picture was taken out."""


def parse(value: Any, raw: str | None = None) -> Message:
    """A message of one item of `input`, or of an `input` that is plain text."""
    if isinstance(value, str):
        value, raw = {"role": "user", "content": value}, None
    if not isinstance(value, dict):
        value, raw = dumped(value), None
        if not isinstance(value, dict):
            raise WireError("an item must be an object", field="item")
    return items.item(value, Wire(NAME, value, raw))


def parse_system(value: Any) -> Message:
    """The system message of the `instructions`."""
    if not isinstance(value, str):
        raise WireError("instructions must be text", field="instructions")
    return Message(role="system", parts=(Text(text=value),) if value else (), wire=Wire(NAME, value))


def render_system(messages: tuple[Message, ...], loss: Loss) -> str:
    """The `instructions` for leading system messages."""
    only = messages[0].wire if len(messages) == 1 else None
    if only is not None and only.format == NAME and only.exact and isinstance(only.value, str):
        return only.value
    for index, message in enumerate(messages):
        loss.message = index
        for part in message.parts:
            if not isinstance(part, Text):
                loss.add(_what(part), "instructions are text")
    return "\n\n".join(message.text for message in messages)


def reply(value: Any) -> tuple[Message, ...]:
    """The messages of a `response` object, one per output item; the last carries why it ended and what it used."""
    value = dumped(value)
    output = value.get("output") if isinstance(value, dict) else None
    if not isinstance(output, list):
        raise WireError("a reply must be an object with output items", field="output")
    known = {key: value[key] for key in ("id", "model", "status") if isinstance(value.get(key), str)}
    at = value.get("created_at")
    meta = Meta(
        reply=known.get("id", ""), model=known.get("model", ""), at=float(at) if isinstance(at, (int, float)) else None
    )
    said = [replace(_parse_output(item, place), meta=meta) for place, item in enumerate(output)]
    if said:
        details = value.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        stop = reason if isinstance(reason, str) else known.get("status", "")
        said[-1] = replace(said[-1], meta=replace(meta, stop=stop, usage=responses_usage(value.get("usage"))))
    return tuple(said)


def _parse_output(value: Any, place: int) -> Message:
    """An output item as it may be sent back: without what SDK helpers add to it."""
    if isinstance(value, dict):
        value = {key: found for key, found in value.items() if key not in ("parsed_arguments", "created_by")}
    try:
        return parse(value)
    except WireError as error:
        raise WireError(error.reason, field=f"output[{place}].{error.field}", hint=error.hint) from None


def render(message: Message, loss: Loss) -> list[Any]:
    """The items for one message: its results first, then what it says and calls, in its order."""
    wire = message.wire
    base: dict[str, Any] = {}
    if wire is not None and wire.format == NAME:
        if wire.exact:
            return [wire.value]
        base = wire.value if isinstance(wire.value, dict) else {}
    elif wire is not None and wire.format == "codex":
        logged = sendable(wire.value)
        if wire.exact and logged.whole:
            for what in logged.lost:
                loss.add(what, "the log holds no form of it that can be sent")
            return logged.items
        base = logged.items[0] if len(logged.items) == 1 else {}
    base = {key: value for key, value in base.items() if key != "id"}
    made: list[Any] = [_result_item(result, base, loss) for result in message.results]
    said: list[Part] = []
    for part in message.parts:
        if isinstance(part, ToolResult):
            continue
        if isinstance(part, (Text, Media)) or (isinstance(part, Opaque) and _is_content(part, base)):
            said.append(part)
            continue
        item = _item(part, loss)
        if item is not None:
            made.extend(_message_item(message, said, base, loss))
            made.append(item)
            said = []
    if not message.parts:
        return [{"type": "message", **base, "role": _role(message, base), "content": ""}]
    return made + _message_item(message, said, base, loss)


def _is_content(part: Opaque, base: dict[str, Any]) -> bool:
    """An unknown part is content where it came from a message, otherwise an item of its own."""
    value = part.wire.value if part.wire is not None and part.wire.format == NAME else None
    return part.kind in _CONTENT or (
        isinstance(value, dict) and base.get("type", "message") == "message" and bool(base)
    )


def _item(part: Part, loss: Loss) -> Any | None:
    """A part that is an item of its own, or None with a report."""
    kept = _kept(part)
    if kept is not None:
        return kept
    if isinstance(part, ToolCall):
        return _call_item(part, loss)
    loss.add(_what(part), "the Responses API has no place for it")
    return None


def _what(part: Part) -> str:
    if isinstance(part, Media):
        return f"media {part.kind}"
    return f"opaque {part.kind}" if isinstance(part, Opaque) else type(part).__name__.lower()


def _call_item(call: ToolCall, loss: Loss) -> dict[str, Any]:
    name, key = _CALL_TYPES.get(call.kind, ("", ""))
    source = call.wire.value if call.wire is not None and call.wire.format == NAME else {}
    if not isinstance(source, dict) or source.get("type") != name:
        source = {"status": "completed"} if call.kind in ("local_shell", "shell", "apply_patch", "computer") else {}
    try:
        held = items.payload(call) if name else None
    except WireError:
        held = None
    if held is None:
        loss.add(f"call {call.kind}", "sent as a function call")
        return {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": as_object(call)}
    approval = call.kind == "mcp_approval_request"
    kept = {field: value for field, value in source.items() if field != "id" or approval}
    fields: dict[str, Any] = {"type": name, "id" if approval else "call_id": call.id}
    if "name" in source or key in ("arguments", "input"):
        fields["name"] = call.name
    return {**kept, **fields, items.payload_key(source, key): held}


def _result_item(result: ToolResult, base: dict[str, Any], loss: Loss) -> dict[str, Any]:
    """The item that answers a call, in the form that the call's kind demands."""
    source = base if base.get("type") in OUTPUTS else {}
    kind = OUTPUTS[source["type"]] if source else loss.kinds.get(result.call_id, "function")
    fields: dict[str, Any] = {"type": _OUTPUT_TYPES.get(kind, "function_call_output"), "call_id": result.call_id}
    if kind == "apply_patch":
        return {**source, **fields, "status": "failed" if result.is_error else "completed", "output": result.text}
    result = failed(result, loss)
    if kind == "mcp_approval_request":
        approve = result.text.startswith("approved")
        del fields["call_id"]
        return {**source, **fields, "approval_request_id": result.call_id, "approve": approve, "reason": result.text}
    if kind == "tool_search":
        tools: Any = next(
            (part.value for part in result.parts if isinstance(part, Opaque) and part.kind == "tools"), []
        )
        return {**source, **fields, "tools": tools}
    if kind == "computer":
        return {**source, **fields, "output": _screenshot(result, loss)}
    if kind == "shell":
        outcome = {"type": "exit", "exit_code": 0}
        kept = [_kept(part) for part in result.parts]
        made = [{"stdout": result.text, "stderr": "", "outcome": outcome}]
        return {**source, **fields, "output": kept if kept and None not in kept else made}
    if kind == "local_shell":
        return {**source, **fields, "output": result.text}
    listed = isinstance(source.get("output"), list)
    return {**source, **fields, "output": _content(result.parts, "tool", loss, listed=listed)}


def _screenshot(result: ToolResult, loss: Loss) -> dict[str, Any]:
    picture = next((part for part in result.parts if isinstance(part, Media) and part.kind == "image"), None)
    if picture is not None:
        return _kept(picture) or {"type": "computer_screenshot", "image_url": picture.url or data_url(picture)}
    loss.add("text", "a computer call is answered with a picture only: a blank one is sent")
    return {"type": "computer_screenshot", "image_url": _BLANK_IMAGE}


def _message_item(message: Message, parts: list[Part], base: dict[str, Any], loss: Loss) -> list[Any]:
    if not parts:
        return []
    source = base if base.get("type", "message") == "message" else {}
    role = _role(message, source)
    content = _content(tuple(parts), role, loss, listed=isinstance(source.get("content"), list))
    if content == "" and not any(isinstance(part, Text) for part in parts):
        return []
    first = {} if source else {"type": "message"}
    return [{**first, **source, "role": role, "content": content}]


def _role(message: Message, source: dict[str, Any]) -> str:
    role = source.get("role")
    if isinstance(role, str) and not message.kind and message.role in (role, "system" if role == "developer" else role):
        return role
    return message.role if message.role in ("system", "assistant") and not message.kind else "user"


def _content(parts: tuple[Part, ...], role: str, loss: Loss, *, listed: bool) -> Any:
    """Content or output: plain text where one text is all there is and the original was no list."""
    pieces = [piece for part in parts if (piece := _piece(part, role, loss)) is not None]
    plain = not listed and len(pieces) == 1 and pieces[0].keys() == {"type", "text"}
    return pieces[0]["text"] if plain else pieces or ""


def _piece(part: Part, role: str, loss: Loss) -> Any | None:
    kept = _kept(part)
    if kept is not None:
        return kept
    if isinstance(part, Media):
        mapped = None if role == "assistant" else _media(part)
        if mapped is not None:
            return mapped
        part = left_out(part, loss, f"a {role} item of the Responses API cannot hold it")
    if isinstance(part, Text):
        kind = "output_text" if role == "assistant" else "input_text"
        value = part.wire.value if part.wire is not None and isinstance(part.wire.value, dict) else {}
        if role == "assistant" and value.get("type") == "refusal":
            return {"type": "refusal", "refusal": part.text}
        return {**(value if value.get("type") == kind else {"type": kind}), "text": part.text}
    loss.add(_what(part), "the Responses API has no place for it")
    return None


def _media(media: Media) -> dict[str, Any] | None:
    if media.text:
        return {"type": "input_text", "text": media.text}
    if media.kind == "image" and (media.url or media.data):
        return {"type": "input_image", "image_url": media.url or data_url(media)}
    if media.kind == "document" and media.url:
        return {"type": "input_file", "file_url": media.url}
    if media.kind == "document" and media.data:
        return {"type": "input_file", "filename": document_name(media), "file_data": data_url(media)}
    return None


def _kept(part: Part) -> Any | None:
    """The part's own wire value, if it is of this format and the part still says the same."""
    wire = part.wire
    if wire is None or wire.format != NAME or not wire.exact or not isinstance(wire.value, dict):
        return None
    value = wire.value
    again: Part
    if isinstance(part, ToolCall):
        again = items.call(value)
    elif isinstance(part, Thinking):
        again = items.thinking(value)
    else:
        again = items.content_part(value)
    return value if part == again else None


CODEC = Codec(
    name=NAME,
    dialect=NAME,
    parse=parse,
    render=render,
    list_key="input",
    system_key="instructions",
    parse_system=parse_system,
    render_system=render_system,
)
