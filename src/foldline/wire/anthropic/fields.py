"""The fields of Anthropic requests, messages and blocks (Python SDK 2.8, read in November 2026)."""

from __future__ import annotations

from collections.abc import Mapping

from foldline.wire.object_fields import ObjectFields, object_fields

_CACHED = "cache_control"


def _block(required: str = "", optional: str = "", nullable: str = "") -> ObjectFields:
    """The fields of a block type whose blocks may have a cache breakpoint."""
    return object_fields(f"type {required}", optional, f"{_CACHED} {nullable}")


_SERVER_RESULTS = ("advisor", "code_execution", "bash_code_execution", "text_editor_code_execution", "tool_search")
RESULT_BLOCKS: Mapping[str, ObjectFields] = {
    "text": _block("text", nullable="citations"),
    "image": _block("source", nullable="transformations"),
    "document": _block("source", nullable="citations context title"),
    "search_result": _block("content source title", "citations"),
    "tool_reference": _block("tool_name"),
    "browser_state": _block("tabs", nullable="state_changes"),
}
"""The fields of each type of block that may be in a result."""
BLOCKS: Mapping[str, ObjectFields] = {
    **{kind: RESULT_BLOCKS[kind] for kind in ("text", "image", "document", "search_result")},
    **{f"{tool}_tool_result": _block("tool_use_id content") for tool in _SERVER_RESULTS},
    **{f"{tool}_tool_result": _block("tool_use_id content", "caller") for tool in ("web_search", "web_fetch")},
    "thinking": object_fields("type thinking signature"),
    "redacted_thinking": object_fields("type data"),
    "tool_use": _block("id name input", "caller", "toolset_name"),
    "tool_result": _block("tool_use_id", "content is_error", "toolset_name"),
    "server_tool_use": _block("id name input", "caller"),
    "mcp_tool_use": _block("id name input server_name"),
    "mcp_tool_result": _block("tool_use_id", "content is_error"),
    "container_upload": _block("file_id"),
    "compaction": _block(nullable="content encrypted_content signature tool_changes"),
    "tool_addition": _block("tool"),
    "tool_removal": _block("tool"),
    "mcp_tool_listing": object_fields("type mcp_server_name tools"),
    "fallback": object_fields("type from to", nullable="trigger"),
}
"""The fields of each type of block in a message."""
SOURCES: Mapping[str, ObjectFields] = {
    "base64": object_fields("type media_type data"),
    "url": object_fields("type url"),
    "file": object_fields("type file_id"),
    "text": object_fields("type media_type data"),
    "content": object_fields("type content"),
}
"""The fields of each type of media source."""
_CITED = "type cited_text document_index"
CITATIONS: Mapping[str, ObjectFields] = {
    "char_location": object_fields(
        f"{_CITED} end_char_index start_char_index document_title", nullable="document_title"
    ),
    "page_location": object_fields(f"{_CITED} end_page_number start_page_number document_title", "", "document_title"),
    "content_block_location": object_fields(
        f"{_CITED} end_block_index start_block_index document_title", nullable="document_title"
    ),
    "web_search_result_location": object_fields("type cited_text encrypted_index url title", nullable="title"),
    "search_result_location": object_fields(
        "type cited_text end_block_index search_result_index source start_block_index title", nullable="title"
    ),
}
"""The fields of each type of citation in a request. Citations in replies may also have a `file_id`."""
MESSAGE = object_fields("role content", "output_config clear_at")
REQUEST = object_fields(
    "model max_tokens messages",
    "mcp_servers metadata output_config service_tier stop_sequences stream system temperature thinking tool_choice "
    "tools top_k top_p user_profile_id workspace_id",
    "cache_control compaction container context_management diagnostics fallback_credit_token fallbacks inference_geo "
    "speed thread",
)
