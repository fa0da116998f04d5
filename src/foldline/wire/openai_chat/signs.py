"""Functions that return True only for OpenAI chat messages and request bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foldline.wire.field_access import block_types
from foldline.wire.formats import Sign

_PARTS = {"image_url", "input_audio", "file", "refusal"}
_BODY_FIELDS = {
    *("max_completion_tokens", "response_format", "stream_options", "functions", "reasoning_effort", "stop"),
    *("frequency_penalty", "presence_penalty", "logit_bias", "logprobs", "n", "parallel_tool_calls"),
}


def _is_message(item: Mapping[str, Any]) -> bool:
    if "role" not in item:
        return False
    if "tool_calls" in item or "function_call" in item:
        return True
    return "content" in item and (item["role"] in ("tool", "function") or not block_types(item).isdisjoint(_PARTS))


def _is_body(body: Mapping[str, Any]) -> bool:
    tools = body.get("tools")
    has_function = isinstance(tools, list) and any(isinstance(tool, Mapping) and "function" in tool for tool in tools)
    return has_function or bool(body.keys() & _BODY_FIELDS)


ELEMENT = Sign("tool_calls, function_call or the role tool", _is_message)
BODY = Sign("fields of an OpenAI chat request", _is_body)
