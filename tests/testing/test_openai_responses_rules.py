"""The simulated provider refuses what OpenAI's Responses refuse, in their words, and takes the rest."""

from __future__ import annotations

from typing import Any

import pytest

from foldline.testing.provider import judge
from foldline.testing.provider.error_reply import RequestRefused
from foldline.testing.provider.openai_responses_rules import check_openai_responses
from support.provider_requests import function_call, output, reasoning, responses

Item = dict[str, Any]


def user(words: Any = "hello") -> Item:
    return {"role": "user", "content": words}


def assistant(words: str = "hi", **fields: Any) -> Item:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": words}], **fields}


def shell(name: str = "call_1") -> Item:
    return {"type": "shell_call", "call_id": name, "action": {"commands": ["ls"]}}


def shell_output(name: str = "call_1") -> Item:
    result = {"stdout": "x", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
    return {"type": "shell_call_output", "call_id": name, "output": [result]}


CUSTOM = {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "*** Begin"}
CUSTOM_OUTPUT = {"type": "custom_tool_call_output", "call_id": "c", "output": "done"}
LOCAL = {
    "type": "local_shell_call",
    "id": "lsh_1",
    "call_id": "l",
    "status": "completed",
    "action": {"type": "exec", "command": ["ls"], "env": {}},
}
APPROVAL = {"type": "mcp_approval_request", "id": "mcpr_1", "name": "x", "arguments": "{}", "server_label": "s"}
APPROVED = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
LISTING = {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []}
COMPACTION = {"type": "compaction", "encrypted_content": "gAAA"}

REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "nothing": (responses(), "empty_input", 'One of "input" or "previous_response_id"'),
    "no model": ({"input": "hello"}, "field_missing", "Missing required parameter: 'model'."),
    "unknown field": (responses({**user(), "name": "x"}), "field_unknown", "Unknown parameter: 'input[0].name'."),
    "unknown item": (
        responses({"type": "tool_result", "x": 1}),
        "field_tag",
        "Invalid value: 'tool_result'. Supported values are: 'message',",
    ),
    "missing field": (
        responses({"type": "function_call", "call_id": "a", "name": "b"}),
        "field_missing",
        "Missing required parameter: 'input[0].arguments'.",
    ),
    "chat tool message": (responses({"role": "tool", "content": "x"}), "field_enum", "Invalid value: 'tool'."),
    "input text of the assistant": (
        responses(user(), {"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}),
        "content_type",
        "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
    ),
    "output text of the user": (
        responses(user([{"type": "output_text", "text": "x"}])),
        "field_tag",
        "Invalid value: 'output_text'. Supported values are: 'input_text', 'input_image', and 'input_file'.",
    ),
    "no parts": (responses(user([])), "empty_array", "Invalid 'input[0].content': empty array."),
    "call without output": (
        responses(user(), function_call()),
        "result_missing",
        "No tool output found for function call call_1.",
    ),
    "output without call": (
        responses(user(), output()),
        "result_unexpected",
        "No tool call found for function call output with call_id call_1.",
    ),
    "output before its call": (responses(user(), output(), function_call()), "result_unexpected", "call_1"),
    "two outputs": (
        responses(user(), function_call(), output(), output()),
        "result_repeated",
        "Duplicate tool output found for function call call_1.",
    ),
    "two calls of one id": (
        responses(user(), function_call(), function_call(), output()),
        "duplicate_id",
        "Duplicate tool call found with call_id call_1.",
    ),
    "custom call without output": (
        responses(user(), CUSTOM),
        "result_missing",
        "No tool output found for custom tool call c.",
    ),
    "shell call without output": (responses(user(), shell()), "result_missing", "No tool output found for shell call"),
    "shell output without call": (
        responses(user(), shell_output()),
        "result_unexpected",
        "No tool call found for shell call output with call_id call_1.",
    ),
    "shell output for a function call": (
        responses(user(), function_call(), shell_output()),
        "result_unexpected",
        "No tool call found for shell call output",
    ),
    "function output without call_id": (
        responses(user(), {"type": "function_call_output", "output": "x"}),
        "field_missing",
        "Missing required parameter: 'input[1].call_id'.",
    ),
    "broken arguments": (
        responses(user(), function_call(arguments="{"), output()),
        "arguments_json",
        "Invalid 'input[1].arguments'",
    ),
    "reasoning before a user message": (
        responses(user(), reasoning(), user()),
        "reasoning_alone",
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    ),
    "reasoning at the end": (responses(user(), reasoning()), "reasoning_alone", "required following item"),
    "reasoning before an output": (
        responses(user(), function_call(), reasoning(), output()),
        "reasoning_alone",
        "required following item",
    ),
    "reasoning that is not stored": (
        responses(user(), {"type": "reasoning", "id": "rs_1", "summary": []}, assistant(), store=False),
        "not_stored",
        "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
    ),
    "the same id twice": (
        responses(user(), function_call("a", "fc_1"), output("a"), function_call("b", "fc_1"), output("b")),
        "duplicate_id",
        "Duplicate item found with id fc_1. Remove duplicate items from your input and try again.",
    ),
    "id of another vendor": (
        responses(user(), function_call("a", "toolu_1"), output("a")),
        "id_prefix",
        "Invalid 'input[1].id': 'toolu_1'. Expected an ID that begins with 'fc'.",
    ),
    "long id": (
        responses(user(), function_call("a" * 65), output("a" * 65)),
        "string_too_long",
        "Invalid 'input[1].call_id': string too long. Expected a string with maximum length 64",
    ),
    "approval without request": (
        responses(user(), APPROVED),
        "approval_unexpected",
        "No approval request found for approval response with id mcpr_1.",
    ),
    "trigger in the middle": (
        responses({"type": "compaction_trigger"}, user()),
        "trigger_place",
        "must be the last item",
    ),
    "empty compaction": (responses({**COMPACTION, "encrypted_content": ""}, user()), "empty_string", "empty string"),
    "tool name": (
        responses(user(), tools=[{"type": "function", "name": "a b", "parameters": None, "strict": None}]),
        "name_pattern",
        "Invalid 'tools[0].name'",
    ),
    "two ways to continue": (
        responses(user(), previous_response_id="resp_1", conversation="conv_1"),
        "chain",
        "Mutually exclusive parameters.",
    ),
    "lone surrogate": (responses(user("\ud800")), "json", "We could not parse the JSON body of your request."),
}

ACCEPTED: dict[str, dict[str, Any]] = {
    "a question": responses(user()),
    "a string": {"model": "gpt-5", "input": "hello"},
    "a step": responses(user(), reasoning(), function_call("a", "fc_1"), output("a"), assistant(id="msg_1")),
    "parallel calls": responses(user(), function_call("a"), function_call("b"), output("b"), output("a")),
    "a note between call and output": responses(user(), function_call("a"), user(), output("a")),
    "reasoning before a message": responses(user(), reasoning(), assistant(), user()),
    "reasoning before a stored message": responses(
        user(), reasoning(), {"type": "item_reference", "id": "msg_1"}, user()
    ),
    "two reasoning items": responses(user(), reasoning("rs_1"), reasoning("rs_2"), assistant(), user()),
    "a custom call": responses(user(), CUSTOM, CUSTOM_OUTPUT),
    "a shell call": responses(user(), shell(), shell_output()),
    "a local shell call": responses(
        user(), LOCAL, {"type": "local_shell_call_output", "id": "l", "output": "x"}, assistant()
    ),
    "an approval": responses(user(), LISTING, APPROVAL, APPROVED),
    "an open approval": responses(user(), LISTING, APPROVAL),
    "a compaction item": responses(COMPACTION, user()),
    "a trigger at the end": responses(user(), {"type": "compaction_trigger"}),
    "a reference": responses({"type": "item_reference", "id": "msg_1"}, user()),
    "an output of an earlier response": responses(output("a"), previous_response_id="resp_1"),
    "an answer without id": responses(user(), {"role": "assistant", "content": "hi"}, user()),
    "items as Codex sends them": responses(
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        reasoning(content=None),
        {**CUSTOM, "status": "completed"},
        CUSTOM_OUTPUT,
    ),
    "a web search": responses(
        user(),
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}},
        assistant(),
    ),
    "an output with parts": responses(
        user(), function_call(), output(words=[{"type": "input_text", "text": "x"}]), user()
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    body, rule, words = REFUSED[name]
    found = judge("openai_responses", body)
    assert found is not None
    assert found.rule == rule, found
    assert words in found.message
    assert found.type == "invalid_request_error"


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str) -> None:
    assert judge("openai_responses", ACCEPTED[name]) is None


def test_a_call_needs_the_reasoning_item_it_was_written_with() -> None:
    known = {"fc_1": "rs_1"}
    check_openai_responses(
        responses(user(), reasoning("rs_1"), function_call("a", "fc_1"), output("a")), reasoning_of=known
    )
    with pytest.raises(RequestRefused) as caught:
        check_openai_responses(responses(user(), function_call("a", "fc_1"), output("a")), reasoning_of=known)
    assert caught.value.reply.message == (
        "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'."
    )


def test_an_output_may_answer_a_call_of_the_earlier_response() -> None:
    body = responses(output("a"), previous_response_id="resp_1")
    check_openai_responses(body, earlier=[user(), function_call("a")])
    with pytest.raises(RequestRefused, match="No tool call found for function call output with call_id a"):
        check_openai_responses(body, earlier=[user(), assistant()])
