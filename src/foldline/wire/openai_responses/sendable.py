"""Removes the fields and item ids that the API refuses from Responses items.

Other servers accept more fields, so only requests to OpenAI's models lose the fields that OpenAI does not know.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from foldline.json_text import dumps
from foldline.wire.object_fields import with_inner, with_inner_list, with_known_fields
from foldline.wire.openai_responses.fields import ACTIONS, ITEMS, PARTS, STATES

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
_NEEDS_ID = frozenset(kind for kind in _PREFIXES if "id" in ITEMS[kind].required)
_DONE = {"status": "completed"}
_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "reasoning": {"summary": []},
    "web_search_call": {"action": {"type": "search"}, **_DONE},
    "file_search_call": {"queries": [], **_DONE},
    "image_generation_call": {"result": None, **_DONE},
    "code_interpreter_call": {"code": None, "container_id": "", "outputs": None, **_DONE},
    "computer_call": {"pending_safety_checks": [], **_DONE},
    "local_shell_call": _DONE,
    "apply_patch_call": _DONE,
    "apply_patch_call_output": _DONE,
}
"""Required fields that older versions of the API and some logs leave out."""
_LISTED_OUTPUTS = ("function_call_output", "custom_tool_call_output")
"""Items whose output is a text or a list. Codex also logged a single part, or an object with a text and a flag."""
_EXECUTIONS = ("server", "client")
_PHASES = ("commentary", "final_answer")


def sendable_item(item: Any) -> Any:
    """The item without null fields that the API refuses and without an illegal id; the same object if nothing changes.

    Required fields that are missing are added. The same item always gets the same id.
    """
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
        if kind in _NEEDS_ID:
            changes["id"] = _new_id(kind, name)
    output = item.get("output")
    if kind in _LISTED_OUTPUTS and isinstance(output, dict):
        changes["output"] = [output] if "type" in output else str(output.get("content") or "")
    if refused or changes:
        item = {key: value for key, value in item.items() if key not in refused} | changes
    return _with_required_fields(item, kind) if isinstance(kind, str) else item


def _with_required_fields(item: dict[str, Any], kind: str) -> dict[str, Any]:
    added = {key: value for key, value in _DEFAULTS.get(kind, {}).items() if key not in item}
    name = item.get("call_id") or item.get("id")
    if kind == "local_shell_call" and name:
        added |= {key: name for key in ("call_id", "id") if not item.get(key)}
    elif kind in _NEEDS_ID and not item.get("id"):
        added["id"] = _new_id(kind, dumps(item))
    return {**item, **added} if added else item


def sendable_to_openai(item: Any) -> Any:
    """The item as `sendable_item` returns it, also without the fields that OpenAI does not know."""
    sent = sendable_item(item)
    kind = sent.get("type", "message") if isinstance(sent, dict) else None
    fields = (ITEMS.get(kind) or PARTS.get(kind)) if isinstance(kind, str) else None
    if fields is None:
        return sent
    sent = _with_known_values(with_known_fields(sent, fields), str(kind))
    if kind == "web_search_call":
        return with_inner(sent, "action", _sendable_action)
    for key in ("content", "output"):
        sent = with_inner_list(sent, key, _sendable_part)
    return sent


def _with_known_values(item: dict[str, Any], kind: str) -> dict[str, Any]:
    """The item without an unknown status or execution.

    An unknown status is left out or, if the field is required, replaced by "completed". An unknown execution becomes
    "client" if the item has a call id, else "server".
    """
    status, execution = item.get("status"), item.get("execution")
    if status is not None and status not in STATES.get(kind, (status,)):
        item = {**item, "status": "completed"}
        if "status" not in ITEMS[kind].required:
            del item["status"]
    if execution is not None and execution not in _EXECUTIONS:
        item = {**item, "execution": "client" if item.get("call_id") else "server"}
    return item


def _sendable_action(action: Any) -> Any:
    fields = ACTIONS.get(str(action.get("type"))) if isinstance(action, dict) else None
    return with_known_fields(action, fields) if fields else action


def _sendable_part(part: Any) -> Any:
    fields = PARTS.get(str(part.get("type"))) if isinstance(part, dict) else None
    return with_known_fields(part, fields) if fields else part


def _is_legal(name: str, kind: str) -> bool:
    return 0 < len(name) <= _LONGEST_ID and name.startswith(_PREFIXES[kind])


def _new_id(kind: str, text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{_PREFIXES[kind]}_{digest}"
