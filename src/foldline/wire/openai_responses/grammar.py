"""What the OpenAI Responses API accepts."""

from __future__ import annotations

from foldline.wire.grammar import Grammar, RequestLimits
from foldline.wire.openai_responses.validate import read_request

GRAMMAR = Grammar(
    name="OpenAI Responses",
    read=read_request,
    limits=RequestLimits(
        media=500, total_bytes=52_428_800, source="2026-11: platform.openai.com, page images and vision"
    ),
    roles=("system", "developer", "user", "assistant"),
    needs_user=False,
    adjacency="after",
    empty=("system", "user", "assistant", "tool"),
    reasoning_followed=True,
    open_calls=("mcp_approval_request", "tool_search"),
    kinds_are_user=True,
    media_roles=("user", "system"),
    item_ids=True,
    has_valid_input=lambda call: call.get("type") != "function_call" or isinstance(call.get("arguments"), str),
    says={
        "call-unanswered": "No tool output found for function call",
        "result-orphan": "No tool call found for function call output with call_id",
        "result-duplicate": "Duplicate function_call_output for call_id",
        "item-duplicate": "Duplicate item found with id. Remove duplicate items from your input and try again.",
        "reasoning-alone": "Item of type 'reasoning' was provided without its required following item.",
        "id-form": "string too long. Expected a string with maximum length 64",
    },
)
