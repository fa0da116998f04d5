"""The items of a Codex line that may be sent to the Responses API.

Codex asks the API not to store its requests, so the API does not know the `id` of a logged item. Codex also logs items
of types that the API does not know (`ghost_snapshot`). An item that the API knows is sent verbatim, except for fields
that only logs have. A reasoning item that has neither encrypted nor plain content cannot be sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foldline.errors import WireError
from foldline.wire.field_access import string_at
from foldline.wire.formats import StoredElements
from foldline.wire.openai_responses.parse import KNOWN, item

_LOG_ONLY = frozenset(
    (
        *("id", "metadata", "internal_chat_message_metadata_passthrough", "encrypted_content_len"),
        *("timestamp", "created_at", "ordinal", "record_type"),
    )
)
"""Fields of a logged item that the API does not know, or that refer to stored items."""
_TOOLS = frozenset(
    (
        *("apply_patch", "code_interpreter", "computer", "computer_use_preview", "custom", "file_search", "function"),
        *("image_generation", "local_shell", "mcp", "namespace", "programmatic_tool_calling", "shell", "tool_search"),
        *("web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11"),
    )
)
"""The types of tools that a tool search may find (openai-python 3.49, read in November 2026)."""


def payload(line: Any) -> Any:
    """The item inside a line; in the oldest rollouts, the line itself is the item."""
    return line["payload"] if isinstance(line, Mapping) and "payload" in line else line


def history(line: Any) -> list[Any] | None:
    """The items of a compaction line that replace everything before it; None if the line has no such items."""
    inner = payload(line) if string_at(line, "type") == "compacted" else None
    found = inner.get("replacement_history") if isinstance(inner, Mapping) else None
    return found if isinstance(found, list) else None


def is_sent(entry: Any) -> bool:
    """True if the Responses API knows this type of item."""
    return _kind(entry) in KNOWN


def sendable(line: Any) -> StoredElements:
    """The sendable items of a line, without log fields. `lost` lists the kinds of the items that are left out."""
    replaced = history(line)
    entries = [payload(line)] if replaced is None else replaced
    kept: list[Any] = []
    lost: list[str] = []
    for entry in entries:
        kind = _kind(entry)
        if kind not in KNOWN:
            if replaced is None:
                return StoredElements([], complete=False)
            lost.append(f"opaque {kind}")
        elif kind == "reasoning" and not (entry.get("encrypted_content") or entry.get("content")):
            lost.append("thinking")
        else:
            try:
                item(entry)
                kept.append(without_log_fields(entry))
            except WireError:  # a required field is missing: the API would refuse the request
                lost.append(f"opaque {kind}")
    return StoredElements(kept, lost=tuple(lost))


def without_log_fields(entry: dict[str, Any]) -> dict[str, Any]:
    """The item without the fields that only logs have, and without tools whose type the API does not know.

    The item keeps its id if results refer to this id.
    """
    kind = entry.get("type")
    answered = kind == "mcp_approval_request" or (kind == "local_shell_call" and not entry.get("call_id"))
    drop = _LOG_ONLY - {"id"} if answered else _LOG_ONLY
    if not drop.isdisjoint(entry):
        entry = {key: value for key, value in entry.items() if key not in drop}
    tools = entry.get("tools")
    if isinstance(tools, list) and any(string_at(tool, "type") not in _TOOLS for tool in tools):
        return {**entry, "tools": [tool for tool in tools if string_at(tool, "type") in _TOOLS]}
    return entry


def _kind(entry: Any) -> str:
    return (
        "message" if isinstance(entry, dict) and "role" in entry and "type" not in entry else string_at(entry, "type")
    )
