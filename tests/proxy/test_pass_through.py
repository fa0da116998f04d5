"""What a client sends reaches the provider unchanged, and what the provider answers reaches the client unchanged."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.proxies import CLOSE, STALL, RawUpstream, RunningProxy, chunked, proxy, raw_upstream, whole

pytest.importorskip("aiohttp")
KEY = "sk-ant-a-key-that-nobody-may-store"
HEADERS = {"x-api-key": KEY, "anthropic-version": "2023-06-01", "content-type": "application/json"}


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[RawUpstream, RunningProxy]]:
    with raw_upstream() as upstream, proxy(upstream.url, max_bytes=200_000) as running:
        yield upstream, running


def ask(
    running: RunningProxy, path: str = "/v1/messages", body: bytes = b"{}", method: str = "POST", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(urlsplit(running.url).netloc, timeout=20)
    try:
        connection.request(method, path, body, {**HEADERS, **headers})
        response = connection.getresponse()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
    finally:
        connection.close()


def heads(upstream: RawUpstream) -> dict[str, str]:
    lines = upstream.requests[-1][0].decode("latin-1").split("\r\n")[1:]
    return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}


BODIES = st.one_of(
    st.binary(max_size=3_000),
    st.text(max_size=400).map(lambda text: json.dumps({"messages": [{"role": "user", "content": text}]}).encode()),
)


@settings(max_examples=60)
@given(
    body=BODIES,
    answer=st.binary(max_size=3_000),
    cuts=st.lists(st.integers(0, 3_000), max_size=12),
    path=st.sampled_from(
        ["/v1/messages?beta=true", "/v1/chat/completions", "/v1/files", "/v1beta/models/m:generateContent"]
    ),
)
def test_bytes_are_the_same_in_both_directions_at_all_chunk_borders(
    pair: tuple[RawUpstream, RunningProxy], body: bytes, answer: bytes, cuts: list[int], path: str
) -> None:
    upstream, running = pair
    borders = [0, *sorted(min(cut, len(answer)) for cut in cuts), len(answer)]
    pieces = [answer[start:stop] for start, stop in pairwise(borders)]
    upstream.answers = [chunked(*pieces)]
    status, headers, received = ask(running, path, body)
    assert (status, received) == (200, answer)
    assert headers["content-type"] == "text/event-stream"
    head, sent = upstream.requests[-1]
    assert sent == body
    assert head.startswith(f"POST {path} HTTP/1.1\r\n".encode())


def test_end_to_end_headers_pass_and_those_of_one_connection_do_not(pair: tuple[RawUpstream, RunningProxy]) -> None:
    upstream, running = pair
    upstream.answers = [
        [whole(b"{}", "request-id: req_1", "set-cookie: a=1", "set-cookie: b=2", "connection: x-hop", "x-hop: 1")]
    ]
    betas = "oauth-2025-04-20,context-management-2025-06-27"
    _, headers, _ = ask(
        running,
        "/v1/messages",
        b"{}",
        "POST",
        **{
            "anthropic-beta": betas,
            "user-agent": "agent/1",
            "x-foldline-session": "s",
            "connection": "x-mine",
            "x-mine": "1",
        },
    )
    sent = heads(upstream)
    assert sent["x-api-key"] == KEY
    assert sent["anthropic-beta"] == betas
    assert sent["user-agent"] == "agent/1"
    assert sent["host"] == urlsplit(upstream.url).netloc
    assert not {"x-foldline-session", "x-mine", "accept-encoding", "accept"} - {"accept-encoding"} & set(sent)
    assert headers["request-id"] == "req_1"
    assert "x-hop" not in headers


@pytest.mark.parametrize("status", ["400 Bad Request", "429 Too Many Requests", "529 Overloaded", "500 Oops", "401 No"])
def test_error_bodies_pass_unmodified(pair: tuple[RawUpstream, RunningProxy], status: str) -> None:
    upstream, running = pair
    body = b'{"type":"error",  "error":{"type":"x","message":"prompt is too long: 207791 tokens > 200000 maximum"}}'
    upstream.answers = [[whole(body, "retry-after: 7", "content-type: application/json", status=status)]]
    answered, headers, received = ask(running)
    assert (answered, received, headers["retry-after"]) == (int(status[:3]), body, "7")


def test_compressed_bodies_stay_compressed_in_both_directions(pair: tuple[RawUpstream, RunningProxy]) -> None:
    upstream, running = pair
    packed = gzip.compress(b'{"id": "msg_1"}', mtime=0)
    upstream.answers = [[whole(packed, "content-encoding: gzip")]]
    body = gzip.compress(b'{"messages": []}', mtime=0)
    _, headers, received = ask(running, body=body, **{"content-encoding": "gzip", "accept-encoding": "gzip, br, zstd"})
    assert upstream.requests[-1][1] == body
    assert heads(upstream)["content-encoding"] == "gzip"
    assert heads(upstream)["accept-encoding"] == "gzip, br, zstd"
    assert (headers["content-encoding"], received) == ("gzip", packed)


def test_other_methods_and_redirects_pass(pair: tuple[RawUpstream, RunningProxy]) -> None:
    upstream, running = pair
    upstream.answers = [[whole(b"", "location: http://elsewhere.invalid/", status="307 Temporary Redirect")]]
    status, headers, _ = ask(running, "/v1/models?limit=1000", b"", "GET")
    assert (status, headers["location"]) == (307, "http://elsewhere.invalid/")
    assert upstream.requests[-1][0].startswith(b"GET /v1/models?limit=1000 HTTP/1.1\r\n")
    upstream.answers = [[b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n"]]
    assert ask(running, "/api/hello", b"", "HEAD")[0] == 200


def test_the_first_event_goes_out_before_the_last_one_came_in() -> None:
    pieces = chunked(b"event: ping\ndata: {}\n\n", b"x")
    with raw_upstream(*pieces[:2], STALL) as upstream, proxy(upstream.url) as running:
        host, port = urlsplit(running.url).hostname, urlsplit(running.url).port
        with socket.create_connection((host, port), timeout=10) as client:
            client.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}")
            received = b""
            while b"event: ping" not in received:
                received += client.recv(4096)
        assert upstream.gone.wait(10), "the client went, but the request to the provider was not cancelled"


@pytest.mark.parametrize("answer", [[STALL], [*chunked(b"a" * 10)[:2], STALL]])
def test_a_client_that_goes_cancels_the_request_to_the_provider(answer: list[bytes]) -> None:
    with raw_upstream(*answer) as upstream, proxy(upstream.url) as running:
        connection = http.client.HTTPConnection(urlsplit(running.url).netloc, timeout=10)
        connection.request("POST", "/v1/messages", b"{}", HEADERS)
        while not upstream.requests:
            time.sleep(0.01)
        connection.close()
        assert upstream.gone.wait(10)


def test_a_response_that_breaks_off_is_broken_off_for_the_client(pair: tuple[RawUpstream, RunningProxy]) -> None:
    upstream, running = pair
    upstream.answers = [[*chunked(b"event: ping\ndata: {}\n\n")[:2], CLOSE]]
    with pytest.raises(http.client.IncompleteRead):
        ask(running)
    upstream.answers = [[b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nabc", CLOSE]]
    with pytest.raises(http.client.IncompleteRead):
        ask(running)


def test_bodies_over_the_limit_are_refused_with_413(pair: tuple[RawUpstream, RunningProxy]) -> None:
    upstream, running = pair
    upstream.answers = [[whole(b"{}")]]
    before = len(upstream.requests)
    status, _, body = ask(running, body=b"x" * 200_001)
    assert (status, json.loads(body)["error"]["type"]) == (413, "request_too_large")
    with socket.create_connection((urlsplit(running.url).hostname, urlsplit(running.url).port), timeout=10) as client:
        client.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
        received = []

        def read() -> None:
            received.append(client.recv(100))

        thread = threading.Thread(target=read)
        thread.start()
        try:
            for _ in range(30):
                client.sendall(b"2710\r\n" + b"x" * 10_000 + b"\r\n")
        except OSError:
            pass
        thread.join(10)
    assert received[0].startswith(b"HTTP/1.1 413")
    assert len(upstream.requests) == before


def test_a_provider_that_cannot_be_reached_gives_502_in_the_words_of_the_client_s_format() -> None:
    with proxy("http://127.0.0.1:9") as running:
        status, headers, body = ask(running)
        assert (status, headers["x-foldline-error"]) == (502, "1")
        assert json.loads(body)["error"]["message"].startswith("foldline: 127.0.0.1 cannot be reached")
        assert "sk-ant" not in body.decode()


def test_a_silent_provider_gives_504() -> None:
    from foldline.proxy.upstream_client import UpstreamLimits

    with raw_upstream(STALL) as upstream, proxy(upstream.url, limits=UpstreamLimits(silence_s=0.3)) as running:
        assert ask(running)[0] == 504


def test_a_websocket_upgrade_is_answered_with_426(pair: tuple[RawUpstream, RunningProxy]) -> None:
    _, running = pair
    status, _, _ = ask(running, "/v1/responses", b"", "GET", connection="Upgrade", upgrade="websocket")
    assert status == 426


@pytest.mark.parametrize(
    "path", ["/../admin", "/v1/%2e%2e/admin", "/v1/..;/x", "//evil.invalid/v1", "/v1\\..\\x", "/v1/./messages"]
)
def test_path_tricks_are_refused(pair: tuple[RawUpstream, RunningProxy], path: str) -> None:
    upstream, running = pair
    upstream.answers = [[whole(b"{}")]]
    before = len(upstream.requests)
    with socket.create_connection((urlsplit(running.url).hostname, urlsplit(running.url).port), timeout=10) as client:
        client.sendall(f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n".encode())
        assert client.recv(100).split()[1] in (b"400", b"404")
    assert len(upstream.requests) == before


@pytest.mark.parametrize(
    "head",
    [
        b"POST http://evil.invalid/v1/messages HTTP/1.1\r\nhost: evil.invalid\r\ncontent-length: 2\r\n\r\n{}",
        b"POST /v1/messages HTTP/1.1\r\nhost: evil.invalid\r\nforwarded: host=x\r\ncontent-length: 2\r\n\r\n{}",
        b'POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-upstream: http://e.x\r\ncontent-length: 14\r\n\r\n{"base_url":1}',
    ],
)
def test_no_value_of_a_request_changes_where_it_is_sent(pair: tuple[RawUpstream, RunningProxy], head: bytes) -> None:
    upstream, running = pair
    upstream.answers = [[whole(b"{}")]]
    before = len(upstream.requests)
    with socket.create_connection((urlsplit(running.url).hostname, urlsplit(running.url).port), timeout=10) as client:
        client.sendall(head)
        status = client.recv(100).split()[1]
    assert status in (b"200", b"400")
    if status == b"200":
        assert len(upstream.requests) == before + 1
        assert heads(upstream)["host"] == urlsplit(upstream.url).netloc


def test_requests_cannot_be_smuggled(pair: tuple[RawUpstream, RunningProxy]) -> None:
    upstream, running = pair
    upstream.answers = [[whole(b"{}")]]
    before = len(upstream.requests)
    both = (
        b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 6\r\ntransfer-encoding: chunked\r\n\r\n"
        b"0\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n"
    )
    with socket.create_connection((urlsplit(running.url).hostname, urlsplit(running.url).port), timeout=10) as client:
        client.sendall(both)
        client.settimeout(1)
        received = client.recv(1000)
    assert received.split()[1] in (b"400", b"200")
    for head, _ in upstream.requests[before:]:
        assert not (b"content-length" in head.lower() and b"transfer-encoding" in head.lower())


def test_oversized_headers_are_refused(pair: tuple[RawUpstream, RunningProxy]) -> None:
    _, running = pair
    with socket.create_connection((urlsplit(running.url).hostname, urlsplit(running.url).port), timeout=10) as client:
        try:
            client.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-big: " + b"a" * 2_000_000 + b"\r\n\r\n")
            received = client.recv(100)
        except OSError:
            received = b""
    assert not received or received.split()[1] in (b"400", b"431")


def test_health_and_readiness_are_answered_by_the_proxy_itself(pair: tuple[RawUpstream, RunningProxy]) -> None:
    upstream, running = pair
    before = len(upstream.requests)
    assert ask(running, "/foldline/health", b"", "GET")[0] == 200
    assert ask(running, "/foldline/ready", b"", "GET")[0] == 200
    assert ask(running, "/foldline/nothing", b"", "GET")[0] == 404
    assert len(upstream.requests) == before
