"""`foldline demo` on the shipped recording."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foldline.cli.demo import NEXT, recording
from foldline.testing import violations
from support.command import foldline
from support.sessions import SESSIONS
from support.shapes import documented, wrong


def test_the_demo_folds_several_times_and_ends_with_a_summary() -> None:
    done = foldline("demo", "--fast")
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    assert done.stdout.count("─── fold ") >= 3
    assert "FL-2231" in done.stdout
    assert "AssertionError" in done.stdout, "recall gives back what was folded"
    assert "facts: the requests, errors and changed files" in done.stdout, "facts are explained where they are counted"
    assert "User: Now the policy: refuse preview_chars" in done.stdout, "the digest says what was asked"
    assert "can still be searched" in done.stdout
    assert done.stdout.rstrip().splitlines()[-1].lstrip().startswith("foldline recall")
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("width", [80, 120])
def test_every_line_of_the_demo_fits_the_terminal(width: int) -> None:
    lines = foldline("demo", "--fast", COLUMNS=str(width)).stdout.splitlines()
    assert max(map(len, lines)) <= width


def test_the_summary_can_be_printed_as_json() -> None:
    done = foldline("demo", "--json")
    report = json.loads(done.stdout)
    assert not wrong(report, documented("demo"))
    assert report["folds"] >= 3
    assert report["kept"] == report["messages"] == len(recording().messages)
    assert report["with"]["largest"] <= report["window"] < report["without"]["largest"]
    assert report["with"]["cost"] < report["without"]["cost"]
    assert report["seconds"] < 30


def test_the_demo_uses_the_given_policy_and_window() -> None:
    report = json.loads(
        foldline("demo", "--json", "--policy", "thrifty", "--window", "24000", "--model", "gpt-5").stdout
    )
    assert (report["policy"], report["window"], report["model"]) == ("thrifty", 24_000, "gpt-5")
    refused = foldline("demo", "--json", "--window", "500")
    assert refused.returncode == 3
    assert "Traceback" not in refused.stderr


def test_the_recording_is_a_valid_request() -> None:
    found = recording()
    assert found.format == "anthropic"
    assert {call.name for message in found.messages for call in message.calls} == {"read", "search", "edit", "run"}
    assert not violations(found.messages[:-1], "anthropic")
    text = "".join(result.text for message in found.messages for result in message.results)
    assert "[exit status 1]" in text, "a test failed"
    assert not any(place in text for place in ("/root/", "/home/", "/tmp/", "/work/"))


def test_the_commands_that_the_demo_suggests_work_in_their_order(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text(SESSIONS["claude-code"]())
    words = {"FILE": str(file), "OUT": str(tmp_path / "out.jsonl"), "QUESTION": "port 7091"}
    for command, _ in NEXT:
        _, *arguments = [words.get(word, word) for word in command.split()]
        done = foldline(*arguments, cwd=tmp_path, HOME=str(tmp_path), XDG_DATA_HOME=str(tmp_path / "data"))
        assert done.returncode == 0, (command, done.stderr)
    shown = foldline("demo", "--fast").stdout
    assert "add it to a ledger, and then" in shown
