"""Claude Code session files: one JSON object per line, read as the conversation that the API saw.

A file is a tree. A reply has several lines, one per block. Lines with results may come between the lines of a reply.
After the user edits a prompt, the old branch stays in the file. Most lines are not messages. The reader makes one
message from each reply, at the position of the reply's first line. The reader also makes one message from each line
with results. Where the tree forks, the reader follows only the branch with the last message.

The parent of a line is often missing from the file. So the order of the file is kept, and a line with an unknown parent
follows the line before it. Only *replaced* prompts, *replaced* replies and their descendants are left out. The
transcript has all other messages of a file, including those before a compaction. `segments` returns the messages that
the model saw.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import Any

from foldline.errors import WireError
from foldline.message import NO_META, Message, Meta, Part, Text, ToolResult, Wire
from foldline.wire.anthropic import parse as anthropic
from foldline.wire.anthropic.framing import FRAMING
from foldline.wire.anthropic.render import render
from foldline.wire.field_access import block_types, object_at, string_at
from foldline.wire.formats import BROKEN_LINE, Format, JsonLine, ReadNote, Sign, Transcript
from foldline.wire.session_logs.claude_code_requests import LINE_TYPES as REQUEST_LINE_TYPES
from foldline.wire.session_logs.claude_code_requests import RequestLog
from foldline.wire.session_logs.claude_code_writer import SESSION_WRITER

NAME = "claude-code"
_SYNTHETIC = "<synthetic>"
"""The model name of replies that Claude Code wrote itself."""
_KINDS = (
    ("<bash-", "shell"),
    ("<local-command-", "note"),
    ("<task-notification>", "note"),
    ("[Request interrupted by user", "note"),
)
"""Beginnings of messages that have the role "user" but were not typed by the user.

Each beginning is paired with the kind that the message gets.
"""

_MESSAGE_TYPES = ("user", "assistant")
"""The types of the lines that hold an API message."""
_LONG_TEXT = 200
"""In a line that is not a message, texts with more than this number of characters are dropped.

