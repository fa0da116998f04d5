"""Functions that return True only for Anthropic messages and request bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foldline.wire.field_access import block_types, string_at
from foldline.wire.formats import Sign

_BLOCKS = {
    *("tool_use", "tool_result", "redacted_thinking", "server_tool_use", "mcp_tool_use", "mcp_tool_result"),
    *("document", "search_result", "container_upload", "compaction", "mcp_tool_listing", "tool_reference"),
}
_SERVER_RESULT = "_tool_result"
"""The types of all blocks that hold a result of a server-side tool end with this text."""
_BODY_FIELDS = {"system", "anthropic_version", "stop_sequences", "thinking", "top_k", "mcp_servers"}


def _is_message(item: Mapping[str, Any]) -> bool:
    if string_at(item, "type") == "message":
        return "stop_reason" in item
    if "role" not in item:
        return False
    kinds = block_types(item)
    if any(kind.endswith(_SERVER_RESULT) for kind in kinds):
        return True
    if kinds.isdisjoint(_BLOCKS | {"image", "thinking"}):
        return False
    return any(_is_block(block) for block in item["content"] if isinstance(block, Mapping))


def _is_block(block: Mapping[str, Any]) -> bool:
    kind = string_at(block, "type")
    return (
        kind in _BLOCKS
        or (kind == "image" and "source" in block)
        or (kind == "thinking" and "thinkingSignature" not in block)
    )


def _is_body(body: Mapping[str, Any]) -> bool:
    tools = body.get("tools")
    has_schema = isinstance(tools, list) and any(isinstance(tool, Mapping) and "input_schema" in tool for tool in tools)
    return has_schema or bool(body.keys() & _BODY_FIELDS)


ELEMENT = Sign("blocks like tool_use and tool_result", _is_message)
BODY = Sign("fields of an Anthropic request", _is_body)
