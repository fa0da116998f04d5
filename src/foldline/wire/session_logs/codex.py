"""Codex rollouts: Responses items, one per line, and events about them.

The items are the conversation; other lines hold the model of a turn, token counts, compactions and rollbacks. A reply
is a run of consecutive items of the model. The token count of a reply comes after its items (in older versions, before
them). If a count has the same running total as the count before, it only reports a new rate limit and is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from foldline.errors import WireError
from foldline.message import Message, Meta, Opaque, Part, Text, Usage, Wire
from foldline.wire.field_access import object_at, string_at, time_of
from foldline.wire.formats import BROKEN_LINE, Format, JsonLine, LogWriter, LossCollector, ReadNote, Sign, Transcript
from foldline.wire.openai_responses import parse as openai_items
from foldline.wire.openai_responses.framing import FRAMING
from foldline.wire.openai_responses.render import render
from foldline.wire.session_logs import codex_items as codex_log
from foldline.wire.session_logs.usage import codex_usage

NAME = "codex"
REPLY_ID = "codex-"
"""Prefix of the ids of replies, which the log does not state. The rest of the id is a line number."""

_OWN_RECORDS = ("ghost_snapshot",)
"""Types of items that only Codex itself uses; the model never sees them."""
_COPIES = {"user_message": "user", "agent_message": "assistant"}
"""Types of events that repeat an item, each with the role of the message."""
_NOTED = {
    "turn_aborted": "a turn was aborted",
    "error": "an error was logged",
    "stream_error": "a stream broke off",
    "context_compacted": "the context was compacted",
}


def parse(value: Any, raw: str | None = None) -> Message:
    """The message for one line; raises `WireError` if the line is not part of the conversation."""
    if not isinstance(value, dict):
        raise WireError("a line must be an object", field="line")
    kind, inner, wire = value.get("type"), codex_log.payload(value), Wire(NAME, value, raw)
    if isinstance(inner, dict):
        if kind == "response_item" or inner is value:
            return _item(inner, wire)
        if kind == "compacted":
            return Message(role="user", parts=_digest(value), kind="digest", wire=wire)
        if kind == "session_meta":
            base = inner.get("base_instructions")
            text = base if isinstance(base, str) else _text(base, "text")
            return Message(role="system", parts=(Text(text=text),), wire=wire)
        if kind == "event_msg" and inner.get("type") in _COPIES:
            return Message(role=_COPIES[inner["type"]], parts=(Text(text=_text(inner, "message")),), wire=wire)
    raise WireError("this line is not part of the conversation", field="type")


def _item(payload: dict[str, Any], wire: Wire) -> Message:
    """The message for an item. If the API does not know the item's type, the message's opaque parts are never sent."""
    if codex_log.is_sent(payload):
        return openai_items.item(codex_log.without_log_fields(payload), wire)
    content = payload.get("content")
    if payload.get("type") == "agent_message" and isinstance(content, list):
        message = Message(role="user", parts=tuple([openai_items.content_part(part) for part in content]), kind="note")
    else:
        message = openai_items.item(payload)
    parts = tuple([replace(part, wire=None) if isinstance(part, Opaque) else part for part in message.parts])
    return replace(message, parts=parts, wire=wire)


def _digest(line: dict[str, Any]) -> tuple[Part, ...]:
    """The parts that replace all messages before a compaction.

    The parts come from the replacement items. If the line has no replacement items, the only part is the summary.
    """
    replaced = codex_log.history(line)
    if replaced is None:
        return (Text(text=_text(codex_log.payload(line), "message")),)
    parts: list[Part] = []
    for item in replaced:
        if isinstance(item, dict) and "role" in item:
            try:
                parts.extend(openai_items.item(codex_log.without_log_fields(item)).parts)
                continue
            except WireError:
                pass
        kind = item.get("type") if isinstance(item, dict) else None
        parts.append(Opaque(kind=kind if isinstance(kind, str) else "untyped", value=item))
    return tuple(parts)


def _text(value: Any, key: str) -> str:
    found = value.get(key) if isinstance(value, dict) else None
    if not isinstance(found, str):
        raise WireError(f"{key} must be text", field=key)
    return found


@dataclass(slots=True)
class _ReplyRun:
    """The consecutive items of one model reply."""

    line: int
    usage: Usage | None
    places: list[int] = field(default_factory=list)


class _RolloutReader:
    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.copies: list[Message] = []
        self.notes: list[ReadNote] = []
        self.model = ""
        self.window = 0
        self.session = ""
        self._replies: list[_ReplyRun] = []
        self._open: _ReplyRun | None = None
        self._ahead: Usage | None = None
        self._total: Any = None
        self._turns: list[int] = []
        self._skipped: set[str] = set()

    def take(self, line: JsonLine) -> None:
        value = line.value
        kind = value.get("type") if isinstance(value, dict) else None
        inner = codex_log.payload(value)
        if not isinstance(inner, dict):
            self.notes.append(ReadNote(line.number, f"{BROKEN_LINE}not a line of a rollout"))
        elif kind == "event_msg":
            self._event(inner, line)
        elif kind == "turn_context":
            self.model = inner["model"] if isinstance(inner.get("model"), str) else self.model
        elif kind == "session_meta":
            self.session = self.session or string_at(inner, "id")
            if not self.messages and inner.get("base_instructions"):
                self._message(line)
        elif kind == "compacted":
            self._ahead = None
            self._message(line)
        elif kind == "response_item" or (inner is value and ("role" in value or isinstance(kind, str))):
            if inner.get("type") not in _OWN_RECORDS:
                self._message(line)
        elif isinstance(kind, str) and kind not in self._skipped:
            self._skipped.add(kind)
            self.notes.append(ReadNote(line.number, f"lines of type {kind} are not messages"))

    def _message(self, line: JsonLine) -> None:
        """Add the message of a line.

        For a line that cannot be read, add a message of the kind "note" with an opaque part.
        """
        try:
            message = parse(line.value, line.raw)
        except WireError as error:
            self.notes.append(ReadNote(line.number, f"not read: {error}"))
            unread = Opaque(kind="unread", value=codex_log.payload(line.value))
            message = Message(role="assistant", parts=(unread,), kind="note", wire=Wire(NAME, line.value, line.raw))
        is_reply = message.role == "assistant" and not message.kind
        meta = self._meta(line, self.model if is_reply else "")
        if is_reply:
            if self._open is None:
                self._open = _ReplyRun(line.number, self._ahead)
                self._replies.append(self._open)
                self._ahead = None
            self._open.places.append(len(self.messages))
        elif message.kind != "note":
            self._open = None
        self.messages.append(message.with_meta(meta))

    def _meta(self, line: JsonLine, model: str) -> Meta:
        stamp = line.value.get("timestamp", line.value.get("created_at"))
        return Meta(model=model, at=time_of(stamp) if isinstance(stamp, str) else None, source=str(line.number))

    def _event(self, event: dict[str, Any], line: JsonLine) -> None:
        kind = event.get("type")
        window = event.get("model_context_window") or object_at(event, "info").get("model_context_window")
        self.window = window if type(window) is int and window > 0 else self.window
        if kind == "token_count":
            self._count(event)
        elif kind == "thread_rolled_back":
            self._roll_back(event.get("num_turns"), line)
        elif kind in _NOTED:
            self.notes.append(ReadNote(line.number, _NOTED[kind]))
        elif kind in _COPIES and isinstance(event.get("message"), str):
            if kind == "user_message":
                last = self.messages[-1] if self.messages else None
                is_recorded = last is not None and last.role == "user" and last.text == event["message"]
                self._turns.append(len(self.messages) - is_recorded)
            self.copies.append(parse(line.value, line.raw).with_meta(self._meta(line, "")))

    def _count(self, event: dict[str, Any]) -> None:
        """Assign a token count to the last reply or, if that reply already has one, to the next reply."""
        total, usage = object_at(event, "info").get("total_token_usage"), codex_usage(event)
        if usage is None or (total is not None and total == self._total):
            return
        self._total = total
        if self._open is not None:
            self._open.usage = usage
            self._open = None
        elif self._replies and self._replies[-1].usage is None:
            self._replies[-1].usage = usage
        else:
            self._ahead = usage

    def _roll_back(self, count: Any, line: JsonLine) -> None:
        if not isinstance(count, int) or count < 1 or not self._turns:
            return
        start = self._turns[-count] if count <= len(self._turns) else self._turns[0]
        del self._turns[-count:]
        self.notes.append(ReadNote(line.number, f"{len(self.messages) - start} messages were rolled back"))
        del self.messages[start:]
        self._replies = [reply for reply in self._replies if reply.places[-1] < start]
        self._open = None

    def transcript(self) -> Transcript:
        messages = self.messages
        for reply in self._replies:
            for place in reply.places:
                usage = reply.usage if place == reply.places[-1] else None
                meta = replace(messages[place].meta, reply=f"{REPLY_ID}{reply.line}", usage=usage)
                messages[place] = messages[place].with_meta(meta)
        if self.copies and all(message.role == "system" for message in messages):
            self.notes.append(
                ReadNote(0, "the file has only events and no items: the messages are taken from the events")
            )
            messages = messages + self.copies
        return Transcript(
            format=NAME,
            messages=tuple(messages),
            model=self.model,
            notes=tuple(self.notes),
            window=self.window,
            session=self.session,
        )


def read(lines: Iterable[JsonLine]) -> Transcript:
    """The conversation of a rollout."""
    reading = _RolloutReader()
    for line in lines:
        reading.take(line)
    return reading.transcript()


def _new_lines(message: Message, like: Mapping[str, Any], loss: LossCollector) -> list[dict[str, Any]]:
    """The new lines for a message, or bare items if `like` is a bare item. A digest becomes a compaction line."""
    base = {"timestamp": like["timestamp"]} if "timestamp" in like else {}
    bare = bool(like) and "payload" not in like
    if message.kind == "digest" and message.wire is None:
        return [{**base, "type": "compacted", "payload": {"message": message.text}}]
    items = render(message, loss)
    return [{**base, **item} if bare else {**base, "type": "response_item", "payload": item} for item in items]


_LINE_TYPES = {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}


def _is_line(item: Mapping[str, Any]) -> bool:
    return string_at(item, "type") in _LINE_TYPES and isinstance(item.get("payload"), Mapping)


FORMAT = Format(
    name=NAME,
    element_format=openai_items.NAME,
    parse=parse,
    render=render,
    sign=Sign("lines with a type and a payload", _is_line),
    framing=FRAMING,
    read=read,
    stored_elements=codex_log.sendable,
    writer=LogWriter(make=_new_lines, head_types=("session_meta", "turn_context")),
)
