"""The rules of the OpenAI Responses API, and a function that reads its requests for the validator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foldline.wire.grammar import Grammar
from foldline.wire.openai_chat.grammar import LIMITS, ROLES, media_size
from foldline.wire.validate.plain_request import PlainBlock, PlainRequest, PlainTurn, string, text_of

_NAMED_CALLS = ("function_call", "custom_tool_call")
_CALLS = (*_NAMED_CALLS, "local_shell_call", "shell_call", "apply_patch_call", "computer_call")
_OPEN_CALLS = {"mcp_approval_request": "id", "tool_search_call": "call_id"}
_OPEN_RESULTS = {"mcp_approval_response": "approval_request_id", "tool_search_output": "call_id"}
"""Types of calls that need no result, and of their results, each with the field that holds the call id."""
_RESULTS = tuple(f"{kind}_output" for kind in _CALLS)
_OTHER_ROLES = {"compaction_trigger": "user", "additional_tools": "system", "configuration_update": "system"}


def _read_request(elements: list[Any], _body: Mapping[str, Any]) -> PlainRequest:
    request = PlainRequest()
    seen = set[str]()
    for index, item in enumerate(elements):
        if not isinstance(item, dict):
            request.refuse("shape", index, "not an object")
            continue
        kind = string(item.get("type") or ("message" if "role" in item else ""))
        key = item.get("id")
        if isinstance(key, str) and key and kind not in ("item_reference", "local_shell_call_output"):
            if key in seen:
                request.refuse("item-duplicate", index, f"the item id {key} occurs twice")
            seen.add(key)
        if kind == "compaction_trigger" and index != len(elements) - 1:
            request.refuse("order", index, "a compaction trigger must be the last item")
        if turn := _item(kind, item, index, request):
            request.turns.append(turn)
    return request


def _item(kind: str, item: Mapping[str, Any], index: int, request: PlainRequest) -> PlainTurn | None:
    if kind == "message":
        role = ROLES.get(string(item.get("role")))
        if role in (None, "tool"):
            request.refuse("role", index, f"the role {item.get('role')!r} is unknown")
            return None
        return PlainTurn(index, str(role), _content(item.get("content"), index, request))
    if kind in _CALLS:
        return PlainTurn(index, "assistant", [_call(kind, item, index, request)])
    if kind in _RESULTS:
        key = string(item.get("call_id") or item.get("id"))
        output = item.get("output")
        inner = _content(output, index, request) if isinstance(output, list) else []
        if output is None:
            request.refuse("empty", index, "a result without output")
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


def _call(kind: str, item: Mapping[str, Any], index: int, request: PlainRequest) -> PlainBlock:
    if kind in _NAMED_CALLS and not isinstance(item.get("arguments", item.get("input")), str):
        request.refuse("input-form", index, "the arguments of a call are not text")
    if not string(item.get("call_id")):
        request.refuse("id-form", index, "a call has no call_id")
    return PlainBlock(
        "call", index, string(item.get("call_id")), string(item.get("name")) if kind in _NAMED_CALLS else kind
    )


def _content(content: Any, index: int, request: PlainRequest) -> list[PlainBlock]:
    if isinstance(content, str):
        return [PlainBlock("text", index, text=content)] if content else []
    if not isinstance(content, list):
        request.refuse("shape", index, "content is neither text nor a list of parts")
        return []
    blocks = []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in ("input_text", "output_text", "text"):
            blocks.append(PlainBlock("text", index, text=text_of(part, index, request)))
        elif kind in ("input_image", "input_file", "input_audio"):
            blocks.append(PlainBlock("media", index, size=media_size(part.get("image_url")) + media_size(part)))
        elif isinstance(kind, str):
            blocks.append(PlainBlock("other", index))
        else:
            request.refuse("shape", index, "a content part is not an object with a type")
    return blocks


GRAMMAR = Grammar(
    name="OpenAI Responses",
    read=_read_request,
    limits=LIMITS,
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
