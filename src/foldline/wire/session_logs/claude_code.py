"""Claude Code session files: one JSON object a line, read as the API saw the conversation.

A file is a tree that was written over days. One reply stands on several lines, a block each, with the results of its
first calls between them; an edited prompt leaves its old branch behind; sub-agents may write into the same file; most
lines are book-keeping. Here a reply is one message at the place of its first line, every result line is a message, and
of a fork only the branch that leads to the last message is read.

Real files have gaps: lines that hooks and progress reports wrote are often gone, and with them the parents of others.
So the tree is not walked from the end; the file's order is kept, a line with an unknown parent follows the line before
it, and only what hangs on a *replaced* prompt or reply is left out. Two first prompts in one file are therefore both
read: without a common parent nothing says that one replaced the other.

All messages of a file are in the transcript, whatever was compacted between them; `segments` gives what the model saw.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any

from foldline.errors import WireError
from foldline.message import NO_META, Message, Meta, Part, Text, ToolResult, Wire
from foldline.wire.anthropic import parse as anthropic
from foldline.wire.anthropic.framing import FRAMING
from foldline.wire.anthropic.render import render
from foldline.wire.field_access import object_at, string_at
from foldline.wire.formats import Format, JsonLine, ReadNote, Sign, Transcript
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
"""How texts begin that stand in the user's role although no person asked them."""


_LONG_TEXT = 200
"""Longer than any id or kind: not needed of a line that is no message."""


def read(lines: Iterable[JsonLine]) -> Transcript:
    """The conversation of a session file; without its sub-agents, unless the file is one sub-agent's own."""
    notes: list[ReadNote] = []
    whole = objects(lines, notes)
    main = without_subagents(whole, lambda value: value.get("isSidechain") is True, notes)
    gone = _abandoned_places(main)
    if gone:
        notes.append(
            ReadNote(main[min(gone)].number, f"{len(gone)} messages left out: a later prompt or reply replaced them")
        )
    kept = [line for place, line in enumerate(main) if place not in gone]
    digests = {line.number for line in kept if line.value.get("isCompactSummary") is True}
    return transcript(NAME, kept, notes, digests)


def segments(found: Transcript) -> tuple[tuple[Message, ...], ...]:
    """The runs of messages between compactions: each begins with the digest that replaced what was before it.

    A tail that a compaction kept verbatim is not repeated after its digest.
    """
    starts = [place for place, message in enumerate(found.messages) if message.kind == "digest" and place]
    bounds = [0, *starts, len(found.messages)]
    return tuple(found.messages[start:end] for start, end in pairwise(bounds) if start < end)


def lines(message: Message) -> list[Any]:
    """The lines an untouched message was read from; none for any other message."""
    wire = message.wire
    return list(wire.value) if wire is not None and wire.exact and isinstance(wire.value, list) else []


def parse(value: Any, raw: str | None = None) -> Message:
    """The message of one line."""
    return parse_line(NAME, value, raw)


def parse_line(name: str, value: Any, raw: str | None) -> Message:
    """The message of one line or event, in the format of that name."""
    said = api_message(value) if isinstance(value, dict) else None
    if said is None:
        raise WireError("this line is not a message", field="type", hint="messages have type user or assistant")
    line = JsonLine(0, value, raw)
    return _message(name, [line], _parts(said), is_digest=value.get("isCompactSummary") is True)


def objects(lines: Iterable[JsonLine], notes: list[ReadNote]) -> list[JsonLine]:
    """The lines that are JSON objects, without those that were written twice."""
    found: list[JsonLine] = []
    seen: dict[str, Any] = {}
    for line in lines:
        if not isinstance(line.value, dict):
            notes.append(ReadNote(line.number, "not an object"))
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
    """A line that is no message, without its bulk: progress and snapshots can outweigh a whole conversation."""
    kept = {
        key: value
        for key, value in line.value.items()
        if not isinstance(value, (dict, list)) or key.lower().endswith("metadata")
    }
    return JsonLine(line.number, {key: value for key, value in kept.items() if not _is_long(value)}, None)


def _is_long(value: Any) -> bool:
    return isinstance(value, str) and len(value) > _LONG_TEXT


def without_subagents(
    whole: list[JsonLine], is_aside: Callable[[dict[str, Any]], bool], notes: list[ReadNote]
) -> list[JsonLine]:
    """The lines without those of sub-agents, unless all messages are theirs."""
    main = [line for line in whole if not is_aside(line.value)]
    if len(main) == len(whole) or all(api_message(line.value) is None for line in main):
        return whole
    first = next(line.number for line in whole if is_aside(line.value))
    notes.append(ReadNote(first, f"{len(whole) - len(main)} lines of sub-agents left out"))
    return main


