"""`foldline.wrap`: a copy of a provider's client that folds the history in each of its requests.

    client = foldline.wrap(anthropic.Anthropic(), session=session)
    client.messages.create(model=…, max_tokens=…, messages=messages)     # the whole history, as before

The wrapped client is a copy with the same type. Its requests are changed just before they are sent, so every method
works as before: sync and async, with and without streaming, `parse`, `with_raw_response`, tool runners and chats. An
error of the model reaches you unchanged. If foldline fails, the request is sent unchanged.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, TypeVar

from foldline.errors import InputError
from foldline.integrations.client_exchange import ClientExchange, ClientRequests
from foldline.integrations.http_replies import follow_async_reply, follow_reply
from foldline.proxy.api_calls import api_call
from foldline.session.session import Session
from foldline.view.request_body import BETA_HEADER

Client = TypeVar("Client")


def wrap(client: Client, *, session: Session | None = None) -> Client:
    """A copy of a client of OpenAI, Anthropic or Google. It records its conversation in the session and sends the view.

    Pass the whole history with every call, as you do without foldline. Histories that differ become branches of the
    session. Without `session`, a session in memory with the default policy is used.
    """
    requests = ClientRequests(session if session is not None else Session())
    vendor = type(client).__module__.partition(".")[0]
    wrapped: Client
    if vendor in ("openai", "anthropic"):
        wrapped = _with_http(client, requests)
        return wrapped
    if type(client).__module__.startswith("google.genai"):
        wrapped = _with_api_client(client, requests)
        return wrapped
    raise InputError(
        f"cannot wrap a {type(client).__module__}.{type(client).__name__}",
        hint="pass a client of openai, anthropic or google-genai; for other programs there is `foldline serve`",
    )


# OpenAI and Anthropic: requests of httpx


def _with_http(client: Any, requests: ClientRequests) -> Any:
    """A copy of the client. Its HTTP client is replaced by a copy that folds the bodies of requests."""
    http = copy.copy(client._client)
    is_async = hasattr(http, "aclose")
    http.send = (_async_sender if is_async else _sender)(http, requests)
    http.wrapped_client = client  # a client closes its connections when it is deleted
    return client.copy(http_client=http)


def _sender(http: Any, requests: ClientRequests) -> Callable[..., Any]:
    send = http.send

    def folded_send(request: Any, **options: Any) -> Any:
        exchange = _begin(request, requests)
        if exchange is None:
            return send(request, **options)
        response = send(_folded_request(http, request, exchange), **options)
        follow_reply(response, exchange)
        return response

    return folded_send


def _async_sender(http: Any, requests: ClientRequests) -> Callable[..., Any]:
    send = http.send

    async def folded_send(request: Any, **options: Any) -> Any:
        exchange = await asyncio.to_thread(_begin, request, requests)
        if exchange is None:
            return await send(request, **options)
        response = await send(_folded_request(http, request, exchange), **options)
        await follow_async_reply(response, exchange)
        return response

    return folded_send


def _begin(request: Any, requests: ClientRequests) -> ClientExchange | None:
    call = api_call(request.url.path)
    if request.method != "POST" or call is None:
        return None
    try:
        body = json.loads(request.content)
    except (ValueError, RuntimeError):  # no JSON, or a body that is itself a stream
        return None
    return requests.begin(call, body)


def _folded_request(http: Any, request: Any, exchange: ClientExchange) -> Any:
    """The request with the folded body; the same object if nothing was folded."""
    body = exchange.folded_body
    if body is None:
        return request
    headers = request.headers.copy()
    del headers["content-length"]
    if exchange.betas:
        headers[BETA_HEADER] = ",".join(filter(None, (headers.get(BETA_HEADER), exchange.betas)))
    content = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    return http.build_request(
        request.method, request.url, headers=headers, content=content, extensions=request.extensions
    )


# Google: the calls of its API client


def _with_api_client(client: Any, requests: ClientRequests) -> Any:
    """A copy of the client. Its API client is replaced by a copy that folds the bodies of requests."""
    wrapped, api = copy.copy(client), copy.copy(client._api_client)
    api.request, api.request_streamed = _api_request(api, requests), _api_stream(api, requests)
    api.async_request = _async_api_request(api, requests)
    api.async_request_streamed = _async_api_stream(api, requests)
    api.wrapped_client = client  # a client closes its connections when it is deleted
    wrapped._api_client = api
    wrapped._models = type(client.models)(api)
    wrapped._aio = type(client.aio)(api)
    return wrapped


def _begin_api(path: str, body: Any, requests: ClientRequests) -> tuple[ClientExchange | None, Any]:
    """The exchange of a call, and the body to send."""
    call = api_call("/v1beta/" + path.partition("?")[0].removeprefix("/"))
    exchange = requests.begin(call, body) if call is not None else None
    folded = exchange.folded_body if exchange is not None else None
    return exchange, body if folded is None else folded


def _api_request(api: Any, requests: ClientRequests) -> Callable[..., Any]:
    send = api.request

    def request(http_method: str, path: str, request_dict: Any, *rest: Any, **options: Any) -> Any:
        exchange, body = _begin_api(path, request_dict, requests)
        response = send(http_method, path, body, *rest, **options)
        if exchange is not None:
            exchange.feed((response.body or "").encode())
            exchange.finish()
        return response

    return request


def _api_stream(api: Any, requests: ClientRequests) -> Callable[..., Any]:
    send = api.request_streamed

    def request_streamed(http_method: str, path: str, request_dict: Any, *rest: Any, **options: Any) -> Iterator[Any]:
        exchange, body = _begin_api(path, request_dict, requests)
        try:
            for chunk in send(http_method, path, body, *rest, **options):
                if exchange is not None:
                    exchange.feed(_event(chunk))
                yield chunk
        finally:
            if exchange is not None:
                exchange.finish()

    return request_streamed


def _async_api_request(api: Any, requests: ClientRequests) -> Callable[..., Any]:
    send = api.async_request

    async def async_request(http_method: str, path: str, request_dict: Any, *rest: Any, **options: Any) -> Any:
        exchange, body = await asyncio.to_thread(_begin_api, path, request_dict, requests)
        response = await send(http_method, path, body, *rest, **options)
        if exchange is not None:
            exchange.feed((response.body or "").encode())
            await asyncio.to_thread(exchange.finish)
        return response

    return async_request


def _async_api_stream(api: Any, requests: ClientRequests) -> Callable[..., Any]:
    send = api.async_request_streamed

    async def async_request_streamed(
        http_method: str, path: str, request_dict: Any, *rest: Any, **options: Any
    ) -> AsyncIterator[Any]:
        exchange, body = await asyncio.to_thread(_begin_api, path, request_dict, requests)
        chunks = await send(http_method, path, body, *rest, **options)
        return _async_chunks(chunks, exchange) if exchange is not None else chunks

    return async_request_streamed


async def _async_chunks(chunks: Any, exchange: ClientExchange) -> AsyncIterator[Any]:
    try:
        async for chunk in chunks:
            exchange.feed(_event(chunk))
            yield chunk
    finally:
        await asyncio.to_thread(exchange.finish)


def _event(chunk: Any) -> bytes:
    return f"data: {chunk.body}\n\n".encode()
