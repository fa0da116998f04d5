"""Finds the messages in a request body, and decodes only what is new since the client's previous request.

A client sends its whole history with every request. The bytes of a body are compared with the bytes of the previous
body, and only the bytes after the common beginning are decoded. So the work does not grow with the history.
"""

from __future__ import annotations

import json
import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from foldline.json_text import Slice, decode, encode

_space = re.compile(r"[ \t\n\r]*").match
_decode = json.JSONDecoder().raw_decode
_COMPARED = 1 << 16
"""Number of bytes that are compared at once."""
_AFTER_ELEMENT = (b",", b"]", b" ", b"\t", b"\n", b"\r")


class NotScannable(Exception):
    """The body is not a JSON object with one list of messages."""


class BodyScan(NamedTuple):
    """A request body: its fields, and where its messages are. All positions are positions of bytes."""

    data: bytes
    list_start: int
    """Position of the list's opening bracket."""
    list_end: int
    """Position after the list's closing bracket."""
    starts: array[int]
    ends: array[int]
    """For each message, the position after its last byte. `starts` has the positions of the messages' first bytes."""
    values: dict[int, Any]
    """The decoded messages after the first `shared` messages. The key is the index of the message."""
    shared: int
    """Number of leading messages that have the same bytes as in the previous body."""
    fields: Mapping[str, Slice]
    """All fields of the body except the list of messages."""

    def element(self, index: int) -> bytes:
        """The bytes of a message."""
        return self.data[self.starts[index] : self.ends[index]]

    def field(self, key: str) -> Any:
        """The value of a field; None if it is missing."""
        found = self.fields.get(key)
        return None if found is None else found.value

    def field_text(self, key: str) -> str:
        """The text of a field; "" if it is missing."""
        found = self.fields.get(key)
        return "" if found is None else decode(self.data[found.start : found.end])

    def with_shorter_field(self, key: str, text: bytes) -> BodyScan:
        """The body with a shorter text for a field.

        Spaces are added after the new text until it is as long as the old text, so all positions stay valid.
        """
        place = self.fields[key]
        filled = text.ljust(place.end - place.start)
        return self._replace(data=self.data[: place.start] + filled + self.data[place.end :])

    def with_elements(self, elements: Iterable[bytes]) -> bytes:
        """The body with these messages in place of its own messages."""
        data = self.data
        return b"".join((data[: self.list_start + 1], b",".join(elements), data[self.list_end - 1 :]))


def scan_body(data: bytes, list_key: str, previous: BodyScan | None = None) -> BodyScan:
    """Scan a body. Raises `NotScannable` if it is not a JSON object with the list `list_key`.

    >>> scan = scan_body(b'{"model": "m", "messages": [{"role": "user"}, 2]}', "messages")
    >>> scan.element(1), scan.field("model"), scan.shared
    (b'2', 'm', 0)
    """
    return continue_scan(data, list_key, previous, shared_elements(data, previous) if previous is not None else 0)


def continue_scan(data: bytes, list_key: str, previous: BodyScan | None, shared: int) -> BodyScan:
    """Scan a body that is the same as the previous body up to the end of the first `shared` messages."""
    try:
        if previous is not None and shared:
            return _continue(data, list_key, previous, shared)
        return _scan(data, list_key)
    except (ValueError, RecursionError, IndexError) as error:
        raise NotScannable(str(error)) from None


def shared_elements(data: bytes, previous: BodyScan) -> int:
    """The number of leading messages that both bodies share; 0 if the bodies differ before the first message."""
    shared = bisect_right(previous.ends, common_length(data, previous.data))
    end = previous.ends[shared - 1] if shared else 0
    # the last shared message may be longer in the new body: `1` is the beginning of `12`
    return shared - 1 if shared and data[end : end + 1] not in _AFTER_ELEMENT else shared


