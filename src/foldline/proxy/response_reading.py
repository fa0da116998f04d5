"""Reads a response before it is passed on.

The beginning of a stream is read to find a refusal in the stream. An error response is read completely.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import NamedTuple

import aiohttp

from foldline.proxy.forwarded_headers import header
from foldline.proxy.interception import ReceivedResponse
from foldline.proxy.upstream_client import UpstreamFailed
from foldline.wire.overflow_signals import stream_overflow

ERROR_BYTES = 1 << 20
"""Maximum size of an error body in bytes. An error body is read completely before it is passed on."""
HOLD_S = 10.0
"""Maximum number of seconds for which the beginning of a response to a large request is held back."""
BROKEN = (aiohttp.ClientError, ConnectionError, TimeoutError, asyncio.IncompleteReadError)
"""The exceptions that are raised if a response breaks off while it is read."""


async def all_chunks(response: aiohttp.ClientResponse, begun: Sequence[bytes]) -> AsyncIterator[bytes]:
    """All chunks of a response. `begun` are chunks that were already read."""
    for chunk in begun:
        yield chunk
    async for chunk in response.content.iter_any():
        yield chunk


class ResponseBeginning(NamedTuple):
    """The beginning of a response, which has not been passed on yet."""

    chunks: Sequence[bytes] = ()
    refusal: ReceivedResponse | None = None
    """The refusal in the response, if the request does not fit the window; else None."""


async def read_beginning(response: aiohttp.ClientResponse) -> ResponseBeginning:
    """Read a response until it is clear whether the request fitted the window."""
    chunks: list[bytes] = []
    if header(response.raw_headers, b"content-encoding"):
        return ResponseBeginning()
    with suppress(TimeoutError, *BROKEN):  # the same error is raised again when the rest is read
        async with asyncio.timeout(HOLD_S):
            while sum(map(len, chunks)) < ERROR_BYTES:
                chunk = await response.content.readany()
                if not chunk:
                    break
                chunks.append(chunk)
                error = stream_overflow(b"".join(chunks))
                if error:
                    refusal = ReceivedResponse(status=400, headers=(), chunks=[error], is_complete=True)
                    return ResponseBeginning(chunks, refusal)
                if error is not None:
                    break
    return ResponseBeginning(chunks)


async def read_error(response: aiohttp.ClientResponse) -> ReceivedResponse:
    """Read an error response to its end."""
    kept = ReceivedResponse(status=response.status, headers=response.raw_headers)
    try:
        async for chunk in response.content.iter_any():
            kept.chunks.append(chunk)
            kept.size += len(chunk)
            if kept.size > ERROR_BYTES:
                raise UpstreamFailed(502, f"foldline: the provider sent an error of more than {ERROR_BYTES:,} bytes")
        kept.is_complete = True
    except BROKEN as error:
        raise UpstreamFailed(502, f"foldline: the provider broke off its answer ({type(error).__name__})") from None
    return kept
