"""The validator and the simulated provider, which share no code, give the same verdict on every request."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foldline.message import Message
from foldline.testing import violations
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


@pytest.mark.parametrize(("format", "body"), CASES)
def test_both_refuse_what_the_providers_refuse(format: str, body: dict[str, Any]) -> None:
    assert violations(body, format)
    assert refusal(format, body)
