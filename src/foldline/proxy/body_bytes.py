"""Reads the bytes of a request body from the connection, up to a limit. `body_scan.py` finds the messages in them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias

Receive: TypeAlias = Callable[[], Awaitable[Any]]
Send: TypeAlias = Callable[[Any], Awaitable[None]]


class ClientGone(Exception):
    """The client closed its connection before its request was complete."""


class BodyTooLarge(Exception):
    """The body has more bytes than allowed."""


async def read_body(receive: Receive, *, limit: int) -> bytes:
    """The whole body. Raises `BodyTooLarge` as soon as more than `limit` bytes have arrived."""
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body"):  # usually the body is one piece
        data: bytes = message.get("body", b"")
        if len(data) > limit:
            raise BodyTooLarge
        return data
    pieces, size = [], 0
    while True:
        if message["type"] == "http.disconnect":
            raise ClientGone
        piece = message.get("body", b"")
        pieces.append(piece)
        size += len(piece)
        if size > limit:
            raise BodyTooLarge
        if not message.get("more_body"):
            return b"".join(pieces)
        message = await receive()


async def body_pieces(receive: Receive, *, limit: int) -> AsyncIterator[bytes]:
    """Yields the pieces of the body as they arrive. Raises `BodyTooLarge` after `limit` bytes."""
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        piece = message.get("body", b"")
        size += len(piece)
        if size > limit:
            raise BodyTooLarge
        if piece:
            yield piece
        if not message.get("more_body"):
            return
