"""Passes on a response in which the model may call the recall tool. The proxy answers the calls.

The client never sees a recall call. A stream is passed on event by event until a recall call begins; the rest of the
stream is held back. The call is answered from the ledger, and the request is sent again with the call and its result
added at the end. The recall call is cut out of the first reply. The client gets the rest of the first reply and the
next reply, joined to one reply. If the first reply also calls tools of the client, the client answers its own calls
first. The proxy then adds the recall call and its result to the client's next request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from foldline.errors import WireError
from foldline.json_text import decode, dumps, encode, loads
from foldline.message import Message, Usage
from foldline.proxy.body_bytes import Send
from foldline.proxy.body_scan import scan_body
from foldline.proxy.forwarded_headers import header, to_client
from foldline.proxy.interception import ReceivedResponse
from foldline.proxy.recall_replies import (
    exchange_elements,
    is_call_event,
    joined_reply,
    recall_calls,
    rest_of_stream,
    with_more_elements,
    without_recall,
)
from foldline.proxy.upstream_client import UpstreamFailed
from foldline.wire.formats import request_format
from foldline.wire.streaming.assembler import Assembler, StreamedReply

MAX_CALLS = 4
"""Maximum number of replies in a row whose recall calls are answered for one request of a client."""
_ENDS = (b"\n\n", b"\r\n\r\n")


class FollowUpFailed(Exception):
    """The request that contains the answer to a recall call got no usable reply."""


@dataclass(slots=True)
class RecallTrail:
    """The recall calls that were answered for one request of a client."""

    calls: int = 0
    usages: list[Usage] = field(default_factory=list)
    """The usage of each reply before the last one."""
    elements: list[str] = field(default_factory=list)
    """The replies with recall calls, the results of these calls, and the last reply, each as JSON text.

    The client receives these replies as one joined reply, without recall calls. When the client sends the joined reply
    back, the proxy replaces it by these messages.
    """


Answer = Callable[[Sequence[Any]], Awaitable[list[Message]]]
"""A function that takes recall calls and returns the messages with their results."""
Post = Callable[[bytes], Awaitable[aiohttp.ClientResponse]]
"""A function that sends a body to the provider."""


class RecallRelay:
    """Handles the recall calls in the replies to one request."""

    def __init__(self, format: str, body: bytes, answer: Answer, post: Post, *, limit: int) -> None:
        self.format, self._body, self._answer, self._post = format, body, answer, post
        self._limit = limit
        self.trail = RecallTrail()

    async def whole(self, data: bytes) -> bytes:
        """The body that the client gets for a response that is not streamed."""
        reply = self._assembled(data)
        joined = await self._follow(reply)
        return data if joined is None else encode(dumps(joined[0]))

    async def rest(self, relayed: bytes, held: bytes) -> tuple[bytes, dict[str, Any]]:
        """The rest of a stream for the client, and the whole reply as a JSON value.

        `relayed` are the events before the first recall call; `held` are the events of this call and all later events.
        """
        reply = self._assembled(relayed + held)
        first = _first_event(held)
        at = int(first.get("index", first.get("output_index", 0)) or 0) if isinstance(first, dict) else 0
        own = Assembler(self.format)
        own.feed(held)
        part = own.finish() if self.format in ("openai", "gemini") else None
        part_value = without_recall(self.format, part.value) if part is not None and part.value else {}
        joined = await self._follow(reply, part_value)
        if joined is None:
            raise FollowUpFailed("the reply has no recall call")
        value, tail = joined
        body = loads(decode(self._body))
        shows_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        return rest_of_stream(self.format, value, tail, at, shows_usage=shows_usage), value

    async def _follow(
        self, reply: StreamedReply, held: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Answer the recall calls of a reply and of the replies after it.

        `held` is the part of `reply` that the client has not received yet. If `reply` has no recall call, returns None.
        Otherwise returns two values: the reply joined from `reply` and the replies after it, and the part of this
        joined reply that the client has not received yet.
        """
        calls, has_others = recall_calls(reply.messages)
        if not calls or reply.value is None:
            return None
        format, joined, tail = request_format(self.format), without_recall(self.format, reply.value), held or {}
        while calls:
            if self.trail.calls >= MAX_CALLS:
                raise FollowUpFailed("too many recall calls in a row")
            self.trail.calls += 1
            results = await self._answer(calls)
            added = [*exchange_elements(format, reply.messages), *exchange_elements(format, results)]
            self.trail.elements += added
            if has_others:  # the client sends the results of these calls with its next request
                return joined, tail
            if reply.usage is not None:
                self.trail.usages.append(reply.usage)
            self._body = with_more_elements(scan_body(self._body, format.list_key), added)
            reply = await self._next_reply()
            assert reply.value is not None  # noqa: S101 (for the type checker)
            value = without_recall(self.format, reply.value)
            joined = joined_reply(self.format, joined, value)
            tail = joined_reply(self.format, tail, value) if tail else value
            calls, has_others = recall_calls(reply.messages)
        self.trail.elements += exchange_elements(format, reply.messages)
        return joined, tail

    async def _next_reply(self) -> StreamedReply:
        try:
            response = await self._post(self._body)
        except UpstreamFailed as error:
            raise FollowUpFailed(str(error)) from None
        async with response:
            if response.status != 200:
                raise FollowUpFailed(f"the provider answered with status {response.status}")
            chunks, size = [], 0
            async for chunk in response.content.iter_any():
                chunks.append(chunk)
                size += len(chunk)
                if size > self._limit:
                    raise FollowUpFailed(f"the reply has more than {self._limit:,} bytes")
        return self._assembled(b"".join(chunks))

    def _assembled(self, data: bytes) -> StreamedReply:
        assembler = Assembler(self.format)
        assembler.feed(data)
        reply = assembler.finish()
        if reply is None or not reply.complete or reply.value is None:
            raise FollowUpFailed("the reply is not complete")
        return reply


