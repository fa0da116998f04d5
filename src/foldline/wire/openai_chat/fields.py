"""The fields of Chat Completions requests, messages, parts and calls (openai-python 3.49, read in November 2026)."""

from __future__ import annotations

from collections.abc import Mapping

from foldline.wire.object_fields import ObjectFields, object_fields

_CACHED = "prompt_cache_breakpoint"
MESSAGES: Mapping[str, ObjectFields] = {
    "developer": object_fields("role content", "name"),
    "system": object_fields("role content", "name"),
    "user": object_fields("role content", "name"),
    "assistant": object_fields("role", "name tool_calls", "annotations audio content function_call refusal"),
    "tool": object_fields("role content tool_call_id", "name"),
    "function": object_fields("role content name", nullable="content"),
}
"""The fields of a message, by role."""
PARTS: Mapping[str, ObjectFields] = {
    "text": object_fields("type text", _CACHED),
    "image_url": object_fields("type image_url", _CACHED),
    "input_audio": object_fields("type input_audio", _CACHED),
    "file": object_fields("type file", _CACHED),
    "refusal": object_fields("type refusal"),
}
"""The fields of each type of content part."""
INNER: Mapping[str, ObjectFields] = {
    "image_url": object_fields("url", "detail"),
    "input_audio": object_fields("data format"),
    "file": object_fields(optional="file_data file_id filename"),
    "audio": object_fields("id"),
    "function": object_fields("name arguments"),
    "function_call": object_fields("name arguments"),
    "custom": object_fields("name input"),
}
"""The fields of the objects inside messages, parts and calls, by the field that holds the object."""
CALLS: Mapping[str, ObjectFields] = {
    "function": object_fields("id type function"),
    "custom": object_fields("id type custom"),
}
REQUEST = object_fields(
    "model messages",
    "function_call functions parallel_tool_calls prompt_cache_options response_format tool_choice tools user "
    "web_search_options",
    "audio frequency_penalty logit_bias logprobs max_completion_tokens max_tokens metadata modalities moderation n "
    "prediction presence_penalty prompt_cache_key prompt_cache_retention reasoning_effort safety_identifier seed "
    "service_tier stop store stream stream_options temperature top_logprobs top_p verbosity",
)
