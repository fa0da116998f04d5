"""Parameters of requests: the simulated provider refuses what the documentation excludes, and accepts its examples."""

from __future__ import annotations

from typing import Any

import pytest

from foldline.testing.provider import judge

CLAUDE = "claude-opus-4-5"
MANUAL = {"type": "enabled", "budget_tokens": 1_024}
TOOL = {"name": "run", "input_schema": {"type": "object"}}
TEXT = {"type": "text", "media_type": "text/plain", "data": "x"}
CITED: dict[str, Any] = {"type": "document", "source": TEXT, "citations": {"enabled": True}}
PLAIN: dict[str, Any] = {"type": "document", "source": TEXT}
OPEN: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
CLOSED = {**OPEN, "additionalProperties": False}
OPTIONAL = {**CLOSED, "required": []}
NESTED = {**CLOSED, "properties": {"a": {"type": "array", "items": OPEN}}}
EDITS = {"edits": [{"type": "clear_thinking_20251015"}]}
SAFEGUARDS = [{"type": "dangerous_tool_use", "classifier_context": {"v": 1, "permission_mode": "auto"}}]
EFFORT = {"role": "system", "content": "Answer soon.", "output_config": {"effort": "low"}}


def anthropic(*content: Any, **fields: Any) -> tuple[str, dict[str, Any]]:
    messages = [{"role": "user", "content": list(content) or "hi"}]
    return "anthropic", {"model": CLAUDE, "max_tokens": 2_000, "messages": messages, **fields}


def chat(**fields: Any) -> tuple[str, dict[str, Any]]:
    return "openai", {"model": "gpt-5", "messages": [{"role": "user", "content": "hi"}], **fields}


def responses(**fields: Any) -> tuple[str, dict[str, Any]]:
    return "openai-responses", {"model": "gpt-5", "input": "hi", **fields}


def gemini(*parts: Any, **fields: Any) -> tuple[str, dict[str, Any]]:
    return "gemini", {"contents": [{"role": "user", "parts": list(parts) or [{"text": "hi"}]}], **fields}


def schema_format(schema: Any) -> dict[str, Any]:
    return {"format": {"type": "json_schema", "schema": schema}}


