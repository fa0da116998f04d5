"""What the OpenAI Chat Completions API accepts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foldline.wire.grammar import Grammar, RequestLimits
from foldline.wire.openai_chat.validate import read_request


def _is_malformed(element: Mapping[str, Any]) -> bool:
    """True for an empty list, and for a result without content or id."""
    no_result = element.get("content") is None or not isinstance(element.get("tool_call_id"), str)
    return [] in (element.get("tool_calls"), element.get("content")) or (element.get("role") == "tool" and no_result)


def _has_valid_input(call: Mapping[str, Any]) -> bool:
    """True for a call whose arguments are text."""
    inner = call.get("function", call.get("function_call"))
    return not (isinstance(inner, dict) and "arguments" in inner) or isinstance(inner["arguments"], str)


GRAMMAR = Grammar(
    name="OpenAI",
    read=read_request,
    limits=RequestLimits(
        media=500, total_bytes=52_428_800, source="2026-11: platform.openai.com, page images and vision"
    ),
    roles=("system", "developer", "user", "assistant", "tool", "function"),
    adjacency="message",
    unique="reply",
    empty=("system", "user", "assistant", "tool"),
    empty_must_be_text=True,
    kinds_are_user=True,
    media_in_results=False,
    is_malformed=_is_malformed,
    has_valid_input=_has_valid_input,
    says={
        "no-user": "No user query found in messages.",
        "empty": "Invalid value for 'content': expected a string, got null.",
        "call-unanswered": "An assistant message with 'tool_calls' must be followed by tool messages "
        "responding to each 'tool_call_id'.",
        "result-late": "An assistant message with 'tool_calls' must be followed by tool messages "
        "responding to each 'tool_call_id'.",
        "result-orphan": "messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
        "media-role": "Image URLs are only allowed for messages with role 'user'",
        "media-result": "Image URLs are only allowed for messages with role 'user'",
        "id-form": "string too long. Expected a string with maximum length 64",
    },
)
