"""New lines of Claude Code session files and stream-json events, for messages that have none of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foldline.message import Message
from foldline.wire.anthropic.render import render
from foldline.wire.formats import LogWriter, LossCollector

_SHARED = ("isSidechain", "userType", "cwd", "sessionId", "version", "gitBranch", "timestamp", "slug")
"""What the lines of one Claude Code session have in common."""


def _session_lines(message: Message, like: Mapping[str, Any], loss: LossCollector) -> list[dict[str, Any]]:
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
            **(_without_result_copy(like) if message.wire is not None else base),
            "type": _claude_type(element),
            **({"isMeta": True} if message.kind == "note" else {}),
            "message": {**_reply_fields(like, message), **element},
        }
        for element in render(message, loss)
    ]


def _events(message: Message, like: Mapping[str, Any], loss: LossCollector) -> list[dict[str, Any]]:
    """Events of stream-json; what stands in the user's role right behind a boundary is the digest."""
    base = {key: like[key] for key in ("session_id", "parent_tool_use_id") if key in like}
    if message.kind == "digest" and message.wire is None:
        boundary = {"type": "system", "subtype": "compact_boundary", **base, "compact_metadata": {"trigger": "manual"}}
        return [boundary, {"type": "user", **base, "message": {"role": "user", "content": message.text}}]
    return [
        {
            **(_without_result_copy(like) if message.wire is not None else base),
            "type": _claude_type(element),
            "message": {**_reply_fields(like, message), **element},
        }
        for element in render(message, loss)
    ]


def _claude_type(element: Mapping[str, Any]) -> str:
    return "assistant" if element["role"] == "assistant" else "user"


def _without_result_copy(line: Mapping[str, Any]) -> dict[str, Any]:
    """The line of an edited message without the copy of its result that Claude Code keeps beside it."""
    return {key: value for key, value in line.items() if key not in ("toolUseResult", "tool_use_result")}


def _reply_fields(line: Mapping[str, Any], message: Message) -> dict[str, Any]:
    """What a reply says beside its content, for an edited one; its usage is left out."""
    said = line.get("message")
    if message.role != "assistant" or message.wire is None or not isinstance(said, dict):
        return {}
    return {key: value for key, value in said.items() if key not in ("content", "usage")}


def _without_usage(line: dict[str, Any]) -> dict[str, Any]:
    said = line.get("message")
    usage = said.get("usage") if isinstance(said, dict) else None
    if not isinstance(said, dict) or not isinstance(usage, dict):
        return line
    figures = {key: 0 for key, value in usage.items() if isinstance(value, int) and not isinstance(value, bool)}
    return {**line, "message": {**said, "usage": figures}}


SESSION_WRITER = LogWriter(make=_session_lines, without_usage=_without_usage, id_fields=("uuid", "parentUuid"))
STREAM_WRITER = LogWriter(make=_events, without_usage=_without_usage, head_types=("system init",))
