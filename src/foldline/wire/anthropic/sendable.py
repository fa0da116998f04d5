"""Anthropic elements and blocks without the fields that the API refuses.

Such fields come from an SDK's dump (optional fields that are null) or from the agent that keeps the history (its own
fields). The API answers "Extra inputs are not permitted", to this request and to every later one.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import is_not
from typing import Any

from foldline.wire.anthropic.parse import is_reply

_NOT_NULL = ("caller", "is_error", "citations", "content")
"""Optional fields of blocks that may be missing but not null. A text may have null citations, and a compaction that
failed has null content.
"""
_CALLERS = ("direct", "code_execution_20250825", "code_execution_20260120")
_MESSAGE_FIELDS = frozenset({"role", "content", "output_config", "clear_at"})
_SOURCES: Mapping[str, frozenset[str]] = {
    "base64": frozenset({"type", "media_type", "data"}),
    "url": frozenset({"type", "url"}),
    "file": frozenset({"type", "file_id"}),
    "text": frozenset({"type", "media_type", "data"}),
    "content": frozenset({"type", "content"}),
}


def sendable_element(element: dict[str, Any]) -> dict[str, Any]:
    """The message without refused fields; the same object if it has none."""
    content = element.get("content")
    blocks, is_changed = content, False
    if isinstance(content, list):
        blocks = [sendable_block(block) for block in content]
        is_changed = any(map(is_not, blocks, content))
    if not is_reply(element) and not element.keys() <= _MESSAGE_FIELDS:
        return {key: value for key, value in element.items() if key in _MESSAGE_FIELDS} | {"content": blocks}
    return {**element, "content": blocks} if is_changed else element


def sendable_block(block: Any) -> Any:
    """The block without refused fields; the same object if it has none."""
    if not isinstance(block, dict):
        return block
    kind = block.get("type")
    refused = {name for name in _NOT_NULL if name in block and block[name] is None}
    refused -= {"citations"} if kind == "text" else {"content"} if kind == "compaction" else set()
    caller = block.get("caller")
    if isinstance(caller, dict) and caller.get("type") not in _CALLERS:
        refused.add("caller")
    changes: dict[str, Any] = {}
    source, content = block.get("source"), block.get("content")
    known = _SOURCES.get(str(source.get("type"))) if isinstance(source, dict) else None
    if isinstance(source, dict) and known is not None and not source.keys() <= known:
        changes["source"] = {key: value for key, value in source.items() if key in known}
    if kind == "tool_result" and isinstance(content, list):
        inner = [sendable_block(each) for each in content]
        if any(map(is_not, inner, content)):
            changes["content"] = inner
    if not refused and not changes:
        return block
    return {key: value for key, value in block.items() if key not in refused} | changes
