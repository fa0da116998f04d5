"""Reads JSON text with the position of each value, and adds or removes single items without changing the rest.

A proxy must send unchanged messages byte for byte. So `scan` returns where each element of the message list starts and
ends. A settings file must keep its line ends, escapes and spelling of numbers. So `put` and `cut` insert or remove one
item at its position. All these functions use one scanner, which calls the C decoder of the standard library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from foldline.errors import ConfigError, WireError

_Decode: TypeAlias = Callable[[str, int], tuple[Any, int]]

_BLANK = " \t\n\r"
_BOM = "\ufeff"
_INDENT = re.compile(r"^([ \t]+)\"", re.MULTILINE)
_WAS_EMPTY = " "
"""`put` writes this text after the first item of a container that was empty.

If `cut` later removes the item, `cut` recognises this text and keeps the empty container.
"""
_space = re.compile(r"[ \t\n\r]*").match
_decode: _Decode = json.JSONDecoder().raw_decode


class Slice(NamedTuple):
    """A JSON value and its position, `text[start:end]`.

    For a member of an object, the key and the start of the key are stored, too.
    """

    value: Any
    start: int
    end: int
    key: str = ""
    key_start: int = -1

    @property
    def item_start(self) -> int:
        """The index at which the item begins: the start of the key for a member, the start of the value for an
        element.
        """
        return self.start if self.key_start < 0 else self.key_start


class Scan(NamedTuple):
    """A top-level JSON object: each field with its position, and the elements of the requested list fields."""

    text: str
    fields: Mapping[str, Slice]
    elements: Mapping[str, tuple[Slice, ...]]


def decode(data: bytes | bytearray | memoryview) -> str:
    """Decode bytes, including invalid UTF-8, to text from which `encode` restores the same bytes."""
    return bytes(data).decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """The inverse of `decode`.

    Lone surrogates that came from JSON escapes are encoded like other characters.
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def loads(text: str, *, field: str = "") -> Any:
    """Like `json.loads`, but every error is a `WireError`."""
    try:
        return json.loads(text)
    except (RecursionError, ValueError) as error:
        raise _wire_error(error, field) from None


