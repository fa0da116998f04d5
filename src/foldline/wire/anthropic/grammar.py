"""What the Anthropic Messages API accepts."""

from __future__ import annotations

from foldline.wire.anthropic.validate import read_request
from foldline.wire.grammar import Grammar, RequestLimits

GRAMMAR = Grammar(
    name="Anthropic",
    read=read_request,
    limits=RequestLimits(
        media=100,
        media_bytes=5_242_880,
        total_bytes=33_554_432,
        breakpoints=4,
        messages=100_000,
        source="2026-11: platform.claude.com, pages vision, errors and prompt caching; Python SDK 2.8 docstring",
    ),
    roles=("user", "assistant", "system"),
    start=("user",),
    end=("user",),
    alternation="merged",
    results_first=True,
    results_are_user=True,
    blank="whitespace",
    signed_thinking=True,
    thinking_last=False,
    server_calls=("server_tool_use", "mcp_tool_use"),
    inline_system="after user",
    error_text_only=True,
    id_form=r"[a-zA-Z0-9_-]+",
    name_form=r"[a-zA-Z0-9_-]{1,200}",
    renders_legal_ids=True,
    has_valid_input=lambda call: isinstance(call.get("input"), dict),
    says={
        "start": "first message must use the user role",
        "end": "This model does not support assistant message prefill. The conversation must end with a user message.",
        "blank": "text content blocks must contain non-whitespace text",
        "empty": "all messages must have non-empty content",
        "call-unanswered": "`tool_use` ids were found without `tool_result` blocks immediately after",
        "result-orphan": "unexpected `tool_use_id` found in `tool_result` blocks",
        "result-late": "`tool_use` ids were found without `tool_result` blocks immediately after",
        "result-order": "`tool_use` ids were found without `tool_result` blocks immediately after",
        "result-duplicate": "each tool_use must have a single result",
        "call-duplicate": "`tool_use` ids must be unique",
        "thinking-unsigned": "thinking.signature: Field required",
        "thinking-last": "The final block in an assistant message cannot be `thinking`.",
        "media-role": "'image' blocks are not permitted within assistant turns",
        "error-result": "tool_result: content cannot be empty if `is_error` is true",
        "id-form": "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
        "input-form": "tool_use.input: Input should be a valid dictionary",
        "breakpoints": "A maximum of 4 blocks with cache_control may be provided.",
        "total-bytes": "request_too_large",
        "system-place": "use the top-level 'system' parameter for the initial system prompt",
    },
)
