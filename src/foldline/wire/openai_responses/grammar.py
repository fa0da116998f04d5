"""The rules of the OpenAI Responses API, and a function that reads its requests for the validator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from foldline.models.table import Model
from foldline.wire.grammar import Grammar
from foldline.wire.json_values import is_json_object
from foldline.wire.openai_chat.grammar import IMAGE_TYPES, LIMITS, ROLES, media_size
from foldline.wire.openai_responses.fields import ACTIONS, ITEMS, PARTS, REQUEST, STATES
from foldline.wire.openai_responses.parse import OUTPUTS
from foldline.wire.openai_responses.sendable import sendable_item, sendable_to_openai
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

_NAMED_CALLS = ("function_call", "custom_tool_call")
_CALLS = (*_NAMED_CALLS, "local_shell_call", "shell_call", "apply_patch_call", "computer_call")
_OPEN_CALLS = {"mcp_approval_request": "id", "tool_search_call": "call_id"}
_OPEN_RESULTS = {"mcp_approval_response": "approval_request_id", "tool_search_output": "call_id"}
"""`_OPEN_CALLS`: the types of calls that need no result. `_OPEN_RESULTS`: the types of the results of these calls.

Each of these tables maps a type to the name of the field that holds the call id.
"""
_RESULTS = tuple(f"{kind}_output" for kind in _CALLS)
_OTHER_ROLES = {"compaction_trigger": "user", "additional_tools": "system", "configuration_update": "system"}

_INPUT = ("input_text", "input_image", "input_file")
_PARTS: Mapping[str, tuple[str, ...]] = {
    "user": _INPUT,
    "system": _INPUT,
    "assistant": ("output_text", "refusal"),
    "tool": _INPUT,
}
"""The types of content parts that each role may have; the key "tool" is for the output of a call."""


def _read_request(elements: list[Any], _body: Mapping[str, Any]) -> PlainRequest:
    request = PlainRequest()
    seen = set[str]()
    made = dict[str, str]()
    """Maps each call id to the type of its call."""
    for index, item in enumerate(elements):
        if not isinstance(item, dict):
            request.refuse("shape", index, "not an object")
            continue
        kind = _kind(item)
        key = item.get("id")
        if isinstance(key, str) and key and kind not in ("item_reference", "local_shell_call_output"):
            if key in seen:
                request.refuse("item-duplicate", index, f"the item id {key} occurs twice")
            seen.add(key)
        if kind:
            check_block({**item, "type": kind}, ITEMS, index, request, strict=False)
        if kind == "compaction_trigger" and index != len(elements) - 1:
            request.refuse("order", index, "a compaction trigger must be the last item")
        key = string(item.get("call_id") or item.get("id"))
        if kind in _CALLS:
            made[key] = kind
        elif kind in _RESULTS and made.get(key, kind.removesuffix("_output")) != kind.removesuffix("_output"):
            request.refuse("result-orphan", index, f"an item of type {kind} cannot answer the {made[key]} {key}")
        if turn := _item(kind, item, index, request):
            request.turns.append(turn)
    return request


def _kind(item: Mapping[str, Any]) -> str:
    """The type of an item. A message or a reference need not have the field `type`."""
    if item.get("type") is not None:
        return string(item["type"])
    return "message" if "role" in item else "item_reference" if "id" in item else ""


def _item(kind: str, item: Mapping[str, Any], index: int, request: PlainRequest) -> PlainTurn | None:
    if kind == "message":
        role = ROLES.get(string(item.get("role")))
        if role in (None, "tool"):
            request.refuse("role", index, f"the role {item.get('role')!r} is unknown")
            return None
        return PlainTurn(index, str(role), _content(item.get("content"), str(role), index, request))
    if kind in _CALLS:
        return PlainTurn(index, "assistant", [_call(kind, item, index, request)])
    if kind in _RESULTS:
        key = string(item.get("call_id") or item.get("id"))
        inner = _output(kind, item.get("output"), index, request)
        return PlainTurn(index, "tool", [PlainBlock("result", index, key, inner=tuple(inner))])
    if kind in _OPEN_CALLS and string(item.get(_OPEN_CALLS[kind])):
        return PlainTurn(index, "assistant", [PlainBlock("server-call", index, string(item[_OPEN_CALLS[kind]]))])
    if kind in _OPEN_RESULTS and string(item.get(_OPEN_RESULTS[kind])):
        return PlainTurn(index, "tool", [PlainBlock("server-result", index, string(item[_OPEN_RESULTS[kind]]))])
    if kind == "reasoning":
        return PlainTurn(index, "assistant", [PlainBlock("thinking", index)])
    if kind in _OTHER_ROLES:
        return PlainTurn(index, _OTHER_ROLES[kind], [PlainBlock("other", index)])
    if not kind:
        request.refuse("shape", index, "an item with neither type nor role")
        return None
    output = kind.endswith("_output") and kind != "program_output"
    return PlainTurn(index, "tool" if output else "assistant", [PlainBlock("other", index)])


def _output(kind: str, output: Any, index: int, request: PlainRequest) -> list[PlainBlock]:
    """The blocks of a result.

    The result of a shell call is a list of outputs. The result of a computer call is a screenshot.
    """
    if output is None:
        if kind != "apply_patch_call_output":
            request.refuse("empty", index, "a result without output")
    elif kind == "shell_call_output":
        if not isinstance(output, list) or not all(map(_is_shell_output, output)):
            request.refuse(
                "shape", index, "the output of a shell call is not a list of outputs with stdout and outcome"
            )
    elif kind == "computer_call_output":
        if not isinstance(output, dict) or output.get("type") != "computer_screenshot":
            request.refuse("shape", index, "the output of a computer call is not a screenshot")
        else:
            return [PlainBlock("media", index, size=media_size(output.get("image_url")))]
    elif kind in ("function_call_output", "custom_tool_call_output") and isinstance(output, list):
        return _content(output, "tool", index, request)
    elif not isinstance(output, str):
        request.refuse("shape", index, "the output of a call is not text")
    return []


def _is_shell_output(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("stdout"), str)
        and isinstance(value.get("stderr"), str)
        and isinstance(value.get("outcome"), dict)
        and value["outcome"].get("type") in ("exit", "timeout")
    )


def _call(kind: str, item: Mapping[str, Any], index: int, request: PlainRequest) -> PlainBlock:
    if kind == "function_call" and not is_json_object(item.get("arguments")):
        request.refuse("input-form", index, "the arguments of a call are not the text of a JSON object")
    elif kind == "custom_tool_call" and not isinstance(item.get("input"), str):
        request.refuse("input-form", index, "the input of a call is not text")
    if not string(item.get("call_id")):
        request.refuse("id-form", index, "a call has no call_id")
    return PlainBlock(
        "call", index, string(item.get("call_id")), string(item.get("name")) if kind in _NAMED_CALLS else kind
    )


def _content(content: Any, role: str, index: int, request: PlainRequest) -> list[PlainBlock]:
    if isinstance(content, str):
        return [PlainBlock("text", index, text=content)] if content else []
    if not isinstance(content, list):
        request.refuse("shape", index, "content is neither text nor a list of parts")
        return []
    blocks = []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(kind, str):
            check_block(part, {name: PARTS[name] for name in _PARTS[role]}, index, request, strict=False)
        if kind in ("input_text", "output_text"):
            blocks.append(PlainBlock("text", index, text=text_of(part, index, request)))
        elif kind in ("input_image", "input_file"):
            url = part.get("image_url")
            blocks.append(image_block(index, string(url), media_size(url) + media_size(part)))
        elif isinstance(kind, str):
            blocks.append(PlainBlock("other", index))
        else:
            request.refuse("shape", index, "a content part is not an object with a type")
    return blocks


def _read_strictly(elements: list[Any], body: Mapping[str, Any]) -> PlainRequest:
    """The request, with a violation for each field that OpenAI does not know. Other servers accept such fields."""
    request = _read_request(elements, body)
    for index, item in enumerate(elements):
        kind = _kind(item) if isinstance(item, dict) else ""
        if kind not in ITEMS:
            continue
        check_fields(item, ITEMS[kind], f"an item of type {kind}", index, request)
        status = item.get("status")
        if status is not None and status not in STATES[kind] and kind != "custom_tool_call":
            request.refuse("field", index, f"an item of type {kind} has the unknown status {str(status)[:80]!r}")
        inside = [part for key in ("content", "output") for part in _dicts(item.get(key))]
        for part, known in (*((part, PARTS) for part in inside), (item.get("action"), ACTIONS)):
            name = string(part.get("type")) if isinstance(part, dict) else ""
            if name in known and (known is PARTS or kind == "web_search_call"):
                check_fields(part, known[name], f"an object of type {name}", index, request)
    return request


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _is_malformed(item: Mapping[str, Any]) -> bool:
    """True for a message with a call among its parts, or with parts that only another role may have."""
    content = item.get("content")
    if item.get("type", "message") != "message" or not isinstance(content, list):
        return False
    role = ROLES.get(string(item.get("role")), "user")
    moved = {*_CALLS, "text", *_PARTS["user"], *_PARTS["assistant"]} - {*_PARTS[role]}
    return any(isinstance(part, dict) and part.get("type") in moved for part in content)


GRAMMAR = Grammar(
    name="OpenAI Responses",
    read=_read_request,
    request_fields=REQUEST,
    other_fields=True,
    limits=LIMITS,
    roles=("system", "developer", "user", "assistant"),
    needs_user=False,
    adjacency="after",
    result_types=OUTPUTS,
    empty=("system", "user", "assistant", "tool"),
    reasoning_followed=True,
    open_calls=("mcp_approval_request", "tool_search"),
    kinds_are_user=True,
    media_roles=("user", "system"),
    item_ids=True,
    conversation_fields=("previous_response_id", "conversation", "prompt"),
    sendable_element=sendable_item,
    sendable_block=sendable_item,
    is_malformed=_is_malformed,
    has_valid_input=lambda call: call.get("type") != "function_call" or is_json_object(call.get("arguments")),
    says={
        "empty-request": "Missing required parameter: 'input'.",
        "block-type": "Invalid value. Supported values are listed in the error",
        "field": "Unknown parameter, or: Invalid type, expected a value but got null instead",
        "request-field": "Unknown parameter, or: Missing required parameter",
        "unicode": "We could not parse the JSON body of your request.",
        "number": "We could not parse the JSON body of your request.",
        "call-unanswered": "No tool output found for function call",
        "result-orphan": "No tool call found for function call output with call_id",
        "result-duplicate": "Duplicate function_call_output for call_id",
        "item-duplicate": "Duplicate item found with id. Remove duplicate items from your input and try again.",
        "reasoning-alone": "Item of type 'reasoning' was provided without its required following item.",
        "id-form": "string too long. Expected a string with maximum length 64",
    },
)
_FOR_OPENAI = replace(
    GRAMMAR,
    read=_read_strictly,
    other_fields=False,
    image_types=IMAGE_TYPES,
    image_addresses=("http://", "https://"),
    sendable_element=sendable_to_openai,
    sendable_block=sendable_to_openai,
)
_FOR_OTHER_VENDORS = replace(GRAMMAR, image_types=IMAGE_TYPES)


def model_grammar(model: Model) -> Grammar:
    """The rules for a model, which depend on the vendor of the model.

    OpenAI refuses fields that other servers accept. A request in this format for a model of Anthropic or Google is sent
    to a gateway, which translates the request. OpenAI and such gateways refuse images whose type is not in
    `IMAGE_TYPES`.
    """
    if model.vendor == "openai":
        return _FOR_OPENAI
    return _FOR_OTHER_VENDORS if model.vendor in ("anthropic", "google") else GRAMMAR
