"""The command `foldline page`: it serves a ledger until Ctrl-C, creates nothing, and needs a token off loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import foldline
from support.command import clean
from support.command import foldline as run
from support.pages import add_session
from support.sessions import claude_code


def started(*arguments: str, home: Path) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    """The running command, and the object that it printed."""
    command = [sys.executable, "-m", "foldline.cli", "page", "--port", "0", "--no-browser", "--json", *arguments]
    env = {**clean(), "HOME": str(home), "XDG_DATA_HOME": str(home / "data")}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    assert process.stdout is not None
    return process, json.loads(process.stdout.readline())


def get(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=20) as answer:
        body = answer.read()
    return json.loads(body) if "/api/" in address else body.decode()


def ended(process: subprocess.Popen[str], number: int = signal.SIGINT) -> str:
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert "Traceback" not in errors
    return errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_ledger_is_served_until_a_signal_ends_the_command_with_code_0(tmp_path: Path, number: int) -> None:
    path = tmp_path / "agent.db"
    with foldline.open(path) as ledger:
        add_session(ledger, "talk", 2)
    process, printed = started("--ledger", str(path), "--no-logs", home=tmp_path)
    try:
        assert printed["ledger"] == str(path)
        assert "<title>foldline</title>" in get(printed["address"])
        assert [row["session"] for row in get(f"{printed['address']}api/sessions")["sessions"]] == ["talk"]
    finally:
        ended(process, number)
    assert process.returncode == 0


def test_session_files_are_served_without_a_ledger_and_none_is_created(tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "projects" / "app"
    folder.mkdir(parents=True)
    (folder / "3f0c.jsonl").write_text(claude_code())
    process, printed = started(home=tmp_path)
    try:
        (row,) = get(f"{printed['address']}api/sessions")["sessions"]
        assert (row["source"], row["session"]) == ("file", str(folder / "3f0c.jsonl"))
    finally:
        ended(process)
    assert not (tmp_path / "data").exists()


def test_a_missing_ledger_is_an_error(tmp_path: Path) -> None:
    done = run("page", "--ledger", str(tmp_path / "none.db"), "--no-browser", "--no-logs")
    assert done.returncode == 2
    assert "there is no ledger at" in done.stderr
    assert os.listdir(tmp_path) == []


def test_another_address_needs_a_token(tmp_path: Path) -> None:
    done = run("page", "--host", "0.0.0.0", "--no-browser")
    assert done.returncode == 2
    assert "listening on 0.0.0.0 needs a token" in done.stderr
