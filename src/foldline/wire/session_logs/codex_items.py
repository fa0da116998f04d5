"""What of a Codex line may be sent again: a log says more about an item than the API takes back.

Codex sends its requests without storage, so an item's `id` names nothing that a server holds, and it keeps items that
only Codex understands (`ghost_snapshot`) beside those of the API. An item that the API knows is sent verbatim, less the
fields that only logs have; a reasoning item whose encrypted body is not in the log cannot be sent at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foldline.errors import WireError
from foldline.wire.formats import StoredElements
from foldline.wire.openai_responses.parse import KNOWN, item

_LOG_ONLY = frozenset(
    (
        *("id", "metadata", "internal_chat_message_metadata_passthrough", "encrypted_content_len"),
        *("timestamp", "created_at", "ordinal", "record_type"),
    )
)
"""Fields of an item in a log that are not the API's, or name what a server would have to hold."""


def payload(line: Any) -> Any:
    """The item inside a line; in the oldest rollouts a line is the item."""
    return line["payload"] if isinstance(line, Mapping) and "payload" in line else line


def history(line: Any) -> list[Any] | None:
    """The items that stand for everything before a compaction, where the line has them."""
    inner = payload(line)
    if not isinstance(line, Mapping) or line.get("type") != "compacted" or not isinstance(inner, Mapping):
        return None
    found = inner.get("replacement_history")
    return found if isinstance(found, list) else None


def is_sent(entry: Any) -> bool:
    """True if the Responses API knows this type of item."""
    return _kind(entry) in KNOWN


def sendable(line: Any) -> StoredElements:
    """What of a line may be sent to the Responses API as it stands."""
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
        elif not _is_sound(entry):
            lost.append(f"opaque {kind}")
        else:
            kept.append(without_log_fields(entry))
    return StoredElements(kept, lost=tuple(lost))


def without_log_fields(entry: dict[str, Any]) -> dict[str, Any]:
    """An item without what only logs have; its id stays where a result answers to that."""
    kind = entry.get("type")
    answered = kind == "mcp_approval_request" or (kind == "local_shell_call" and not entry.get("call_id"))
    drop = _LOG_ONLY - {"id"} if answered else _LOG_ONLY
    return entry if drop.isdisjoint(entry) else {key: value for key, value in entry.items() if key not in drop}


def _is_sound(entry: dict[str, Any]) -> bool:
    """False for an item that lacks what its type demands: the API would refuse the whole request."""
    try:
        item(entry)
    except WireError:
        return False
    return True


def _kind(entry: Any) -> str:
    """The type of an item, "" for what is none."""
    if not isinstance(entry, dict):
        return ""
    kind = entry.get("type", "message" if "role" in entry else "")
    return kind if isinstance(kind, str) else ""
