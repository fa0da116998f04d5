"""Reads the events of `claude -p --output-format stream-json`, which hold the same messages as a session file.

Events form no tree. A sub-agent is identified by the call that started it. The digest of a compaction is not marked: it
is the user message right after the event `compact_boundary`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from foldline.message import Message
from foldline.wire.anthropic import parse as anthropic
from foldline.wire.anthropic.framing import FRAMING
from foldline.wire.anthropic.render import render
from foldline.wire.field_access import string_at
from foldline.wire.formats import Format, JsonLine, ReadNote, Sign, Transcript
from foldline.wire.session_logs.claude_code import api_message, objects, parse_line, transcript, without_subagents
from foldline.wire.session_logs.claude_code_writer import STREAM_WRITER

NAME = "stream-json"


def read(lines: Iterable[JsonLine]) -> Transcript:
    """The conversation of a stream of events.

    Messages of sub-agents are left out, unless all messages are from sub-agents.
    """
    notes: list[ReadNote] = []
    records = objects(lines, notes)
    main = without_subagents(records, lambda value: isinstance(value.get("parent_tool_use_id"), str), notes)
    return transcript(NAME, main, notes, set(_digests(main)))


def parse(value: Any, raw: str | None = None) -> Message:
    """The message of one event."""
    return parse_line(NAME, value, raw)


def _digests(lines: list[JsonLine]) -> Iterator[int]:
    due = False
    for line in lines:
        if line.value.get("subtype") == "compact_boundary":
            due = True
        elif due and api_message(line.value) is not None:
            if line.value.get("type") == "user":
                yield line.number
            due = False


_EVENT_FIELDS = {
    "assistant": "message",
    "user": "message",
    "system": "subtype",
    "result": "subtype",
    "stream_event": "event",
}
"""For each type of event, a field that every event of this type has."""


def _is_event(item: Mapping[str, Any]) -> bool:
    field = _EVENT_FIELDS.get(string_at(item, "type"))
    has_session = "session_id" in item or "parent_tool_use_id" in item
    return field is not None and field in item and has_session and "sessionId" not in item


FORMAT = Format(
    name=NAME,
    element_format=anthropic.NAME,
    parse=parse,
    render=render,
    sign=Sign("events with a session_id", _is_event),
    framing=FRAMING,
    read=read,
    writer=STREAM_WRITER,
)
