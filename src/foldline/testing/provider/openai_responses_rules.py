"""Judges a request to OpenAI's Responses: calls and outputs, reasoning items, ids, content of each role."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from foldline.testing.provider import openai_fields
from foldline.testing.provider.json_rules import check_json, is_json_object
from foldline.testing.provider.openai_fields import check_array, check_image_url, check_length, check_name
from foldline.testing.provider.openai_parameters import check_responses_parameters

FORMAT = "openai_responses"
MAX_ID = 64
MAX_TOOLS = 128
OUTPUTS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "local_shell_call": "local_shell_call_output",
    "program": "program_output",
}
"""The type of the output item that answers each call item."""
CALLS = {output: call for call, output in OUTPUTS.items()}
PREFIXES = {
    "message": "msg",
    "function_call": "fc",
    "reasoning": "rs",
    "custom_tool_call": "ctc",
    "web_search_call": "ws",
    "file_search_call": "fs",
    "computer_call": "cu",
    "code_interpreter_call": "ci",
    "image_generation_call": "ig",
    "mcp_list_tools": "mcpl",
    "mcp_call": "mcp",
    "mcp_approval_request": "mcpr",
    "compaction": "cmp",
}
"""The prefixes of item ids, by type of item."""
MODEL_ITEMS = frozenset(
    {
        *OUTPUTS,
        *("reasoning", "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"),
        *("mcp_call", "mcp_list_tools", "mcp_approval_request", "tool_search_call", "compaction"),
    }
)
"""Types of items that a model writes, apart from messages.

