"""The rules of the OpenAI Chat Completions API, and a function that reads its requests for the validator."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from foldline.models.table import Model
from foldline.wire.grammar import Grammar, RequestLimits
from foldline.wire.json_values import is_json_object
from foldline.wire.object_fields import ObjectFields
from foldline.wire.openai_chat.fields import CALLS, INNER, MESSAGES, PARTS, REQUEST
from foldline.wire.openai_chat.sendable import sendable_call, sendable_element, sendable_part, sendable_to_openai
from foldline.wire.validate.plain_request import (
    PlainBlock,
    PlainRequest,
    PlainTurn,
    check_block,
    check_fields,
    image_block,
    string,
    text_of,
)

LIMITS = RequestLimits(media=500, total_bytes=52_428_800, source="2026-11: platform.openai.com, page images and vision")
ROLES = {role: role for role in ("system", "user", "assistant", "tool")} | {"developer": "system", "function": "tool"}

IMAGE_TYPES = frozenset(("image/jpeg", "image/jpg", "image/png", "image/gif", "image/webp"))
_PARTICIPANT = re.compile(r"[^\s<|\\/>]+").fullmatch
_MEDIA = ("image_url", "input_audio", "file")
_PARTS: Mapping[str, tuple[str, ...]] = {
    "user": ("text", *_MEDIA),
    "assistant": ("text", "refusal"),
    "system": ("text",),
    "tool": ("text",),
}
"""The types of content parts that each role may have."""


def _read_request(elements: list[Any], _body: Mapping[str, Any]) -> PlainRequest:
    request = PlainRequest()
    for index, message in enumerate(elements):
        role = ROLES.get(string(message.get("role"))) if isinstance(message, dict) else None
        if role is None:
            request.refuse("role", index, "not an object with a known role")
            continue
        blocks = _content(message.get("content"), role, index, request)
        if role == "tool":
            key, name = string(message.get("tool_call_id")), ""
            if message["role"] == "function":
                key, name = "", string(message.get("name"))
            elif message.get("content") is None:
                request.refuse("empty", index, "a result without content")
            blocks = [PlainBlock("result", index, key, name, inner=tuple(blocks))]
        elif role == "assistant":
            blocks += _calls(message, index, request)
            if not blocks and message.get("content") != "" and not (message.get("refusal") or message.get("audio")):
                request.refuse("empty", index, "an assistant message with neither content nor calls")
        elif message.get("tool_calls") or message.get("function_call"):
            request.refuse("call-role", index, f"a call in a message of the {role}")
        elif message.get("content") is None:
            request.refuse("empty", index, "a message without content")
        request.turns.append(PlainTurn(index, role, blocks))
    return request


def _content(content: Any, role: str, index: int, request: PlainRequest) -> list[PlainBlock]:
    if isinstance(content, str):
        return [PlainBlock("text", index, text=content)] if content else []
    if content is None:
        return []
    if not isinstance(content, list) or not content:
        request.refuse("empty", index, "content is neither text nor a list with at least one part")
        return []
    blocks = []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(kind, str):  # the validator checks which roles may send media
            known = {name: PARTS[name] for name in (*_PARTS[role], *_MEDIA)}
            check_block(part, known, index, request, strict=False)
        if kind == "text":
            blocks.append(PlainBlock("text", index, text=text_of(part, index, request)))
        elif kind in ("image_url", "input_audio", "file"):
            inner = part.get(kind)
            url = string(inner.get("url")) if kind == "image_url" and isinstance(inner, dict) else ""
            blocks.append(image_block(index, url, media_size(inner)))
        elif isinstance(kind, str):
            blocks.append(PlainBlock("other", index))
        else:
            request.refuse("shape", index, "a content part is not an object with a type")
    return blocks


def _read_strictly(elements: list[Any], body: Mapping[str, Any]) -> PlainRequest:
    """The request, with a violation for each field that OpenAI does not know. Other servers accept such fields."""
    request = _read_request(elements, body)
    for index, message in enumerate(elements):
        if not isinstance(message, dict) or message.get("role") not in MESSAGES:
            continue
        check_fields(message, MESSAGES[message["role"]], "a message", index, request)
        name = message.get("name")
        if isinstance(name, str) and message["role"] != "function" and not _PARTICIPANT(name):
            request.refuse("name-form", index, f"the name {name[:80]!r} has a space or one of < | \\ / >")
        content, calls = message.get("content"), message.get("tool_calls")
        for part in content if isinstance(content, list) else ():
            _check_part(part, PARTS, index, request)
        for call in calls if isinstance(calls, list) else ():
            _check_part(call, CALLS, index, request)
        _check_inner(message, "function_call", index, request)
        _check_inner(message, "audio", index, request)
    return request


def _check_part(part: Any, known: Mapping[str, ObjectFields], index: int, request: PlainRequest) -> None:
    """Add violations for the fields of a content part or call, and for the fields of the object inside it."""
    kind = part.get("type") if isinstance(part, dict) else None
    if isinstance(kind, str) and kind in known:
        check_fields(part, known[kind], f"an object of type {kind}", index, request)
        _check_inner(part, kind, index, request)
    elif known is CALLS:
        request.refuse("shape", index, "a tool call has no type")


def _check_inner(value: Mapping[str, Any], key: str, index: int, request: PlainRequest) -> None:
    inner = value.get(key)
    if key in INNER and isinstance(inner, dict):
        check_fields(inner, INNER[key], f"the object {key}", index, request)


def media_size(value: Any) -> int:
    """The number of characters of base64 data in an OpenAI media part."""
    fields = value if isinstance(value, dict) else {"url": value}
    url = string(fields.get("url"))
    return (len(url) if url.startswith("data:") else 0) + len(string(fields.get("data") or fields.get("file_data")))


def _calls(message: Mapping[str, Any], index: int, request: PlainRequest) -> list[PlainBlock]:
    blocks = []
    calls = message.get("tool_calls")
    if calls is not None and (not isinstance(calls, list) or not calls):
        request.refuse("empty", index, "tool_calls is not a list with at least one call")
        calls = None
    for call in calls or ():
        kind = call.get("type", "function") if isinstance(call, dict) else None
        if kind not in ("function", "custom") and isinstance(kind, str):
            request.refuse("block-type", index, f"a tool call of the unknown type {kind[:80]!r}")
            blocks.append(PlainBlock("call", index, string(call.get("id")), kind or "unknown"))
            continue
        inside = call.get(kind) if isinstance(kind, str) else None
        if not isinstance(inside, dict):
            request.refuse("shape", index, "a tool call is not an object with its function")
            continue
        _check_input(inside.get("arguments" if kind == "function" else "input"), str(kind), index, request)
        blocks.append(PlainBlock("call", index, string(call.get("id")), string(inside.get("name"))))
        if not blocks[-1].id:
            request.refuse("id-form", index, "a tool call has no id")
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        blocks.append(PlainBlock("call", index, "", string(legacy.get("name"))))
        _check_input(legacy.get("arguments"), "function", index, request)
    return blocks


def _check_input(arguments: Any, kind: str, index: int, request: PlainRequest) -> None:
    if not isinstance(arguments, str):
        request.refuse("input-form", index, "the arguments of a call are not text")
    elif kind == "function" and not is_json_object(arguments):
        request.refuse("input-form", index, "the arguments of a call are not a JSON object")


def _is_malformed(element: Mapping[str, Any]) -> bool:
    """True for a malformed message.

    A message is malformed if its list of calls or of parts is empty, or if a call is among its parts. A result is also
    malformed if it has no content or no call id.
    """
    content = element.get("content")
    no_result = content is None or not isinstance(element.get("tool_call_id"), str)
    if [] in (element.get("tool_calls"), content) or (element.get("role") == "tool" and no_result):
        return True
    return isinstance(content, list) and any(
        isinstance(part, dict) and part.get("type") == "function_call" for part in content
    )


def _has_valid_input(call: Mapping[str, Any]) -> bool:
    inner = call.get("function", call.get("function_call"))
    return not (isinstance(inner, dict) and "arguments" in inner) or is_json_object(inner["arguments"])


_UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
)
GRAMMAR = Grammar(
    name="OpenAI",
    read=_read_request,
    request_fields=REQUEST,
    other_fields=True,
    limits=LIMITS,
    roles=("system", "developer", "user", "assistant", "tool", "function"),
    adjacency="message",
    unique="reply",
    empty=("system", "user", "assistant", "tool"),
    empty_must_be_text=True,
    kinds_are_user=True,
    media_in_results=False,
    id_form=r".{1,40}",
    sendable_element=sendable_element,
    sendable_block=sendable_call,
    is_malformed=_is_malformed,
    has_valid_input=_has_valid_input,
    says={
        "empty-request": "Invalid 'messages': empty array. Expected an array with minimum length 1.",
        "block-type": "Invalid value. Supported values are: 'text', 'image_url', 'input_audio', 'refusal' and 'file'.",
        "field": "Unknown parameter, or: Invalid type, expected a value but got null instead",
        "request-field": "Unknown parameter, or: Missing required parameter",
        "unicode": "We could not parse the JSON body of your request.",
        "number": "We could not parse the JSON body of your request.",
        "no-user": "No user query found in messages.",
        "empty": "Invalid value for 'content': expected a string, got null.",
        "call-unanswered": _UNANSWERED,
        "result-late": _UNANSWERED,
        "result-orphan": "messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
        "media-role": "Image URLs are only allowed for messages with role 'user'",
        "media-result": "Image URLs are only allowed for messages with role 'user'",
        "id-form": "string too long. Expected a string with maximum length 40",
    },
)
_FOR_OPENAI = replace(
    GRAMMAR,
    read=_read_strictly,
    other_fields=False,
    limits=replace(LIMITS, messages=2_048),
    image_types=IMAGE_TYPES,
    image_addresses=("http://", "https://"),
    sendable_element=sendable_to_openai,
    sendable_block=sendable_part,
)
_FOR_OTHER_VENDORS = replace(GRAMMAR, image_types=IMAGE_TYPES)


def model_grammar(model: Model) -> Grammar:
    """The rules for a model, which depend on the vendor of the model.

    OpenAI refuses fields that other servers accept. For a model of Anthropic or Google, the request is taken to go to a
    gateway that translates this format. OpenAI and such gateways refuse images whose type is not in `IMAGE_TYPES`.
    """
    if model.vendor == "openai":
        return _FOR_OPENAI
    return _FOR_OTHER_VENDORS if model.vendor in ("anthropic", "google") else GRAMMAR
