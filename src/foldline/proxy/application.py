"""The ASGI application: passes every request on, except those under /foldline/, which foldline answers itself."""

from __future__ import annotations

from foldline.proxy.body_bytes import Receive, Send
from foldline.proxy.configuration import ProxySettings
from foldline.proxy.error_answers import ErrorAnswer
from foldline.proxy.exchange import Exchanges, Scope
from foldline.proxy.forwarded_headers import header
from foldline.proxy.interception import Interceptor
from foldline.proxy.own_api import Handler
from foldline.proxy.upstream_client import UpstreamClient

OWN_PATH = "/foldline/"
"""The start of foldline's own paths. Requests to these paths are never passed on."""
MAX_HEADER_BYTES = 64 * 1024
_UPGRADE = ErrorAnswer(426, "foldline: WebSocket is not supported; use HTTP")


class Application:
    """The proxy as an ASGI application."""

    def __init__(self, settings: ProxySettings, interceptor: Interceptor, own: Handler) -> None:
        self.settings, self.interceptor, self._own = settings, interceptor, own
        self._exchanges: Exchanges | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or a lifespan event of the server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] != "http":
            return
        elif scope["path"].startswith(OWN_PATH) or scope["path"] == OWN_PATH[:-1]:
            await self._own(scope, receive, send)
        elif header(scope["headers"], b"upgrade").lower() == "websocket":
            await _send_error(send, _UPGRADE)
        elif sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEADER_BYTES:
            await _send_error(send, ErrorAnswer(431, f"foldline: more than {MAX_HEADER_BYTES:,} bytes of headers"))
        else:
            await self.exchanges.run(scope, receive, send)

    @property
    def exchanges(self) -> Exchanges:
        """The object that passes requests on. The upstream client is opened at the first request."""
        if self._exchanges is None:
            settings = self.settings
            client = UpstreamClient(settings.limits)
            self._exchanges = Exchanges(settings.upstreams, client, self.interceptor, max_bytes=settings.max_bytes)
        return self._exchanges

    async def _live(self, receive: Receive, send: Send) -> None:
        """Handle the start and the stop of the server."""
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        if self._exchanges is not None:
            await self._exchanges.client.close()
        await self.interceptor.close()
        await send({"type": "lifespan.shutdown.complete"})


async def _send_error(send: Send, error: ErrorAnswer) -> None:
    body = error.body("")
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
