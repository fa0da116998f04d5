"""Removes from Chat Completions elements the fields that a provider refuses.

Other servers accept fields that OpenAI does not know (their own reasoning, cache marks). So such fields are removed
only from requests to OpenAI's models. The field `index` of a call is removed from all requests, because it is only the
position of the call in a streamed reply.
"""

from __future__ import annotations

import re
from typing import Any

from foldline.wire.object_fields import with_inner_list, with_known_fields
from foldline.wire.openai_chat.fields import CALLS, INNER, MESSAGES, PARTS

_NOT_NULL = ("tool_calls", "name")
"""Optional fields that may be missing but not null."""
_FIELDS = {**PARTS, **CALLS}
_ILLEGAL = re.compile(r"[\s<|\\/>]")
"""Characters that the name of a participant may not have."""


def sendable_element(element: dict[str, Any]) -> dict[str, Any]:
    """The message without optional fields that are null. The field `index` is removed from its calls.

    A bare string in the list of content parts becomes a text part. If nothing changes, the same object is returned.
    """
    element = with_inner_list(with_inner_list(element, "content", _as_part), "tool_calls", sendable_call)
    if not any(name in element and element[name] is None for name in _NOT_NULL):
        return element
    return {key: value for key, value in element.items() if key not in _NOT_NULL or value is not None}


def sendable_call(part: Any) -> Any:
    """A call without `index`, its position in a streamed reply. A part that is not a call is returned unchanged."""
    if not isinstance(part, dict) or "index" not in part or CALLS.keys().isdisjoint(part):
        return part
    return {key: value for key, value in part.items() if key != "index"}


def _as_part(value: Any) -> Any:
    return {"type": "text", "text": value} if isinstance(value, str) else value


def sendable_to_openai(element: dict[str, Any]) -> dict[str, Any]:
    """The message without null fields and without fields that OpenAI does not know."""
    element = with_inner_list(element, "content", _as_part)
    fields = MESSAGES.get(str(element.get("role")))
    if fields is None:
        return sendable_element(element)
    sent = _with_legal_name(with_known_fields(element, fields))
    if sent is not element and element.get("role") == "assistant":
        sent = {"content": None, **sent}
    for key in ("content", "tool_calls"):
        sent = with_inner_list(sent, key, sendable_part)
    for key in ("function_call", "audio"):
        sent = _with_known_inner(sent, key)
    return sent


def _with_legal_name(message: dict[str, Any]) -> dict[str, Any]:
    """The message with a legal participant name in the field `name`.

    Each illegal character becomes "_", and every "_" at the start and the end is removed. If nothing remains, the field
    `name` is left out.
    """
    name = message.get("name")
    if not isinstance(name, str) or message.get("role") == "function" or (name and not _ILLEGAL.search(name)):
        return message
    legal = _ILLEGAL.sub("_", name).strip("_")
    rest = {key: value for key, value in message.items() if key != "name"}
    return {**rest, "name": legal} if legal else rest


def sendable_part(part: Any) -> Any:
    """The content part or call without fields that OpenAI does not know.

    A function call without a type gets the type "function". Text parts of the Responses API become chat text parts.
    """
    if not isinstance(part, dict):
        return part
    if part.get("type") is None and isinstance(part.get("function"), dict):
        part = {**part, "type": "function"}
    kind = part.get("type")
    if kind in ("input_text", "output_text") and isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    if kind == "image_url" and isinstance(part.get("image_url"), str):
        part = {**part, "image_url": {"url": part["image_url"]}}
    fields = _FIELDS.get(kind) if isinstance(kind, str) else None
    return _with_known_inner(with_known_fields(part, fields), str(kind)) if fields else part


def _with_known_inner(value: dict[str, Any], key: str) -> dict[str, Any]:
    fields, inner = INNER.get(key), value.get(key)
    if fields is None or not isinstance(inner, dict):
        return value
    known = with_known_fields(inner, fields)
    return value if known is inner else {**value, key: known}
