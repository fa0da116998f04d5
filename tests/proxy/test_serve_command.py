"""`foldline serve` as a user runs it: it says what is wrong, starts, answers and stops."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from support.command import clean, foldline, one_sentence
from support.proxies import raw_upstream, whole

pytest.importorskip("aiohttp")


def test_check_names_each_fault(tmp_path: Path) -> None:
    (tmp_path / "no-ledger.db").write_text("this is not a database, but long enough to look like one" * 40)
    done = foldline(
        "serve", "--check", "-u", "http://127.0.0.1:9", "--ledger", str(tmp_path / "no-ledger.db"), "--port", "0"
    )
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0] == "ok    address"
    assert lines[1].startswith("fault upstream all (http://127.0.0.1:9): 127.0.0.1:9 cannot be reached")
    assert lines[2].startswith("fault ledger: ")


def test_check_of_a_good_configuration_creates_nothing(tmp_path: Path) -> None:
    with raw_upstream(whole(b"{}")) as upstream:
        done = foldline(
            "serve", "--check", "--json", "-u", upstream.url, "--ledger", str(tmp_path / "new.db"), "--port", "0"
        )
    assert done.returncode == 0
    assert json.loads(done.stdout)["faults"] == {}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "no upstream is set"),
        (["-u", "ftp://x"], "'ftp://x' is not an address of a provider"),
        (["-u", "http://user:pass@host"], "an upstream may not contain a user or a password"),
        (["-u", "grok=http://x"], "unknown vendor 'grok'"),
        (["-u", "http://x", "--host", "0.0.0.0"], "0.0.0.0 can be reached from other machines, and no token is set"),
        (["-u", "http://x", "--token", "short"], "the token has fewer than 16 characters"),
    ],
)
def test_an_impossible_configuration_is_one_sentence(tmp_path: Path, arguments: list[str], words: str) -> None:
    done = foldline("serve", *arguments, "--ledger", str(tmp_path / "new.db"))
    assert words in one_sentence(done)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_serve_starts_answers_and_ends_with_code_0_at_a_signal(number: int, workers: str) -> None:
    with raw_upstream(whole(b'{"hello": 1}')) as upstream:
        command = [
            sys.executable,
            "-m",
            "foldline.cli",
            "serve",
            "--json",
            "--port",
            "0",
            "--mode",
            "off",
            "--workers",
            workers,
            "-u",
            upstream.url,
        ]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean(), text=True
        ) as running:
            assert running.stdout is not None
            address = json.loads(running.stdout.readline())["address"]
            with urllib.request.urlopen(f"{address}/v1/models", timeout=10) as answer:
                assert json.load(answer) == {"hello": 1}
            running.send_signal(number)
            assert running.wait(20) == 0
            assert running.stderr is not None
            assert "Traceback" not in running.stderr.read()


@pytest.mark.parametrize(
    ("arguments", "environment", "policy"),
    [
        ([], {}, "proxy"),
        ([], {"FOLDLINE_PRESET": "thrifty"}, "thrifty"),
        (["--policy", "balanced"], {"FOLDLINE_PRESET": "thrifty"}, "balanced"),
        (["--mode", "observe"], {}, "none"),
    ],
)
def test_serve_names_its_policy(tmp_path: Path, arguments: list[str], environment: dict[str, str], policy: str) -> None:
    command = [sys.executable, "-m", "foldline.cli", "serve", "--port", "0", "-u", "http://127.0.0.1:9"]
    command += ["--ledger", str(tmp_path / "new.db"), *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=clean(**environment), text=True) as running:
        assert running.stderr is not None
        line = running.stderr.readline()
        running.send_signal(signal.SIGTERM)
    assert f", policy {policy}, ledger " in line
