"""The rules of the Anthropic Messages API, and a function that reads its requests for the validator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foldline.wire.grammar import Grammar, RequestLimits
from foldline.wire.validate.plain_request import PlainBlock, PlainRequest, PlainTurn, string, text_of

_CALL_KINDS = {"tool_use": "call", "server_tool_use": "server-call", "mcp_tool_use": "server-call"}
_SIGNATURES = {"thinking": "signature", "redacted_thinking": "data"}
_MEDIA_KINDS = ("image", "document", "container_upload")


def _read_request(elements: list[Any], body: Mapping[str, Any]) -> PlainRequest:
    request = PlainRequest()
    for key in ("system", "tools"):
        blocks = body.get(key)
        for block in blocks if isinstance(blocks, list) else ():
            if isinstance(block, dict) and block.get("cache_control"):
                request.breakpoints.append(-1)
            if key == "system" and isinstance(block, dict) and not string(block.get("text")).strip():
                request.refuse("blank", -1, "a block of the system prompt has no visible text")
    if body.get("cache_control"):
        request.breakpoints.append(-1)
    for index, message in enumerate(elements):
        if not isinstance(message, dict):
            request.refuse("shape", index, "not an object")
            continue
        role, content = message.get("role"), message.get("content")
        if role not in ("user", "assistant", "system"):
            request.refuse("role", index, f"the role {role!r} is unknown")
        elif (found := _blocks(content, index, request)) is None:
            request.refuse("shape", index, "content is neither text nor a list of blocks")
        elif content != [] or role != "system":
            request.turns.append(PlainTurn(index, role, found))
    return request


def _blocks(content: Any, index: int, request: PlainRequest) -> list[PlainBlock] | None:
    """The blocks of content that is a text or a list (an empty list for an empty text); None for other values."""
    if isinstance(content, str):
        return [PlainBlock("text", index, text=content)] if content else []
    return [_block(each, index, request) for each in content] if isinstance(content, list) else None


def _block(block: Any, index: int, request: PlainRequest) -> PlainBlock:
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        request.refuse("shape", index, "a content block is not an object with a type")
        return PlainBlock("other", index)
    if block.get("cache_control"):
        request.breakpoints.append(index)
    kind = block["type"]
    if kind == "text":
        return PlainBlock("text", index, text=text_of(block, index, request))
    if kind in _SIGNATURES:
        return PlainBlock("thinking", index, signed=bool(string(block.get(_SIGNATURES[kind]))))
    if kind in _CALL_KINDS:
        return _call(block, index, request)
    if kind == "tool_result":
        return _result(block, index, request)
    if kind.endswith("_tool_result"):
        return PlainBlock("server-result", index, string(block.get("tool_use_id")))
    if kind in _MEDIA_KINDS:
        source = block.get("source")
        return PlainBlock("media", index, size=len(string(source.get("data"))) if isinstance(source, dict) else 0)
    return PlainBlock("other", index)


def _call(block: Mapping[str, Any], index: int, request: PlainRequest) -> PlainBlock:
    if not isinstance(block.get("input"), dict):
        request.refuse("input-form", index, "the input of a call is not an object")
    if not string(block.get("id")):
        request.refuse("id-form", index, "a call has no id")
    return PlainBlock(_CALL_KINDS[block["type"]], index, string(block.get("id")), string(block.get("name")))


def _result(block: Mapping[str, Any], index: int, request: PlainRequest) -> PlainBlock:
    inner = _blocks(block.get("content"), index, request)
    if inner is None and block.get("content") is not None:
        request.refuse("shape", index, "the content of a result is neither text nor a list of blocks")
    error = block.get("is_error") is True
    return PlainBlock("result", index, string(block.get("tool_use_id")), error=error, inner=tuple(inner or ()))


GRAMMAR = Grammar(
    name="Anthropic",
    read=_read_request,
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
