"""Answers requests to foldline's own paths: health and readiness, metrics, the read-only API, and the web page.

Everyone may read health and readiness. Metrics and the API need the token. If no token is set, all paths except health
and readiness are served only to this machine.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias
from urllib.parse import parse_qs, unquote

from foldline.page.access import is_allowed
from foldline.proxy.body_bytes import Receive, Send
from foldline.proxy.configuration import ProxySettings
from foldline.proxy.exchange import Scope

Query: TypeAlias = Mapping[str, str]
Answer: TypeAlias = tuple[int, Any]
"""A status and a JSON value."""
_NOT_ALLOWED: Answer = (401, {"error": "send the token as Authorization: Bearer TOKEN"})
SETTLE_S = 2.0
"""Maximum number of seconds that a request to the API waits until earlier exchanges are recorded."""
Handler: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class OwnApi:
    """Answers the paths under /foldline/.

    `reads` maps the first name in a path below /foldline/api/ to a function. The function gets the rest of the path and
    the query, and returns an answer. `page` is an ASGI application that answers all other paths.
    """

    def __init__(  # noqa: PLR0913  # all but one are keyword arguments
        self,
        settings: ProxySettings,
        *,
        ready: Callable[[], Awaitable[str]] | None = None,
        settle: Callable[[], Awaitable[None]] | None = None,
        reads: Mapping[str, Callable[[str, Query], Answer]] | None = None,
        metrics: Callable[[], str] = lambda: "",
        page: Handler | None = None,
    ) -> None:
        self.settings, self._ready, self._reads = settings, ready, reads or {}
        self._metrics, self._page, self._settle = metrics, page, settle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        path, is_read = scope["path"], scope["method"] in ("GET", "HEAD")
        if is_read and path == "/foldline/health":
            await _send_json(send, 200, {"status": "ok"})
        elif is_read and path == "/foldline/ready":
            reason = await self._ready() if self._ready is not None else ""
            await _send_json(send, 503 if reason else 200, {"status": reason or "ok"})
        elif is_read and path == "/foldline/metrics":
            if is_allowed(scope, self.settings.token):
                await _send(send, 200, self._metrics().encode(), b"text/plain; version=0.0.4")
            else:
                await _send_json(send, *_NOT_ALLOWED)
        elif is_read and (read := self._reader(path)) is not None:
            await _send_json(send, *(await self._read(read, scope)))
        elif self._page is None:
            status, text = (404, "unknown path") if is_read else (405, "only GET is supported")
            await _send_json(
                send, *((status, {"error": text}) if is_allowed(scope, self.settings.token) else _NOT_ALLOWED)
            )
        elif path == "/foldline":
            await _send(send, 307, b"", b"text/plain", (b"location", b"/foldline/"))
        else:  # the web page checks the token itself
            await self._page({**scope, "root_path": "/foldline"}, receive, send)

    async def _read(self, read: Callable[[Scope], Answer], scope: Scope) -> Answer:
        if not is_allowed(scope, self.settings.token):
            return _NOT_ALLOWED
        if self._settle is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._settle(), SETTLE_S)
        return await asyncio.to_thread(read, scope)

    def _reader(self, path: str) -> Callable[[Scope], Answer] | None:
        """The function that answers a path below /foldline/api/; None for an unknown path."""
        if not path.startswith("/foldline/api/"):
            return None
        name, _, rest = path.removeprefix("/foldline/api/").partition("/")
        read = self._reads.get(name)
        if read is None:
            return None

        def answer(scope: Scope) -> Answer:
            given = parse_qs(scope.get("query_string", b"").decode("latin-1"))
            return read(unquote(rest), {key: values[-1] for key, values in given.items()})

        return answer


async def _send_json(send: Send, status: int, value: Any) -> None:
    await _send(send, status, json.dumps(value).encode(), b"application/json")


async def _send(send: Send, status: int, body: bytes, kind: bytes, *more: tuple[bytes, bytes]) -> None:
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode()), (b"cache-control", b"no-store")]
    headers += more
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
