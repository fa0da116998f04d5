"""Converts objects of the providers' SDKs to JSON values."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

_PARSED = ("parsed", "parsed_arguments")
"""Fields that OpenAI's SDK adds to replies. The provider refuses a request that holds these fields."""
_OF_REPLIES = ("content", "choices", "message", "tool_calls", "function", "output", "response", "item", "part")
"""The fields of replies and events in which `_without_parsed` searches for fields that the SDK added."""


def is_sdk_object(value: Any) -> bool:
    """True for a value of an SDK's own type."""
    return callable(getattr(value, "model_dump", None)) and not isinstance(value, type)


def sdk_json(value: Any, *, without: Collection[str] = ()) -> Any:
    """The JSON value of an SDK's object, as the provider sent it. Top-level fields in `without` are left out."""
    options = {"mode": "json", "by_alias": True, "exclude_unset": True, "warnings": False}
    dumped = value.model_dump(**options, exclude=set(without)) if without else value.model_dump(**options)
    return _without_parsed(dumped) if type(value).__module__.startswith("openai.") else dumped


def _without_parsed(value: Any) -> Any:
    """The JSON value without the fields that the SDK added. Only the places where the SDK adds fields are visited."""
    if isinstance(value, list):
        return [_without_parsed(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _without_parsed(inner) if key in _OF_REPLIES else inner
        for key, inner in value.items()
        if key not in _PARSED
    }
