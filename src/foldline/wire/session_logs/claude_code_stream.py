"""The events of `claude -p --output-format stream-json`: the same messages as a session file, as they happen.

Events have no tree and name sub-agents by the call that started them. The digest of a compaction has no mark of its
own: it is what stands in the user's role right after the boundary.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from foldline.message import Message
from foldline.wire.anthropic import parse as anthropic
from foldline.wire.formats import Codec, Line, Note, Transcript
from foldline.wire.session_logs.claude_code import content_of, leave_out, objects, parse_line, transcript

NAME = "stream-json"


def read(lines: Iterable[Line]) -> Transcript:
    """The conversation of a stream of events; without its sub-agents, unless there is nothing else."""
    notes: list[Note] = []
    whole = objects(lines, notes)
    main = leave_out(whole, lambda value: isinstance(value.get("parent_tool_use_id"), str), notes)
    return transcript(NAME, main, notes, set(_digests(main)))


def parse(value: Any, raw: str | None = None) -> Message:
    """The message of one event."""
    return parse_line(NAME, value, raw)


def _digests(lines: list[Line]) -> Iterator[int]:
    due = False
    for line in lines:
        if line.value.get("subtype") == "compact_boundary":
            due = True
        elif due and content_of(line.value) is not None:
            if line.value.get("type") == "user":
                yield line.number
            due = False


CODEC = Codec(name=NAME, dialect=anthropic.NAME, parse=parse, render=anthropic.render, read=read)
