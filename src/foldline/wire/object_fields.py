"""The fields that a provider accepts in one type of object, and functions that remove all other fields.

Providers refuse a request because of one unknown field ("Extra inputs are not permitted"). Providers also refuse null
in many optional fields. Each format has tables of its objects in its file `fields.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import is_not
from typing import Any, NamedTuple


class ObjectFields(NamedTuple):
    """The fields of one type of object."""

    required: tuple[str, ...]
    known: frozenset[str]
    not_null: frozenset[str]
    """Fields that must not be null. Some of these fields are required; the others may be missing."""


def object_fields(required: str = "", optional: str = "", nullable: str = "") -> ObjectFields:
    """The fields of one type of object. Each argument is a text with field names, separated by spaces.

    `optional` fields may be missing. `nullable` fields may be null, and may be missing unless they are also required.

    >>> sorted(object_fields("type text", "index", "citations").known)
    ['citations', 'index', 'text', 'type']
    """
    needed, free, null = required.split(), optional.split(), nullable.split()
    return ObjectFields(tuple(needed), frozenset((*needed, *free, *null)), frozenset((*needed, *free)) - {*null})


def with_known_fields(value: dict[str, Any], fields: ObjectFields) -> dict[str, Any]:
    """The object without unknown fields. An optional field is also removed if it is null and the provider refuses null
    in it.

    If nothing is removed, the same object is returned.
    """
    if value.keys() <= fields.known and None not in value.values():
        return value
    removed = {key for key in value if key not in fields.known}
    removed |= {key for key in fields.not_null.difference(fields.required) if key in value and value[key] is None}
    return {key: inner for key, inner in value.items() if key not in removed} if removed else value


def with_inner(value: dict[str, Any], key: str, clean: Callable[[Any], Any]) -> dict[str, Any]:
    """The object with `clean` applied to the value under `key`; the same object if that value stays the same."""
    inner = value.get(key)
    cleaned = None if inner is None else clean(inner)
    return value if cleaned is inner else {**value, key: cleaned}


def with_inner_list(value: dict[str, Any], key: str, clean: Callable[[Any], Any]) -> dict[str, Any]:
    """The object with `clean` applied to each element of the list under `key`; the same object if nothing changes."""
    inner = value.get(key)
    if not isinstance(inner, list):
        return value
    cleaned = [clean(each) for each in inner]
    return {**value, key: cleaned} if any(map(is_not, cleaned, inner)) else value
