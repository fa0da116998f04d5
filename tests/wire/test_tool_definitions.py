"""Tool definitions of one format, converted for the providers of the others."""

from __future__ import annotations

from typing import Any

import pytest

from foldline import Session
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
