"""Chat recordings of the Gemini CLI, read as messages of the Gemini API.

A recording stores each turn of the model as one record: thoughts, text, calls, and the result inside each call. The API
has separate messages for calls and results. So a record becomes two messages: the model's message, and a message with
the results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from foldline.errors import WireError
from foldline.message import Message, Meta
from foldline.wire.field_access import list_at, object_at, string_at, time_of
from foldline.wire.formats import BROKEN_LINE, Format, JsonLine, ReadNote, Sign, Transcript
from foldline.wire.gemini import parse as gemini
from foldline.wire.gemini.framing import FRAMING
from foldline.wire.gemini.render import render
from foldline.wire.gemini.usage import gemini_usage

NAME = "gemini-cli"
_TOKENS = {
    "promptTokenCount": "input",
    "cachedContentTokenCount": "cached",
    "candidatesTokenCount": "output",
    "thoughtsTokenCount": "thoughts",
    "toolUsePromptTokenCount": "tool",
}


def read(lines: Iterable[JsonLine]) -> Transcript:
    """The conversation of a recording, which is one JSON document, or a header and one record per line."""
    records: dict[str, JsonLine] = {}
    session = ""
    for line in lines:
        for place, record in enumerate(_records(line.value)):
            records[string_at(record, "id") or f"{line.number}.{place}"] = JsonLine(line.number, record, None)
        session = session or string_at(line.value, "sessionId")
    messages: list[Message] = []
    notes: list[ReadNote] = []
    for line in records.values():
        kind = line.value.get("type")
        if kind in ("user", "gemini", "model"):
            try:
                messages.extend(_messages(line))
            except WireError as error:
                notes.append(ReadNote(line.number, f"{BROKEN_LINE}{error}"))
        else:
            notes.append(ReadNote(line.number, f"a record of type {kind!r} is no message"))
    model = next((message.meta.model for message in reversed(messages) if message.meta.model), "")
    return Transcript(format=NAME, messages=tuple(messages), model=model, notes=tuple(notes), session=session)


def _records(value: Any) -> list[Mapping[str, Any]]:
    """The records in a line. A line is one record, a document with a list of records, or a header without records."""
    if not isinstance(value, Mapping):
        raise WireError("a record must be an object")
    held = value.get("messages")
    if isinstance(held, list):
        return [record for record in held if isinstance(record, Mapping)]
    return [value] if "type" in value else []


def _messages(line: JsonLine) -> Iterator[Message]:
    record = line.value
    calls = [call for call in list_at(record, "toolCalls") if isinstance(call, Mapping)]
    tokens = object_at(record, "tokens")
    meta = Meta(
        model=string_at(record, "model"),
        usage=gemini_usage({name: tokens.get(key) for name, key in _TOKENS.items()}),
        at=time_of(record.get("timestamp")),
        source=str(line.number),
    )
    role = "user" if record["type"] == "user" else "model"
    text = string_at(record, "content")
    content = [{"text": text}] if text else list_at(record, "content")
    parts = [*_thoughts(record), *content, *list_at(record, "parts"), *map(_call, calls)]
    if parts or not calls:
        yield _message(role, parts, meta)
    results = [part for call in calls for part in list_at(call, "result") if isinstance(part, Mapping)]
    if results:
        yield _message("user", results, Meta(at=meta.at, source=meta.source))


def _message(role: str, parts: list[Any], meta: Meta) -> Message:
    message = gemini.parse({"role": role, "parts": parts})
    wire = message.wire._replace(format=NAME) if message.wire else None
    return replace(message, meta=meta, wire=wire)


def _thoughts(record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for thought in list_at(record, "thoughts"):
        if isinstance(thought, Mapping):
            lines = (string_at(thought, "subject"), string_at(thought, "description"))
            yield {"text": "\n".join(line for line in lines if line), "thought": True}


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "functionCall": {"id": string_at(call, "id"), "name": string_at(call, "name"), "args": call.get("args") or {}}
    }


def _is_record(item: Mapping[str, Any]) -> bool:
    return (string_at(item, "type") == "gemini" and "content" in item) or (
        "projectHash" in item and "sessionId" in item
    )


FORMAT = Format(
    name=NAME,
    element_format=gemini.NAME,
    parse=gemini.parse,
    render=render,
    sign=Sign("messages of the type gemini, or a projectHash", _is_record),
    framing=FRAMING,
    read=read,
)
