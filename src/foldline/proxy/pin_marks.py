"""Adds a cache breakpoint after the pinned messages of a folded Anthropic request.

The digest follows the pinned messages, and changes with every fold. Everything before the digest stays the same. With a
breakpoint before the digest, a request after a fold reads the pinned messages from the cache. The breakpoint is added
only if the client sets at least one breakpoint, and fewer than the API allows.
"""

from __future__ import annotations

import re
from typing import Any

from foldline.json_text import decode, dumps, encode, loads
from foldline.view.breakpoints import LIMIT

_KEY = b'"cache_control"'
_VALUE = re.compile(rb"\s{0,9}:\s{0,9}(\{[^{}]{0,200}\})")


def added_mark(body: bytes, list_start: int) -> Any:
    """The `cache_control` value for the breakpoint after the pinned messages; None if none may be added.

    The value is the same as that of the next breakpoint, because a breakpoint with an hour to live must not follow a
    breakpoint with five minutes to live.
    """
    marks: list[tuple[int, bytes]] = []
    at = body.find(_KEY)
    while at >= 0 and len(marks) < LIMIT:
        found = _VALUE.match(body, at + len(_KEY))
        marks += [(at, found[1])] if found else []
        at = body.find(_KEY, at + len(_KEY))
    following = [value for position, value in marks if position > list_start] or [value for _, value in marks]
    if not marks or len(marks) >= LIMIT or len(set(following)) > 1:
        return None
    return loads(decode(following[0]))


def with_mark(element: bytes, mark: Any) -> bytes:
    """A message with a breakpoint at its last block. If the message cannot have a breakpoint, it is returned
    unchanged.
    """
    value = loads(decode(element))
    content = value.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not isinstance(blocks, list) or not blocks or not (blocks[-1].get("text") or "").strip():
        return element
    return encode(dumps({**value, "content": [*blocks[:-1], {**blocks[-1], "cache_control": mark}]}))
