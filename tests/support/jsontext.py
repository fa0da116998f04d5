"""JSON text as strangers write it: any spacing, any escapes, duplicate keys, long numbers."""

from __future__ import annotations

import json
from random import Random
from typing import Any

_SPACES = ("", "", " ", "\n", "\t", "  ", "\r\n", " \n\t ")
_LONG = ("1e400", "-0.0", "123456789012345678901234567890", "0.1000000000000000055511151231257827", "1E+2")


class Raw(str):
    """Text that stands in the JSON as it is."""

    __slots__ = ()


def written(value: Any, random: Random) -> str:
    """The value as JSON text in some odd but legal formatting."""
    return f"{_space(random)}{_write(value, random)}{_space(random)}"


def duplicated(fields: dict[str, Any], random: Random) -> str:
    """An object whose text also has earlier copies of its keys with other values, and fields nobody knows."""
    pairs: list[tuple[str, Any]] = [("extra", Raw(random.choice(_LONG))), ("élan", [Raw(random.choice(_LONG))])]
    pairs += [(key, random.choice([None, 1, "x", {}])) for key in fields if random.random() < 0.3]
    random.shuffle(pairs)
    return f"{_space(random)}{_object(pairs + list(fields.items()), random)}{_space(random)}"


def _space(random: Random) -> str:
    return random.choice(_SPACES)


def _write(value: Any, random: Random) -> str:
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, str):
        return _string(value, random)
    if isinstance(value, dict):
        return _object(list(value.items()), random)
    if isinstance(value, list):
        inner = ",".join(f"{_space(random)}{_write(item, random)}{_space(random)}" for item in value)
        return f"[{inner or _space(random)}]"
    return json.dumps(value)


def _object(pairs: list[tuple[str, Any]], random: Random) -> str:
    fields = (
        f"{_space(random)}{_string(key, random)}{_space(random)}:{_space(random)}{_write(item, random)}{_space(random)}"
        for key, item in pairs
    )
    return "{" + (",".join(fields) or _space(random)) + "}"


def _string(text: str, random: Random) -> str:
    return '"' + "".join(_char(char, random) for char in text) + '"'


def _char(char: str, random: Random) -> str:
    plain = json.dumps(char, ensure_ascii=False)[1:-1]
    if "\ud800" <= char <= "\udfff" or random.random() < 0.1:
        escaped = json.dumps(char)[1:-1]
        return escaped if escaped.startswith("\\") else f"\\u{ord(char):04x}"
    return plain
