"""Reads a Gemini request for the validator, without the parser."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foldline.wire.validate.plain_request import PlainBlock, PlainRequest, PlainTurn, string, text_of

_ROLES = {"user": "user", "model": "assistant", "function": "user"}


def read_request(elements: list[Any], _body: Mapping[str, Any]) -> PlainRequest:
    """The contents."""
    request = PlainRequest()
    for index, content in enumerate(elements):
        if not isinstance(content, dict):
            request.refuse("shape", index, "not an object")
            continue
        role = _ROLES.get(content.get("role") or "user") if isinstance(content.get("role"), str | None) else None
        parts = content.get("parts")
        if role is None:
            request.refuse("role", index, f"the role {content.get('role')!r} is unknown")
        elif parts is not None and not isinstance(parts, list):
            request.refuse("shape", index, "parts is not a list")
        else:
            request.turns.append(PlainTurn(index, role, [_block(part, index, request) for part in parts or ()]))
    return request


def _block(part: Any, index: int, request: PlainRequest) -> PlainBlock:
    if not isinstance(part, dict) or not part:
        request.refuse("shape", index, "a part without data")
        return PlainBlock("other", index)
    call, result = _field(part, "functionCall", "function_call"), _field(part, "functionResponse", "function_response")
    if isinstance(call, dict):
        if not isinstance(call.get("args", {}), dict | None):
            request.refuse("input-form", index, "the args of a function call are not an object")
        return PlainBlock("call", index, string(call.get("id")), string(call.get("name")))
    if isinstance(result, dict):
        if not isinstance(result.get("response"), dict):
            request.refuse("input-form", index, "the response of a function is not an object")
        inner = result.get("parts")
        blocks = tuple(_block(each, index, request) for each in inner) if isinstance(inner, list) else ()
        return PlainBlock("result", index, string(result.get("id")), string(result.get("name")), inner=blocks)
    inline = _field(part, "inlineData", "inline_data")
    if isinstance(inline, dict):
        return PlainBlock("media", index, size=len(string(inline.get("data"))))
    if _field(part, "fileData", "file_data") is not None:
        return PlainBlock("media", index)
    if "text" not in part or _field(part, "thoughtSignature", "thought_signature"):
        return PlainBlock("other", index)
    text = text_of(part, index, request)
    return PlainBlock("thinking" if part.get("thought") is True else "text", index, text=text)


def _field(part: Mapping[str, Any], camel: str, snake: str) -> Any:
    """A field of Gemini's JSON, which may be spelt either way."""
    return part[camel] if camel in part else part.get(snake)
