"""Reads an Anthropic request for the validator, without the parser."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foldline.wire.validate.plain_request import PlainBlock, PlainRequest, PlainTurn, string, text_of

_CALL_KINDS = {"tool_use": "call", "server_tool_use": "server-call", "mcp_tool_use": "server-call"}
_SIGNATURES = {"thinking": "signature", "redacted_thinking": "data"}
_MEDIA_KINDS = ("image", "document", "container_upload")


def read_request(elements: list[Any], body: Mapping[str, Any]) -> PlainRequest:
    """The messages, with the cache breakpoints of the whole request."""
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
        elif isinstance(content, str):
            texts = [PlainBlock("text", index, text=content)] if content else []
            request.turns.append(PlainTurn(index, role, texts))
        elif not isinstance(content, list):
            request.refuse("shape", index, "content is neither text nor a list of blocks")
        elif content or role != "system":
            request.turns.append(PlainTurn(index, role, [_block(block, index, request) for block in content]))
    return request


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
    """A result; an empty text instead of blocks counts as no content, which is accepted."""
    content = block.get("content")
    inner: tuple[PlainBlock, ...] = ()
    if isinstance(content, str):
        inner = (PlainBlock("text", index, text=content),) if content else ()
    elif isinstance(content, list):
        inner = tuple(_block(each, index, request) for each in content)
    elif content is not None:
        request.refuse("shape", index, "the content of a result is neither text nor a list of blocks")
    error = block.get("is_error") is True
    return PlainBlock("result", index, string(block.get("tool_use_id")), error=error, inner=inner)
