"""One exchange: a client's request is sent to the provider, and the response is passed on as it arrives.

The client's bytes are sent unless the interceptor replaces them. Every chunk of a response is passed on before it is
kept for the record. If the client closes its connection, the request to the provider is cancelled. If the provider's
response is incomplete, the client's connection is closed, so that the client notices the fault.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeAlias

import aiohttp
from yarl import URL

from foldline.events import LOG
from foldline.proxy.api_calls import api_call
from foldline.proxy.body_bytes import BodyTooLarge, ClientGone, Receive, Send, body_pieces, read_body
from foldline.proxy.error_answers import TOO_LARGE, ErrorAnswer
from foldline.proxy.forwarded_headers import header, to_client, to_upstream, with_betas
from foldline.proxy.interception import ClientRequest, Interceptor, OutgoingRequest, OwnAnswer, ReceivedResponse
from foldline.proxy.recall_relay import FollowUpFailed, RecallRelay, can_have_recall, relay_with_recall
from foldline.proxy.response_reading import BROKEN, ResponseBeginning, all_chunks, read_beginning, read_error
from foldline.proxy.upstream_client import UpstreamClient, UpstreamFailed
from foldline.proxy.upstreams import Upstreams, target
from foldline.redact.redact import redact_error

Scope: TypeAlias = MutableMapping[str, Any]

WATCH_S = 0.01
"""Seconds after which the proxy begins to watch whether the client closes its connection."""
RECORD_S = 2.0
"""Maximum number of seconds for which the end of a response is held back until the exchange is recorded."""


class Exchanges:
    """Passes requests on to the providers."""

    def __init__(
        self, upstreams: Upstreams, client: UpstreamClient, interceptor: Interceptor, *, max_bytes: int
    ) -> None:
        self.upstreams, self.client, self.interceptor, self.max_bytes = upstreams, client, interceptor, max_bytes

    async def run(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        exchange = _Exchange(self, scope, send)
        try:
            body = await exchange.read(receive)
        except ClientGone:
            return
        except BodyTooLarge:
            await exchange.refuse(ErrorAnswer(413, TOO_LARGE.format(limit=self.max_bytes)), close=True)
            return
        if body is None:  # only `respond` may call `receive`, because it passes the body on while it arrives
            await exchange.respond(body_pieces(receive, limit=self.max_bytes))
            return
        async with _cancelled_when_gone(receive):
            await exchange.respond(body)


@asynccontextmanager
async def _cancelled_when_gone(receive: Receive) -> AsyncIterator[None]:
    """Cancels the `with` block when the client closes its connection."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    gone: asyncio.Future[None] | None = None
    assert task is not None  # noqa: S101 (for the type checker)

    def watch() -> None:
        nonlocal gone
        gone = asyncio.ensure_future(_until_gone(receive))
        gone.add_done_callback(cancel)

    def cancel(_: asyncio.Future[None]) -> None:
        task.cancel()

    timer = loop.call_later(WATCH_S, watch)  # not at once, because sending the request is more urgent
    try:
        yield
    except asyncio.CancelledError:
        if gone is None or not gone.done() or task.uncancel():  # the server stops
            raise
    finally:
        timer.cancel()
        if gone is not None:
            gone.remove_done_callback(cancel)
            gone.cancel()


