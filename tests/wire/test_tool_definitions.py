"""Tool definitions of one format, converted for the providers of the others."""

from __future__ import annotations

from typing import Any

import pytest

from foldline import InputError, Session
from foldline.message import user
from foldline.testing.provider import judge

MODELS = {"anthropic": "claude-sonnet-4-5", "openai": "gpt-4o", "openai-responses": "gpt-5"}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
GEMINI_SCHEMA = {
    "type": "OBJECT",
    "properties": {"type": {"type": "STRING"}, "all": {"type": "ARRAY", "items": {"type": "INTEGER"}}},
}
TOOLS: list[dict[str, Any]] = [
    {"functionDeclarations": [{"name": "read", "description": "d", "parameters": GEMINI_SCHEMA}]},
    {"functionDeclarations": [{"name": "read", "parametersJsonSchema": SCHEMA}]},
    {"name": "read", "description": None, "inputSchema": SCHEMA},
    {"name": "read", "inputSchema": {"properties": {}}},
    {"name": "read", "inputSchema": {}},
]


@pytest.mark.parametrize("format", MODELS)
@pytest.mark.parametrize("tool", TOOLS)
def test_a_provider_accepts_the_tools_of_another_format(format: str, tool: dict[str, Any]) -> None:
    session = Session(model=MODELS[format], format=format, tools=[tool])
    session.add(user("go"))
    assert judge(format, session.view().request(max_tokens=100)) is None


def test_the_types_of_a_gemini_schema_become_json_schema() -> None:
    session = Session(model="claude-sonnet-4-5", format="anthropic", tools=[TOOLS[0]])
    session.add(user("go"))
    assert session.view().request(max_tokens=100)["tools"][0]["input_schema"] == {
        "type": "object",
        "properties": {"type": {"type": "string"}, "all": {"type": "array", "items": {"type": "integer"}}},
    }


MARK = {"type": "ephemeral"}
HOUR = {**MARK, "ttl": "1h"}
NOT_A_NUMBER = {"type": "object", "properties": {"x": {"type": "number", "default": float("nan")}}}
INCOMPLETE: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "six marks": ("anthropic", [{"name": f"t{n}", "input_schema": SCHEMA, "cache_control": MARK} for n in range(6)]),
    "a mark for one hour after one for five minutes": (
        "anthropic",
        [{"name": mark.get("ttl", "5m"), "input_schema": SCHEMA, "cache_control": mark} for mark in (MARK, HOUR)],
    ),
    "a schema without a type": ("anthropic", [{"name": "a", "input_schema": {}}]),
    "a number that is not finite": ("anthropic", [{"name": "a", "input_schema": NOT_A_NUMBER}]),
    "a lone surrogate": ("openai", [{"name": "a", "description": "x\ud800", "input_schema": SCHEMA}]),
    "no parameters": ("openai", [{"type": "function", "function": {"name": "f", "parameters": None}}]),
}


@pytest.mark.parametrize(("format", "tools"), INCOMPLETE.values(), ids=INCOMPLETE)
def test_tools_that_a_provider_would_refuse_are_completed(format: str, tools: list[dict[str, Any]]) -> None:
    session = Session(model=MODELS[format], format=format, tools=tools)
    session.add(user("go"))
    assert judge(format, session.view().request(max_tokens=100)) is None


@pytest.mark.parametrize("name", ["ns/t x", "1a", "a" * 100])
def test_a_tool_name_that_gemini_refuses_raises_an_error(name: str) -> None:
    session = Session(model="gemini-3-pro-preview", tools=[{"name": name, "input_schema": SCHEMA}])
    session.add(user("go"))
    with pytest.raises(InputError, match="refuses the tool name"):
        session.view().request("gemini")


@pytest.mark.parametrize("key", ["anyOf", "oneOf", "allOf"])
def test_a_combination_at_the_top_of_a_schema_raises_an_error_for_anthropic(key: str) -> None:
    tool = {"name": "a", "input_schema": {**SCHEMA, key: [{"required": ["path"]}]}}
    session = Session(model="claude-sonnet-4-5", tools=[tool])
    session.add(user("go"))
    with pytest.raises(InputError, match=f"refuses '{key}' at the top level of the schema of 'a'"):
        session.view().request("anthropic")
    body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}
    refused = judge("anthropic", {**body, "tools": [tool]})
    assert refused is not None
    assert "does not support oneOf, allOf, or anyOf at the top level" in refused.message
