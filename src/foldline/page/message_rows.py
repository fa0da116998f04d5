"""Messages as JSON: a row of the transcript's list, a whole message with its parts, and a search for a text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from foldline.cli.shared.output import first_words, without_secrets
from foldline.errors import InputError
from foldline.measure.message_size import message_tokens
from foldline.message import Media, Message, Part, Text, Thinking, ToolCall, ToolResult
from foldline.page.session_reader import SessionReader, copied_message
from foldline.tool_calls import interpret_call

PAGE_ROWS = 500
"""Maximum number of rows in one answer."""
_WORDS = 260
"""A row shows at most this many characters from the beginning of a message."""
PART_CHARS = 100_000
"""Maximum number of characters of a part, unless the caller asks for the whole part."""


def message_rows(reader: SessionReader, start: int, stop: int) -> dict[str, Any]:
    """The rows of the messages `start` to `stop` - 1, counted from 0.

    In the row of a folded message, `copy` is the number of the pinned note that repeats it. In the row of the note,
    `copy_of` is the number of the folded message. `removed` is True for a note that left the request because its pin
    was removed.
    """
    log, used, places = reader.log(), reader.setup(), MessagePlaces(reader)
    stop = min(stop, start + PAGE_ROWS, log.head.length)
    fold, pins = log.fold, places.pins
    copies = {original: at for at, original in places.originals.items() if original is not None and at in pins}
    cut, stubs = (fold.cut, fold.stubs) if fold else (0, {})
    rows, scale = [], reader.scale()
    for index, message in enumerate(reader.messages(start, stop), start=start):
        shown = stubs.get(index)
        rows.append(
            {
                **_row(index, message),
                "tokens": round(
                    scale * (message_tokens(message, used.counter, used.framing) if shown is None else shown[1])
                ),
                **places.marks_of(index),
                "stub": shown is not None,
                "pin": pins.get(index) or pins.get(copies.get(index, -1), ""),
                "copy": copies[index] + 1 if index in copies else None,
            }
        )
    return {"start": start, "total": log.head.length, "cut": cut, "messages": rows}


class MessagePlaces:
    """Tells which messages of a session are no longer in the request, and which notes repeat another message."""

    def __init__(self, reader: SessionReader) -> None:
        log = reader.log()
        fold, self._gone = log.fold, log.removed
        self._left, self._removed = (fold.left, fold.removed) if fold else ((), ())
        self.pins = {pin.position: pin.name for pin in log.pins if pin.position is not None}
        """The names of the pins, by the index of the pinned message."""
        names = {**self.pins, **{at: note.name for at, note in log.removed.items()}}
        self.originals = {at: copied_message(name, at) for at, name in names.items()}
        """The index of the message that a note repeats (see `copied_message`), by the index of the note."""

    def marks_of(self, index: int) -> dict[str, Any]:
        """The fields of a message's row that say whether it is in the request."""
        original = self.originals.get(index)
        return {
            "folded": index in self._gone or any(index in one for one in self._left),
            "removed": index in self._gone or index in self._removed,
            "copy_of": None if original is None else original + 1,
        }


def author(message: Message) -> str:
    """The word that says who or what wrote a message.

    This is the kind of the message, if it has a kind. Otherwise, it is `result` for the result of a tool, and the role
    for any other message.
    """
    if message.kind:
        return message.kind.replace("_", " ")
    return "result" if message.results and message.role != "assistant" else message.role


def _row(index: int, message: Message) -> dict[str, Any]:
    calls = [interpret_call(call, "") for call in message.calls]
    target = next((one.path or one.command for one in calls if one.path or one.command), "")
    return {
        "number": index + 1,
        "role": message.role,
        "kind": message.kind,
        "author": author(message),
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
                yield _text("call", _call_text(part.arguments), limit, name=part.name, call=part.id)
            case ToolResult():
                facts = {"name": part.name, "call": part.call_id, "error": part.is_error}
                yield _text("result", part.text, limit, **facts)
                yield from _parts(tuple(one for one in part.parts if not isinstance(one, Text)), limit)
            case Media():
                size = len(part.data) * 3 // 4
                yield _text("media", part.text, limit, name=part.kind, mime=part.mime, bytes=size)
            case _:
                yield _text("other", "", limit, name=part.kind)


def _call_text(arguments: str) -> str:
    """The arguments of a call, one per line: `path: src/main.py`. A text that is not a JSON object stays as it is."""
    try:
        value = json.loads(arguments)
    except ValueError:
        return arguments
    if not isinstance(value, dict):
        return arguments
    shown = {
        name: one if isinstance(one, str) else json.dumps(one, ensure_ascii=False, indent=1)
        for name, one in value.items()
    }
    return "\n".join(f"{name}: {one}" for name, one in shown.items())


def find_text(reader: SessionReader, query: str) -> dict[str, Any]:
    """The messages that contain a text, and how often the text occurs.

    In the result, `places` is the number of occurrences in all messages. `messages` has a pair for each message that
    contains the text: the message number (counted from 1) and the number of occurrences in the message.

    Case is ignored, and so is the kind of white space between words.
    """
    if not query.strip():
        raise InputError("the query is empty", hint="write the text to find")
    pattern = re.compile(r"\s++".join(map(re.escape, query.split())), re.IGNORECASE)
    found = []
    for start in range(0, reader.log().head.length, PAGE_ROWS):
        for number, message in enumerate(reader.messages(start, start + PAGE_ROWS), start=start + 1):
            if count := sum(_places(text, pattern) for text in _texts(message.parts)):
                found.append([number, count])
    return {"query": query, "places": sum(count for _, count in found), "messages": found}


def _texts(parts: tuple[Part, ...]) -> Iterator[str]:
    """The texts of a message that the page shows."""
    for part in parts:
        match part:
            case Text() | Thinking() | Media():
                yield part.text
            case ToolCall():
                yield _call_text(part.arguments)
            case ToolResult():
                yield part.text
                yield from _texts(tuple(one for one in part.parts if not isinstance(one, Text)))


def _places(text: str, pattern: re.Pattern[str]) -> int:
    """How often a pattern matches in a text. Secrets are not searched, because the page does not show them."""
    return len(pattern.findall(without_secrets(text))) if pattern.search(text) else 0


def _text(kind: str, text: str, limit: int | None, **facts: Any) -> dict[str, Any]:
    shown = without_secrets(text if limit is None else text[:limit])
    return {"type": kind, **facts, "text": shown, "chars": len(text), "is_whole": limit is None or len(text) <= limit}