def dumps(value: Any) -> str:
    """Compact JSON text, as foldline writes it. Lone surrogates stay escaped, because UTF-8 cannot encode them."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return text if _has_utf8(text) else json.dumps(value, separators=(",", ":"))
    except RecursionError:
        raise WireError("nested too deeply to write") from None
    except (TypeError, ValueError) as error:
        raise WireError(f"not JSON ({error})") from None


def _has_utf8(text: str) -> bool:
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def scan(text: str, *lists: str) -> Scan:
    """Read a JSON object. Returns the position of every field, and of every element of the list fields in `lists`.

    >>> found = scan('{"model": "m", "messages": [{"role": "user"}, 2]}', "messages")
    >>> [found.text[e.start:e.end] for e in found.elements["messages"]]
    ['{"role": "user"}', '2']
    """
    try:
        at = _skip(text, 0)
        _expect(text, at, "{")
        members, elements, end = _scan_object(text, at, _decode, lists)
        _expect_end(text, end)
    except (RecursionError, ValueError) as error:
        raise _wire_error(error) from None
    return Scan(text, {member.key: member for member in members}, elements)


def scan_list(text: str) -> tuple[Slice, ...]:
    """Read a JSON array with the position of every element.

    >>> [(item.start, item.end) for item in scan_list('[{"role": "user"}, 2]')]
    [(1, 17), (19, 20)]
    """
    try:
        at = _skip(text, 0)
        _expect(text, at, "[")
        elements, end = _scan_array(text, at, _decode)
        _expect_end(text, end)
    except (RecursionError, ValueError) as error:
        raise _wire_error(error) from None
    return tuple(elements)


def _wire_error(error: Exception, field: str = "") -> WireError:
    if isinstance(error, RecursionError):
        return WireError("nested too deeply to read", field=field)
    return WireError(f"not JSON ({error})", line=getattr(error, "lineno", 0), field=field)


def _scan_object(
    text: str, at: int, decode: _Decode, lists: tuple[str, ...] = ()
) -> tuple[list[Slice], dict[str, tuple[Slice, ...]], int]:
    """Reads the object that begins at index `at`. Returns its members, the elements of the members named in `lists`,
    and the index of its end.
    """
    members: list[Slice] = []
    elements: dict[str, tuple[Slice, ...]] = {}
    at = _skip(text, at + 1)
    while text[at : at + 1] != "}":
        key_start = at
        key, at = decode(text, at)
        if type(key) is not str or text[key_start] != '"':
            raise json.JSONDecodeError("Expecting property name enclosed in double quotes", text, at)
        at = _skip(text, at)
        _expect(text, at, ":")
        start = _skip(text, at + 1)
        if key in lists and text[start : start + 1] == "[":
            found, at = _scan_array(text, start, decode)
            elements[key] = tuple(found)
            value: Any = [element.value for element in found]
        else:
            value, at = decode(text, start)
            elements.pop(key, None)
        members.append(Slice(value, start, at, key, key_start))
        at = _next(text, at, "}")
    return members, elements, at + 1


def _scan_array(text: str, at: int, decode: _Decode) -> tuple[list[Slice], int]:
    elements: list[Slice] = []
    at = _skip(text, at + 1)
    while text[at : at + 1] != "]":
        value, end = decode(text, at)
        elements.append(Slice(value, at, end))
        at = _next(text, end, "]")
    return elements, at + 1


def _next(text: str, at: int, closing: str) -> int:
    """The index of the next key or element; if there is none, the index of the closing bracket."""
    at = _skip(text, at)
    if text[at : at + 1] == closing:
        return at
    _expect(text, at, ",")
    at = _skip(text, at + 1)
    if text[at : at + 1] == closing:
        raise json.JSONDecodeError("Illegal trailing comma", text, at)
    return at


def _expect_end(text: str, at: int) -> None:
    at = _skip(text, at)
    if at != len(text):
        raise json.JSONDecodeError("Extra data", text, at)


def _skip(text: str, at: int) -> int:
    found = _space(text, at)
    return found.end() if found else at


def _expect(text: str, at: int, char: str) -> None:
    if text[at : at + 1] != char:
        raise json.JSONDecodeError(f"Expecting '{char}' delimiter", text, at)


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is not a JSON number")


_decode_unchanged: _Decode = json.JSONDecoder(
    parse_int=str, parse_float=str, parse_constant=_refuse_constant
).raw_decode
"""A JSON decoder that returns each number as its text, so that no number is too large. NaN and Infinity are refused."""


def root(text: str) -> int:
    """The index at which the object in a settings text begins.

    Raises `ConfigError` if the text is not a JSON object.
    """
    at = _skip(text, 1 if text.startswith(_BOM) else 0)
    if at == len(text):
        raise ConfigError("empty (write {} for empty settings)")
    try:
        value, end = _decode_unchanged(text, at)
        _expect_end(text, end)
    except RecursionError:
        raise ConfigError("not JSON (nested too deeply)") from None
    except ValueError as error:
        raise ConfigError(f"not JSON ({error})") from None
    if not isinstance(value, dict):
        raise ConfigError("not an object in braces")
    return at


def items(text: str, at: int) -> list[Slice]:
    """The members or elements of the container that begins at index `at`. `root` must have checked the text before.

    >>> [(item.key, item.item_start, item.start, item.end) for item in items('{"a": [1], "b": 2}', 0)]
    [('a', 1, 6, 9), ('b', 11, 16, 17)]
    """
    if text[at] == "{":
        return _scan_object(text, at, _decode_unchanged)[0]
    return _scan_array(text, at, _decode_unchanged)[0]


def member(text: str, at: int, key: str) -> Slice | None:
    """The member with this key; None if there is none.

    Raises `ConfigError` if the key occurs twice, because some programs read the first value and others the last.
    """
    found = [item for item in items(text, at) if item.key == key]
    if len(found) > 1:
        raise ConfigError(f'"{key}" appears twice in the same object')
    return found[0] if found else None


def put(text: str, at: int, value: Any, key: str = "") -> str:
    """The text with a new item at the end of the container that begins at `at`.

    The item is formatted like its neighbours.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    found = items(text, at)
    if found:
        last = found[-1]
        lead = text[len(text[: last.item_start].rstrip(_BLANK)) : last.item_start]
        base = lead.rpartition("\n")[2] if "\n" in lead else None
        item = _format_item(text, key, value, newline, base)
        return f"{text[: last.end]},{' ' if base is None else newline + base}{item}{text[last.end :]}"
    line = text[:at].rpartition("\n")[2]
    base = line[: len(line) - len(line.lstrip(" \t"))] + _indent(text)
    multiline = "\n" in text.strip() or not text[:at].strip(_BOM + _BLANK)
    item = _format_item(text, key, value, newline, base if multiline else None)
    return f"{text[: at + 1]}{newline + base if multiline else ''}{item}{_WAS_EMPTY}{text[at + 1 :]}"


def cut(text: str, path: Sequence[tuple[int, int]]) -> str:
    """The text without one item.

    `path` leads to the item, from the outermost container to the innermost. Each element of `path` has two numbers: the
    index in the text at which a container begins, and the number of the item in this container.

    If the item is the only one in its container, the container is removed, too. If the container was empty when `put`
    added the item, the container stays, because `put` left a mark in the text (`_WAS_EMPTY`). If the whole object
    becomes empty, the result may be a single line end.
    """
    at, index = path[-1]
    found = items(text, at)
    item = found[index]
    if index:
        return text[: found[index - 1].end] + text[item.end :]
    if len(found) > 1:
        return text[: item.item_start] + text[found[1].item_start :]
    if text.startswith(_WAS_EMPTY, item.end):
        return text[: at + 1] + text[item.end + len(_WAS_EMPTY) :]
    if len(path) > 1:
        return cut(text, path[:-1])
    closing = _skip(text, item.end)
    return "\n" if at == 0 and text[closing + 1 :] == "\n" else text[: at + 1] + text[closing:]


def _format_item(text: str, key: str, value: Any, newline: str, base: str | None) -> str:
    """The text of a new item. If `base` is None, the text is one line; otherwise, each of its lines is indented by
    `base`.
    """
    json_value = json.dumps(value, ensure_ascii=False, indent=None if base is None else _indent(text))
    return (f'"{key}": ' if key else "") + json_value.replace("\n", newline + (base or ""))


def _indent(text: str) -> str:
    found = _INDENT.search(text)
    return found[1] if found else "  "
