"""Finds what a provider refuses in a JSON schema that the model's output must follow strictly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_NESTED_LISTS = ("anyOf", "oneOf", "allOf")


def object_schemas(schema: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Every object schema in a schema, including the schema itself, each with its path.

    >>> [path for path, _ in object_schemas({"type": "object", "properties": {"a": {"type": "object"}}})]
    [(), ('properties', 'a')]
    """
    if not isinstance(schema, dict):
        return
    if schema.get("type") == "object" or "properties" in schema:
        yield path, schema
    for key in ("properties", "$defs", "definitions"):
        for name, inner in (schema.get(key) or {}).items():
            yield from object_schemas(inner, (*path, key, name))
    for key in _NESTED_LISTS:
        for number, inner in enumerate(schema.get(key) or ()):
            yield from object_schemas(inner, (*path, key, str(number)))
    yield from object_schemas(schema.get("items"), (*path, "items"))


def is_open(schema: dict[str, Any]) -> bool:
    """Whether the schema of an object allows properties that it does not name."""
    return schema.get("additionalProperties") is not False
