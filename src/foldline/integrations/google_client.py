"""Folds the requests of a google-genai client. The four methods of its API client that send requests are replaced."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import chain, islice
from typing import Any

from foldline.integrations.client_exchange import ClientExchange, ClientRequests
from foldline.proxy.api_calls import api_call
from foldline.wire.overflow_signals import is_overflow


def with_api_client(client: Any, requests: ClientRequests) -> Any:
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


def _fold_if_too_large(error: Exception, exchange: ClientExchange) -> bool:
    """Fold the session if `error` says that the request was too large. Returns whether the session was folded."""
    return is_overflow(error) and exchange.fold_refused()


def _api_request(api: Any, requests: ClientRequests) -> Callable[..., Any]:
    send = api.request

    def request(http_method: str, path: str, request_dict: Any, *rest: Any, **options: Any) -> Any:
        exchange, body = _begin_api(path, request_dict, requests)
        try:
            response = send(http_method, path, body, *rest, **options)
        except Exception as error:
            if exchange is None or not _fold_if_too_large(error, exchange):
                raise
            response = send(http_method, path, exchange.folded_body, *rest, **options)
        if exchange is not None:
            exchange.feed((response.body or "").encode())
            exchange.finish()
        return response

    return request


def _api_stream(api: Any, requests: ClientRequests) -> Callable[..., Any]:
    send = api.request_streamed

    def request_streamed(http_method: str, path: str, request_dict: Any, *rest: Any, **options: Any) -> Iterator[Any]:
        exchange, body = _begin_api(path, request_dict, requests)
        if exchange is None:
            yield from send(http_method, path, body, *rest, **options)
            return
        chunks = send(http_method, path, body, *rest, **options)
        try:
            try:
                begun = list(islice(chunks, 1))
            except Exception as error:
                if not _fold_if_too_large(error, exchange):
                    raise
                chunks, begun = send(http_method, path, exchange.folded_body, *rest, **options), []
            for chunk in chain(begun, chunks):
                exchange.feed(_event(chunk))
                yield chunk
        finally:
            exchange.finish()

    return request_streamed


def _async_api_request(api: Any, requests: ClientRequests) -> Callable[..., Any]:
    send = api.async_request

    async def async_request(http_method: str, path: str, request_dict: Any, *rest: Any, **options: Any) -> Any:
        exchange, body = await asyncio.to_thread(_begin_api, path, request_dict, requests)
        try:
            response = await send(http_method, path, body, *rest, **options)
        except Exception as error:
            if exchange is None or not await asyncio.to_thread(_fold_if_too_large, error, exchange):
                raise
            response = await send(http_method, path, exchange.folded_body, *rest, **options)
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
        try:
            chunks = await send(http_method, path, body, *rest, **options)
        except Exception as error:
            if exchange is None or not await asyncio.to_thread(_fold_if_too_large, error, exchange):
                raise
            chunks = await send(http_method, path, exchange.folded_body, *rest, **options)
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
