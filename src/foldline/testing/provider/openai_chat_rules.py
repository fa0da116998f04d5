"""Judges a request to OpenAI's Chat Completions: tool calls and their answers, content, names, tools."""

from __future__ import annotations

import re
from typing import Any, NoReturn

from foldline.testing.provider import openai_fields
from foldline.testing.provider.json_rules import check_json, is_json_object
from foldline.testing.provider.model_features import features_of
from foldline.testing.provider.openai_fields import check_array, check_length, check_name
from foldline.testing.provider.openai_parameters import check_chat_parameters

FORMAT = "openai_chat"
MAX_MESSAGES = 2_048
MAX_TOOLS = 128
MAX_CALL_ID = 40
_PARTICIPANT = re.compile(r"[^\s<|\\/>]+\Z")
Message = dict[str, Any]


def _refuse(rule: str, message: str, *, param: str | None = None, code: str | None = None) -> NoReturn:
    openai_fields.refuse(FORMAT, rule, message, param=param, code=code)


def check_openai_chat(body: Any) -> None:
    """Raise the API's error if the API refuses the request."""
    check_json(FORMAT, body)
    openai_fields.check_openai_fields(FORMAT, body)
    messages = body["messages"]
    check_array(FORMAT, messages, "messages", most=MAX_MESSAGES)
    for number, message in enumerate(messages):
        _check_content(message, f"messages[{number}]")
        _check_calls(message, f"messages[{number}]")
    _check_order(messages)
    _check_tools(body)
    check_chat_parameters(body)
    if "max_tokens" in body and features_of(body["model"]).reasoning:
        _refuse(
            "max_tokens",
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
            "instead.",
            param="max_tokens",
            code="unsupported_parameter",
        )


def _check_content(message: Message, path: str) -> None:
    content = message.get("content")
    if content is None and message["role"] == "assistant":
        instead = ("tool_calls", "function_call", "refusal", "audio")
        if not any(message.get(key) for key in instead):
            text = "Invalid value for 'content': expected a string, got null."
            _refuse("content_null", text, param=f"{path}.content")
    if isinstance(content, str):
        check_length(FORMAT, content, f"{path}.content", least=0)
    elif isinstance(content, list):
        check_array(FORMAT, content, f"{path}.content")
        for index, part in enumerate(content):
            if part["type"] == "text":
                check_length(FORMAT, part["text"], f"{path}.content[{index}].text", least=0)
            elif part["type"] == "image_url":
                where = f"{path}.content[{index}].image_url.url"
                openai_fields.check_image_url(FORMAT, part["image_url"]["url"], where)
    name = message.get("name")
    if name is not None and message["role"] != "function" and not (name and _PARTICIPANT.match(name)):
        _refuse(
            "name_pattern",
            f"Invalid '{path}.name': string does not match pattern. Expected a string that matches the pattern "
            r"'^[^\s<|\\/>]+$'.",
            param=f"{path}.name",
            code="invalid_value",
        )


def _check_calls(message: Message, path: str) -> None:
    calls = message.get("tool_calls")
    if calls is not None:
        check_array(FORMAT, calls, f"{path}.tool_calls", most=MAX_TOOLS)
        for index, call in enumerate(calls):
            where = f"{path}.tool_calls[{index}]"
            check_length(FORMAT, call["id"], f"{where}.id", most=MAX_CALL_ID)
            check_name(FORMAT, call[call["type"]]["name"], f"{where}.{call['type']}.name")
            if call["type"] == "function":
                _check_arguments(call["function"]["arguments"], f"{where}.function.arguments")
    if message.get("function_call"):
        check_name(FORMAT, message["function_call"]["name"], f"{path}.function_call.name")
        _check_arguments(message["function_call"]["arguments"], f"{path}.function_call.arguments")
    if message["role"] == "function":
        check_name(FORMAT, message["name"], f"{path}.name")
    if message["role"] == "tool":
        check_length(FORMAT, message["tool_call_id"], f"{path}.tool_call_id", most=MAX_CALL_ID)


def _check_arguments(arguments: str, path: str) -> None:
    if not is_json_object(arguments):
        _refuse("arguments_json", f"Invalid '{path}': string is not a valid JSON object.", param=path)


def _check_order(messages: list[Message]) -> None:
    """Raise if a call has no answer directly after its message, if it has two answers, or if an answer has no call."""
    open_ids: dict[str, None] = {}
    answered = set[str]()
    function = ""
    for number, message in enumerate([*messages, {"role": "end"}]):
        role = message["role"]
        if role == "tool":
            _check_answer(message["tool_call_id"], open_ids, answered, number)
            continue
        missing = [call for call in open_ids if call not in answered]
        if missing:
            _refuse(
                "result_missing",
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(missing)}",
                param=f"messages.[{number}].role",
            )
        if role == "function" and message["name"] != function:
            _refuse(
                "result_unexpected",
                "Invalid parameter: messages with role 'function' must be a response to a preceding message with "
                "'function_call'.",
                param=f"messages.[{number}].role",
            )
        open_ids, answered = {}, set()
        function = (message.get("function_call") or {}).get("name", "")
        for call in message.get("tool_calls") or ():
            if call["id"] in open_ids:
                text = f"Duplicate value for 'tool_call_id' of '{call['id']}' in message[{number}]"
                _refuse("duplicate_id", text)
            open_ids[call["id"]] = None


def _check_answer(call: str, open_ids: dict[str, None], answered: set[str], number: int) -> None:
    if call not in open_ids:
        _refuse(
            "result_unexpected",
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
            "'tool_calls'.",
            param=f"messages.[{number}].role",
        )
    if call in answered:
        _refuse("result_repeated", f"Duplicate value for 'tool_call_id' of '{call}' in message[{number}]")
    answered.add(call)


def _check_tools(body: dict[str, Any]) -> None:
    tools = body.get("tools")
    if tools is not None:
        check_array(FORMAT, tools, "tools", most=MAX_TOOLS)
        for index, tool in enumerate(tools):
            check_name(FORMAT, tool[tool["type"]]["name"], f"tools[{index}].{tool['type']}.name")
    choice = body.get("tool_choice")
    if choice is None:
        return
    if not tools:
        text = "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified."
        _refuse("tool_choice", text, param="tool_choice")
    if isinstance(choice, dict) and choice["type"] in {"function", "custom"}:
        name = choice[choice["type"]]["name"]
        if name not in {tool[tool["type"]]["name"] for tool in tools or ()}:
            text = (
                f"Invalid value for 'tool_choice': no function named '{name}' was specified in the 'tools' parameter."
            )
            _refuse("tool_choice", text, param="tool_choice")