A reasoning item must be followed by an item of one of these types or by an assistant message.
"""
Item = dict[str, Any]


def _refuse(
    rule: str, message: str, *, param: str | None = "input", code: str | None = None, status: int = 400
) -> NoReturn:
    openai_fields.refuse(FORMAT, rule, message, param=param, code=code, status=status)


def check_openai_responses(
    body: Any, *, earlier: list[Item] | None = None, reasoning_of: Mapping[str, str] | None = None
) -> None:
    """Raise the API's error if the API refuses the request.

    `earlier` are the items of the response that `previous_response_id` names. If `earlier` is None and the request
    names an earlier response, outputs of unknown calls are accepted. `reasoning_of` maps the id of an item to the id of
    the reasoning item that the model wrote before it.
    """
    check_json(FORMAT, body)
    openai_fields.check_openai_fields(FORMAT, body)
    items = input_items(body)
    _check_input(body, items)
    for number, item in enumerate(items):
        _check_item(item, f"input[{number}]")
    _check_ids(items)
    chained = earlier is None and bool(body.get("previous_response_id") or body.get("conversation"))
    _check_outputs([*(earlier or ()), *items], chained=chained)
    _check_reasoning(items, reasoning_of or {})
    _check_trigger(items)
    _check_stored(body, items)
    _check_tools(body)
    check_responses_parameters(body)


def input_items(body: dict[str, Any]) -> list[Item]:
    """The input as a list of items. A string becomes one user message."""
    value = body.get("input")
    if isinstance(value, str):
        return [{"type": "message", "role": "user", "content": value}]
    return value if isinstance(value, list) else []


def item_type(item: Item) -> str:
    """The type of an item. A message or a reference need not have the field `type`.

    >>> item_type({"role": "user", "content": "hi"})
    'message'
    """
    kind = item.get("type")
    return str(kind) if kind else "message" if "role" in item else "item_reference"


def _check_input(body: dict[str, Any], items: list[Item]) -> None:
    if not body.get("model"):
        text = "Missing required parameter: 'model'."
        _refuse("field_missing", text, param="model", code="missing_required_parameter")
    instead = ("previous_response_id", "prompt", "conversation")
    if not items and not any(body.get(key) for key in instead):
        _refuse(
            "empty_input",
            "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided.",
            code="missing_required_parameter",
        )
    if body.get("previous_response_id") and body.get("conversation"):
        text = "Mutually exclusive parameters. Ensure you are only providing one of: 'previous_response_id' or "
        _refuse("chain", text + "'conversation'.", param=None, code="mutually_exclusive_parameters")


def _check_item(item: Item, path: str) -> None:
    kind = item_type(item)
    if kind == "message":
        _check_message(item, path)
    elif kind == "function_call":
        check_name(FORMAT, item["name"], f"{path}.name", most=128)
        if not is_json_object(item["arguments"]):
            text = f"Invalid '{path}.arguments': string is not a valid JSON object."
            _refuse("arguments_json", text, param=f"{path}.arguments", code="invalid_value")
    elif kind == "custom_tool_call":
        check_name(FORMAT, item["name"], f"{path}.name", most=128)
    elif kind == "function_call_output" and not item.get("call_id"):
        text = f"Missing required parameter: '{path}.call_id'."
        _refuse("field_missing", text, param=f"{path}.call_id", code="missing_required_parameter")
    elif kind == "compaction" and not item["encrypted_content"]:
        check_length(FORMAT, "", f"{path}.encrypted_content")
    for key in ("id", "call_id"):
        if item.get(key) is not None:
            check_length(FORMAT, item[key], f"{path}.{key}", most=MAX_ID)
    prefix = PREFIXES.get(kind)
    if prefix and item.get("id") and not item["id"].startswith(prefix):
        text = f"Invalid '{path}.id': '{item['id']}'. Expected an ID that begins with '{prefix}'."
        _refuse("id_prefix", text, param=f"{path}.id", code="invalid_value")


def _check_message(item: Item, path: str) -> None:
    content = item["content"]
    if isinstance(content, str):
        check_length(FORMAT, content, f"{path}.content", least=0)
        return
    check_array(FORMAT, content, f"{path}.content")
    for index, part in enumerate(content):
        where = f"{path}.content[{index}]"
        if item["role"] == "assistant" and part["type"] not in {"output_text", "refusal"}:
            text = f"Invalid value: '{part['type']}'. Supported values are: 'output_text' and 'refusal'."
            _refuse("content_type", text, param=where, code="invalid_value")
        if part["type"] == "input_image" and part.get("image_url"):
            check_image_url(FORMAT, part["image_url"], f"{where}.image_url")


def _check_ids(items: list[Item]) -> None:
    seen = set[str]()
    for item in items:
        name = item.get("id")
        if name is None or item_type(item) == "item_reference":
            continue
        if name in seen:
            text = f"Duplicate item found with id {name}. Remove duplicate items from your input and try again."
            _refuse("duplicate_id", text)
        seen.add(name)


def _check_outputs(items: list[Item], *, chained: bool) -> None:
    """Raise if calls and outputs do not match.

    Each call needs exactly one later output. Each output needs an earlier call. Each approval needs an earlier request
    for approval.
    """
    calls: dict[tuple[str, str], bool] = {}
    requests = set[str]()
    for item in items:
        kind = item_type(item)
        if kind in OUTPUTS:
            key = (kind, _call_id(item))
            if key in calls:
                _refuse("duplicate_id", f"Duplicate tool call found with call_id {key[1]}.")
            calls[key] = False
        elif kind in CALLS:
            _close_call(calls, (CALLS[kind], _call_id(item)), chained=chained)
        elif kind == "mcp_approval_request":
            requests.add(item["id"])
        elif kind == "mcp_approval_response" and item["approval_request_id"] not in requests and not chained:
            text = f"No approval request found for approval response with id {item['approval_request_id']}."
            _refuse("approval_unexpected", text)
    for (kind, call), has_output in calls.items():
        if not has_output:
            _refuse("result_missing", f"No tool output found for {kind.replace('_', ' ')} {call}.")


def _call_id(item: Item) -> str:
    return str(item.get("call_id") or item.get("id") or "")


def _close_call(calls: dict[tuple[str, str], bool], key: tuple[str, str], *, chained: bool) -> None:
    kind, call = key
    if key not in calls:
        if chained:
            return
        text = f"No tool call found for {kind.replace('_', ' ')} output with call_id {call}."
        _refuse("result_unexpected", text)
    if calls[key]:
        _refuse("result_repeated", f"Duplicate tool output found for {kind.replace('_', ' ')} {call}.")
    calls[key] = True


def _check_reasoning(items: list[Item], reasoning_of: Mapping[str, str]) -> None:
    """Raise if a reasoning item and its output are separated.

    After a reasoning item, the next item must be an item that the model wrote, or the reference to a stored item.
    `reasoning_of` maps the id of an item to the id of its reasoning item, which must come before the item.
    """
    present = set[str]()
    for number, item in enumerate(items):
        kind = item_type(item)
        if kind == "reasoning":
            present.add(item["id"])
            following = items[number + 1] if number + 1 < len(items) else {}
            if not following or not (is_model_item(following) or item_type(following) == "item_reference"):
                text = f"Item '{item['id']}' of type 'reasoning' was provided without its required following item."
                _refuse("reasoning_alone", text)
        needed = reasoning_of.get(item.get("id") or "")
        if needed and needed not in present:
            _refuse(
                "reasoning_missing",
                f"Item '{item['id']}' of type '{kind}' was provided without its required 'reasoning' item: '{needed}'.",
            )


def is_model_item(item: Item) -> bool:
    """Whether a model wrote this item."""
    kind = item_type(item)
    return item["role"] == "assistant" if kind == "message" else kind in MODEL_ITEMS


def _check_trigger(items: list[Item]) -> None:
    for number, item in enumerate(items[:-1]):
        if item_type(item) == "compaction_trigger":
            text = "Invalid input: a 'compaction_trigger' item must be the last item of the input."
            _refuse("trigger_place", text, param=f"input[{number}]", code="invalid_value")


def _check_stored(body: dict[str, Any], items: list[Item]) -> None:
    if body.get("store") is not False:
        return
    for item in items:
        if item_type(item) == "reasoning" and not item.get("encrypted_content"):
            _refuse(
                "not_stored",
                f"Item with id '{item['id']}' not found. Items are not persisted when `store` is set to false. Try "
                "again with `store` set to true, or remove this item from your input.",
                status=404,
            )


def _check_tools(body: dict[str, Any]) -> None:
    tools = body.get("tools") or []
    if len(tools) > MAX_TOOLS:
        check_array(FORMAT, tools, "tools", most=MAX_TOOLS)
    names = set[str]()
    for index, tool in enumerate(tools):
        if tool["type"] in {"function", "custom"}:
            check_name(FORMAT, tool["name"], f"tools[{index}].name", most=128)
            names.add(tool["name"])
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") in {"function", "custom"} and choice["name"] not in names:
        text = f"Tool choice '{choice['type']}' not found in 'tools' parameter."
        _refuse("tool_choice", text, param="tool_choice")
