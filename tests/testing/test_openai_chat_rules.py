"""The simulated provider refuses what OpenAI's Chat Completions refuse, in their words, and takes the rest."""

from __future__ import annotations

from typing import Any

import pytest

from foldline.testing.provider import judge
from support.provider_requests import answer, assistant, call, calls, chat, png, user

FUNCTION = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}
LEGACY = {"role": "assistant", "content": None, "function_call": {"name": "bash", "arguments": "{}"}}


def picture(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


REFUSED: dict[str, tuple[dict[str, Any], str, str, str | None]] = {
    "no messages": (
        chat(),
        "empty_array",
        "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
        "empty_array",
    ),
    "unknown field of a message": (
        chat({**user(), "id": "m"}),
        "field_unknown",
        "Unknown parameter: 'messages[0].id'.",
        "unknown_parameter",
    ),
    "reasoning content": (
        chat(user(), {**assistant(), "reasoning_content": "hm"}, user()),
        "field_unknown",
        "Unknown parameter: 'messages[1].reasoning_content'.",
        "unknown_parameter",
    ),
    "unknown field of the request": (
        chat(user(), system="x"),
        "field_unknown",
        "Unknown parameter: 'system'.",
        "unknown_parameter",
    ),
    "unknown part": (
        chat(user([{"type": "input_text", "text": "x"}])),
        "field_tag",
        "Invalid value: 'input_text'. Supported values are: 'text', 'image_url', 'input_audio', and 'file'.",
        "invalid_value",
    ),
    "refusal part of a user": (
        chat(user([{"type": "refusal", "refusal": "no"}])),
        "field_tag",
        "Invalid value: 'refusal'.",
        "invalid_value",
    ),
    "unknown role": (chat({"role": "bot", "content": "x"}), "field_tag", "Invalid value: 'bot'.", "invalid_value"),
    "no content": (
        chat({"role": "user"}),
        "field_missing",
        "Missing required parameter: 'messages[0].content'.",
        "missing_required_parameter",
    ),
    "user content null": (chat(user(None)), "field_type", "Invalid type for 'messages[0].content'", "invalid_type"),
    "content of a wrong type": (
        chat(user(3)),
        "field_type",
        (
            "Invalid type for 'messages[0].content': expected one of a string or an array of objects, but got an "
            "integer instead."
        ),
        "invalid_type",
    ),
    "assistant without anything": (
        chat(user(), assistant(None), user()),
        "content_null",
        "Invalid value for 'content': expected a string, got null.",
        None,
    ),
    "no parts": (chat(user([])), "empty_array", "Invalid 'messages[0].content': empty array.", "empty_array"),
    "no calls": (
        chat(user(), calls(content="x"), user()),
        "empty_array",
        "Invalid 'messages[1].tool_calls': empty array.",
        "empty_array",
    ),
    "answer without call": (
        chat(user(), answer()),
        "result_unexpected",
        "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        None,
    ),
    "answer behind another message": (
        chat(user(), calls("call_1"), user(), answer()),
        "result_missing",
        "The following tool_call_ids did not have response messages: call_1",
        None,
    ),
    "one answer of two": (
        chat(user(), calls("a", "b"), answer("a"), user()),
        "result_missing",
        (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id'. The following tool_call_ids did not have response messages: b"
        ),
        None,
    ),
    "calls at the end": (chat(user(), calls("a")), "result_missing", "did not have response messages: a", None),
    "two answers of a call": (
        chat(user(), calls("a"), answer("a"), answer("a")),
        "result_repeated",
        "Duplicate value for 'tool_call_id' of 'a' in message[3]",
        None,
    ),
    "the same id twice": (
        chat(user(), calls("a", "a"), answer("a")),
        "duplicate_id",
        "Duplicate value for 'tool_call_id' of 'a' in message[1]",
        None,
    ),
    "broken arguments": (
        chat(user(), {"role": "assistant", "tool_calls": [call(arguments='{"a": ')]}, answer()),
        "arguments_json",
        "Invalid 'messages[1].tool_calls[0].function.arguments'",
        None,
    ),
    "NaN in arguments": (
        chat(user(), {"role": "assistant", "tool_calls": [call(arguments='{"a": NaN}')]}, answer()),
        "arguments_json",
        "Invalid 'messages[1].tool_calls[0].function.arguments'",
        None,
    ),
    "long call id": (
        chat(user(), calls("x" * 41), answer("x" * 41)),
        "string_too_long",
        (
            "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but "
            "got a string with length 41 instead."
        ),
        "string_above_max_length",
    ),
    "function name": (
        chat(user(), {"role": "assistant", "tool_calls": [call(function="my.tool")]}, answer()),
        "name_pattern",
        "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
        "invalid_value",
    ),
    "participant name": (
        chat({**user(), "name": "Mr X"}),
        "name_pattern",
        "Invalid 'messages[0].name': string does not match pattern.",
        "invalid_value",
    ),
    "function message without call": (
        chat(user(), {"role": "function", "name": "bash", "content": "x"}),
        "result_unexpected",
        "messages with role 'function' must be a response to a preceding message with 'function_call'.",
        None,
    ),
    "2,049 messages": (
        chat(*[user()] * 2_049),
        "array_too_long",
        "Expected an array with maximum length 2048, but got an array with length 2049 instead.",
        "array_above_max_length",
    ),
    "tool choice without tools": (
        chat(user(), tool_choice="auto"),
        "tool_choice",
        "'tool_choice' is only allowed when 'tools' are specified.",
        None,
    ),
    "no tools": (chat(user(), tools=[]), "empty_array", "Invalid 'tools': empty array.", "empty_array"),
    "max_tokens of a reasoning model": (
        chat(user(), max_tokens=100),
        "max_tokens",
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        "unsupported_parameter",
    ),
    "image that is text": (
        chat(user([picture("data:image/png;base64,aGVsbG8=")])),
        "image_unreadable",
        "You uploaded an unsupported image.",
        "invalid_image_format",
    ),
    "image address": (chat(user([picture("file:///x.png")])), "image_url", "Expected a valid URL", "invalid_value"),
    "lone surrogate": (chat(user("\udc00")), "json", "We could not parse the JSON body of your request.", None),
}

ACCEPTED: dict[str, dict[str, Any]] = {
    "a question": chat(user()),
    "system and developer": chat({"role": "system", "content": "x"}, {"role": "developer", "content": "y"}, user()),
    "a step": chat(user(), calls("a", "b"), answer("b"), answer("a"), assistant()),
    "a step with text": chat(user(), calls("a", content="Let me look."), answer("a"), user()),
    "an empty answer": chat(user(), calls("a"), answer("a", "")),
    "an id used again in a later step": chat(user(), calls("a"), answer("a"), calls("a"), answer("a")),
    "a legacy call": chat(user(), LEGACY, {"role": "function", "name": "bash", "content": "x"}),
    "a refusal": chat(user(), {"role": "assistant", "content": None, "refusal": "no"}, user()),
    "a refusal part": chat(user(), assistant([{"type": "refusal", "refusal": "no"}]), user()),
    "annotations that the API sent": chat(user(), {**assistant(), "annotations": []}, user()),
    "an image": chat(user([picture(f"data:image/png;base64,{png()}")])),
    "tools": chat(user(), tools=[FUNCTION], tool_choice={"type": "function", "function": {"name": "bash"}}),
    "max_tokens of a plain model": chat(user(), model="gpt-4o", max_tokens=100),
    "a custom call": chat(
        user(),
        {
            "role": "assistant",
            "tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "x", "input": "not JSON"}}],
        },
        answer("a"),
    ),
    "an assistant message at the end": chat(user(), assistant()),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    body, rule, words, code = REFUSED[name]
    found = judge("openai_chat", body)
    assert found is not None
    assert (found.rule, found.status, found.code) == (rule, 400, code), found
    assert words in found.message


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str) -> None:
    assert judge("openai", ACCEPTED[name]) is None
