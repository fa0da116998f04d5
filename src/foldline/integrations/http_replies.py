"""Passes a copy of each HTTP reply to an exchange, while the client reads it.

The response object stays the client's own. Only its methods `iter_bytes` and `close` (or `aiter_bytes` and `aclose`)
are replaced; all other ways to read a response use these. If the client closes the response early, the part that was
received is recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

from foldline.integrations.client_exchange import ClientExchange


def follow_reply(response: Any, exchange: ClientExchange) -> None:
    """Record the reply in a response, now or while it is read."""
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
    """Record the reply in a response of an async client, now or while it is read."""
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
