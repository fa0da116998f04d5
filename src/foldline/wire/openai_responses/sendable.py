"""Changes Responses items so that the API accepts them: removes fields and item ids that the API refuses.

Fields that OpenAI does not know are removed only from requests to OpenAI's models, because other servers accept such
fields.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from operator import is_not
from typing import Any

from foldline.json_text import dumps
from foldline.wire.object_fields import with_inner, with_inner_list, with_known_fields
from foldline.wire.openai_responses.fields import ACTIONS, ITEMS, PARTS, STATES
from foldline.wire.part_mapping import words_of

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
"""For each type of item, the prefix that its id must have."""
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
"""Default values for required fields that older versions of the API and some logs leave out."""
_LISTED_OUTPUTS = ("function_call_output", "custom_tool_call_output")
"""Types of items whose output must be a string or a list. Codex sometimes logs other outputs, which are converted."""
_EXECUTIONS = ("server", "client")
_PHASES = ("commentary", "final_answer")


def sendable_item(item: Any) -> Any:
    """The item in a form that the API accepts; the same object if nothing changes.

    An illegal id is removed. If an item of this type needs an id, it gets a new id, which is derived from the old id or
    from the item, so that the same item always gets the same id. A null field is removed if the API refuses null in it.
    A missing required field is added.
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
    if kind in _LISTED_OUTPUTS and not isinstance(output, str):
        sent = _sendable_output(output)
        changes |= {"output": sent} if sent is not output else {}
    if kind == "message" and item.get("content") == []:
        refused |= {"id", "status"} & item.keys()
        changes["content"] = ""
    if refused or changes:
        item = {key: value for key, value in item.items() if key not in refused} | changes
    return _with_required_fields(item, kind) if isinstance(kind, str) else item


def _sendable_output(output: Any) -> Any:
    """The output of a function in the form that the API accepts; the same object if nothing changes."""
    if output is None:
        return ""
    if isinstance(output, dict) and "type" not in output and isinstance(output.get("content"), str):
        return output["content"]  # older Codex versions wrote this for a failure
    if isinstance(output, dict) and "type" in output:
        return [_input_part(output)]
    if not isinstance(output, list):
        return words_of(output)
    parts = [_input_part(part) for part in output]
    return parts if any(map(is_not, parts, output)) else output


def _input_part(part: Any) -> Any:
    """An element of a tool's output, with a type that the API accepts there. Text becomes `input_text`."""
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in ("text", "output_text") and isinstance(part.get("text"), str):
        return {"type": "input_text", "text": part["text"]}
    return part if kind is not None else {"type": "input_text", "text": words_of(part)}


def _with_required_fields(item: dict[str, Any], kind: str) -> dict[str, Any]:
    added = {key: value for key, value in _DEFAULTS.get(kind, {}).items() if key not in item}
    if kind == "local_shell_call":
        added |= {"call_id": item["id"]} if item.get("id") and not item.get("call_id") else {}
        added |= {} if item.get("id") else {"id": f"lsh_{_digest(dumps(item))}"}
    elif kind in _NEEDS_ID and not item.get("id"):
        added["id"] = _new_id(kind, dumps(item))
    return {**item, **added} if added else item


def sendable_to_openai(item: Any) -> Any:
    """The item that `sendable_item` returns, without the fields that OpenAI does not know."""
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
    """The item, in which an unknown `status` or `execution` is removed or replaced.

    If the item needs the field `status`, an unknown status becomes "completed"; otherwise it is removed. If the item
    has a call id, an unknown execution becomes "client"; otherwise it becomes "server".
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
    return f"{_PREFIXES[kind]}_{_digest(text)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
