"""`foldline inspect` on valid files and on every kind of bad one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command import BAD, EXAMPLE, foldline, one_sentence
from support.shapes import documented, wrong


def test_inspect_shows_what_fills_a_transcript_and_what_is_broken() -> None:
    done = foldline("inspect", str(EXAMPLE))
    assert done.returncode == 0
    assert not done.stderr
    assert "tool results" in done.stdout
    assert "the call bash toolu_3 has no result" in done.stdout
    assert "fits without a fold" in done.stdout


def test_json_has_the_same_figures() -> None:
    done = foldline("inspect", str(EXAMPLE), "--json")
    report = json.loads(done.stdout)
    assert not wrong(report, documented("inspect"))
    assert report["format"] == "anthropic"
    assert report["messages"] == 10
    assert sum(report["blocks"].values()) == report["tokens"]
    assert {row["code"] for row in report["broken"]} == {"blank", "call-unanswered", "result-orphan"}
    assert report["fold"]["need"] == "NONE"


def test_another_model_changes_window_and_counter() -> None:
    report = json.loads(foldline("inspect", str(EXAMPLE), "--json", "--model", "gpt-4o").stdout)
    assert report["window"] == 128_000
    assert "gpt-4o" in report["model_source"]


def test_a_policy_under_which_it_cannot_fit_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "long.json"
    file.write_text(json.dumps([{"role": "user", "content": "word " * 300_000}]))
    done = foldline("inspect", str(file), "--model", "gpt-4o")
    assert done.returncode == 0
    assert "cannot be sent" in done.stdout


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_error_sentence(name: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.json"
    file.write_bytes(BAD[name])
    assert "bad.json" in one_sentence(foldline("inspect", str(file)))


def test_a_fault_is_reported_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_bytes(BAD["broken line"])
    assert "bad.jsonl:2" in foldline("inspect", str(file)).stderr
    file.write_bytes(BAD["wrong types"])
    assert "--format" in foldline("inspect", str(file)).stderr
    assert "content" in foldline("inspect", str(file), "--format", "openai").stderr


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere.json", tmp_path):
        done = foldline("inspect", str(path))
        assert done.returncode == 2
        assert str(path) in done.stderr
        assert "Traceback" not in done.stderr


def test_unknown_roles_and_kinds_are_accepted(tmp_path: Path) -> None:
    file = tmp_path / "odd.json"
    odd = [{"role": "oracle", "content": "?"}, {"role": "user", "content": [{"type": "hologram", "data": {"a": 1}}]}]
    file.write_text(json.dumps(odd))
    assert foldline("inspect", str(file), "--format", "openai").returncode == 0


def test_a_message_of_fifty_megabytes_can_be_inspected(tmp_path: Path) -> None:
    file = tmp_path / "huge.json"
    file.write_text(json.dumps([{"role": "user", "content": "lorem ipsum " * 4_400_000}]))
    done = foldline("inspect", str(file), "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["tokens"] > 5_000_000


def test_control_characters_are_not_printed(tmp_path: Path) -> None:
    file = tmp_path / "sly.json"
    file.write_text(json.dumps([{"role": "user", "content": "\x1b]0;owned\x07 [red]hello[/red] \x1b[2J"}]))
    done = foldline("inspect", str(file))
    assert "\x1b" not in done.stdout
    assert "[red]hello[/red]" in done.stdout
