"""Requests that attack the proxy or its users: each is refused, or reaches the provider as one harmless request."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from foldline.testing.provider import ScriptedReply, SimulatedProvider
from support.proxies import RawUpstream, RunningProxy, proxy, raw_upstream, whole
from support.proxy_agents import POLICY, Agent

pytest.importorskip("aiohttp")
BODY = b'{"model":"m","messages":[{"role":"user","content":"x"}]}'
HEAD = b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\n"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RawUpstream, RunningProxy]]:
    place = str(tmp_path_factory.mktemp("attacks") / "ledger.db")
    with (
        raw_upstream(whole(b"{}")) as upstream,
        proxy(upstream.url, mode="fold", policy=POLICY, ledger=place) as running,
    ):
        yield upstream, running


def raw(running: RunningProxy, data: bytes) -> bytes:
    """Send bytes; what comes back within two seconds."""
    address = urlsplit(running.url)
    received = b""
    with socket.create_connection((address.hostname, address.port), timeout=10) as client:
        client.settimeout(2)
        try:
            client.sendall(data)
            while chunk := client.recv(65_536):
                received += chunk
        except OSError:
            pass
    return received


LENGTH = b"content-length: %d\r\n" % len(BODY)
HIDDEN = b"POST /v1/smuggled HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n"


@pytest.mark.parametrize(
    "request_bytes",
    [
        HEAD + b"content-length: 0\r\ncontent-length: %d\r\n\r\n" % len(HIDDEN) + HIDDEN,
        HEAD + b"content-length: 5, 6\r\n\r\n" + HIDDEN,
        HEAD + b"content-length: +5\r\n\r\nhello" + HIDDEN,
        HEAD + b"content-length: -1\r\n\r\n" + HIDDEN,
        HEAD + b"transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n" + HIDDEN,
        HEAD + b"transfer-encoding: xchunked\r\n\r\n0\r\n\r\n" + HIDDEN,
        HEAD + b"transfer-encoding : chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
        HEAD + b"transfer-encoding: chunked\r\n\r\n5;x=\n\r\nhello\r\n0\r\n\r\n" + HIDDEN,
        HEAD + b"transfer-encoding: chunked\r\n\r\n-1\r\n\r\n0\r\n\r\n" + HIDDEN,
        HEAD + b"transfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n\r\n0\r\n\r\n" + HIDDEN,
        HEAD + b" folded: header\r\n" + LENGTH + b"\r\n" + BODY,
        b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nhost: y\r\n" + LENGTH + b"\r\n" + BODY,
        b"POST /v1/messages HTTP/9.9\r\nhost: x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"CONNECT evil.invalid:443 HTTP/1.1\r\nhost: evil.invalid:443\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 60,
    ],
)
def test_ambiguous_requests_reach_the_provider_framed_once_or_not_at_all(
    pair: tuple[RawUpstream, RunningProxy], request_bytes: bytes
) -> None:
    upstream, running = pair
    before = len(upstream.requests)
    received = raw(running, request_bytes)
    assert not received or received.startswith(b"HTTP/1.1 ")
    for head, _ in upstream.requests[before:]:
        lower = head.lower()
        assert lower.count(b"content-length:") + lower.count(b"transfer-encoding:") <= 1
        assert lower.count(b"\r\nhost:") == 1
        assert b"evil.invalid" not in lower


@pytest.mark.parametrize("value", [b"a\rb: c", b"a\nx-injected: 1", b"a\x00b", b"\x7f", b"\xff\xfe\xfd", b"a" * 5_000])
@pytest.mark.parametrize("name", [b"x-foldline-session", b"x-claude-code-session-id", b"session-id", b"anthropic-beta"])
def test_no_header_is_injected_in_either_direction(
    pair: tuple[RawUpstream, RunningProxy], name: bytes, value: bytes
) -> None:
    upstream, running = pair
    before = len(upstream.requests)
    received = raw(running, HEAD + name + b": " + value + b"\r\n" + LENGTH + b"connection: close\r\n\r\n" + BODY)
    head = received.partition(b"\r\n\r\n")[0].lower()
    assert b"x-injected" not in head
    assert all(byte >= 32 for line in head.split(b"\r\n") for byte in line)
    for sent, _ in upstream.requests[before:]:
        assert all(b":" in line for line in sent.strip().split(b"\r\n")[1:])
        assert b"\nx-injected:" not in sent.lower()


def test_many_and_long_headers_are_refused(pair: tuple[RawUpstream, RunningProxy]) -> None:
    upstream, running = pair
    before = len(upstream.requests)
    many = b"".join(b"x-%d: %s\r\n" % (number, b"v" * 100) for number in range(2_000))
    received = raw(running, HEAD + many + LENGTH + b"\r\n" + BODY)
    assert not received or received.split()[1] in (b"400", b"431")
    assert len(upstream.requests) == before


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"messages":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        b'{"messages":[{"role":"user","content":"x"}],"messages":[]}',
        b'{"model":"m","messages":[{"role":"user","content":' + b"1" * 10_000 + b"}]}",
        b'{"model":"\xff\xfe","messages":[{"role":"user","content":"\xed\xa0\x80"}]}',
        b'{"model":{"a":1},"messages":[{"role":["user"],"content":{"type":[]}}],"tools":{"x":1}}',
        b'{"model":"m","messages":[{"role":"user","content":"x"}],"upstream":"http://evil.invalid","base_url":"http://e"}',
        b"\x1f\x8b" + b"\x00" * 100,
    ],
)
def test_hostile_bodies_pass_unchanged_to_the_configured_provider(
    pair: tuple[RawUpstream, RunningProxy], body: bytes
) -> None:
    upstream, running = pair
    received = raw(running, HEAD + b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body) + body)
    assert received.split()[1] == b"200"
    assert upstream.requests[-1][1] == body


def test_a_compressed_bomb_is_passed_on_and_not_unpacked(pair: tuple[RawUpstream, RunningProxy]) -> None:
    import gzip

    upstream, running = pair
    bomb = gzip.compress(b'{"messages":[' + b" " * 300_000_000 + b"]}", 9)
    head = HEAD + b"content-encoding: gzip\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(bomb)
    received = raw(running, head + bomb)
    assert received.split()[1] == b"200"
    assert upstream.requests[-1][1] == bomb


def test_another_key_cannot_read_or_influence_a_session(tmp_path: Path) -> None:
    options: dict[str, Any] = {"mode": "fold", "policy": POLICY, "ledger": str(tmp_path / "ledger.db")}
    with SimulatedProvider() as provider, proxy(provider.url, offers_recall=True, **options) as running:
        owner = Agent(running.url, key="sk-owner", headers={"x-foldline-session": "work"})
        owner.say("my secret is heliotrope")
        thief = Agent(running.url, key="sk-thief", headers={"x-foldline-session": "work"})
        thief.messages = [dict(message) for message in owner.messages]
        thief.say("go on")
        assert len(provider.requests[-1].body["messages"]) == 3
        stranger = Agent(running.url, key="sk-stranger", headers={"x-foldline-session": "work"})
        stranger.say("hello")
        call = ScriptedReply(calls=(("recall", {"query": "secret heliotrope", "everywhere": True}),))
        provider.script(call, ScriptedReply(text="Nothing."))
        stranger.say("what is it?")
        answer = provider.requests[-1].body["messages"][-1]["content"][0]
        assert answer["type"] == "tool_result"
        assert "my secret" not in str(answer)
        owner.say("go on")
        asked = [one["content"] for one in provider.requests[-1].body["messages"] if one["role"] == "user"]
        assert asked == ["my secret is heliotrope", "go on"]
