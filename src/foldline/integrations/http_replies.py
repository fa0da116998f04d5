"""Passes a copy of each HTTP reply to an exchange, and finds refusals of requests that are too large.

The reply is copied while the client reads it. In the client's response object, only the methods `iter_bytes` and
`close` (or `aiter_bytes` and `aclose`) are replaced, because all other methods that read a response call these methods.
If the client closes the response early, the part that was received is recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import chain
from typing import Any

from foldline.integrations.client_exchange import ClientExchange
from foldline.wire.overflow_signals import is_overflow_answer, stream_overflow


def refuses_size(response: Any, exchange: ClientExchange) -> bool:
    """Whether a response says that the request does not fit the window.

    An error response is read to its end. If the response to a large request is a stream, the beginning of the stream
    is read.
    """
    if response.status_code != 200:
        return is_overflow_answer(response.status_code, response.read())
    if response.is_closed or not exchange.is_large:
        return response.is_closed and bool(stream_overflow(response.content))
    chunks, begun, found = response.iter_bytes(), b"", None
    for chunk in chunks:
        begun += chunk
        found = stream_overflow(begun)
        if found is not None:
            break
    response.iter_bytes = lambda *_, **__: chain([begun], chunks)
    return bool(found)


async def refuses_size_async(response: Any, exchange: ClientExchange) -> bool:
    """Like `refuses_size`, for a response of an async client."""
    if response.status_code != 200:
        return is_overflow_answer(response.status_code, await response.aread())
    if response.is_closed or not exchange.is_large:
        return response.is_closed and bool(stream_overflow(response.content))
    chunks, begun, found = response.aiter_bytes(), b"", None
    async for chunk in chunks:
        begun += chunk
        found = stream_overflow(begun)
        if found is not None:
            break

    async def aiter_bytes(*_: Any, **__: Any) -> AsyncIterator[bytes]:
        yield begun
        async for chunk in chunks:
            yield chunk

    response.aiter_bytes = aiter_bytes
    return bool(found)


def follow_reply(response: Any, exchange: ClientExchange) -> None:
    """Record the reply in a response: at once if the response was read already, else while the client reads it."""
    if response.status_code != 200:
        return
    if response.is_closed:
        exchange.feed(response.content)
        exchange.finish()
        return
    read, close = response.iter_bytes, response.close

    def iter_bytes(*args: Any, **options: Any) -> Iterator[bytes]:
        for data in read(*args, **options):
            exchange.feed(data)
            yield data
        exchange.finish()

    def finish_and_close() -> None:
        close()
        exchange.finish()

    response.iter_bytes, response.close = iter_bytes, finish_and_close


async def follow_async_reply(response: Any, exchange: ClientExchange) -> None:
    """Like `follow_reply`, for a response of an async client."""
    if response.status_code != 200:
        return
    if response.is_closed:
        exchange.feed(response.content)
        await asyncio.to_thread(exchange.finish)
        return
    read, close = response.aiter_bytes, response.aclose

    async def aiter_bytes(*args: Any, **options: Any) -> AsyncIterator[bytes]:
        async for data in read(*args, **options):
            exchange.feed(data)
            yield data
        await asyncio.to_thread(exchange.finish)

    async def finish_and_aclose() -> None:
        try:
            await close()
        finally:
            exchange.finish()

    response.aiter_bytes, response.aclose = aiter_bytes, finish_and_aclose
