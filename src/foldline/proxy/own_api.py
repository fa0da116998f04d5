"""Foldline's own paths: health and readiness for everyone, the API for loopback or with the token."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias
from urllib.parse import parse_qs, unquote

from foldline.proxy.client_body import Receive, Send
from foldline.proxy.configuration import ProxySettings
from foldline.proxy.exchange import Scope
from foldline.proxy.forwarded_headers import header

_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})
Query: TypeAlias = Mapping[str, str]
Answer: TypeAlias = tuple[int, Any]
"""A status and a JSON value."""


class OwnApi:
    """Answers the paths under /foldline/.

    `reads` maps a path below /foldline/api/ to a function from the rest of the path and the query to an answer.
    """

    def __init__(
        self,
        settings: ProxySettings,
        *,
        ready: Callable[[], str] = lambda: "",
        reads: Mapping[str, Callable[[str, Query], Answer]] | None = None,
        metrics: Callable[[], str] = lambda: "",
    ) -> None:
        self.settings, self._ready, self._reads, self._metrics = settings, ready, reads or {}, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 (ASGI's signature)
        """Answer one request."""
        path = scope["path"]
        if scope["method"] not in ("GET", "HEAD"):
            await _send_json(send, 405, {"error": "only GET is supported"})
        elif path == "/foldline/health":
            await _send_json(send, 200, {"status": "ok"})
        elif path == "/foldline/ready":
            reason = self._ready()
            await _send_json(send, 503 if reason else 200, {"status": reason or "ok"})
        elif not self._is_allowed(scope):
            await _send_json(send, 401, {"error": "send the token as Authorization: Bearer TOKEN"})
        elif path == "/foldline/metrics":
            await _send(send, 200, self._metrics().encode(), b"text/plain; version=0.0.4")
        else:
            status, value = self._read(path, scope)
            await _send_json(send, status, value)

    def _read(self, path: str, scope: Scope) -> Answer:
        name, _, rest = path.removeprefix("/foldline/api/").partition("/")
        read = self._reads.get(name) if path.startswith("/foldline/api/") else None
        if read is None:
            return 404, {"error": "unknown path"}
        given = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        return read(unquote(rest), {key: values[-1] for key, values in given.items()})

    def _is_allowed(self, scope: Scope) -> bool:
        """Whether a request may read the API: with the token if one is set, otherwise from this machine only.

        The header `Host` must name this machine, so that a page of another site cannot read the API through a browser.
        """
        headers, token = scope["headers"], self.settings.token
        if token:
            kind, _, given = header(headers, b"authorization").partition(" ")
            return kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())
        host = header(headers, b"host")
        name = host.rpartition(":")[0] if ":" in host.rpartition("]")[2] else host
        client = scope.get("client")
        return name in _LOCAL_HOSTS and (client is None or client[0] in ("127.0.0.1", "::1"))


async def _send_json(send: Send, status: int, value: Any) -> None:
    await _send(send, status, json.dumps(value).encode(), b"application/json")


async def _send(send: Send, status: int, body: bytes, kind: bytes) -> None:
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode()), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
