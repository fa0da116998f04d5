"""Responses items without the fields and item ids that the API refuses."""

from __future__ import annotations

import hashlib
from typing import Any

_NOT_NULL = ("id", "status", "async", "namespace", "execution", "action", "actions", "phase")
"""Optional fields that may be missing but not null."""
_LONGEST_ID = 64
_PREFIXES = {
    "message": "msg",
    "function_call": "fc",
    "reasoning": "rs",
    "custom_tool_call": "ctc",
    "web_search_call": "ws",
    "file_search_call": "fs",
    "computer_call": "cu",
    "code_interpreter_call": "ci",
    "image_generation_call": "ig",
    "mcp_list_tools": "mcpl",
    "mcp_call": "mcp",
    "compaction": "cmp",
}
"""The first letters of the item ids of each type."""
_OPTIONAL_IDS = ("message", "function_call", "custom_tool_call", "compaction")
_PHASES = ("commentary", "final_answer")


def sendable_item(item: Any) -> Any:
    """The item without refused fields; the same object if it has none."""
    if not isinstance(item, dict):
        return item
    kind = item.get("type", "message")
    refused = {name for name in _NOT_NULL if name in item and item[name] is None}
    if kind == "message" and "phase" in item and item["phase"] not in _PHASES:
        refused.add("phase")
    changes: dict[str, Any] = {}
    name = item.get("id")
    if isinstance(name, str) and kind in _PREFIXES and not _is_legal(name, kind):
        refused.add("id")
        if kind not in _OPTIONAL_IDS:
            digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
            changes["id"] = f"{_PREFIXES[kind]}_{digest}"
    if not refused:
        return item
    return {key: value for key, value in item.items() if key not in refused} | changes


def _is_legal(name: str, kind: str) -> bool:
    return 0 < len(name) <= _LONGEST_ID and name.startswith(_PREFIXES[kind])
