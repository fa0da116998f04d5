"""The rules of the Anthropic Messages API, and a function that reads its requests for the validator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from foldline.models.table import Model
from foldline.wire.anthropic.fields import BLOCKS, MESSAGE, REQUEST, RESULT_BLOCKS, SOURCES
from foldline.wire.anthropic.sendable import sendable_block, sendable_element
from foldline.wire.grammar import Grammar, RequestLimits
from foldline.wire.object_fields import ObjectFields
from foldline.wire.validate.plain_request import (
    PlainBlock,
    PlainRequest,
    PlainTurn,
    check_block,
    check_fields,
    string,
    text_of,
)

_CALL_KINDS = {"tool_use": "call", "server_tool_use": "server-call", "mcp_tool_use": "server-call"}
_SIGNATURES = {"thinking": "signature", "redacted_thinking": "data"}
_MEDIA_KINDS = ("image", "document", "container_upload")


def _read_request(elements: list[Any], body: Mapping[str, Any]) -> PlainRequest:
    request = PlainRequest()
    for key in ("tools", "system"):
        blocks = body.get(key)
        for block in blocks if isinstance(blocks, list) else ():
            if isinstance(block, dict):
                _note_breakpoint(block, -1, request)
            if key == "system" and isinstance(block, dict) and not string(block.get("text")).strip():
                request.refuse("blank", -1, "a block of the system prompt has no visible text")
    for index, message in enumerate(elements):
        if not isinstance(message, dict):
            request.refuse("shape", index, "not an object")
            continue
        role, content = message.get("role"), message.get("content")
        check_fields(message, MESSAGE, "a message", index, request)
        if role not in ("user", "assistant", "system"):
            request.refuse("role", index, f"the role {role!r} is unknown")
        elif (found := _blocks(content, index, request, BLOCKS)) is None:
            request.refuse("shape", index, "content is neither text nor a list of blocks")
        elif content != [] or role != "system":
            request.turns.append(PlainTurn(index, role, found))
    _note_breakpoint(body, -1, request)
    _check_compaction(elements, request)
    return request


def _note_breakpoint(block: Mapping[str, Any], index: int, request: PlainRequest) -> None:
    mark = block.get("cache_control")
    if mark:
        ttl = mark.get("ttl") if isinstance(mark, dict) else None
        request.breakpoints.append((index, string(ttl) or "5m"))


def _check_compaction(elements: list[Any], request: PlainRequest) -> None:
    """Refuse a signed compaction block that is not the first block of the request."""
    for index, message in enumerate(elements):
        content = message.get("content") if isinstance(message, dict) else None
        for place, block in enumerate(content if isinstance(content, list) else ()):
            native = isinstance(block, dict) and block.get("type") == "compaction" and block.get("signature")
            if native and (index, place) != (0, 0):
                request.refuse("compaction-place", index, "a signed compaction block that is not the first block")


def _blocks(
    content: Any, index: int, request: PlainRequest, known: Mapping[str, ObjectFields]
) -> list[PlainBlock] | None:
    """The blocks of a message's content; None if the content is neither a text nor a list.

    An empty text has no blocks.
    """
    if isinstance(content, str):
        return [PlainBlock("text", index, text=content)] if content else []
    return [_block(each, index, request, known) for each in content] if isinstance(content, list) else None


def _block(block: Any, index: int, request: PlainRequest, known: Mapping[str, ObjectFields]) -> PlainBlock:
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        request.refuse("shape", index, "a content block is not an object with a type")
        return PlainBlock("other", index)
    _note_breakpoint(block, index, request)
    kind = block["type"]
    check_block(block, known, index, request)
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
        return _media(block, index, request)
    return PlainBlock("compaction" if kind == "compaction" else "other", index)


def _media(block: Mapping[str, Any], index: int, request: PlainRequest) -> PlainBlock:
    source = block.get("source")
    if not isinstance(source, dict):
        return PlainBlock("media", index)
    check_block(source, SOURCES, index, request)
    data = string(source.get("data"))
    if block["type"] != "image":
        return PlainBlock("media", index, size=len(data))
    mime, url = string(source.get("media_type")), string(source.get("url"))
    return PlainBlock("media", index, size=len(data), data=data, mime=mime, url=url)


def _call(block: Mapping[str, Any], index: int, request: PlainRequest) -> PlainBlock:
    if not isinstance(block.get("input"), dict):
        request.refuse("input-form", index, "the input of a call is not an object")
    if not string(block.get("id")):
        request.refuse("id-form", index, "a call has no id")
    caller = block.get("caller")
    made_by = string(caller.get("tool_id")) if isinstance(caller, dict) else ""
    return PlainBlock(
        _CALL_KINDS[block["type"]], index, string(block.get("id")), string(block.get("name")), caller=made_by
    )


def _result(block: Mapping[str, Any], index: int, request: PlainRequest) -> PlainBlock:
    inner = _blocks(block.get("content"), index, request, RESULT_BLOCKS)
    if inner is None and block.get("content") is not None:
        request.refuse("shape", index, "the content of a result is neither text nor a list of blocks")
    error = block.get("is_error") is True
    return PlainBlock("result", index, string(block.get("tool_use_id")), error=error, inner=tuple(inner or ()))


_NOT_JSON = "The request body is not valid JSON"
GRAMMAR = Grammar(
    name="Anthropic",
    read=_read_request,
    limits=RequestLimits(
        media=100,
        media_bytes=5_242_880,
        total_bytes=33_554_432,
        breakpoints=4,
        messages=100_000,
        pixels=8_000,
        many_images=20,
        pixels_of_many=2_000,
        source="2026-11: platform.claude.com, pages vision, errors and prompt caching; Python SDK 2.8 docstring",
    ),
    roles=("user", "assistant", "system"),
    request_fields=REQUEST,
    image_types=frozenset(("image/jpeg", "image/png", "image/gif", "image/webp")),
    image_type_matches=True,
    image_addresses=("http://", "https://"),
    start=("user",),
    end=("user",),
    alternation="merged",
    results_first=True,
    results_together=True,
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
    sendable_element=sendable_element,
    sendable_block=sendable_block,
    says={
        "empty-request": "messages: at least one message is required",
        "start": "first message must use the user role",
        "end": "This model does not support assistant message prefill. The conversation must end with a user message.",
        "blank": "text content blocks must contain non-whitespace text",
        "empty": "all messages must have non-empty content",
        "field": "Extra inputs are not permitted",
        "request-field": "Extra inputs are not permitted, or: Field required",
        "block-type": "Input tag found using 'type' does not match any of the expected tags",
        "unicode": f"{_NOT_JSON}: no low surrogate in string",
        "number": _NOT_JSON,
        "call-unanswered": "`tool_use` ids were found without `tool_result` blocks immediately after",
        "result-orphan": "unexpected `tool_use_id` found in `tool_result` blocks",
        "result-late": "`tool_use` ids were found without `tool_result` blocks immediately after",
        "result-split": "`tool_use` ids were found without `tool_result` blocks immediately after",
        "result-order": "`tool_use` ids were found without `tool_result` blocks immediately after",
        "result-duplicate": "each tool_use must have a single result",
        "call-duplicate": "`tool_use` ids must be unique",
        "thinking-unsigned": "thinking.signature: Field required",
        "thinking-last": "The final block in an assistant message cannot be `thinking`.",
        "media-role": "'image' blocks are not permitted within assistant turns",
        "media-form": "Could not process image, or: the image appears to be of another media type",
        "media-address": "Only HTTPS URLs are supported.",
        "media-pixels": "At least one of the image dimensions exceed max allowed size",
        "error-result": "tool_result: content cannot be empty if `is_error` is true",
        "id-form": "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
        "input-form": "tool_use.input: Input should be a valid dictionary",
        "breakpoints": "A maximum of 4 blocks with cache_control may be provided.",
        "breakpoint-order": "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block",
        "compaction-place": "compaction_block_misplaced",
        "total-bytes": "request_too_large",
        "system-place": "use the top-level 'system' parameter for the initial system prompt",
    },
)
_WITHOUT_SYSTEM_MESSAGES = replace(GRAMMAR, roles=("user", "assistant"), inline_system="refused")


def model_grammar(model: Model) -> Grammar:
    """The rules for a model. Most models refuse system messages in the list of messages."""
    return GRAMMAR if model.system_messages else _WITHOUT_SYSTEM_MESSAGES