Ids and types are never this long.
"""


def read(lines: Iterable[JsonLine]) -> Transcript:
    """The conversation of a session file.

    Messages of sub-agents are left out, unless all messages are from sub-agents.
    """
    notes: list[ReadNote] = []
    requests = RequestLog()
    records = objects(requests.watch(lines), notes)
    main = without_subagents(records, lambda value: value.get("isSidechain") is True, notes)
    abandoned = _abandoned_places(main)
    if abandoned:
        first = main[min(abandoned)].number
        notes.append(ReadNote(first, f"{len(abandoned)} messages left out: a later prompt or reply replaced them"))
    kept = [line for place, line in enumerate(main) if place not in abandoned]
    digests = {line.number for line in kept if line.value.get("isCompactSummary") is True}
    return replace(transcript(NAME, kept, notes, digests), sent=requests.last())


def segments(found: Transcript) -> tuple[tuple[Message, ...], ...]:
    """The messages of a transcript, divided into segments at its compactions.

    Each segment after the first begins with the digest of the messages before it. Messages that a compaction kept
    verbatim are not repeated after its digest.
    """
    starts = [place for place, message in enumerate(found.messages) if message.kind == "digest" and place]
    bounds = [0, *starts, len(found.messages)]
    return tuple(found.messages[start:end] for start, end in pairwise(bounds) if start < end)


def parse(value: Any, raw: str | None = None) -> Message:
    """The message of one line."""
    return parse_line(NAME, value, raw)


def parse_line(name: str, value: Any, raw: str | None) -> Message:
    """The message of one line or event, in the format called `name`."""
    payload = api_message(value) if isinstance(value, dict) else None
    if payload is None:
        raise WireError("this line is not a message", field="type", hint="messages have type user or assistant")
    line = JsonLine(0, value, raw)
    return _message(name, [line], _parts(payload), is_digest=value.get("isCompactSummary") is True)


def objects(lines: Iterable[JsonLine], notes: list[ReadNote]) -> list[JsonLine]:
    """The lines that are JSON objects, without duplicates; lines that are not messages lose their large values."""
    found: list[JsonLine] = []
    seen: dict[str, Any] = {}
    for line in lines:
        if not isinstance(line.value, dict):
            notes.append(ReadNote(line.number, f"{BROKEN_LINE}a line must be an object"))
            continue
        if line.value.get("type") in _MESSAGE_TYPES and not isinstance(line.value.get("message"), dict):
            notes.append(ReadNote(line.number, f"{BROKEN_LINE}field message: a message must be an object"))
            continue
        uuid = line.value.get("uuid")
        if isinstance(uuid, str):
            text = line.value if line.raw is None else hash(line.raw)
            if seen.get(uuid) == text:
                notes.append(ReadNote(line.number, "written twice"))
                continue
            seen[uuid] = text
        found.append(line if api_message(line.value) is not None else _lean(line))
    return found


def _lean(line: JsonLine) -> JsonLine:
    """A line that is not a message, without its large values. These values can be larger than all messages together."""
    kept = {
        key: value
        for key, value in line.value.items()
        if (len(value) <= _LONG_TEXT if isinstance(value, str) else not isinstance(value, (dict, list)))
        or (key.lower().endswith("metadata") and not isinstance(value, str))
    }
    return JsonLine(line.number, kept, None)


def without_subagents(
    lines: list[JsonLine], is_subagent: Callable[[dict[str, Any]], bool], notes: list[ReadNote]
) -> list[JsonLine]:
    """The lines that are not from sub-agents; all lines if all messages are from sub-agents."""
    main = [line for line in lines if not is_subagent(line.value)]
    if len(main) == len(lines) or all(api_message(line.value) is None for line in main):
        return lines
    first = next(line.number for line in lines if is_subagent(line.value))
    notes.append(ReadNote(first, f"{len(lines) - len(main)} lines of sub-agents left out"))
    return main


def api_message(value: dict[str, Any]) -> dict[str, Any] | None:
    """The API message (role and content) of a line; None for a line that the model does not see."""
    if value.get("type") in _MESSAGE_TYPES:
        payload = value.get("message")
        shown_only = value.get("isVisibleInTranscriptOnly") is True and value.get("isCompactSummary") is not True
        return payload if isinstance(payload, dict) and not shown_only else None
    queued = value.get("attachment")
    if isinstance(queued, dict) and queued.get("type") == "queued_command":
        return {"role": "user", "content": queued.get("prompt")}
    return None


def _abandoned_places(lines: list[JsonLine]) -> set[int]:
    """Indexes of the messages on abandoned branches.

    These are prompts and replies that a later sibling replaced, and all their descendants. Results, further lines of a
    reply and digests can also be siblings, but they do not start a branch.
    """
    place: dict[Any, int] = {}
    above: list[int] = []
    """For each line, the index of the nearest message above it in the tree; -1 if there is none."""
    here: list[int] = []
    """For each line, its own index if it is a message, else the same as in `above`."""
    for index, line in enumerate(lines):
        parent, uuid = line.value.get("parentUuid"), line.value.get("uuid")
        before = place.get(parent, index - 1) if isinstance(parent, str) else index - 1
        above.append(here[before] if before >= 0 else -1)
        here.append(above[index] if api_message(line.value) is None else index)
        if isinstance(uuid, str):
            place[uuid] = index
    path = {-1}
    tip = here[-1] if here else -1
    while tip >= 0:
        path.add(tip)
        tip = above[tip]
    replies = {_reply(lines[index].value) for index in path if index >= 0} - {""}
    gone: set[int] = set()
    for index, line in enumerate(lines):
        off_path = here[index] == index and index not in path
        if off_path and (above[index] in gone or (above[index] in path and _starts_branch(line.value, replies))):
            gone.add(index)
    return gone


def _reply(value: dict[str, Any]) -> str:
    """The id of the reply that a line belongs to; "" for a line that is not part of a reply."""
    return string_at(api_message(value), "id") if value.get("type") == "assistant" else ""


def _starts_branch(value: dict[str, Any], replies: Collection[Any]) -> bool:
    if value.get("type") == "assistant":
        return _reply(value) not in replies
    return "tool_result" not in block_types(api_message(value) or {}) and value.get("isCompactSummary") is not True


def transcript(name: str, kept: list[JsonLine], notes: list[ReadNote], digests: Collection[int]) -> Transcript:
    """The transcript of the kept lines, with one message per reply.

    For each kind of line that holds no message, one note gives the number of such lines.
    """
    groups: list[tuple[list[JsonLine], list[Part]]] = []
    reply = ""
    """The id of the latest reply. A line with that id continues the reply, even after results."""
    open_group: tuple[list[JsonLine], list[Part]] = ([], [])
    others: dict[str, list[int]] = {}
    for line in kept:
        payload = api_message(line.value)
        if payload is None:
            _note_other_line(line, others, notes)
            continue
        try:
            parts = _parts(payload)
        except WireError as error:
            notes.append(ReadNote(line.number, f"{BROKEN_LINE}{error}"))
            continue
        found = _reply(line.value)
        if found and found == reply:
            open_group[0].append(line)
            open_group[1].extend(parts)
            continue
        groups.append(([line], list(parts)))
        if line.value.get("type") == "assistant":
            reply, open_group = found, groups[-1]
    for kind, numbers in others.items():
        lines_read = "1 line" if len(numbers) == 1 else f"{len(numbers)} lines"
        notes.append(ReadNote(numbers[0], f"{kind}: {lines_read}, no messages"))
    messages = tuple(
        _message(name, group, tuple(parts), is_digest=group[0].number in digests) for group, parts in groups
    )
    model = next((message.meta.model for message in reversed(messages) if message.meta.model), "")
    session = next((found for line in reversed(kept) if (found := session_id(line.value))), "")
    return Transcript(format=name, messages=messages, model=model, notes=tuple(sorted(notes)), session=session)


def session_id(line: Mapping[str, Any]) -> str:
    """The id of the session that a line belongs to, with the id of the sub-agent if there is one; "" if unknown.

    >>> session_id({"sessionId": "3f0c", "agentId": "a1"})
    '3f0c/a1'
    """
    session, agent = string_at(line, "sessionId") or string_at(line, "session_id"), string_at(line, "agentId")
    return f"{session}/{agent}" if session and agent else session


def _note_other_line(line: JsonLine, others: dict[str, list[int]], notes: list[ReadNote]) -> None:
    """Add a note if the line is about a compaction. Otherwise add its line number to `others`, under its kind."""
    kind, subtype = str(line.value.get("type")), line.value.get("subtype")
    if subtype in ("compact_boundary", "microcompact_boundary"):
        facts = object_at(line.value, next((key for key in line.value if key.lower().endswith("metadata")), ""))
        how = facts.get("trigger") or "unknown trigger"
        size = facts.get("preTokens", facts.get("pre_tokens"))
        what = "compacted" if subtype == "compact_boundary" else "old results cleared"
        notes.append(ReadNote(line.number, f"{what} ({how}{f', {size:,} tokens before' if type(size) is int else ''})"))
    else:
        others.setdefault(f"{kind} {subtype}" if isinstance(subtype, str) else kind, []).append(line.number)


def _parts(payload: dict[str, Any]) -> tuple[Part, ...]:
    content = payload.get("content")
    return () if content is None else anthropic.parse_content(content)


def _message(name: str, group: list[JsonLine], parts: tuple[Part, ...], *, is_digest: bool) -> Message:
    first = group[0].value
    raws = [line.raw for line in group if line.raw is not None]
    wire = Wire(name, [line.value for line in group], "\n".join(raws) if len(raws) == len(group) else None)
    role = "assistant" if first.get("type") == "assistant" else "user"
    if role == "user" and parts and all(isinstance(part, ToolResult) for part in parts):
        role = "tool"
    kind = "digest" if is_digest else _kind(first, parts)
    return Message(role=role, parts=parts, kind=kind if role == "user" else "", meta=_meta(group), wire=wire)


def _kind(value: dict[str, Any], parts: tuple[Part, ...]) -> str:
    if value.get("isMeta") is True:
        return "note"
    text = parts[0].text if parts and isinstance(parts[0], Text) else ""
    return next((kind for start, kind in _KINDS if text.startswith(start)), "")


def _meta(group: list[JsonLine]) -> Meta:
    """The metadata of a message. Every line of a reply has a usage; the usage in the last line is the most complete."""
    first, payloads = group[0].value, [api_message(line.value) or {} for line in group]
    made_up = first.get("isApiErrorMessage") is True or payloads[0].get("model") == _SYNTHETIC
    metas = [NO_META if made_up or not anthropic.is_reply(value) else anthropic.reply_meta(value) for value in payloads]
    return Meta(
        reply=_reply(first),
        model="" if made_up else string_at(payloads[0], "model"),
        stop=next((meta.stop for meta in reversed(metas) if meta.stop), ""),
        usage=next((meta.usage for meta in reversed(metas) if meta.usage), None),
        at=_seconds(first.get("timestamp")),
        hidden=first.get("isMeta") is True,
        source=",".join(str(line.number) for line in group if line.number),
    )


def _seconds(value: Any) -> float | None:
    try:
        return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else None
    except (ValueError, OverflowError, OSError):
        return None


_LINE_TYPES = {"user", "assistant", "system", "progress", "attachment"}
_OWN_LINE_TYPES = {"file-history-snapshot", "queue-operation", "last-prompt", "custom-title", "agent-name", "pr-link"}
_OWN_LINE_TYPES |= {*REQUEST_LINE_TYPES}


def _is_line(item: Mapping[str, Any]) -> bool:
    """True for a line of a Claude Code session.

    Qwen writes similar lines, with Gemini parts or a `systemPayload`. For these lines, the result is False.
    """
    kind = string_at(item, "type")
    if kind in _OWN_LINE_TYPES or (kind == "summary" and "leafUuid" in item):
        return True
    foreign = "systemPayload" in item or "parts" in object_at(item, "message")
    linked = "parentUuid" in item or ("sessionId" in item and ("uuid" in item or "message" in item))
    return kind in _LINE_TYPES and not foreign and linked


FORMAT = Format(
    name=NAME,
    element_format=anthropic.NAME,
    parse=parse,
    render=render,
    sign=Sign("lines with parentUuid or sessionId", _is_line),
    framing=FRAMING,
    read=read,
    writer=SESSION_WRITER,
)
