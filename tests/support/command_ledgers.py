"""A transcript and a ledger with two sessions, for the tests of the commands."""

from __future__ import annotations

from pathlib import Path

import pytest

import foldline as library
from support.command import foldline
from support.sessions import SESSIONS

STEPS = 12


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    file = tmp_path / "3f0c.jsonl"
    file.write_text(SESSIONS["claude-code"](STEPS))
    return file


@pytest.fixture
def place(tmp_path: Path) -> str:
    """A ledger with one session that was folded twice, and one with a pin."""
    url, file = str(tmp_path / "agent.db"), tmp_path / "request.json"
    file.write_text(SESSIONS["anthropic"](STEPS))
    done = foldline("import", str(file), "--session", "3f0c", "--ledger", url, "--window", "9000")
    assert done.returncode == 0, done.stderr
    file.unlink()
    with library.open(url) as opened:
        folded = opened.session("3f0c")
        folded.view()
        folded.add(
            {"role": "assistant", "content": "The queue was full."}, {"role": "user", "content": "Make it wait."}
        )
        assert folded.fold(force=True) is not None
        other = opened.session("ticket-42", model="gpt-4o")
        other.add({"role": "user", "content": "Never touch the port 7091.\tIt is \x1b[31mours\x1b[0m."})
        other.add({"role": "assistant", "content": "Understood."})
        other.pin(handle="#1", name="port")
    return url
