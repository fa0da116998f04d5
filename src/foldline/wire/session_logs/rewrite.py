"""Session files written anew: the lines of the messages that stay as they are, new lines for what is new.

A written session begins with its digest, as one does after the agent's own compaction, so that the agent can go on from
it. Lines that no model ever sees are left out, but for the few in front that say which session it is. Lines are tied to
each other by ids in some formats: where the line that one hung on is gone, it hangs on the line before it. The usage in
replies that stay measured requests which held what is gone now: it is set to nothing, or the next reader would believe
the session full. New lines take their ids from what they say, so the same fold always gives the same file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID, uuid5

from foldline.json_text import dumps
from foldline.message import Message
from foldline.wire.anthropic import parse as anthropic
from foldline.wire.formats import Line, Loss
from foldline.wire.openai_responses import render_messages as openai_responses
from foldline.wire.session_logs import pi

_SPACE = UUID("6f1c5a0e-2f0b-5d0b-9a51-0f01d11e0001")
"""Where the ids of new lines live."""


class _Written(NamedTuple):
    """A line to be written: its value, its text where that is still true, and whether foldline made it."""

    value: dict[str, Any]
    raw: str | None = None
    new: bool = False
    head: bool = False
    """It stands in front of the conversation and may hang on nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Log:
    """What is special about one kind of session file."""

    make: Callable[[Message, Mapping[str, Any], Loss], list[dict[str, Any]]]
    """New lines for a message, given a line whose circumstances (session, folder, time) they share."""
    unmeasured: Callable[[dict[str, Any]], dict[str, Any]]
    """A line without its usage; the very line when it has none."""
    heads: tuple[str, ...] = ()
    """The types of lines in front that say which session it is: the last of each is kept."""
    ids: tuple[str, str] | None = None
    """The fields that hold a line's id and the id of the line it hangs on."""


def rewritten(name: str, records: Iterable[Line], messages: Sequence[Message], loss: Loss) -> list[str]:
    """The lines of a session file of this format that holds these messages instead."""
    log = _LOGS[name]
    source = [line for line in records if isinstance(line.value, dict)]
    heads = _heads(log, source)
    made = [_Written(line.value, line.raw, head=True) for line in heads]
    numbers = {str(line.number) for line in heads}
    like = _likeness(name, messages)
    digests = [message for message in messages if message.kind == "digest" and message.wire is None]
    ordered = [*digests, *(message for message in messages if message not in digests)]
    for place, message in enumerate(ordered):
        loss.message = place
        if message.meta.source not in numbers:
            made += _of(message, name, log, like, loss)
        loss.names |= {call.id: call.name for call in message.calls}
    return [dumps(line.value) if line.raw is None else line.raw for line in _tied(made, log)]


def _likeness(name: str, messages: Sequence[Message]) -> Mapping[str, Any]:
    """A line of the file, for what new lines have in common with it."""
    for message in messages:
        if message.wire is not None and message.wire.format == name:
            value = message.wire.value[0] if isinstance(message.wire.value, list) else message.wire.value
            return value if isinstance(value, dict) else {}
    return {}


def _heads(log: _Log, source: list[Line]) -> list[Line]:
    found = {_kind(line.value): line for line in reversed(source) if _kind(line.value) in log.heads}
    return sorted(found.values(), key=lambda line: line.number)


def _kind(value: Mapping[str, Any]) -> str:
    kind, subtype = value.get("type"), value.get("subtype")
    return f"{kind} {subtype}" if isinstance(subtype, str) else str(kind)


def _of(message: Message, name: str, log: _Log, like: Mapping[str, Any], loss: Loss) -> Iterator[_Written]:
    """The lines of one message: its own where it is untouched, otherwise new ones."""
    wire = message.wire
    own = wire is not None and wire.format == name
    values = (wire.value if isinstance(wire.value, list) else [wire.value]) if own and wire else []
    if own and wire and wire.exact:
        raws = wire.raw.split("\n") if wire.raw is not None else [None] * len(values)
        for value, raw in zip(values, raws if len(raws) == len(values) else [None] * len(values), strict=True):
            bare = log.unmeasured(value)
            yield _Written(bare, raw if bare is value else None)
        return
    for place, value in enumerate(log.make(message, values[0] if values else like, loss)):
        yield _Written(value, new=not own or place > 0)


def _tied(lines: Iterable[_Written], log: _Log) -> Iterator[_Written]:
    """Every line hanging on one that is there: its own parent, or else the line before it."""
    if log.ids is None:
        yield from lines
        return
    own, above = log.ids
    there: set[Any] = set()
    """Lines since the last new one; what hangs on an older one would pass the new one by."""
    before: str | None = None
    for line in lines:
        value, raw = line.value, line.raw
        if not line.new and (own not in value or (line.head and above not in value)):
            yield line
            continue
        if line.new:
            value = {**value, own: str(uuid5(_SPACE, dumps([before, value])))}
        if line.new or value.get(above) not in there:
            value, raw = {**value, above: before}, None
            there = set() if line.new else there
        before = value[own]
        there.add(before)
        yield _Written(value, raw)


