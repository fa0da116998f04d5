"""JSON text with its places: which slice of a request body is which message.

A proxy must send untouched messages back byte for byte, and cheaply. Both follow from remembering where each element
of the message list starts and ends. The C decoder of the standard library does the work, one element at a time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from foldline.errors import WireError

_decode = json.JSONDecoder().raw_decode
_space = re.compile(r"[ \t\n\r]*").match


class Slice(NamedTuple):
    """A JSON value and where its text stands: `text[start:end]`."""

    value: Any
    start: int
    end: int


class Scan(NamedTuple):
    """A top-level JSON object: each field with its place, and the elements of the list fields asked for."""

    text: str
    fields: Mapping[str, Slice]
    elements: Mapping[str, tuple[Slice, ...]]


def decode(data: bytes | bytearray | memoryview) -> str:
    """Bytes as text such that `encode` gives the same bytes again, broken UTF-8 included."""
    return bytes(data).decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """The inverse of `decode`; lone surrogates from JSON escapes are written as they are."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def loads(text: str, *, field: str = "") -> Any:
    """`json.loads` with one typed error for all that can go wrong."""
    try:
        return json.loads(text)
    except RecursionError:
        raise WireError("nested too deeply to read", field=field) from None
    except ValueError as error:
        raise WireError(f"not JSON ({error})", line=getattr(error, "lineno", 0), field=field) from None


def dumps(value: Any) -> str:
    """Compact JSON text, the one form in which foldline writes JSON. Lone surrogates, having no UTF-8, stay escapes."""
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
    """Read a JSON object, remembering where every field stands, and every element of the fields in `lists`.

    >>> found = scan('{"model": "m", "messages": [{"role": "user"}, 2]}', "messages")
    >>> [found.text[e.start:e.end] for e in found.elements["messages"]]
    ['{"role": "user"}', '2']
    """
    with _typed_errors():
        return _scan(text, lists)


def scan_list(text: str) -> tuple[Slice, ...]:
    """Read a JSON array, remembering where every element stands.

    >>> [item[1:] for item in scan_list('[{"role": "user"}, 2]')]
    [(1, 17), (19, 20)]
    """
    with _typed_errors():
        at = _skip(text, 0)
        _expect(text, at, "[")
        items, at = _scan_list(text, at)
        _end(text, at)
        return items


@contextmanager
def _typed_errors() -> Iterator[None]:
    """One typed error for all that can go wrong while reading: a number too long to convert is no JSON error."""
    try:
        yield
    except RecursionError:
        raise WireError("nested too deeply to read") from None
    except ValueError as error:
        raise WireError(f"not JSON ({error})", line=getattr(error, "lineno", 0)) from None


def _scan(text: str, lists: tuple[str, ...]) -> Scan:
    fields: dict[str, Slice] = {}
    elements: dict[str, tuple[Slice, ...]] = {}
    at = _skip(text, 0)
    _expect(text, at, "{")
    at = _skip(text, at + 1)
    while text[at : at + 1] != "}":
        key, at = _decode(text, at)
        if not isinstance(key, str):
            raise json.JSONDecodeError("Expecting property name enclosed in double quotes", text, at)
        at = _skip(text, at)
        _expect(text, at, ":")
        start = _skip(text, at + 1)
        if key in lists and text[start : start + 1] == "[":
            items, at = _scan_list(text, start)
            elements[key] = items
            fields[key] = Slice([item.value for item in items], start, at)
        else:
            value, at = _decode(text, start)
            fields[key] = Slice(value, start, at)
            elements.pop(key, None)
        at = _next(text, at, "}")
    _end(text, at + 1)
    return Scan(text, fields, elements)


def _scan_list(text: str, at: int) -> tuple[tuple[Slice, ...], int]:
    items: list[Slice] = []
    at = _skip(text, at + 1)
    while text[at : at + 1] != "]":
        value, end = _decode(text, at)
        items.append(Slice(value, at, end))
        at = _next(text, end, "]")
    return tuple(items), at + 1


def _next(text: str, at: int, closing: str) -> int:
    """Where the next key or element starts, or where the closing bracket stands."""
    at = _skip(text, at)
    if text[at : at + 1] == closing:
        return at
    _expect(text, at, ",")
    at = _skip(text, at + 1)
    if text[at : at + 1] == closing:
        raise json.JSONDecodeError("Illegal trailing comma", text, at)
    return at


def _end(text: str, at: int) -> None:
    at = _skip(text, at)
    if at != len(text):
        raise json.JSONDecodeError("Extra data", text, at)


def _skip(text: str, at: int) -> int:
    found = _space(text, at)
    return found.end() if found else at


def _expect(text: str, at: int, char: str) -> None:
    if text[at : at + 1] != char:
        raise json.JSONDecodeError(f"Expecting '{char}' delimiter", text, at)
