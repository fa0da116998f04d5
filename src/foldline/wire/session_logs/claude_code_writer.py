"""Writers of new lines for Claude Code session files and of new stream-json events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foldline.message import Message
from foldline.wire.anthropic.render import render
from foldline.wire.field_access import object_at
from foldline.wire.formats import LogWriter, LossCollector

_SHARED = ("isSidechain", "userType", "cwd", "sessionId", "version", "gitBranch", "timestamp", "slug")
"""Fields that new lines copy from another line of the session."""


def _session_lines(message: Message, like: Mapping[str, Any], loss: LossCollector) -> list[dict[str, Any]]:
    """The session lines for a message. A digest gets two lines: a boundary line like Claude Code's, and the digest."""
    base = {key: like[key] for key in _SHARED if key in like}
    if message.kind == "digest" and message.wire is None:
        boundary = {"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted", **base}
        payload = {"role": "user", "content": message.text}
        summary = {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}
        return [
            {**boundary, "isMeta": False, "compactMetadata": {"trigger": "manual"}},
            {"type": "user", **base, **summary, "message": payload},
        ]
    return _rendered_lines(message, like, base, {"isMeta": True} if message.kind == "note" else {}, loss)


def _events(message: Message, like: Mapping[str, Any], loss: LossCollector) -> list[dict[str, Any]]:
    """The stream-json events for a message. A digest gets two events: a boundary event and a user message."""
    base = {key: like[key] for key in ("session_id", "parent_tool_use_id") if key in like}
    if message.kind == "digest" and message.wire is None:
        boundary = {"type": "system", "subtype": "compact_boundary", **base, "compact_metadata": {"trigger": "manual"}}
        return [boundary, {"type": "user", **base, "message": {"role": "user", "content": message.text}}]
    return _rendered_lines(message, like, base, {}, loss)


def _rendered_lines(
    message: Message, like: Mapping[str, Any], base: dict[str, Any], marks: dict[str, Any], loss: LossCollector
) -> list[dict[str, Any]]:
    """The lines for a message.

    If the message was read from a line (`like`) and then edited, the new line keeps the fields of the old line. Two
    fields are left out, because they describe the old content: the usage, and `toolUseResult`, which is a copy of a
    result.
    """
    reply: dict[str, Any] = {}
    if message.wire is not None:
        base = {key: value for key, value in like.items() if key not in ("toolUseResult", "tool_use_result")}
        if message.role == "assistant":
            payload = object_at(like, "message")
            reply = {key: value for key, value in payload.items() if key not in ("content", "usage")}
    return [
        {
            **base,
            "type": "assistant" if element["role"] == "assistant" else "user",
            **marks,
            "message": {**reply, **element},
        }
        for element in render(message, loss)
    ]


def _without_usage(line: dict[str, Any]) -> dict[str, Any]:
    payload = object_at(line, "message")
    usage = payload.get("usage")
    if not isinstance(usage, dict):
        return line
    figures = {key: 0 for key, value in usage.items() if isinstance(value, int) and not isinstance(value, bool)}
    return {**line, "message": {**payload, "usage": figures}}


SESSION_WRITER = LogWriter(make=_session_lines, without_usage=_without_usage, id_fields=("uuid", "parentUuid"))
STREAM_WRITER = LogWriter(make=_events, without_usage=_without_usage, head_types=("system init",))
