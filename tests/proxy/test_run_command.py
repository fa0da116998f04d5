"""`foldline run` starts a client with a proxy of its own, and the client does not notice when the proxy dies."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from foldline.testing.provider import SimulatedProvider
from support.command import foldline, one_sentence, spawned
from support.proxy_agents import MODELS

pytest.importorskip("aiohttp")

KILL = """
import os, pathlib, signal, sys
for process in pathlib.Path("/proc").glob("[0-9]*"):
    try:
        words = (process / "cmdline").read_text().split(chr(0))
    except OSError:
        continue
    if "--descriptor" in words and sys.argv[1] in words:
        os.kill(int(process.name), signal.SIGKILL)
"""
"""Kills the proxy that writes to a ledger."""
CLIENT = """
import json, os, sys, time, urllib.request
def ask(messages):
    body = json.dumps({"model": "MODEL", "max_tokens": 100, "messages": messages}).encode()
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01", "content-type": "application/json"}
    for attempt in range(5):
        request = urllib.request.Request(os.environ["BASE"] + "/v1/messages", body, headers)
        try:
            return json.load(urllib.request.urlopen(request, timeout=30))
        except OSError:
            time.sleep(0.1)
    sys.exit("no answer")
messages = []
for number in range(int(sys.argv[1])):
    messages.append({"role": "user", "content": f"question {number}"})
    if len(sys.argv) > 2:
        os.system(sys.argv[2])
    messages.append({"role": "assistant", "content": ask(messages)["content"]})
print(messages[-1]["content"][0]["text"])
sys.exit(7)
""".replace("MODEL", MODELS["anthropic"])


def test_the_client_runs_with_its_own_exit_code_and_a_receipt(tmp_path: Path) -> None:
    with SimulatedProvider() as provider:
        ledger = str(tmp_path / "ledger.db")
        done = spawned(
            *("run", "-u", provider.url, "--ledger", ledger, "--env", "BASE={url}", sys.executable, "-c", CLIENT, "5")
        )
        assert provider.refused == []
        assert len(provider.requests) == 5
    assert done.returncode == 7
    assert done.stdout == "You said: question 4\n"
    assert done.stderr.startswith("foldline: 5 requests, 0 of them folded, ")


def test_a_proxy_that_is_killed_is_replaced_and_no_turn_fails(tmp_path: Path) -> None:
    if not os.path.isdir("/proc"):
        pytest.skip("needs /proc")
    with SimulatedProvider() as provider:
        ledger = str(tmp_path / "ledger.db")
        (tmp_path / "kill.py").write_text(KILL)
        kill = f"{sys.executable} {tmp_path}/kill.py {ledger}"
        done = spawned(
            *(
                "run",
                "-u",
                provider.url,
                "--ledger",
                ledger,
                "--env",
                "BASE={url}",
                sys.executable,
                "-c",
                CLIENT,
                "6",
                kill,
            )
        )
        assert provider.refused == []
    assert done.returncode == 7, done.stderr
    assert done.stdout == "You said: question 5\n"


def test_an_unknown_client_is_told_what_to_write(tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger.db")
    assert "--env OPENAI_BASE_URL={url}/v1" in one_sentence(foldline("run", "--ledger", ledger, sys.executable))
    assert "was not found" in one_sentence(foldline("run", "--ledger", ledger, "no-such-command-anywhere"))


def test_the_default_ledger_is_made_in_an_empty_home(tmp_path: Path) -> None:
    with SimulatedProvider() as provider:
        run = ("run", "-u", provider.url, "--env", "BASE={url}", sys.executable, "-c", CLIENT, "1")
        done = spawned(*run, HOME=str(tmp_path), XDG_DATA_HOME="")
    assert done.stdout == "You said: question 0\n"
    assert (tmp_path / ".local" / "share" / "foldline" / "ledger.db").exists()
