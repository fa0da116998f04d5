"""A proxy with several worker processes on one socket: a worker that is killed is replaced, and no count is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from foldline.testing.provider import SimulatedProvider
from support.command import clean
from support.proxy_agents import Agent

pytest.importorskip("aiohttp")
if not Path("/proc/self/task").is_dir():
    pytest.skip("needs /proc", allow_module_level=True)


@contextmanager
def serving(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `foldline serve` as a user does; the process and its address."""
    command = [sys.executable, "-m", "foldline.cli", "serve", "--json", "--port", "0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean(), text=True) as running:
        assert running.stdout is not None
        try:
            yield running, json.loads(running.stdout.readline())["address"]
        finally:
            running.send_signal(signal.SIGTERM)
            running.wait(30)
            assert running.stderr is not None
            assert "Traceback" not in running.stderr.read()


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_for_children(pid: int, count: int, without: int = 0) -> list[int]:
    until = time.monotonic() + 20
    while len(found := children(pid)) != count or without in found:
        assert time.monotonic() < until, found
        time.sleep(0.02)
    return found


def read(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=20) as answer:
        return json.load(answer)


def test_a_killed_worker_is_replaced_and_its_counts_stay(tmp_path: Path) -> None:
    arguments = ("--ledger", str(tmp_path / "ledger.db"), "--workers", "2")
    with SimulatedProvider() as provider, serving("-u", provider.url, *arguments) as (running, url):
        agents = [Agent(url, streams=False, headers={"x-foldline-session": f"talk-{n}"}) for n in range(6)]
        for agent in agents:
            assert agent.say("first question")[0] == 200
        deadline = time.monotonic() + 20
        while read(f"{url}/foldline/api/receipt")["prompt_tokens"] == 0 and time.monotonic() < deadline:
            time.sleep(0.05)
        for victim in wait_for_children(running.pid, 2):
            os.kill(victim, signal.SIGKILL)
            wait_for_children(running.pid, 2, without=victim)
        for agent in agents:
            assert agent.say("second question")[0] == 200
        assert read(f"{url}/foldline/api/receipt")["requests"] == 12
        assert provider.refused == []
    assert running.returncode == 0


def test_workers_stop_when_their_parent_is_killed(tmp_path: Path) -> None:
    arguments = ("--ledger", str(tmp_path / "ledger.db"), "--workers", "2")
    with SimulatedProvider() as provider, serving("-u", provider.url, *arguments) as (running, url):
        assert read(f"{url}/foldline/health") == {"status": "ok"}
        workers = wait_for_children(running.pid, 2)
        running.kill()
        running.wait(10)
        until = time.monotonic() + 20
        while any(Path(f"/proc/{pid}/cmdline").exists() for pid in workers):
            assert time.monotonic() < until
            time.sleep(0.02)


def test_workers_that_cannot_open_the_ledger_end_with_its_error(tmp_path: Path) -> None:
    (tmp_path / "no-ledger.db").write_text("this is not a database, but long enough to look like one" * 40)
    command = [sys.executable, "-m", "foldline.cli", "serve", "--port", "0", "--workers", "2", "-u", "http://x"]
    command += ["--ledger", str(tmp_path / "no-ledger.db")]
    done = subprocess.run(command, capture_output=True, text=True, env=clean(), timeout=60, check=False)
    assert done.returncode == 4
    assert "Traceback" not in done.stderr
    assert "no-ledger.db" in done.stderr
