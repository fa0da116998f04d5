"""Finds the messages in a request body, and decodes only what is new since the client's previous request.

A client sends its whole history with every request. The part that is the same as in the previous request is found by
comparing texts, which takes microseconds; only what follows is decoded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from foldline.json_text import Slice

_space = re.compile(r"[ \t\n\r]*").match
_decode = json.JSONDecoder().raw_decode


class NotScannable(Exception):
    """The body is not a JSON object with one list of messages."""


class BodyScan(NamedTuple):
    """A request body: its fields, and where its messages are."""

    text: str
    list_start: int
    """Index of the list's opening bracket."""
    list_end: int
    """Index after the list's closing bracket."""
    starts: list[int]
    ends: list[int]
    """The indexes after the last character of each message. `starts` has those of the first characters."""
    values: dict[int, Any]
    """The decoded messages from `shared` on. The key is the index of the message."""
    shared: int
    """Number of leading messages whose text is the same as in the previous body."""
    fields: Mapping[str, Slice]
    """All other fields."""

    def element(self, index: int) -> str:
        """The text of a message."""
        return self.text[self.starts[index] : self.ends[index]]

    def field(self, key: str) -> Any:
        """The value of a field; None if it is missing."""
        found = self.fields.get(key)
        return None if found is None else found.value

    def field_text(self, key: str) -> str:
        """The text of a field; "" if it is missing."""
        found = self.fields.get(key)
        return "" if found is None else self.text[found.start : found.end]


def scan_body(text: str, list_key: str, previous: BodyScan | None = None) -> BodyScan:
    """Scan a body. Raises `NotScannable` if it is not a JSON object with the list `list_key`.

    >>> scan = scan_body('{"model": "m", "messages": [{"role": "user"}, 2]}', "messages")
    >>> scan.element(1), scan.field("model"), scan.shared
    ('2', 'm', 0)
    """
    try:
        shared = shared_elements(text, previous) if previous is not None else 0
        if previous is not None and shared:
            return _continue(text, list_key, previous, shared)
        return _scan(text, list_key)
    except (ValueError, RecursionError, IndexError) as error:
        raise NotScannable(str(error)) from None


def shared_elements(text: str, previous: BodyScan) -> int:
    """The number of leading messages that are the same in both bodies, if everything before them is also the same."""

    def same(count: int) -> bool:
        return count == 0 or text.startswith(previous.text[: previous.ends[count - 1]])

    total = len(previous.ends)
    if total == 0 or not same(1):
        return 0
    step, low = 1, total
    while not same(low):  # the common case: all but the last few
        low, step = max(1, low - step), step * 2
    high = min(total, low + step // 2)
    while low < high:
        middle = (low + high + 1) // 2
        if same(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _scan(text: str, list_key: str) -> BodyScan:
    at = _skip(text, 0)
    _expect(text, at, "{")
    before, at = _members(text, _skip(text, at + 1), list_key)
    list_start = at
    _expect(text, at, "[")
    found, at = _elements(text, _skip(text, at + 1))
    after, _ = _rest(text, at, list_key)
    fields = {member.key: member for member in (*before, *after)}
    values = {index: item.value for index, item in enumerate(found)}
    starts, ends = [item.start for item in found], [item.end for item in found]
    return BodyScan(text, list_start, at, starts, ends, values, 0, fields)


def _continue(text: str, list_key: str, previous: BodyScan, shared: int) -> BodyScan:
    """Scan a body that begins like the previous one, up to the end of the first `shared` messages."""
    at = _skip(text, previous.ends[shared - 1])
    found: list[Slice] = []
    if text[at] == ",":
        found, at = _elements(text, _skip(text, at + 1))
    else:
        _expect(text, at, "]")
        at += 1
    starts = previous.starts[:shared] + [item.start for item in found]
    ends = previous.ends[:shared] + [item.end for item in found]
    values = {index: item.value for index, item in enumerate(found, start=shared)}
    offset = at - previous.list_end
    if text[at:] == previous.text[previous.list_end :]:
        after = [
            item._replace(start=item.start + offset, end=item.end + offset)
            for item in previous.fields.values()
            if item.start >= previous.list_end
        ]
    else:
        after, _ = _rest(text, at, list_key)
    before = [item for item in previous.fields.values() if item.end <= previous.list_start]
    fields = {member.key: member for member in (*before, *after)}
    return BodyScan(text, previous.list_start, at, starts, ends, values, shared, fields)


def _members(text: str, at: int, stop_key: str) -> tuple[list[Slice], int]:
    """The members of the JSON object before the list, and the index at which the list begins."""
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
        _expect(text, at, ",")  # at the end of the object: there is no list
        at = _skip(text, at + 1)


def _rest(text: str, at: int, list_key: str) -> tuple[list[Slice], int]:
    """The members of the JSON object after the list. Raises an error if the list occurs twice."""
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
    """The elements from `at` on, and the index after the closing bracket."""
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
