"""Keys and traces: two hashes by which stored messages are found and checked.

A key is the hash of the tenant, the previous message's key, and the message's bytes. So the same history always has the
same keys. If a history is sent again, only its new messages are stored. A fork shares its first messages with the
original branch. A damaged message no longer matches its key.

Clients rarely send a reply back byte for byte: they drop empty fields, move cache marks and omit reasoning. Such a
history is found by its trace. This is a second hash, which covers only texts, calls, results and media.
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
"""The key of an empty history, used as the previous key of the first message."""
_to_json = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str).encode


def link(owner: str, before: bytes, body: bytes) -> bytes:
    """The key of a message with the bytes `body`; `before` is the key of the previous message.

    >>> link("", ROOT, b"{}").hex()
    'dd19b0ef199fd6cce6ce2444203a80786b3abc54'
    """
    name = owner.encode()
    head = len(name).to_bytes(4, "big") + name + len(before).to_bytes(1, "big") + before
    return blake2b(head + body, digest_size=SIZE).digest()


def trace(owner: str, before: bytes, message: Message) -> bytes:
    """The trace of a history that ends with this message.

    `before` is the trace of all earlier messages. A message without content does not change the trace.
    """
    content = list(_content(message.parts))
    if not content:
        return before
    value = [message.role, message.kind, content]
    return link(owner, before, _to_json(value).encode())


def _content(parts: tuple[Part, ...]) -> Iterator[Any]:
    for part in parts:
        match part:
            case Text(text=text):
                if text.strip():
                    yield text
            case ToolCall():
                yield ["call", part.id, part.name, _arguments(part.arguments)]
            case ToolResult():
                yield ["result", part.call_id, list(_content(part.parts))]
            case Media():
                yield ["media", part.kind, part.data or part.url or part.text]
            case Opaque():
                yield ["opaque", part.kind, part.value]


def _arguments(text: str) -> Any:
    """The arguments as a JSON value, because clients may serialize the same value differently.

    Text that is not JSON is returned as it is.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
