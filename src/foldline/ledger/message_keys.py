"""How a message is named: by everything said up to it, and by whose record it is in.

A key is the hash of the owner, the key before it and the very bytes that are stored. So the same history has the same
keys wherever it is written, a client that sends its history again writes only what is new, a fork shares all that came
before, and damage shows wherever it is. Bytes are compared, not meanings: two ways to write the same message are two
messages, or the second client would be given the first one's bytes.

A client that sends a reply back seldom sends the bytes it was given: it drops empty fields, moves cache marks, leaves
reasoning out. Such a history is found by its `trace`, a second chain over what is said, called and answered only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

from foldline.message import Media, Message, Opaque, Part, Text, ToolCall, ToolResult

SIZE = 20
"""Bytes in a key."""
ROOT = b""
"""What stands before the first message."""


def link(owner: str, before: bytes, body: bytes) -> bytes:
    """The key of what follows `before`.

    >>> link("", ROOT, b"{}").hex()
    'dd19b0ef199fd6cce6ce2444203a80786b3abc54'
    """
    name = owner.encode()
    head = len(name).to_bytes(4, "big") + name + len(before).to_bytes(1, "big") + before
    return blake2b(head + body, digest_size=SIZE).digest()


def trace(owner: str, before: bytes, message: Message) -> bytes:
    """The trace of a message that follows `before`; one that says nothing leaves no trace."""
    said = list(_said(message.parts))
    if not said:
        return before
    return link(owner, before, _canonical([message.role, message.kind, said]))


def _said(parts: tuple[Part, ...]) -> Iterator[Any]:
    for part in parts:
        match part:
            case Text(text=text):
                if text.strip():
                    yield text
            case ToolCall():
                yield ["call", part.id, part.name, _arguments(part.arguments)]
            case ToolResult():
                yield ["result", part.call_id, list(_said(part.parts))]
            case Media():
                yield ["media", part.kind, part.data or part.url or part.text]
            case Opaque():
                yield ["opaque", part.kind, part.value]


def _arguments(text: str) -> Any:
    """Arguments by their value, since clients write them anew."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str).encode()