async def _until_gone(receive: Receive) -> None:
    """Wait until the client has closed its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


class _Exchange:
    """The state of one exchange."""

    def __init__(self, parent: Exchanges, scope: Scope, send: Send) -> None:
        self.parent, self.scope, self.send = parent, scope, send
        self.headers = scope["headers"]
        self.path: bytes = scope.get("raw_path") or scope["path"].encode()
        is_post = scope["method"] == "POST"
        self.call = api_call(self.path.decode("latin-1")) if is_post else None
        self.format = self.call.format if self.call else ""
        self.has_recorded = False

    async def read(self, receive: Receive) -> bytes | None:
        """The request's body; None if the body is passed on while it arrives."""
        limit, length = self.parent.max_bytes, header(self.headers, b"content-length")
        if length.isdecimal() and int(length) > limit:
            raise BodyTooLarge
        has_body = length not in ("", "0") or bool(header(self.headers, b"transfer-encoding"))
        if self.call is None and has_body:
            return None
        return await read_body(receive, limit=limit)

    async def refuse(self, error: ErrorAnswer, *, close: bool = False) -> None:
        """Answer with an error that foldline writes itself."""
        body = error.body(self.format)
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        headers += [(b"connection", b"close")] * close + [(b"x-foldline-error", b"1")]
        await self.send({"type": "http.response.start", "status": error.status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})

    async def respond(self, body: bytes | AsyncIterator[bytes]) -> None:
        """Send the request to the provider, and the provider's response to the client."""
        base = self.parent.upstreams.choose(self.call.vendor if self.call else None, self.headers)
        url = target(base, self.path, self.scope.get("query_string", b"")) if base is not None else None
        if url is None:
            why = "this path is not allowed" if base is not None else "no upstream is configured for this path"
            await self.refuse(ErrorAnswer(400 if base is not None else 404, f"foldline: {why}"))
            return
        try:
            if self.call is None or not isinstance(body, bytes):
                await self._pass(url, body)
            else:
                query = self.scope.get("query_string", b"")
                await self._intercept(url, ClientRequest(call=self.call, headers=self.headers, body=body, query=query))
        except UpstreamFailed as error:
            await self.refuse(ErrorAnswer(error.status, str(error)))
        except BodyTooLarge:
            await self.refuse(ErrorAnswer(413, TOO_LARGE.format(limit=self.parent.max_bytes)), close=True)
        except ClientGone:
            return

    async def _pass(self, url: URL, body: bytes | AsyncIterator[bytes]) -> None:
        """Pass on a request that foldline does not read."""
        length = len(body) if isinstance(body, bytes) else None
        headers = to_upstream(self.headers, length or None)
        declared = header(self.headers, b"content-length")
        if length is None and declared.isdecimal():
            headers.append(("content-length", declared))
        response = await self.parent.client.send(self.scope["method"], url, headers, body or None)
        async with response:
            await self._relay(response, None, ())

    async def _intercept(self, url: URL, request: ClientRequest) -> None:
        """Send a request that foldline reads.

        If the provider refuses the request, the interceptor may return another request, which is then sent.
        """
        interceptor = self.parent.interceptor
        outgoing = await interceptor.prepare(request)
        if outgoing.answer is not None:
            await self._send_own(outgoing.answer, outgoing.notes)
            return
        kept, begun = ReceivedResponse(status=0, headers=()), ResponseBeginning()
        try:
            response = await self._post(url, outgoing)
            if response.status >= 400:
                async with response:
                    kept = await read_error(response)
                again = await interceptor.retry(request, outgoing, kept)
                if again is None:
                    await self._answer(kept, outgoing.notes)
                    return
                outgoing, response = again, await self._post(url, again)
            elif outgoing.is_large:
                begun = await read_beginning(response)
                again = await interceptor.retry(request, outgoing, begun.refusal) if begun.refusal else None
                if again is not None:
                    response.close()
                    outgoing, response, begun = again, await self._post(url, again), ResponseBeginning()
            kept = ReceivedResponse(status=response.status, headers=response.raw_headers)
            try:
                async with response:
                    if outgoing.offers_recall and can_have_recall(response):
                        if await self._relay_with_recall(url, outgoing, all_chunks(response, begun.chunks), kept):
                            await self._record(request, outgoing, kept)
                            await self.send({"type": "http.response.body", "body": b""})
                    else:
                        await self._relay(
                            response, kept, outgoing.notes, lambda: self._record(request, outgoing, kept), begun.chunks
                        )
            except BaseException:
                response.close()
                raise
        finally:
            self._begin_record(request, outgoing, kept)

    async def _relay_with_recall(
        self, url: URL, outgoing: OutgoingRequest, chunks: AsyncIterator[bytes], kept: ReceivedResponse
    ) -> bool:
        """Send a response, and answer its recall calls. Returns False if the response could not be completed."""
        interceptor, limit = self.parent.interceptor, self.parent.max_bytes
        relay = RecallRelay(
            self.format,
            outgoing.body,
            lambda calls: interceptor.recall(outgoing, calls),
            lambda body: self._post(url, replace(outgoing, body=body)),
            limit=limit,
        )
        try:
            await relay_with_recall(relay, chunks, kept, self.send, outgoing.notes)
        except (*BROKEN, FollowUpFailed) as error:
            LOG.warning("a response could not be completed (%s: %s)", type(error).__name__, redact_error(error))
            return False
        finally:
            outgoing.ticket.recall = relay.trail
        kept.is_complete = True
        return True

    async def _post(self, url: URL, outgoing: OutgoingRequest) -> aiohttp.ClientResponse:
        headers = to_upstream(self.headers, len(outgoing.body))
        if outgoing.is_rewritten:
            headers = [(name, value) for name, value in headers if name.lower() != "content-encoding"]
        if outgoing.offers_recall:
            headers = [(name, value) for name, value in headers if name.lower() != "accept-encoding"]
            headers.append(("accept-encoding", "identity"))
        if outgoing.betas:
            headers = with_betas(headers, outgoing.betas)
        return await self.parent.client.send("POST", url, headers, outgoing.body)

    async def _send_own(self, answer: OwnAnswer, notes: tuple[tuple[str, str], ...]) -> None:
        """Send a response that foldline wrote itself."""
        kind, length = answer.content_type.encode(), str(len(answer.body)).encode()
        headers = to_client([(b"content-type", kind), (b"content-length", length)], notes)
        await self.send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await self.send({"type": "http.response.body", "body": answer.body})

    async def _answer(self, response: ReceivedResponse, notes: tuple[tuple[str, str], ...]) -> None:
        """Send a response that was read completely."""
        headers = to_client(response.headers, notes)
        await self.send({"type": "http.response.start", "status": response.status, "headers": headers})
        await self.send({"type": "http.response.body", "body": b"".join(response.chunks)})

    async def _relay(
        self,
        response: aiohttp.ClientResponse,
        kept: ReceivedResponse | None,
        notes: tuple[tuple[str, str], ...],
        ended: Callable[[], Awaitable[None]] | None = None,
        begun: Sequence[bytes] = (),
    ) -> None:
        """Send a response chunk by chunk.

        `begun` are chunks that were already read. `ended` is called before the end of the response is sent. If the
        provider's response is incomplete, its end is not sent, and the server closes the connection.
        """
        headers = to_client(response.raw_headers, notes)
        await self.send({"type": "http.response.start", "status": response.status, "headers": headers})
        try:
            for chunk in begun:
                await self.send({"type": "http.response.body", "body": chunk, "more_body": True})
                if kept is not None:
                    kept.keep(chunk, self.parent.max_bytes)
            async for chunk in response.content.iter_any():
                await self.send({"type": "http.response.body", "body": chunk, "more_body": True})
                if kept is not None:
                    kept.keep(chunk, self.parent.max_bytes)
        except BROKEN as error:
            LOG.warning("the provider broke off a response (%s)", type(error).__name__)
            return
        if kept is not None:
            kept.is_complete = True
        if ended is not None:
            await ended()
        await self.send({"type": "http.response.body", "body": b""})

    async def _record(self, request: ClientRequest, outgoing: OutgoingRequest, kept: ReceivedResponse) -> None:
        """Record the exchange, and wait for at most `RECORD_S` seconds until it is recorded.

        This is called before the end of the response is sent. So when the client receives the end, the exchange is in
        the ledger, unless recording took longer than `RECORD_S`.
        """
        recorded = self._begin_record(request, outgoing, kept)
        if recorded is not None:
            await asyncio.wait([recorded], timeout=RECORD_S)

    def _begin_record(
        self, request: ClientRequest, outgoing: OutgoingRequest, kept: ReceivedResponse
    ) -> asyncio.Future[None] | None:
        if self.has_recorded:
            return None
        self.has_recorded = True
        return self.parent.interceptor.record(request, outgoing, kept)
