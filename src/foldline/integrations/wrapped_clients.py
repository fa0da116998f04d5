"""`foldline.wrap`: a copy of a provider's client that folds the history in each of its requests.

    client = foldline.wrap(anthropic.Anthropic(), session=session)
    client.messages.create(model=…, max_tokens=…, messages=messages)     # the whole history, as before

The wrapped client is a copy with the same type. Its requests are changed just before they are sent, so every method
works as before: sync and async, with and without streaming, `parse`, `with_raw_response`, tool runners and chats. If
the provider refuses a request as too large, the session is folded and the request is sent once more. Every other error
of the model reaches you unchanged. If foldline fails, the request is sent unchanged.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable
from typing import Any, TypeVar

from foldline.errors import InputError, check_type
from foldline.integrations.client_exchange import ClientExchange, ClientRequests
from foldline.integrations.google_client import with_api_client
from foldline.integrations.http_replies import follow_async_reply, follow_reply, refuses_size, refuses_size_async
from foldline.proxy.api_calls import api_call
from foldline.session.async_session import AsyncSession
from foldline.session.session import Session
from foldline.view.request_body import BETA_HEADER

Client = TypeVar("Client")


def wrap(client: Client, *, session: Session | AsyncSession | None = None) -> Client:
    """A copy of an OpenAI, Anthropic or Google client. The copy records its conversation in the session, and sends the
    view.

    Pass the whole history with every call, as you do without foldline. Histories that differ become branches of the
    session. Without `session`, a session in memory with the default policy is used.
    """
    own = session.session if isinstance(session, AsyncSession) else session or Session()
    check_type(own, Session, "session", hint='wrap(client, session=Session(model="…"))')
    requests = ClientRequests(own)
    vendor = type(client).__module__.partition(".")[0]
    wrapped: Client
    if vendor in ("openai", "anthropic"):
        wrapped = _with_http(client, requests)
        return wrapped
    if type(client).__module__.startswith("google.genai"):
        wrapped = with_api_client(client, requests)
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
        exchange = begin_exchange(request, requests)
        if exchange is None:
            return send(request, **options)
        response = send(folded_request(request, exchange), **options)
        if refuses_size(response, exchange) and exchange.fold_refused():
            response.close()
            response = send(folded_request(request, exchange), **options)
        follow_reply(response, exchange)
        return response

    return folded_send


def _async_sender(http: Any, requests: ClientRequests) -> Callable[..., Any]:
    send = http.send

    async def folded_send(request: Any, **options: Any) -> Any:
        exchange = await asyncio.to_thread(begin_exchange, request, requests)
        if exchange is None:
            return await send(request, **options)
        response = await send(folded_request(request, exchange), **options)
        if await refuses_size_async(response, exchange) and await asyncio.to_thread(exchange.fold_refused):
            await response.aclose()
            response = await send(folded_request(request, exchange), **options)
        await follow_async_reply(response, exchange)
        return response

    return folded_send


def begin_exchange(request: Any, requests: ClientRequests) -> ClientExchange | None:
    """The exchange for a request of httpx; None if the request is passed on without being read."""
    call = api_call(request.url.path)
    if request.method != "POST" or call is None:
        return None
    try:
        body = json.loads(request.content)
    except (ValueError, RuntimeError):  # no JSON, or a body that is itself a stream
        return None
    return requests.begin(call, body)


def folded_request(request: Any, exchange: ClientExchange) -> Any:
    """The request with the folded body; the same object if nothing was folded."""
    body = exchange.folded_body
    if body is None:
        return request
    headers = request.headers.copy()
    del headers["content-length"]
    if exchange.betas:
        headers[BETA_HEADER] = ",".join(filter(None, (headers.get(BETA_HEADER), exchange.betas)))
    content = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    kind = type(request)
    return kind(request.method, request.url, headers=headers, content=content, extensions=request.extensions)
