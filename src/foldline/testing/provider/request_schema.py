"""Checks the fields and types of a request against a vendor's schema.

The schemas are data, read from the types of the vendors' SDKs (`scripts/provider_schemas.py`). Each object type is
compiled into one function, so that a request is checked in one pass over its fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, NoReturn

Check = Callable[[Any], None]
Kind = Literal["unknown", "missing", "type", "enum", "tag", "base64"]

_FOLDER = Path(__file__).parent / "schemas"
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]*={0,2}\Z")
_NAMES = {"string": str, "boolean": bool, "integer": int, "null": type(None)}
_DISCRIMINATORS = ("type", "role")


class TagName(str):
    """An element of the path to a wrong value: the name of the chosen member of a union.

    Only Anthropic's error messages have such elements in their paths.
    """

    __slots__ = ()


class SchemaMismatch(Exception):
    """Raised for a value that does not match the schema. Says what is wrong, where it is, and what was expected."""

    def __init__(self, kind: Kind, expected: Any = None, value: Any = None) -> None:
        super().__init__(kind)
        self.kind = kind
        self.expected = expected
        self.value = value
        self.keys: list[str | int] = []

    @property
    def path(self) -> list[str | int]:
        """The keys from the request's root to the value."""
        return self.keys[::-1]


@cache
def read_schema(name: str) -> dict[str, Any]:
    """The content of the schema file with this name."""
    data: dict[str, Any] = json.loads((_FOLDER / f"{name}.json").read_text("utf-8"))
    return data


def snake_case(name: str) -> str:
    """The protocol-buffer name of a field.

    >>> snake_case("functionCall")
    'function_call'
    """
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda found: "_" + found[1].lower(), name)


def compile_schema(types: Mapping[str, Any], root: str, *, aliases: bool = False) -> Check:
    """A function that checks objects of the type `root`. With `aliases`, fields may have protocol-buffer names."""
    compiler = _Compiler(types, aliases=aliases)
    compiler.object(root)
    return compiler.checks[root]


class _Compiler:
    """Compiles schema entries into functions. Object types are compiled once and may refer to each other."""

    def __init__(self, types: Mapping[str, Any], *, aliases: bool) -> None:
        self.types = types
        self.aliases = aliases
        self.checks: dict[str, Check] = {}

    def object(self, name: str) -> Check:
        """A function that checks objects of the type `name`.

        A type can refer to itself, so this method must work while the type is being compiled.
        """
        if name not in self.checks:
            self.checks[name] = lambda value: self.checks[name](value)  # noqa: PLW0108
            entry = self.types[name]
            fields = {key: self.field(field) for key, field in entry["fields"].items() if field is not None}
            if self.aliases:
                fields |= {snake_case(key): check for key, check in fields.items()}
            self.checks[name] = _object_check(fields, tuple(entry["required"]))
        return self.checks[name]

    def field(self, field: Any) -> Check:
        """A function that checks the value of a field."""
        if isinstance(field, str):
            return _scalar(field)
        if "enum" in field:
            return self._enum(field["enum"])
        if "list" in field:
            return _list_check(self.field(field["list"]))
        if "map" in field:
            return _map_check(self.field(field["map"]))
        if "object" in field:
            return self.object(field["object"])
        return self._union(field["union"])

    def _enum(self, values: Iterable[Any]) -> Check:
        """A function that accepts only the given names; for protocol buffers, also the given names in lower case."""
        names = tuple(values)
        return _enum((*names, *(str(name).lower() for name in names)) if self.aliases else names)

    def _union(self, members: list[Any]) -> Check:
        by_type: dict[type, Check] = {}
        objects = [member["object"] for member in members if isinstance(member, dict) and "object" in member]
        enums = [value for member in members if isinstance(member, dict) for value in member.get("enum", ())]
        for member in members:
            if member == "any":
                return _anything
            if member == "number":
                by_type[int] = by_type[float] = _anything
            elif isinstance(member, str):
                by_type[_NAMES[member]] = _anything
            elif "list" in member:
                by_type[list] = self.field(member)
            elif "map" in member:
                by_type[dict] = self.field(member)
        if enums and str not in by_type:
            by_type[str] = self._enum(enums)
        if objects and dict not in by_type:
            by_type[dict] = self._tagged(objects) if len(objects) > 1 else self.object(objects[0])
        expected = tuple(_describe(member) for member in members)

        def check(value: Any) -> None:
            found = by_type.get(type(value))
            if found is None:
                raise SchemaMismatch("type", expected, value)
            found(value)

        return check

    def _tagged(self, names: list[str]) -> Check:
        """A function that checks a value of a union. The tag field of the value decides which object type is used."""
        for key in _DISCRIMINATORS:
            tags = {name: _tags(self.types[name], key) for name in names}
            if all(tags.values()):
                break
        else:
            return _any_of([self.object(name) for name in names])
        by_tag: dict[Any, list[Check]] = {}
        for name in names:
            for tag in tags[name]:
                by_tag.setdefault(tag, []).append(self.object(name))
            if key not in self.types[name]["required"]:
                by_tag.setdefault(None, []).append(self.object(name))
        choices = {tag: checks[0] if len(checks) == 1 else _any_of(checks) for tag, checks in by_tag.items()}
        return _tag_check(key, choices)