_SHARED = ("isSidechain", "userType", "cwd", "sessionId", "version", "gitBranch", "timestamp", "slug")
"""What the lines of one Claude Code session have in common."""


def _claude_code(message: Message, like: Mapping[str, Any], loss: Loss) -> list[dict[str, Any]]:
    """Lines of a Claude Code session; a digest is announced by the boundary that Claude Code writes itself."""
    base = {key: like[key] for key in _SHARED if key in like}
    if message.kind == "digest" and message.wire is None:
        boundary = {"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted", **base}
        said = {"role": "user", "content": message.text}
        summary = {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}
        return [
            {**boundary, "isMeta": False, "compactMetadata": {"trigger": "manual"}},
            {"type": "user", **base, **summary, "message": said},
        ]
    return [
        {
            **(_edited(like) if message.wire is not None else base),
            "type": _claude_type(element),
            **({"isMeta": True} if message.kind == "note" else {}),
            "message": {**_reply_fields(like, message), **element},
        }
        for element in anthropic.render(message, loss)
    ]


def _stream_json(message: Message, like: Mapping[str, Any], loss: Loss) -> list[dict[str, Any]]:
    """Events of stream-json; what stands in the user's role right behind a boundary is the digest."""
    base = {key: like[key] for key in ("session_id", "parent_tool_use_id") if key in like}
    if message.kind == "digest" and message.wire is None:
        boundary = {"type": "system", "subtype": "compact_boundary", **base, "compact_metadata": {"trigger": "manual"}}
        return [boundary, {"type": "user", **base, "message": {"role": "user", "content": message.text}}]
    return [
        {
            **(_edited(like) if message.wire is not None else base),
            "type": _claude_type(element),
            "message": {**_reply_fields(like, message), **element},
        }
        for element in anthropic.render(message, loss)
    ]


def _claude_type(element: Mapping[str, Any]) -> str:
    return "assistant" if element["role"] == "assistant" else "user"


def _edited(line: Mapping[str, Any]) -> dict[str, Any]:
    """The line of an edited message without the copy of its result that Claude Code keeps beside it."""
    return {key: value for key, value in line.items() if key not in ("toolUseResult", "tool_use_result")}


def _reply_fields(line: Mapping[str, Any], message: Message) -> dict[str, Any]:
    """What a reply says beside its content, for an edited one; its usage is left out."""
    said = line.get("message")
    if message.role != "assistant" or message.wire is None or not isinstance(said, dict):
        return {}
    return {key: value for key, value in said.items() if key not in ("content", "usage")}


def _no_claude_usage(line: dict[str, Any]) -> dict[str, Any]:
    said = line.get("message")
    usage = said.get("usage") if isinstance(said, dict) else None
    if not isinstance(said, dict) or not isinstance(usage, dict):
        return line
    figures = {key: 0 for key, value in usage.items() if isinstance(value, int) and not isinstance(value, bool)}
    return {**line, "message": {**said, "usage": figures}}


def _codex(message: Message, like: Mapping[str, Any], loss: Loss) -> list[dict[str, Any]]:
    """Lines of a Codex rollout, or bare items where the rollout has those; a digest is a compaction."""
    base = {"timestamp": like["timestamp"]} if "timestamp" in like else {}
    bare = bool(like) and "payload" not in like
    if message.kind == "digest" and message.wire is None:
        return [{**base, "type": "compacted", "payload": {"message": message.text}}]
    items = openai_responses.render(message, loss)
    return [{**base, **item} if bare else {**base, "type": "response_item", "payload": item} for item in items]


def _pi(message: Message, like: Mapping[str, Any], loss: Loss) -> list[dict[str, Any]]:
    """Entries of a pi session, or bare messages where the file has those."""
    base = {"timestamp": like["timestamp"]} if "timestamp" in like and "type" in like else {}
    if message.kind == "digest" and message.wire is None and "role" not in like:
        return [{"type": "compaction", **base, "summary": message.text, "tokensBefore": 0}]
    rendered = pi.render(message, loss)
    if message.wire is not None and message.wire.format == "pi":
        return rendered
    return rendered if "role" in like else [{"type": "message", **base, "message": one} for one in rendered]


def _no_pi_usage(line: dict[str, Any]) -> dict[str, Any]:
    said = line.get("message") if line.get("type") == "message" else line
    if not isinstance(said, dict) or not isinstance(said.get("usage"), dict):
        return line
    bare = {**said, "usage": dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 0)}
    return bare if said is line else {**line, "message": bare}


def _same(line: dict[str, Any]) -> dict[str, Any]:
    return line


_LOGS = {
    "claude-code": _Log(make=_claude_code, unmeasured=_no_claude_usage, ids=("uuid", "parentUuid")),
    "stream-json": _Log(make=_stream_json, unmeasured=_no_claude_usage, heads=("system init",)),
    "codex": _Log(make=_codex, unmeasured=_same, heads=("session_meta", "turn_context")),
    "pi": _Log(
        make=_pi,
        unmeasured=_no_pi_usage,
        heads=("session", "model_change", "thinking_level_change"),
        ids=("id", "parentId"),
    ),
}
FORMATS = tuple(_LOGS)
"""The session files that can be written."""
