"""Messages as JSON: one row for the transcript's list, and the whole message with its parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from foldline.cli.shared.output import first_words, without_secrets
from foldline.errors import InputError
from foldline.measure.message_size import message_tokens
from foldline.message import Media, Message, Part, Text, Thinking, ToolCall, ToolResult
from foldline.page.session_reader import SessionReader
from foldline.tool_calls import interpret_call

PAGE_ROWS = 500
"""Maximum number of rows in one answer."""
_WORDS = 260
"""Maximum number of characters of a message in a row."""
PART_CHARS = 100_000
"""Maximum number of characters of a part, unless the caller asks for the whole part."""


def message_rows(reader: SessionReader, start: int, stop: int) -> dict[str, Any]:
    """The rows of the messages `start` to `stop` - 1, counted from 0."""
    log, used = reader.log(), reader.setup()
    stop = min(stop, start + PAGE_ROWS, log.head.length)
    fold = log.fold
    pins = {pin.position: pin.name for pin in log.pins if pin.position is not None}
    stays = {*fold.pinned, *fold.carried} if fold else set[int]()
    cut, stubs = (fold.cut, fold.stubs) if fold else (0, {})
    rows = []
    for index, message in enumerate(reader.messages(start, stop), start=start):
        shown = stubs.get(index)
        is_folded = index < cut and index not in stays and message.role != "system"
        rows.append(
            {
                **_row(index, message),
                "tokens": message_tokens(message, used.counter, used.framing) if shown is None else shown[1],
                "folded": is_folded,
                "stub": shown is not None,
                "pin": pins.get(index, ""),
            }
        )
    return {"start": start, "total": log.head.length, "cut": cut, "messages": rows}


def _row(index: int, message: Message) -> dict[str, Any]:
    calls = [interpret_call(call, "") for call in message.calls]
    target = next((one.path or one.command for one in calls if one.path or one.command), "")
    return {
        "number": index + 1,
        "role": message.role,
        "kind": message.kind,
        "at": message.meta.at,
        "model": message.meta.model,
        "starts": first_words(message, _WORDS),
        "tools": [call.name for call in message.calls],
        "target": without_secrets(target[:_WORDS]),
        "error": any(result.is_error for result in message.results),
        "is_result": bool(message.results),
        "is_prompt": message.is_prompt,
        "prompt_tokens": message.meta.usage.prompt if message.meta.usage else None,
    }


def whole_message(reader: SessionReader, number: int, *, whole: bool) -> dict[str, Any]:
    """One message with all its parts. `number` is counted from 1."""
    length, index = reader.log().head.length, number - 1
    found = reader.messages(index, index + 1) if 0 <= index < length else []
    if not found:
        raise InputError(f"there is no message #{number}", hint=f"the session has {length:,} messages")
    row = message_rows(reader, index, index + 1)["messages"][0]
    fold = reader.log().fold
    stub = fold.stubs.get(index) if fold else None
    limit = None if whole else PART_CHARS
    return {
        **row,
        "parts": list(_parts(found[0].parts, limit)),
        "shown": None if stub is None else list(_parts(stub[0].parts, limit)),
    }


def _parts(parts: tuple[Part, ...], limit: int | None) -> Iterator[dict[str, Any]]:
    for part in parts:
        match part:
            case Text():
                yield _text("text", part.text, limit)
            case Thinking():
                yield _text("thinking", part.text, limit, encrypted=bool(part.signature) and not part.text)
            case ToolCall():
                yield _text("call", part.arguments, limit, name=part.name, call=part.id)
            case ToolResult():
                facts = {"name": part.name, "call": part.call_id, "error": part.is_error}
                yield _text("result", part.text, limit, **facts)
                yield from _parts(tuple(one for one in part.parts if not isinstance(one, Text)), limit)
            case Media():
                size = len(part.data) * 3 // 4
                yield _text("media", part.text, limit, name=part.kind, mime=part.mime, bytes=size)
            case _:
                yield _text("other", "", limit, name=part.kind)


def _text(kind: str, text: str, limit: int | None, **facts: Any) -> dict[str, Any]:
    shown = without_secrets(text if limit is None else text[:limit])
    return {"type": kind, **facts, "text": shown, "chars": len(text), "is_whole": limit is None or len(text) <= limit}
