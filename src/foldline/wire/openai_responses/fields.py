"""The fields of Responses requests, items and content parts (openai-python 3.49, read in November 2026)."""

from __future__ import annotations

from collections.abc import Mapping

from foldline.wire.object_fields import ObjectFields, object_fields

_CACHED = "prompt_cache_breakpoint"
ITEMS: Mapping[str, ObjectFields] = {
    "message": object_fields("role content", "type id status", "phase"),
    "reasoning": object_fields("type id summary", "status", "content encrypted_content"),
    "function_call": object_fields("type call_id name arguments", "async id namespace status", "caller"),
    "function_call_output": object_fields("type call_id output", nullable="id caller name namespace status"),
    "custom_tool_call": object_fields("type call_id name input", "async id namespace status", "caller"),
    "custom_tool_call_output": object_fields("type call_id output", "id", "caller"),
    "local_shell_call": object_fields("type id call_id action status"),
    "local_shell_call_output": object_fields("type id output", nullable="status"),
    "shell_call": object_fields("type call_id action", nullable="id caller environment status"),
    "shell_call_output": object_fields("type call_id output", nullable="id caller max_output_length status"),
    "apply_patch_call": object_fields("type call_id operation status", nullable="id caller"),
    "apply_patch_call_output": object_fields("type call_id status", nullable="id caller output"),
    "computer_call": object_fields("type id call_id pending_safety_checks status", "action actions"),
    "computer_call_output": object_fields("type call_id output", nullable="id acknowledged_safety_checks status"),
    "tool_search_call": object_fields("type arguments", "execution", "arguments id call_id status"),
    "tool_search_output": object_fields("type tools", "execution", "id call_id status"),
    "mcp_approval_request": object_fields("type id arguments name server_label"),
    "mcp_approval_response": object_fields("type approval_request_id approve", nullable="id reason"),
    "mcp_list_tools": object_fields("type id server_label tools", nullable="error"),
    "mcp_call": object_fields("type id arguments name server_label", "status", "approval_request_id error output"),
    "file_search_call": object_fields("type id queries status", nullable="results"),
    "web_search_call": object_fields("type id action status"),
    "image_generation_call": object_fields(
        "type id result status",
        "error svg_usage",
        "result action background output_format quality revised_prompt size",
    ),
    "code_interpreter_call": object_fields("type id code container_id outputs status", nullable="code outputs"),
    "compaction": object_fields("type encrypted_content", nullable="id"),
    "compaction_trigger": object_fields("type", nullable="id"),
    "item_reference": object_fields("id", nullable="type"),
    "additional_tools": object_fields("type role tools", nullable="id"),
    "configuration_update": object_fields("type", "reasoning text", "id"),
    "program": object_fields("type id call_id code fingerprint"),
    "program_output": object_fields("type id call_id result status"),
}
"""The fields of each type of item in a request."""
_STATES = frozenset(("in_progress", "completed", "incomplete"))
STATES: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(ITEMS, _STATES),
    "file_search_call": _STATES | {"searching", "failed"},
    "web_search_call": _STATES | {"searching", "failed"},
    "image_generation_call": _STATES - {"incomplete"} | {"generating", "failed"},
    "code_interpreter_call": _STATES | {"interpreting", "failed"},
    "mcp_call": _STATES | {"calling", "failed"},
    "apply_patch_call": _STATES - {"incomplete"},
    "apply_patch_call_output": frozenset(("completed", "failed")),
}
"""The values that the field `status` may have in each type of item."""
PARTS: Mapping[str, ObjectFields] = {
    "input_text": object_fields("type text", nullable=_CACHED),
    "input_image": object_fields("type", _CACHED, "detail file_id image_url"),
    "input_file": object_fields("type", f"detail {_CACHED}", "file_data file_id file_url filename"),
    "output_text": object_fields("type text", "annotations logprobs"),
    "refusal": object_fields("type refusal"),
}
"""The fields of each type of part in a message's content or in a call's output."""
ACTIONS: Mapping[str, ObjectFields] = {
    "search": object_fields("type", "queries query sources"),
    "open_page": object_fields("type", nullable="url"),
    "find_in_page": object_fields("type pattern url"),
    "find": object_fields("type pattern url"),
}
"""The fields of each type of web search action."""
REQUEST = object_fields(
    "model",
    "access_programs image input prompt_cache_options text tool_choice tools user",
    "background context_management conversation include instructions max_output_tokens max_tool_calls metadata "
    "moderation parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_retention reasoning "
    "safety_identifier service_tier store stream stream_options temperature top_logprobs top_p truncation",
)