def api_message(value: dict[str, Any]) -> dict[str, Any] | None:
    """What a line says, as role and content; None for the lines that say nothing to the model."""
    if value.get("type") in ("user", "assistant"):
        said = value.get("message")
        shown_only = value.get("isVisibleInTranscriptOnly") is True and value.get("isCompactSummary") is not True
        return said if isinstance(said, dict) and not shown_only else None
    queued = value.get("attachment")
    if isinstance(queued, dict) and queued.get("type") == "queued_command":
        return {"role": "user", "content": queued.get("prompt")}
    return None


def _abandoned_places(lines: list[JsonLine]) -> set[int]:
    """Places of the messages on branches that were left: prompts and replies with a later sibling, and what follows.

    Results and further lines of a reply are no branch: parallel calls hang side by side. A digest is none either.
    """
    place: dict[Any, int] = {}
    above: list[int] = []
    """The message a line follows, or -1."""
    here: list[int] = []
    """The line itself if it is a message, else the message it follows."""
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
    """The id of the reply a line belongs to; "" for a user's line."""
    said = api_message(value) if value.get("type") == "assistant" else None
    found = said.get("id") if said else None
    return found if isinstance(found, str) else ""


def _starts_branch(value: dict[str, Any], replies: Collection[Any]) -> bool:
    if value.get("type") == "assistant":
        return _reply(value) not in replies
    content = (api_message(value) or {}).get("content")
    answers = isinstance(content, list) and any(
        isinstance(block, dict) and block.get("type") == "tool_result" for block in content
    )
    return not answers and value.get("isCompactSummary") is not True


def transcript(name: str, kept: list[JsonLine], notes: list[ReadNote], digests: Collection[int]) -> Transcript:
    """The messages of the lines that are left, each reply in one piece, and a note for everything else."""
    groups: list[tuple[list[JsonLine], list[Part]]] = []
    reply = ""
    """The latest reply; a line with its id continues it, whatever results came between."""
    open_group: tuple[list[JsonLine], list[Part]] = ([], [])
    aside: dict[str, list[int]] = {}
    for line in kept:
        said = api_message(line.value)
        if said is None:
            _note_other_line(line, aside, notes)
            continue
        try:
            parts = _parts(said)
        except WireError as error:
            notes.append(ReadNote(line.number, f"not read: {error}"))
            continue
        found = _reply(line.value)
        if found and found == reply:
            open_group[0].append(line)
            open_group[1].extend(parts)
            continue
        groups.append(([line], list(parts)))
        if line.value.get("type") == "assistant":
            reply, open_group = found, groups[-1]
    notes.extend(ReadNote(numbers[0], f"{kind}: {len(numbers)} lines, no messages") for kind, numbers in aside.items())
    messages = tuple(
        _message(name, group, tuple(parts), is_digest=group[0].number in digests) for group, parts in groups
    )
    model = next((message.meta.model for message in reversed(messages) if message.meta.model), "")
    return Transcript(format=name, messages=messages, model=model, notes=tuple(sorted(notes)))


def _note_other_line(line: JsonLine, aside: dict[str, list[int]], notes: list[ReadNote]) -> None:
    """ReadNote a compaction by itself, and count every other kind of line."""
    kind, subtype = str(line.value.get("type")), line.value.get("subtype")
    if subtype in ("compact_boundary", "microcompact_boundary"):
        facts = next((fact for key, fact in line.value.items() if key.lower().endswith("metadata")), None)
        facts = facts if isinstance(facts, dict) else {}
        how = facts.get("trigger") or "unknown trigger"
        size = facts.get("preTokens", facts.get("pre_tokens"))
        what = "compacted" if subtype == "compact_boundary" else "old results cleared"
        notes.append(ReadNote(line.number, f"{what} ({how}{f', {size:,} tokens before' if type(size) is int else ''})"))
    else:
        aside.setdefault(f"{kind} {subtype}" if isinstance(subtype, str) else kind, []).append(line.number)


def _parts(said: dict[str, Any]) -> tuple[Part, ...]:
    content = said.get("content")
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
    """What a message's lines say about it. The lines of a reply repeat its usage; the last one knows most."""
    first, said = group[0].value, [api_message(line.value) or {} for line in group]
    made_up = first.get("isApiErrorMessage") is True or said[0].get("model") == _SYNTHETIC
    metas = [NO_META if made_up or not anthropic.is_reply(value) else anthropic.reply_meta(value) for value in said]
    model = said[0].get("model")
    return Meta(
        reply=_reply(first),
        model=model if isinstance(model, str) and not made_up else "",
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


def _is_line(item: Mapping[str, Any]) -> bool:
    """A line of a Claude Code session. Qwen's lines look alike, but hold Gemini parts and a `systemPayload`."""
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
