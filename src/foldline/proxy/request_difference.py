"""Compares a request with the previous request as a prompt cache does, and finds the first difference.

A prompt cache compares tools, system text and messages, in this order, regardless of their order in the body. Cache
breakpoints are instructions to the cache and not part of the prompt, so they are left out of the comparison.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from hashlib import blake2b
from itertools import zip_longest
from typing import Any, NamedTuple

from foldline.json_text import encode
from foldline.proxy.body_scan import BodyScan, NotScannable, common_length, scan_body
from foldline.wire.formats import Format

_TOOLS = ("tools", "functions")
_SETTINGS: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("tool_choice", "thinking", "output_config", "speed"),
    "openai": ("tool_choice", "response_format", "reasoning_effort", "prompt_cache_key"),
    "openai-responses": ("tool_choice", "text", "reasoning", "prompt_cache_key"),
    "gemini": ("toolConfig", "cachedContent"),
}
"""For each format, the fields that make the cached messages invalid if they change."""
_MARKS = frozenset({"cache_control", "prompt_cache_breakpoint"})
_MARK = re.compile(r'(?:,[ \t\n\r]{0,9})?"cache_control"[ \t]{0,9}:[ \t]{0,9}\{[^{}]{0,200}\}')
_LEADING = frozenset({"system", "developer"})


class Difference(NamedTuple):
    """Where two requests begin to differ."""

    kind: str
    """`tools`, `system`, `settings` or `history`."""
    path: str
    offset: int
    """Index of the first byte at which the newer body differs from the older body."""


def field_hashes(scan: BodyScan, format: Format) -> dict[str, str]:
    """Short hashes of tools, system text and settings of a request, without their cache breakpoints."""
    found = {kind: "".join(map(scan.field_text, keys)) for kind, keys in _fields(format).items()}
    return {kind: _hash(text) for kind, text in found.items() if text}


def first_difference(before: bytes, after: bytes, format: Format) -> Difference | None:
    """The first difference between two request bodies; None if the newer body only adds messages to the older body.

    >>> from foldline.wire.formats import request_format
    >>> first_difference(b'{"messages": [1, 2]}', b'{"messages": [1, 3, 4]}', request_format("anthropic"))
    Difference(kind='history', path='messages[1]', offset=17)
    """
    try:
        old, new = scan_body(before, format.list_key), scan_body(after, format.list_key)
    except NotScannable:
        return None
    for kind, keys in _fields(format).items():
        for key in keys:
            found = _field_difference(old, new, key)
            if found is not None:
                return Difference(kind, *found)
    return _element_difference(old, new, format)


def _fields(format: Format) -> dict[str, tuple[str, ...]]:
    """The names of the request fields that hold the tools, the system text and the settings.

    They are in the order in which a cache compares them.
    """
    return {"tools": _TOOLS, "system": (format.system_key,), "settings": _SETTINGS.get(format.name, ())}


def _field_difference(old: BodyScan, new: BodyScan, key: str) -> tuple[str, int] | None:
    before, after = old.field(key), new.field(key)
    if old.field_text(key) == new.field_text(key) or without_marks(before) == without_marks(after):
        return None
    member = new.fields.get(key)
    start = member.start if member is not None else new.list_start
    path = key
    if isinstance(before, list) and isinstance(after, list):
        pairs = zip_longest(before, after, fillvalue=_MARKS)
        index = next((at for at, (one, other) in enumerate(pairs) if without_marks(one) != without_marks(other)), 0)
        path = f"{key}[{index}]"
    return path, start + common_length(_field_bytes(old, key), _field_bytes(new, key))


def _element_difference(old: BodyScan, new: BodyScan, format: Format) -> Difference | None:
    for index in range(len(old.ends)):
        path = f"{format.list_key}[{index}]"
        if index >= len(new.ends):
            return Difference("history", path, new.list_end - 1)
        before, after = old.element(index), new.element(index)
        if before == after or without_marks(old.values[index]) == without_marks(new.values[index]):
            continue
        value = new.values[index]
        is_system = isinstance(value, dict) and value.get("role") in _LEADING and format.name != "anthropic"
        offset = new.starts[index] + common_length(before, after)
        return Difference("system" if is_system and _is_leading(new, index) else "history", path, offset)
    return None


def _is_leading(scan: BodyScan, index: int) -> bool:
    """Whether all messages before an index are system messages."""
    return all(isinstance(one := scan.values[at], dict) and one.get("role") in _LEADING for at in range(index))


def without_marks(value: Any) -> Any:
    """A JSON value without cache breakpoints. Content that is a text becomes a list with one text block."""
    if isinstance(value, dict):
        kept = {key: without_marks(item) for key, item in value.items() if key not in _MARKS}
        if isinstance(kept.get("content"), str) and "role" in kept:
            kept["content"] = [{"type": "text", "text": kept["content"]}]
        return kept
    return [without_marks(item) for item in value] if isinstance(value, list) else value


def _hash(text: str) -> str:
    if "cache_control" in text:
        text = _MARK.sub("", text).replace("{,", "{")
    return blake2b(encode(text), digest_size=8).hexdigest()


def _field_bytes(scan: BodyScan, key: str) -> bytes:
    found = scan.fields.get(key)
    return b"" if found is None else scan.data[found.start : found.end]


def repeated_share(before: bytes, after: bytes, format: Format) -> float:
    """The share of the previous request that is still in the newer request, computed from the number of bytes.

    In a field that changed, the unchanged beginning and end count as still in the request. A message that changed does
    not count at all.
    """
    try:
        old, new = scan_body(before, format.list_key), scan_body(after, format.list_key)
    except NotScannable:
        return 1.0
    size = kept = 0
    for key in (*_TOOLS, format.system_key):
        one, other = _field_bytes(old, key), _field_bytes(new, key)
        same = common_length(one, other)
        size += len(one)
        kept += same + common_length(one[same:][::-1], other[same:][::-1])
    repeated = Counter(str(without_marks(value)) for value in new.values.values())
    for index, value in old.values.items():
        length, name = len(old.element(index)), str(without_marks(value))
        size += length
        kept += length if repeated[name] > 0 else 0
        repeated[name] -= 1
    return kept / max(1, size)


def added_blocks(before: bytes, after: bytes, format: Format) -> int:
    """The number of content blocks in the messages that a request adds to the messages of the previous request."""
    try:
        old, new = scan_body(before, format.list_key), scan_body(after, format.list_key)
    except NotScannable:
        return 0
    values = [new.values[index] for index in range(len(old.ends), len(new.ends))]
    contents = [value.get("content") if isinstance(value, dict) else None for value in values]
    return sum(len(content) if isinstance(content, list) else 1 for content in contents)
