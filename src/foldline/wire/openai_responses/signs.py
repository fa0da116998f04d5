"""Functions that return True only for items of OpenAI's Responses API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foldline.wire.field_access import block_types, string_at
from foldline.wire.formats import Sign

_PARTS = {"input_text", "output_text", "input_image", "input_file", "summary_text", "reasoning_text"}
_CALLS = ("_call", "_call_output")
_ITEMS = {
    *("item_reference", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "tool_search_output"),
    *("compaction_trigger", "additional_tools", "configuration_update"),
}


def _is_item(item: Mapping[str, Any]) -> bool:
    kind = string_at(item, "type")
    if kind.endswith(_CALLS) and kind != "tool_call":
        return "call_id" in item or "id" in item
    if kind in ("reasoning", "compaction"):
        return "encrypted_content" in item or isinstance(item.get("summary"), list)
    if kind == "message":
        return "role" in item and "content" in item and "stop_reason" not in item
    return kind in _ITEMS or bool(block_types(item) & _PARTS)


ELEMENT = Sign("items like function_call and reasoning", _is_item)