def common_length(one: bytes, other: bytes) -> int:
    """The number of equal bytes at the start of two bodies."""
    view, low, high = memoryview(other), 0, min(len(one), len(other))
    while low < high and one.startswith(view[low : min(high, low + _COMPARED)], low):
        low = min(high, low + _COMPARED)
    high = min(high, low + _COMPARED)
    while low < high:
        middle = (low + high + 1) // 2
        if one.startswith(view[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low


def _scan(data: bytes, list_key: str) -> BodyScan:
    text = decode(data)
    at = _skip(text, 0)
    _expect(text, at, "{")
    before, at = _members(text, _skip(text, at + 1), list_key)
    list_start = at
    _expect(text, at, "[")
    found, at = _elements(text, _skip(text, at + 1))
    after, _ = _rest(text, at, list_key)
    place = _BytePositions(text)
    fields = {member.key: member for member in map(place.moved, before)}
    start = place.of(list_start)
    moved = [place.moved(item) for item in found]
    end = place.of(at)
    fields |= {member.key: member for member in map(place.moved, after)}
    values = {index: item.value for index, item in enumerate(found)}
    starts, ends = array("q", [item.start for item in moved]), array("q", [item.end for item in moved])
    return BodyScan(data, start, end, starts, ends, values, 0, fields)


def _continue(data: bytes, list_key: str, previous: BodyScan, shared: int) -> BodyScan:
    """Scan a body after its first `shared` messages. Up to the end of these messages, the body is the same as the
    previous body.
    """
    begin = previous.ends[shared - 1]
    text = decode(data[begin:])
    at = _skip(text, 0)
    found: list[Slice] = []
    if text[at] == ",":
        found, at = _elements(text, _skip(text, at + 1))
    else:
        _expect(text, at, "]")
        at += 1
    place = _BytePositions(text, begin)
    moved = [place.moved(item) for item in found]
    end = place.of(at)
    starts = previous.starts[:shared] + array("q", [item.start for item in moved])
    ends = previous.ends[:shared] + array("q", [item.end for item in moved])
    values = {index: item.value for index, item in enumerate(found, start=shared)}
    if data[end:] == previous.data[previous.list_end :]:
        by = end - previous.list_end
        after = [_shifted(item, by) for item in previous.fields.values() if item.start >= previous.list_end]
    else:
        after = [place.moved(item) for item in _rest(text, at, list_key)[0]]
    before = [item for item in previous.fields.values() if item.end <= previous.list_start]
    fields = {member.key: member for member in (*before, *after)}
    return BodyScan(data, previous.list_start, end, starts, ends, values, shared, fields)


class _BytePositions:
    """Converts positions in a text to positions in its bytes. Positions must be passed in rising order."""

    def __init__(self, text: str, begin: int = 0) -> None:
        self._text, self._is_ascii = text, text.isascii()
        self._begin, self._at, self._size = begin, 0, begin

    def of(self, index: int) -> int:
        """The position of the first byte of the character at `index`."""
        if self._is_ascii:
            return self._begin + index
        self._size += len(encode(self._text[self._at : index]))
        self._at = index
        return self._size

    def moved(self, item: Slice) -> Slice:
        """The slice, with its positions in the text converted to positions in the bytes."""
        value, start, end, key, key_start = item
        if self._is_ascii:
            begin = self._begin
            return Slice(value, begin + start, begin + end, key, begin + key_start if key_start >= 0 else -1)
        key_start = self.of(key_start) if key_start >= 0 else -1
        start = self.of(start)
        return Slice(value, start, self.of(end), key, key_start)


def _shifted(item: Slice, by: int) -> Slice:
    return Slice(item.value, item.start + by, item.end + by, item.key, item.key_start + by)


def _members(text: str, at: int, stop_key: str) -> tuple[list[Slice], int]:
    """The members of the JSON object before the list of messages, and the index at which the list begins."""
    members: list[Slice] = []
    while True:
        key_start = at
        key, at = _decode(text, at)
        at = _skip(text, at)
        _expect(text, at, ":")
        start = _skip(text, at + 1)
        if key == stop_key:
            return members, start
        value, at = _decode(text, start)
        members.append(Slice(value, start, at, key, key_start))
        at = _skip(text, at)
        _expect(text, at, ",")  # if the object ends here, there is no list
        at = _skip(text, at + 1)


def _rest(text: str, at: int, list_key: str) -> tuple[list[Slice], int]:
    """The members of the JSON object after the list of messages. Raises an error if the list occurs twice."""
    members: list[Slice] = []
    at = _skip(text, at)
    while text[at] != "}":
        _expect(text, at, ",")
        key_start = _skip(text, at + 1)
        key, at = _decode(text, key_start)
        at = _skip(text, at)
        _expect(text, at, ":")
        start = _skip(text, at + 1)
        value, at = _decode(text, start)
        if key == list_key:
            raise ValueError(f"{list_key} occurs twice")
        members.append(Slice(value, start, at, key, key_start))
        at = _skip(text, at)
    if _skip(text, at + 1) != len(text):
        raise ValueError("extra data")
    return members, at + 1


def _elements(text: str, at: int) -> tuple[list[Slice], int]:
    """The elements of a list, and the index after its closing bracket. `at` is the index of the first element."""
    found: list[Slice] = []
    while text[at] != "]":
        value, end = _decode(text, at)
        found.append(Slice(value, at, end))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
            if text[at] == "]":
                raise ValueError("trailing comma")
        else:
            _expect(text, at, "]")
    return found, at + 1


def _skip(text: str, at: int) -> int:
    found = _space(text, at)
    return found.end() if found else at


def _expect(text: str, at: int, char: str) -> None:
    if text[at : at + 1] != char:
        raise ValueError(f"{char!r} expected at {at}")
