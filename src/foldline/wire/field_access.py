"""Reads fields of dicts and of objects. The field names may be in camel case or in snake case.

Gemini and pi messages come as wire JSON (`toolCallId`), as dumps of Python objects (`tool_call_id`), or as objects.
With the functions of this module, one parser can read all three forms.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from typing import Any

from foldline.errors import WireError


def pick(value: Any, name: str) -> Any:
    """The field `name` of a mapping or an object; None if the field is missing.

    `name` is in camel case. The field itself may be in camel case or in snake case.

    >>> pick({"tool_call_id": "a"}, "toolCallId")
    'a'
    """
    if isinstance(value, Mapping):
        found = value.get(name)
        return value.get(snake(name)) if found is None else found
    found = getattr(value, name, None)
    return getattr(value, snake(name), None) if found is None else found


def text_of(value: Any) -> str:
    """The value if it is a string, else ""."""
    return value if isinstance(value, str) else ""


def string_at(value: Any, key: str) -> str:
    """The string under `key` of an object; "" if there is no string."""
    found = value.get(key) if type(value) is dict or isinstance(value, Mapping) else None
    return found if isinstance(found, str) else ""


def object_at(value: Any, key: str) -> dict[str, Any]:
    """The inner object under `key` of an object; an empty dict if there is no inner object."""
    found = value.get(key) if type(value) is dict or isinstance(value, Mapping) else None
    return found if isinstance(found, dict) else {}


def list_at(value: Any, key: str) -> list[Any]:
    """The list under `key` of an object; an empty list if there is no list."""
    found = value.get(key) if type(value) is dict or isinstance(value, Mapping) else None
    return found if isinstance(found, list) else []


def block_types(item: Mapping[str, Any]) -> set[str]:
    """The types of a message's content blocks; "" for a block without a type."""
    return {string_at(block, "type") for block in list_at(item, "content")}


def key_in(value: Mapping[str, Any], name: str) -> str:
    """The key of a field in a mapping, in camel case or in snake case; `name` if the mapping has neither key."""
    return snake(name) if name not in value and snake(name) in value else name


def time_of(value: Any) -> float | None:
    """Seconds since 1970, from milliseconds or an ISO text; None for anything else.

    >>> time_of(1500), time_of("1970-01-01T00:00:02Z"), time_of("yesterday")
    (1.5, 2.0, None)
    """
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return value / 1000
        when = datetime.fromisoformat(text_of(value))
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def plain_json(value: Any) -> Any:
    """The value as JSON data: mappings, dataclasses, enums, sequences and objects are converted at every depth."""
    try:
        return _plain_json(value)
    except RecursionError:
        raise WireError("nested too deeply to read") from None


def _plain_json(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): _plain_json(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain_json(inner) for inner in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain_json(getattr(value, field.name)) for field in fields(value)}
    return _plain_json(vars(value)) if hasattr(value, "__dict__") and not callable(value) else value


@cache
def snake(name: str) -> str:
    """A camel-case name in snake case."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
