"""Values that JSON in UTF-8 cannot hold never reach a provider: lone surrogates, NaN and Infinity."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foldline import Policy, Session
from foldline.message import Message, Text, ToolCall, assistant, tool, user
from foldline.testing import assert_sendable
from foldline.wire.formats import REQUEST_FORMATS
from foldline.wire.json_values import sendable_value
from foldline.wire.rendering import Rendered

each_format = pytest.mark.parametrize("format", REQUEST_FORMATS)


def sent(format: str, *things: Any, target: str = "") -> Rendered:
    session = Session(format=format, policy=Policy(breakpoints=0))
    session.add(*things)
    rendered = session.view().render(target)
    json.dumps(rendered.body, ensure_ascii=False, allow_nan=False).encode()
    assert_sendable(rendered)
    return rendered


def element(format: str, text: str) -> dict[str, Any]:
    return {"role": "user", **({"parts": [{"text": text}]} if format == "gemini" else {"content": text})}


@each_format
def test_a_lone_surrogate_is_replaced_in_the_view_and_kept_in_the_record(format: str) -> None:
    session = Session(format=format)
    session.add(element(format, "cut \ud83d here"), user("and \udc00 there"))
    body = json.dumps(session.view().render().body, ensure_ascii=False)
    assert "cut \ufffd here" in body
    assert "and \ufffd there" in body
    assert [message.text for message in session.timeline.messages] == ["cut \ud83d here", "and \udc00 there"]


@each_format
@pytest.mark.parametrize("target", REQUEST_FORMATS)
def test_surrogates_in_calls_results_names_and_system_texts_are_replaced(format: str, target: str) -> None:
    call = ToolCall(id="a", name="run", arguments='{"x": "\ud800"}')
    done = tool("a", "out \ud800")
    system = Message(role="system", parts=(Text(text="be \ud800"),))
    sent(format, system, user("go"), assistant("so \udfff", call), done, target=target)


def test_a_surrogate_in_any_field_of_a_message_is_replaced() -> None:
    said = {"role": "user", "content": "hi", "name": "bob\ud800"}
    assert sent("openai", said).body["messages"] == [{"role": "user", "content": "hi", "name": "bob\ufffd"}]


def test_text_with_emoji_and_pairs_of_surrogates_is_sent_as_it_came() -> None:
    said = {"role": "user", "content": json.loads('"\\ud83d\\ude00 \U0001f389"')}
    assert sent("openai", said).body["messages"] == [said]


NUMBERS = [float("nan"), float("inf"), float("-inf")]


@pytest.mark.parametrize("number", NUMBERS, ids=str)
def test_numbers_in_the_input_of_a_call_that_json_lacks_are_sent_as_text(number: float) -> None:
    call = {"type": "tool_use", "id": "a", "name": "run", "input": {"x": [number]}}
    done = {"type": "tool_result", "tool_use_id": "a", "content": "ok"}
    talk = [element("", "go"), {"role": "assistant", "content": [call]}, {"role": "user", "content": [done]}]
    body = sent("anthropic", *talk).body
    assert body["messages"][1]["content"][0]["input"] == {"x": [json.dumps(number)]}
    part = {"functionCall": {"name": "run", "args": {"x": number}}}
    answer = {"functionResponse": {"name": "run", "response": {"output": "ok"}}}
    talk = [element("gemini", "go"), {"role": "model", "parts": [part]}, {"role": "user", "parts": [answer]}]
    body = sent("gemini", *talk).body
    assert body["contents"][1]["parts"][0]["functionCall"]["args"] == {"x": json.dumps(number)}


@each_format
@pytest.mark.parametrize("target", REQUEST_FORMATS)
@pytest.mark.parametrize(
    "arguments", ['{"x": NaN}', '{"x": [-Infinity, Infinity]}', '{"x": 1e999}', "NaN", '{"cut', ""]
)
def test_arguments_that_are_not_json_never_reach_the_wire(format: str, target: str, arguments: str) -> None:
    call = ToolCall(id="a", name="run", arguments=arguments)
    sent(format, user("go"), assistant("", call), tool("a", "ok"), target=target)


def test_arguments_that_are_not_json_are_rewritten_when_they_came_in_the_same_format() -> None:
    function = {"name": "run", "arguments": '{"x": NaN}'}
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "type": "function", "function": function}]}
    body = sent("openai", element("", "go"), call, {"role": "tool", "tool_call_id": "a", "content": "ok"}).body
    assert body["messages"][1]["tool_calls"][0]["function"]["arguments"] == '{"x":"NaN"}'
    item = {"type": "function_call", "call_id": "a", "name": "run", "arguments": '{"x": Infinity}'}
    output = {"type": "function_call_output", "call_id": "a", "output": "ok"}
    body = sent("openai-responses", element("", "go"), item, output).body
    assert json.loads(body["input"][1]["arguments"]) == {"x": "Infinity"}


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=[]), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=[]), max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)


@settings(max_examples=200)
@given(value=JSON_VALUES)
def test_any_value_becomes_one_that_json_can_hold(value: Any) -> None:
    changed = sendable_value(value)
    json.dumps(changed, ensure_ascii=False, allow_nan=False).encode()
    assert sendable_value(changed) is changed
