"""Nothing that a request under /foldline/ contains makes the proxy answer with a fault of its own."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foldline.proxy.application import Application
from foldline.proxy.configuration import ProxySettings
from foldline.proxy.service import build
from foldline.proxy.upstreams import Upstreams

pytest.importorskip("aiohttp")
NAMES = [
    "",
    "api",
    "api/receipt",
    "api/receipts",
    "api/cache",
    "api/sessions",
    "api/messages",
    "metrics",
    "ready",
    "health",
]
texts = st.text(st.characters(codec="utf-8"), max_size=30)
paths = st.builds(lambda name, rest: f"/foldline/{name}/{rest}", st.sampled_from(NAMES), texts) | st.sampled_from(
    [f"/foldline/{name}" for name in NAMES]
)
queries = st.lists(st.tuples(st.sampled_from(["after", "limit", "session", "branch", "x"]), texts), max_size=4)
headers = st.lists(
    st.tuples(
        st.sampled_from([b"authorization", b"cookie", b"origin", b"host", b"accept", b"content-type", b"x-foldline"]),
        st.binary(max_size=40),
    ),
    max_size=4,
)


@pytest.fixture(scope="module")
def application() -> Iterator[Application]:
    with tempfile.TemporaryDirectory() as place:
        given_settings = ProxySettings(
            upstreams=Upstreams.parse(["http://127.0.0.1:9"]), ledger=os.path.join(place, "ledger.db")
        )
        found = build(given_settings)
        yield found
        asyncio.run(found.interceptor.close())


async def call(application: Application, scope: dict[str, Any], body: bytes) -> int:
    sent: list[Any] = []
    pieces = [body]

    async def receive() -> Any:
        if not pieces:
            await asyncio.Event().wait()  # the client stays connected
        return {"type": "http.request", "body": pieces.pop(), "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await application(scope, receive, send)
    status: int = sent[0]["status"]
    return status


@settings(max_examples=100)
@given(
    method=st.sampled_from(["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"]),
    path=paths,
    query=queries,
    given_headers=headers,
    body=st.binary(max_size=60) | st.just(b"{}") | st.just(b'{"session": 5}'),
)
def test_no_request_to_foldline_s_own_paths_is_a_fault(
    application: Application, method: str, path: str, query: Any, given_headers: Any, body: bytes
) -> None:
    from urllib.parse import quote, urlencode

    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": path,
        "raw_path": quote(path).encode(),
        "root_path": "",
        "query_string": urlencode(query).encode(),
        "headers": [(b"host", b"127.0.0.1:8460"), *given_headers],
        "client": ("127.0.0.1", 5),
        "server": ("127.0.0.1", 8460),
    }
    assert asyncio.run(call(application, scope, body)) < 500
