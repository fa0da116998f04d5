"""Decides which requests the page answers, and adds headers to every response.

Without a token, only requests from this machine are answered, and only if the header `Host` names this machine. The
check of `Host` is needed because the host name of another site may resolve to 127.0.0.1 (DNS rebinding). A call that
changes something must be JSON, have the header `X-Foldline`, and come from the page itself. A form or a script of
another site cannot send such a call.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias
from urllib.parse import urlsplit

Scope: TypeAlias = MutableMapping[str, Any]
AsgiMessage: TypeAlias = MutableMapping[str, Any]
AsgiReceive: TypeAlias = Callable[[], Awaitable[AsgiMessage]]
AsgiSend: TypeAlias = Callable[[AsgiMessage], Awaitable[None]]
AsgiApp: TypeAlias = Callable[[Scope, AsgiReceive, AsgiSend], Awaitable[None]]

CALL_HEADER = "x-foldline"
"""The header that every changing call must have. A browser lets only the page's own scripts send it."""
_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
_LOCAL_CLIENTS = frozenset({"127.0.0.1", "::1"})
_SAFE_METHODS = frozenset({"GET", "HEAD"})
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = (
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class PageAccess:
    """ASGI middleware: refuses requests that are not allowed, and adds the security headers."""

    def __init__(self, app: AsgiApp, *, token: str = "") -> None:
        self.app, self.token = app, token

    async def __call__(self, scope: Scope, receive: AsgiReceive, send: AsgiSend) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: AsgiMessage) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *SECURITY_HEADERS]}
            await send(message)

        status, error, hint = self._refusal(scope)
        if status:
            await _send_error(send_with_headers, status, error, hint)
        else:
            await self.app(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> tuple[int, str, str]:
        headers = _headers(scope)
        is_api = "/api/" in scope["path"]
        if self.token:
            if is_api and not _has_token(headers, self.token):
                return 401, "the page needs its token", "open the address with #token=TOKEN at its end"
        elif not is_local(scope, headers):
            return 403, "without a token, the page is only for this machine", "open it at http://127.0.0.1"
        if scope["method"] in _SAFE_METHODS:
            return 0, "", ""
        return _refusal_of_change(headers)


def is_allowed(scope: Scope, token: str) -> bool:
    """Whether a request may read an API.

    If a token is set, the request must have the token. Otherwise it must come from this machine.
    """
    headers = _headers(scope)
    return _has_token(headers, token) if token else is_local(scope, headers)


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def is_local(scope: Scope, headers: MutableMapping[str, str]) -> bool:
    """Whether a request comes from this machine and names this machine as its host."""
    host = headers.get("host", "")
    name = host.rpartition(":")[0] if ":" in host.rpartition("]")[2] else host
    client = scope.get("client")
    return name in _LOCAL_HOSTS and (client is None or client[0] in _LOCAL_CLIENTS)


def _has_token(headers: MutableMapping[str, str], token: str) -> bool:
    kind, _, given = headers.get("authorization", "").partition(" ")
    return kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())


def _refusal_of_change(headers: MutableMapping[str, str]) -> tuple[int, str, str]:
    """The status, error and hint if a call that changes something is refused; (0, "", "") if the call is allowed."""
    site, origin = headers.get("sec-fetch-site", "same-origin"), headers.get("origin", "")
    if site != "same-origin" or (origin and urlsplit(origin).netloc != headers.get("host", "")):
        return 403, "the call comes from another site", "use the page itself"
    if CALL_HEADER not in headers:
        return 403, "the header X-Foldline is missing", "send X-Foldline: 1 with every call that changes something"
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return 415, "the body must be JSON", "send Content-Type: application/json"
    return 0, "", ""


async def _send_error(send: AsgiSend, status: int, error: str, hint: str) -> None:
    body = json.dumps({"error": error, "hint": hint}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