def _tags(entry: Any, key: str) -> list[Any]:
    """The values that the field `key` may have in this object type. These values distinguish the types of a union."""
    field = entry["fields"].get(key)
    members = field.get("union", [field]) if isinstance(field, dict) else []
    return [value for member in members if isinstance(member, dict) for value in member.get("enum", ())]


def _describe(member: Any) -> str:
    """The type name of one member of a union, for error texts."""
    if isinstance(member, str):
        return member
    kind = next(iter(member))
    return {"map": "object", "enum": "string", "list": "array"}.get(kind, str(kind))


def _raise_at(mismatch: SchemaMismatch, key: str | int) -> NoReturn:
    mismatch.keys.append(key)
    raise mismatch


def _anything(_value: Any) -> None:
    """Accept every JSON value."""


def _scalar(name: str) -> Check:
    if name == "any":
        return _anything
    if name == "bytes":
        return _bytes

    accepts = (int, float) if name == "number" else (_NAMES[name],)

    def check(value: Any) -> None:
        if type(value) not in accepts:
            raise SchemaMismatch("type", (name,), value)

    return check


def _bytes(value: Any) -> None:
    if type(value) is not str:
        raise SchemaMismatch("type", ("string",), value)
    if len(value.rstrip("=")) % 4 == 1 or not _BASE64.match(value):
        raise SchemaMismatch("base64", None, value)


def _enum(values: Iterable[Any]) -> Check:
    allowed = tuple(values)

    def check(value: Any) -> None:
        if type(value) not in (str, bool, int) or value not in allowed:
            raise SchemaMismatch("enum", allowed, value)

    return check


def _list_check(item: Check) -> Check:
    def check(value: Any) -> None:
        if type(value) is not list:
            raise SchemaMismatch("type", ("array",), value)
        index = 0
        try:
            for index, element in enumerate(value):  # noqa: B007
                item(element)
        except SchemaMismatch as mismatch:
            _raise_at(mismatch, index)

    return check


def _map_check(item: Check) -> Check:
    def check(value: Any) -> None:
        if type(value) is not dict:
            raise SchemaMismatch("type", ("object",), value)
        if item is _anything:
            return
        for key, element in value.items():
            try:
                item(element)
            except SchemaMismatch as mismatch:
                _raise_at(mismatch, key)

    return check


def _object_check(fields: Mapping[str, Check], required: tuple[str, ...]) -> Check:
    field_of = dict(fields).get

    def check(value: Any) -> None:
        if type(value) is not dict:
            raise SchemaMismatch("type", ("object",), value)
        for key, element in value.items():
            field = field_of(key)
            if field is None:
                _raise_at(SchemaMismatch("unknown"), key)
            try:
                field(element)
            except SchemaMismatch as mismatch:
                _raise_at(mismatch, key)
        for key in required:
            if key not in value:
                _raise_at(SchemaMismatch("missing"), key)

    return check


def _any_of(checks: list[Check]) -> Check:
    """A check that accepts a value if one of several checks accepts it.

    If no check accepts the value, the mismatch with the longest path is raised.
    """

    def check(value: Any) -> None:
        worst: SchemaMismatch | None = None
        for attempt in checks:
            try:
                attempt(value)
            except SchemaMismatch as mismatch:
                if worst is None or len(mismatch.keys) > len(worst.keys):
                    worst = mismatch
            else:
                return
        if worst is not None:
            raise worst

    return check


def _tag_check(key: str, choices: Mapping[Any, Check]) -> Check:
    tags = tuple(tag for tag in choices if tag is not None)

    def check(value: Any) -> None:
        if type(value) is not dict:
            raise SchemaMismatch("type", ("object",), value)
        tag = value.get(key)
        found = choices.get(tag) if type(tag) is str or tag is None else None
        if found is None:
            if key not in value:
                _raise_at(SchemaMismatch("missing"), key)
            raise SchemaMismatch("tag", (key, tags), tag)
        if key != "type":
            found(value)
            return
        try:
            found(value)
        except SchemaMismatch as mismatch:
            _raise_at(mismatch, TagName(tag or "custom"))

    return check