class CallFinder:
    """Splits a stream into the events before the first recall call, and the rest, which begins with this call."""

    def __init__(self, format: str) -> None:
        self._format = format
        self._pending = b""
        self.relayed: list[bytes] = []
        self.held: list[bytes] = []

    def feed(self, chunk: bytes) -> bytes:
        """The bytes that may be passed on now: all complete events before the first recall call."""
        if self.held:
            self.held.append(chunk)
            return b""
        data, passed = self._pending + chunk, []
        while data:
            end = min((at + len(mark) for mark in _ENDS if (at := data.find(mark)) >= 0), default=0)
            if not end:
                break
            if b'"recall"' in data[:end] and is_call_event(self._format, _first_event(data[:end])):
                self.held.append(data)
                data = b""
                break
            passed.append(data[:end])
            data = data[end:]
        self._pending = data
        self.relayed += passed
        return b"".join(passed)

    def close(self) -> bytes:
        """The incomplete event at the end of the stream."""
        rest, self._pending = self._pending, b""
        self.relayed.append(rest)
        return rest


def _first_event(data: bytes) -> Any:
    """The JSON value of the first event; None if there is none."""
    for line in data.splitlines():
        if line.startswith(b"data:"):
            try:
                return loads(decode(line[5:].strip()))
            except WireError:
                return None
    return None


def can_have_recall(response: aiohttp.ClientResponse) -> bool:
    """Whether the proxy can find recall calls in a response: the status is 200, and the body is not compressed."""
    return response.status == 200 and not header(response.raw_headers, b"content-encoding")


async def relay_with_recall(
    relay: RecallRelay,
    chunks: AsyncIterator[bytes],
    kept: ReceivedResponse,
    send: Send,
    notes: tuple[tuple[str, str], ...],
) -> None:
    """Remove the recall calls from a response, and send it to the client. `kept` gets the reply as the client sees it.

    The caller sends the end of the response. If a call cannot be answered, `FollowUpFailed` is raised for a stream, and
    `UpstreamFailed` for any other response.
    """
    if "event-stream" not in header(kept.headers, b"content-type"):
        try:
            data = await relay.whole(b"".join([chunk async for chunk in chunks]))
        except FollowUpFailed as error:
            raise UpstreamFailed(502, f"foldline: a recall call could not be answered ({error})") from None
        headers = [(name, value) for name, value in kept.headers if name.lower() != b"content-length"]
        headers.append((b"content-length", str(len(data)).encode()))
        await send({"type": "http.response.start", "status": kept.status, "headers": to_client(headers, notes)})
        await send({"type": "http.response.body", "body": data, "more_body": True})
        kept.chunks = [data]
        return
    await send({"type": "http.response.start", "status": kept.status, "headers": to_client(kept.headers, notes)})
    finder = CallFinder(relay.format)
    async for chunk in chunks:
        passed = finder.feed(chunk)
        if passed:
            await send({"type": "http.response.body", "body": passed, "more_body": True})
    if finder.held:
        rest, value = await relay.rest(b"".join(finder.relayed), b"".join(finder.held))
        kept.chunks = [encode(dumps(value))]
    else:
        rest = finder.close()
        kept.chunks = finder.relayed
    await send({"type": "http.response.body", "body": rest, "more_body": True})
