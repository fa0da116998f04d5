"""OpenAI Responses: one message per item, so that an item's bytes are a message's bytes.

A reply is several items (reasoning, text, calls) that belong together; where the reply is known they share its id in
`Meta.reply`. Items written here never carry an item id: such an id names something a server holds, and another server,
or the same one with storage off, does not hold it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from foldline.errors import WireError
from foldline.message import Media, Message, Meta, Opaque, Part, Text, ToolCall, ToolResult, Wire
from foldline.wire.formats import Codec, Loss
from foldline.wire.openai_responses import parse as items
from foldline.wire.openai_responses.parse import NAME
from foldline.wire.openai_responses.render import call_item, content, kept, result_item, what
from foldline.wire.part_mapping import dumped, left_out, sent_role
from foldline.wire.session_logs.codex_items import sendable
from foldline.wire.usage import responses_usage

_CONTENT = frozenset(("input_text", "output_text", "input_image", "input_file", "input_audio", "refusal", "text"))


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
                loss.add(what(part), "instructions are text")
    return "\n\n".join(message.text for message in messages if message.text)


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
    made: list[Any] = [result_item(result, base, loss) for result in message.results]
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
    if not message.parts and base.get("type", "message") == "message":
        return [{"type": "message", **base, "role": _role(message, base, loss), "content": ""}]
    return made + _message_item(message, said, base, loss)


def _is_content(part: Opaque, base: dict[str, Any]) -> bool:
    """An unknown part is content where it came from a message, otherwise an item of its own."""
    value = part.wire.value if part.wire is not None and part.wire.format == NAME else None
    return part.kind in _CONTENT or (
        isinstance(value, dict) and base.get("type", "message") == "message" and bool(base)
    )


def _item(part: Part, loss: Loss) -> Any | None:
    """A part that is an item of its own, or None with a report."""
    own = kept(part)
    if own is not None:
        return own
    if isinstance(part, ToolCall):
        return call_item(part, loss)
    loss.add(what(part), "the Responses API has no place for it")
    return None


def _message_item(message: Message, parts: list[Part], base: dict[str, Any], loss: Loss) -> list[Any]:
    """What is said, as one item; a new one of the assistant is plain text, since only a reply with an id is a list."""
    if not parts:
        return []
    source = base if base.get("type", "message") == "message" else {}
    role = _role(message, source, loss)
    if role == "assistant" and not source:
        texts = [text for part in parts if (text := _plain_text(part, loss)) is not None]
        return [{"type": "message", "role": role, "content": text} for text in texts]
    said = content(tuple(parts), role, loss, listed=isinstance(source.get("content"), list))
    if said == "" and not any(isinstance(part, Text) for part in parts):
        return []
    first = {} if source else {"type": "message"}
    return [{**first, **source, "role": role, "content": said}]


def _plain_text(part: Part, loss: Loss) -> str | None:
    if isinstance(part, Media):
        return left_out(part, loss, "an assistant item of the Responses API cannot hold it").text
    if not isinstance(part, Text):
        loss.add(what(part), "the Responses API has no place for it")
        return None
    value = part.wire.value if part.wire is not None else None
    if isinstance(value, dict) and "refusal" in value:
        loss.add("refusal", "sent as plain text")
    return part.text


def _role(message: Message, source: dict[str, Any], loss: Loss) -> str:
    role = source.get("role")
    if isinstance(role, str) and not message.kind and message.role == ("system" if role == "developer" else role):
        return role
    return sent_role(message, loss)


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