def function(schema: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", "strict": True, "parameters": schema}}


def declared(schema: Any) -> list[Any]:
    return [{"functionDeclarations": [{"name": "f", "parameters": schema}]}]


PREFILL = anthropic(thinking=MANUAL)
PREFILL[1]["messages"] += [{"role": "assistant", "content": "Sure"}]

REFUSED: dict[str, tuple[tuple[str, dict[str, Any]], str]] = {
    "prefill with thinking": (PREFILL, "prefill"),
    "top_k with thinking": (anthropic(thinking=MANUAL, top_k=5), "sampling"),
    "a low top_p with thinking": (anthropic(thinking=MANUAL, top_p=0.5), "sampling"),
    "a temperature above 1": (anthropic(temperature=1.5), "temperature"),
    "clearing thinking without thinking": (anthropic(context_management=EDITS), "edit_thinking"),
    "citations of one document of two": (anthropic(CITED, PLAIN), "citations"),
    "safeguards without their header": (anthropic(safeguards=SAFEGUARDS), "field_unknown"),
    "citations with an output format": (anthropic(CITED, output_config=schema_format(CLOSED)), "citations"),
    "an open output schema": (anthropic(output_config=schema_format(OPEN)), "strict_schema"),
    "an open schema inside": (anthropic(output_config=schema_format(NESTED)), "strict_schema"),
    "an open schema of a strict tool": (anthropic(tools=[{**TOOL, "strict": True}]), "strict_schema"),
    "a budget above max_tokens": (
        anthropic(tools=[TOOL], thinking={**MANUAL, "budget_tokens": 4_000}),
        "thinking_budget",
    ),
    "chat: an open strict schema": (chat(tools=[function(OPEN)]), "strict_schema"),
    "chat: an optional property": (chat(tools=[function(OPTIONAL)]), "strict_schema"),
    "chat: a strict output schema": (
        chat(response_format={"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": OPEN}}),
        "strict_schema",
    ),
    "chat: JSON that no message asks for": (chat(response_format={"type": "json_object"}), "json_object"),
    "chat: a temperature for a reasoning model": (chat(temperature=0.2), "sampling"),
    "chat: a temperature while reasoning": (
        chat(model="gpt-5.1", temperature=0.2, reasoning_effort="high"),
        "sampling",
    ),
    "chat: two limits": (chat(model="gpt-4o", max_tokens=5, max_completion_tokens=5), "max_tokens"),
    "chat: no choice": (chat(n=0), "integer_too_small"),
    "chat: parallel calls without tools": (chat(parallel_tool_calls=True), "parallel_tool_calls"),
    "chat: stream options without a stream": (chat(stream_options={"include_usage": True}), "stream_options"),
    "chat: five stops": (chat(model="gpt-4o", stop=["a", "b", "c", "d", "e"]), "array_too_long"),
    "chat: 17 keys": (chat(metadata={str(number): "x" for number in range(17)}), "metadata"),
    "responses: a short reply": (responses(max_output_tokens=15), "integer_too_small"),
    "responses: a temperature": (responses(temperature=0.2), "sampling"),
    "responses: a low threshold": (
        responses(context_management=[{"type": "compaction", "compact_threshold": 10}]),
        "integer_too_small",
    ),
    "responses: an open strict schema": (
        responses(tools=[{"type": "function", "name": "f", "strict": True, "parameters": OPEN}]),
        "strict_schema",
    ),
    "gemini: data without a type": (gemini({"inlineData": {"data": "AAAA"}}), "media_type"),
    "gemini: a cache and a system text": (
        gemini(cachedContent="cachedContents/1", systemInstruction={"parts": [{"text": "x"}]}),
        "cached_content",
    ),
    "gemini: a cache and tools": (gemini(cachedContent="cachedContents/1", tools=declared(OPEN)), "cached_content"),
    "gemini: allowed names with AUTO": (
        gemini(
            tools=declared(OPEN), toolConfig={"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": ["f"]}}
        ),
        "tool_config",
    ),
    "gemini: a list without elements": (
        gemini(tools=declared({"type": "OBJECT", "properties": {"a": {"type": "ARRAY"}}})),
        "schema",
    ),
    "gemini: an undefined property": (gemini(tools=declared({"type": "OBJECT", "required": ["a"]})), "schema"),
    "gemini: a level and a budget": (
        gemini(generationConfig={"thinkingConfig": {"thinkingLevel": "LOW", "thinkingBudget": 10}}),
        "thinking",
    ),
}
ACCEPTED: dict[str, tuple[tuple[str, dict[str, Any]], tuple[str, ...]]] = {
    "a budget for a whole turn": (
        anthropic(tools=[TOOL], thinking={**MANUAL, "budget_tokens": 4_000}),
        ("interleaved-thinking-2025-05-14",),
    ),
    "clearing thinking": (
        anthropic(context_management=EDITS, thinking=MANUAL),
        ("context-management-2025-06-27",),
    ),
    "citations of all documents": (anthropic(CITED, CITED), ()),
    "a closed output schema": (anthropic(output_config=schema_format(CLOSED)), ()),
    "safeguards": (anthropic(safeguards=SAFEGUARDS), ("dangerous-tool-use-2026-09-03",)),
    "an effort for one turn, as Claude Code sends it": (
        anthropic(model="claude-opus-5-5", messages=[{"role": "user", "content": "Hello"}, EFFORT]),
        ("per-turn-control-2026-07-01",),
    ),
    "chat: a strict schema": (chat(tools=[function(CLOSED)]), ()),
    "chat: a temperature without reasoning": (chat(model="gpt-5.1", temperature=0.2), ()),
    "chat: a temperature": (chat(model="gpt-4o", temperature=0.2), ()),
    "gemini: types in small letters": (gemini(tools=declared(OPEN)), ()),
    "gemini: a level in small letters": (
        gemini(generationConfig={"thinkingConfig": {"thinkingLevel": "low"}}),
        (),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    (format, body), rule = REFUSED[name]
    error = judge(format, body, betas=["context-management-2025-06-27"], model="gemini-3-pro")
    assert error is not None
    assert error.rule == rule


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str) -> None:
    (format, body), betas = ACCEPTED[name]
    assert judge(format, body, betas=betas, model="gemini-3-pro") is None
