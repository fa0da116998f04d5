"""Chat Completions elements without the fields that OpenAI refuses.

Other servers accept more fields (their own reasoning, cache marks), so only requests to OpenAI's models lose the fields
that OpenAI does not know.
"""

from __future__ import annotations

from typing import Any

_NOT_NULL = ("tool_calls", "name")
"""Optional fields that may be missing but not null."""
_FIELDS = frozenset(
    {"role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "audio", "annotations"}
)
"""The fields of messages (openai-python 3.49, read in November 2026)."""


def sendable_element(element: dict[str, Any]) -> dict[str, Any]:
    """The message without optional fields that are null; the same object if it has none."""
    if not any(name in element and element[name] is None for name in _NOT_NULL):
        return element
    return {key: value for key, value in element.items() if key not in _NOT_NULL or value is not None}


def sendable_to_openai(element: dict[str, Any]) -> dict[str, Any]:
    """The message without null fields and without fields that OpenAI does not know."""
    if not element.keys() <= _FIELDS:
        element = {key: value for key, value in element.items() if key in _FIELDS}
        element = {"content": None, **element} if element.get("role") == "assistant" else element
    return sendable_element(element)
