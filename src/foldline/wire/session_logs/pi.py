"""Session files of the agent pi, and the bare messages of pi and similar agents.

Shell commands, notes of extensions, branch summaries and compaction summaries become messages with a `kind`. Their text
is the text that pi sends to the model. A session file is a tree; the path to its last entry is the conversation. The
conversation includes the messages before a compaction. A message may be JSON or an object with attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from foldline.errors import WireError
from foldline.json_text import dumps, loads
from foldline.message import Media, Message, Meta, Opaque, Part, Text, Thinking, ToolCall, ToolResult, Wire
from foldline.wire.field_access import block_types, key_in, object_at, pick, plain_json, string_at, text_of, time_of
from foldline.wire.formats import BROKEN_LINE, Format, JsonLine, LogWriter, LossCollector, ReadNote, Sign, Transcript
from foldline.wire.openai_chat.framing import FRAMING
from foldline.wire.part_mapping import arguments_object
from foldline.wire.rendering import is_exact
from foldline.wire.session_logs.usage import pi_usage

NAME = "pi"
_KINDS = {
    "bashExecution": "shell",
    "custom": "note",
    "hookMessage": "note",
    "branchSummary": "branch_digest",
    "compactionSummary": "digest",
}
_ENTRY_ROLES = {"custom_message": "custom", "branch_summary": "branchSummary", "compaction": "compactionSummary"}
"""Types of entries that are special messages, each with the role that pi gives to the message."""
_SILENT = {"session", "model_change", "thinking_level_change", "custom", "label", "session_info"}
"""Types of entries that are never sent to a model."""
_SENT_KINDS = {"shell": "custom", "note": "custom", "branch_digest": "branchSummary", "digest": "compactionSummary"}


def parse(value: Any, raw: str | None = None) -> Message:
    """The message for one line of a session file, or for one bare message."""
    wire = Wire(NAME, value, raw)
    inner = pick(value, "message")
    if pick(value, "type") != "message" or inner is None:
        return _message(value, wire, "", role=_ENTRY_ROLES.get(text_of(pick(value, "type"))))
    message = _message(inner, wire, "message.")
    if message.meta.at is None:
        message = message.with_meta(replace(message.meta, at=time_of(pick(value, "timestamp"))))
    return message


def _message(value: Any, wire: Wire, field: str, role: str | None = None) -> Message:
    role = role or pick(value, "role")
    if not isinstance(role, str) or not role:
        raise WireError("a message must have a role", field=f"{field}role")
    if role in _KINDS:
        return _special(value, role, wire)
    content = _content(value, field)
    meta = Meta(at=time_of(pick(value, "timestamp")))
    if role == "toolResult":
        result = ToolResult(
            call_id=text_of(pick(value, "toolCallId")),
            name=text_of(pick(value, "toolName")),
            parts=content,
            is_error=pick(value, "isError") is True,
        )
        return Message(role="tool", parts=(result,), meta=meta, wire=wire)
    if role == "assistant":
        meta = replace(
            meta,
            reply=text_of(pick(value, "responseId")),
            model=text_of(pick(value, "model")),
            stop=text_of(pick(value, "stopReason")),
            usage=pi_usage(pick(value, "usage")),
        )
    elif role not in ("user", "system") and pick(value, "content") is None:
        content = (Opaque(kind=role, value=value, wire=wire),)
    return Message(role=role, parts=content, meta=meta, wire=wire)


def _special(value: Any, role: str, wire: Wire) -> Message:
    """The user message for a shell command, note or digest, with the text that pi sends to the model."""
    if role == "bashExecution":
        parts: tuple[Part, ...] = (Text(text=_shell(value)),)
    elif role in ("custom", "hookMessage"):
        parts = _content(value, "")
    else:
        parts = (Text(text=text_of(pick(value, "summary"))),)
    meta = Meta(at=time_of(pick(value, "timestamp")), hidden=pick(value, "excludeFromContext") is True)
    return Message(role="user", parts=parts, kind=_KINDS[role], meta=meta, wire=wire)


def _shell(value: Any) -> str:
    r"""A shell command and its output as text.

    >>> _shell({"command": "ls nowhere", "output": "no such file", "exitCode": 2})
    '$ ls nowhere\nno such file\n[exit status 2]'
    """
    code = pick(value, "exitCode")
    lines = [f"$ {text_of(pick(value, 'command'))}", text_of(pick(value, "output")).rstrip("\n")]
    if pick(value, "truncated"):
        lines.append("[output cut]")
    if pick(value, "cancelled"):
        lines.append("[cancelled]")
    elif code:
        lines.append(f"[exit status {code}]")
    return "\n".join(line for line in lines if line)


def _content(value: Any, field: str) -> tuple[Part, ...]:
    content = pick(value, "content")
    if content is None:
        return ()
    if isinstance(content, str):
        return (Text(text=content),) if content else ()
    if not isinstance(content, (list, tuple)):
        raise WireError("content must be a string or a list of blocks", field=f"{field}content")
    return tuple(_block(block) for block in content)


def _block(value: Any) -> Part:
    wire = Wire(NAME, value)
    kind = "text" if isinstance(value, str) else text_of(pick(value, "type"))
    match kind:
        case "text":
            return Text(text=value if isinstance(value, str) else text_of(pick(value, "text")), wire=wire)
        case "thinking":
            signature = text_of(pick(value, "thinkingSignature"))
            return Thinking(text=text_of(pick(value, "thinking")), signature=signature, wire=wire)
        case "toolCall":
            given = pick(value, "arguments")
            arguments = given if isinstance(given, str) else dumps(plain_json(given) or {})
            return ToolCall(
                id=text_of(pick(value, "id")), name=text_of(pick(value, "name")), arguments=arguments, wire=wire
            )
        case "image":
            mime, data = text_of(pick(value, "mimeType")), text_of(pick(value, "data"))
            return Media(kind="image", mime=mime, data=data, wire=wire)
    return Opaque(kind=kind or "block", value=value, wire=wire)


def render(message: Message, loss: LossCollector) -> list[Any]:
    """The original line or bare message, if the message is unchanged.

    For an edited message or a message from another format, new pi messages are returned.
    """
    wire = message.wire
    if wire is not None and is_exact(message, NAME):
        return [wire.value]
    entries = [_result(part, loss) for part in message.results]
    rest = tuple(part for part in message.parts if not isinstance(part, ToolResult))
    if rest:
        role = _SENT_KINDS.get(message.kind, message.role)
        summary = role in ("branchSummary", "compactionSummary")
        fields = {"summary": message.text} if summary else {"content": _blocks(rest, loss)}
        entries.append({"role": role, **fields})
    if wire is not None and wire.format == NAME and len(entries) == 1:
        return [_onto(wire.value, entries[0])]
    return entries


def _onto(old: Any, new: dict[str, Any]) -> dict[str, Any]:
    base = plain_json(old)
    if isinstance(base.get("message"), dict) and base.get("type") == "message":
        return {**base, "message": _onto(base["message"], new)}
    if base.get("type") in _ENTRY_ROLES:
        new = {key: value for key, value in new.items() if key != "role"}
    return {**base, **{key_in(base, key): value for key, value in new.items()}}


def _result(part: ToolResult, loss: LossCollector) -> dict[str, Any]:
    return {
        "role": "toolResult",
        "toolCallId": part.call_id,
        "toolName": part.name or loss.names.get(part.call_id, ""),
        "content": _blocks(part.parts, loss),
        "isError": part.is_error,
    }


def _blocks(parts: tuple[Part, ...], loss: LossCollector) -> list[Any]:
    blocks: list[Any] = []
    for part in parts:
        if part.wire is not None and part.wire.format == "pi" and _block(part.wire.value) == part:
            blocks.append(part.wire.value)
            continue
        match part:
            case Text(text=text):
                blocks.append({"type": "text", "text": text})
            case Thinking(text=text):
                blocks.append({"type": "thinking", "thinking": text})
            case ToolCall():
                blocks.append(
                    {"type": "toolCall", "id": part.id, "name": part.name, "arguments": loads(arguments_object(part))}
                )
            case Media(kind="image", mime=mime, data=data) if data:
                blocks.append({"type": "image", "data": data, "mimeType": mime})
            case Media(kind=kind):
                loss.add(f"media {kind}", "pi accepts images only as data")
            case Opaque(kind=kind):
                loss.add(f"opaque {kind}", "unknown to pi")
            case ToolResult():
                loss.add("tool result", "inside another result")
    return blocks


def read(lines: Iterable[JsonLine]) -> Transcript:
    """The conversation of a session file: the path to its last entry."""
    entries = [line for line in lines if isinstance(line.value, Mapping)]
    path, notes = _path(entries)
    messages: list[Message] = []
    model = ""
    for line in path:
        kind = text_of(line.value.get("type"))
        model = text_of(line.value.get("modelId")) or model
        if kind != "message" and kind not in _ENTRY_ROLES and "role" not in line.value:
            if kind not in _SILENT:
                notes.append(ReadNote(line.number, f"entry of unknown type {kind!r} left out"))
            continue
        try:
            message = parse(line.value, line.raw)
        except WireError as error:
            notes.append(ReadNote(line.number, f"{BROKEN_LINE}{error}"))
            continue
        model = message.meta.model or model
        messages.append(message.with_meta(replace(message.meta, source=str(line.number))))
    session = next((text_of(line.value.get("id")) for line in entries if line.value.get("type") == "session"), "")
    return Transcript(format=NAME, messages=tuple(messages), model=model, notes=tuple(sorted(notes)), session=session)


def _path(entries: list[JsonLine]) -> tuple[list[JsonLine], list[ReadNote]]:
    """The entries on the path from the root to the last entry; all entries if the file has no ids (version 1)."""
    places = {entry.value["id"]: place for place, entry in enumerate(entries) if _has_id(entry)}
    roots = {entry.value["id"] for entry in entries if _has_id(entry) and entry.value.get("type") == "session"}
    notes: list[ReadNote] = []
    place = len(entries) - 1
    path: list[JsonLine] = []
    while place >= 0:
        entry = entries[place]
        path.append(entry)
        parent = entry.value.get("parentId", ...)
        if parent is None or parent in roots:
            break
        found = places.get(parent, place) if isinstance(parent, str) else place
        if parent is not ... and found >= place:
            notes.append(
                ReadNote(entry.number, "its parent does not come before it: read as a child of the previous line")
            )
        place = found if found < place else place - 1
    taken = {entry.number for entry in path}
    off = (entry for entry in entries if entry.number not in taken)
    left = [entry for entry in off if text_of(entry.value.get("type")) not in _SILENT]
    if left:
        notes.append(ReadNote(left[0].number, f"{len(left)} entries on other branches left out"))
    return path[::-1], notes


def _has_id(entry: JsonLine) -> bool:
    return isinstance(entry.value.get("id"), str)


def _new_entries(message: Message, like: Mapping[str, Any], loss: LossCollector) -> list[dict[str, Any]]:
    """New entries of a pi session, or bare messages if `like` is a bare message."""
    base = {"timestamp": like["timestamp"]} if "timestamp" in like and "type" in like else {}
    if message.kind == "digest" and message.wire is None and "role" not in like:
        return [{"type": "compaction", **base, "summary": message.text, "tokensBefore": 0}]
    rendered = render(message, loss)
    if message.wire is not None and message.wire.format == "pi":
        return rendered
    return rendered if "role" in like else [{"type": "message", **base, "message": one} for one in rendered]


def _without_usage(line: dict[str, Any]) -> dict[str, Any]:
    payload = line.get("message") if line.get("type") == "message" else line
    if not isinstance(payload, dict) or not isinstance(payload.get("usage"), dict):
        return line
    bare = {**payload, "usage": dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 0)}
    return bare if payload is line else {**line, "message": bare}


_OWN_ENTRY_TYPES = {"model_change", "thinking_level_change", "branch_summary", "custom_message"}
_OWN_ROLES = {"toolResult", "bashExecution", "branchSummary", "compactionSummary", "hookMessage"}


def _is_entry(item: Mapping[str, Any]) -> bool:
    kind = string_at(item, "type")
    if kind in _OWN_ENTRY_TYPES or (kind == "session" and "id" in item and "timestamp" in item):
        return True
    if kind == "message":
        item = object_at(item, "message") or item
    return string_at(item, "role") in _OWN_ROLES or "customType" in item or "toolCall" in block_types(item)


FORMAT = Format(
    name=NAME,
    element_format=NAME,
    parse=parse,
    render=render,
    sign=Sign("pi entries, or roles like toolResult", _is_entry),
    framing=FRAMING,
    plain_fields=("role",),
    read=read,
    writer=LogWriter(
        make=_new_entries,
        without_usage=_without_usage,
        head_types=("session", "model_change", "thinking_level_change"),
        id_fields=("id", "parentId"),
    ),
)
