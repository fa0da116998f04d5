"""The validator and the simulated provider, which share no code, give the same verdict on every request."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foldline.message import Message
from foldline.testing import assert_sendable, violations
from foldline.testing.provider import judge
from foldline.wire.formats import REQUEST_FORMATS
from foldline.wire.rendering import render
from foldline.wire.repair import repair
from strategies import broken, sound

FIELDS: dict[str, dict[str, Any]] = {
    "anthropic": {"model": "claude-sonnet-5", "max_tokens": 100},
    "openai": {"model": "gpt-5"},
    "openai-responses": {"model": "gpt-5", "store": False},
    "gemini": {},
}


def refusal(format: str, body: dict[str, Any]) -> str:
    """The provider's answer to a request; "" if it takes it. Gemini 2.5 does not check thought signatures."""
    name = format.replace("-", "_")
    reply = judge(name, {**FIELDS[format], **body}, model="gemini-2.5-pro", needs_tools=False)
    return "" if reply is None else f"{reply.rule}: {reply.message}"


@pytest.mark.parametrize("format", REQUEST_FORMATS)
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(messages=st.one_of(sound(), broken()))
def test_both_give_the_same_verdict_before_and_after_a_repair(format: str, messages: list[Message]) -> None:
    # "no-user" is the answer of servers that speak OpenAI's format, not of OpenAI itself
    for history in (messages, repair(messages, format).messages):
        body = render(history, format).body
        found = [str(each) for each in violations(body, format) if each.code != "no-user"]
        answer = refusal(format, body)
        if not answer.startswith("alternation"):  # the validator takes two contents of one role in a row
            assert bool(found) == bool(answer), (found, answer)


CASES: list[tuple[str, dict[str, Any]]] = [
    ("anthropic", {"messages": []}),
    ("anthropic", {"messages": [{"role": "user", "content": [{"type": "banana"}]}]}),
    ("anthropic", {"messages": [{"role": "user", "content": "\ud800"}]}),
    ("openai", {"messages": []}),
    ("openai", {"messages": [{"role": "user", "content": [{"type": "function_call"}]}]}),
    ("openai-responses", {"input": []}),
    ("openai-responses", {"input": [{"type": "banana"}]}),
    ("gemini", {"contents": []}),
    ("gemini", {"contents": [{"role": "user", "parts": [{"banana": 1}]}]}),
]


def picture(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


USER = {"role": "user", "content": "go"}
CALL = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": "{}"}}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "done"}
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}}
WHOLE_REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("anthropic", {"model": "claude-sonnet-5", "messages": [USER]}),
    ("anthropic", {"max_tokens": 9, "messages": [USER]}),
    ("anthropic", {"model": "claude-sonnet-5", "max_tokens": 9, "messages": [USER], "foo": 1}),
    ("anthropic", {"model": "claude-sonnet-5", "max_tokens": 9, "messages": [USER], "metadata": None}),
    ("anthropic", {"model": "claude-sonnet-5", "max_tokens": 9, "messages": [{**USER, "id": "m1"}]}),
    (
        "anthropic",
        {"model": "claude-sonnet-5", "max_tokens": 9, "messages": [USER, {"role": "system", "content": "s"}]},
    ),
    ("openai", {"model": "gpt-5", "messages": [USER], "foo": 1}),
    ("openai", {"messages": [USER], "temperature": 1}),
    ("openai", {"model": "gpt-5", "messages": [{**USER, "id": "m1"}]}),
    ("openai", {"model": "gpt-5", "messages": [USER, {"role": "assistant", "content": "hi", "tool_calls": None}]}),
    (
        "openai",
        {"model": "gpt-5", "messages": [USER, {"role": "assistant", "tool_calls": [{**CALL, "index": 0}]}, RESULT]},
    ),
    ("openai-responses", {"model": "gpt-5", "input": [USER], "messages": []}),
    ("openai-responses", {"input": [USER], "store": False}),
    ("openai-responses", {"model": "gpt-5", "input": [{**USER, "timestamp": 7}]}),
    ("openai-responses", {"model": "gpt-5", "input": [USER, {**SEARCH, "status": "done"}]}),
    (
        "openai-responses",
        {"model": "gpt-5", "input": [USER, {key: SEARCH[key] for key in ("type", "status", "action")}]},
    ),
    ("gemini", {"contents": [{"role": "user", "parts": [{"text": "go"}]}], "foo": 1}),
    (
        "gemini",
        {"contents": [{"role": "user", "parts": [{"inlineData": {"mimeType": "image/gif", "data": "R0lGODlh"}}]}]},
    ),
    ("openai", {"model": "gpt-5", "messages": [{**USER, "name": "Bob Smith"}]}),
    ("openai", {"model": "gpt-5", "messages": [USER] * 2_049}),
    (
        "openai",
        {"model": "gpt-5", "messages": [{"role": "user", "content": [picture("data:image/bmp;base64,Qk0AAAAA")]}]},
    ),
    ("openai", {"model": "gpt-5", "messages": [{"role": "user", "content": [picture("file:///tmp/x.png")]}]}),
]


@pytest.mark.parametrize(("format", "body"), WHOLE_REQUESTS)
def test_both_refuse_a_request_with_unknown_and_without_required_fields(format: str, body: dict[str, Any]) -> None:
    assert judge(format, body, model="gemini-2.5-pro") is not None
    assert violations(body, format)


def test_both_take_whole_requests() -> None:
    bodies: list[tuple[str, dict[str, Any]]] = [
        (
            "anthropic",
            {"model": "claude-sonnet-5", "max_tokens": 9, "messages": [USER], "thinking": {"type": "disabled"}},
        ),
        ("openai", {"model": "gpt-5", "messages": [USER], "temperature": None, "stream": False}),
        ("openai-responses", {"model": "gpt-5", "input": [USER, SEARCH, {"role": "assistant", "content": "so"}, USER]}),
        ("gemini", {"contents": [{"role": "user", "parts": [{"text": "go"}]}], "generationConfig": {"topK": 3}}),
    ]
    for format, body in bodies:
        assert judge(format, body, model="gemini-2.5-pro") is None
        assert_sendable(body, format)


@pytest.mark.parametrize(("format", "body"), CASES)
def test_both_refuse_what_the_providers_refuse(format: str, body: dict[str, Any]) -> None:
    assert violations(body, format)
    assert refusal(format, body)
