"""`foldline inspect` on valid files and on every kind of bad one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from foldline.wire.session_logs.claude_code_requests import content_hash
from support.command import BAD, EXAMPLE, foldline, one_sentence
from support.compacted_session import claude_code_session
from support.sessions import SESSIONS
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


def test_an_agents_own_compaction_is_not_counted_as_what_the_model_sees(tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    file.write_text(claude_code_session(old=40, new=3))
    report = json.loads(foldline("inspect", str(file), "--json").stdout)
    assert not wrong(report, documented("inspect"))
    assert report["messages"] == 44
    assert report["compacted"] == 40
    assert report["reported"] == 9_000
    assert report["tokens"] == pytest.approx(9_000, abs=100)  # all of the last request, and the messages after it
    assert sum(report["blocks"].values()) == report["tokens"]
    assert report["blocks"]["hidden"] > 8_000
    assert all(row["message"] > 40 for row in report["largest"])
    text = foldline("inspect", str(file)).stdout
    assert "the agent compacted #1-40: the model sees only #41-44" in text
    assert "cost so far $" in text


def test_a_codex_rollout_is_measured_against_the_window_that_it_names(tmp_path: Path) -> None:
    file = tmp_path / "rollout.jsonl"
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}
    lines = [
        {"type": "turn_context", "payload": {"model": "gpt-5.4"}},
        {"type": "event_msg", "payload": {"type": "task_started", "model_context_window": 258_400}},
        {"type": "response_item", "payload": item},
    ]
    file.write_text("\n".join(map(json.dumps, lines)))
    report = json.loads(foldline("inspect", str(file), "--json").stdout)
    assert report["window"] == 258_400
    assert report["window_source"] == "the file"
    chosen = json.loads(foldline("inspect", str(file), "--json", "--window", "50000").stdout)
    assert chosen["window"] == 50_000


def test_another_notation_of_the_same_history_is_not_called_broken(tmp_path: Path) -> None:
    file = tmp_path / "session.json"
    use = [{"type": "tool_use", "id": f"toolu_{number}", "name": "read", "input": {}} for number in (1, 2)]
    results = [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "ok"}]}
        for number in (1, 2)
    ]
    file.write_text(json.dumps([{"role": "user", "content": "go"}, {"role": "assistant", "content": use}, *results]))
    done = foldline("inspect", str(file), "--json")
    report = json.loads(done.stdout)
    assert not report["broken"]
    assert [row["code"] for row in report["adjusted"]] == ["results-joined"]
    assert "broken" not in foldline("inspect", str(file)).stdout.replace("not broken", "")


def test_tokens_are_listed_by_tool_mcp_server_and_file(tmp_path: Path) -> None:
    file = tmp_path / "session.json"
    calls = [("1", "mcp__github__create_issue", {"title": "a bug"}), ("2", "Read", {"file_path": "src/worker.py"})]
    body = {
        "model": "claude-sonnet-5",
        "tools": [{"name": "Read", "description": "Read a file.", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "go"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": i, "name": n, "input": a} for i, n, a in calls],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": i, "content": "line\n" * 50} for i, _, _ in calls],
            },
        ],
    }
    file.write_text(json.dumps(body))
    report = json.loads(foldline("inspect", str(file), "--json").stdout)
    assert report["by_tool"]["mcp__github__create_issue"]["server"] == "github"
    assert report["by_tool"]["Read"]["definition"] > 0
    assert list(report["by_file"]) == ["src/worker.py"]
    assert "MCP server" in foldline("inspect", str(file)).stdout


@pytest.mark.parametrize("is_changed", [False, True])
def test_the_request_that_claude_code_really_sent_is_rebuilt_and_proven(is_changed: bool, tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    shape = {
        "system": [{"type": "text", "text": "You are careful. " * 300}],
        "tools": [{"name": "Read", "input_schema": {}}],
    }
    sent = [{"role": "user", "content": f"question {number}"} for number in range(3)]
    names = [content_hash(message) for message in sent]
    stored = [{**message, "content": "altered"} if is_changed else message for message in sent]
    lines: list[dict[str, Any]] = [
        {"type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "s", "message": sent[0]},
        {"type": "api-request-shape", "sessionId": "s", "shapeHash": content_hash(shape), "shape": shape},
        *(
            {"type": "api-request-blob", "sessionId": "s", "hash": name, "message": message}
            for name, message in zip(names, stored, strict=True)
        ),
        {
            "type": "api-request",
            "sessionId": "s",
            "id": "r1",
            "shapeHash": content_hash(shape),
            "params": {"model": "claude-opus-5"},
            "base": None,
            "keep": 0,
            "tail": names[:2],
        },
        {
            "type": "api-request",
            "sessionId": "s",
            "id": "r2",
            "shapeHash": content_hash(shape),
            "params": {"model": "claude-opus-5"},
            "base": "r1",
            "keep": 2,
            "tail": names[2:],
        },
    ]
    file.write_text("\n".join(map(json.dumps, lines)))
    report = json.loads(foldline("inspect", str(file), "--json").stdout)
    assert report["sent"] == ("unproven" if is_changed else "proven")
    assert report["blocks"]["system prompt"] > 800
    assert report["by_tool"]["Read"]["definition"] > 0
    assert "hidden" not in report["blocks"]


def test_the_tools_and_results_of_gemini_are_shown_as_those_of_other_formats(tmp_path: Path) -> None:
    file = tmp_path / "gemini.json"
    grep, cat = ({"name": name, "description": "Read files. " * 20} for name in ("grep", "cat"))
    tools = [{"functionDeclarations": [grep, cat]}, {"googleSearch": {}}]
    file.write_text(json.dumps({**json.loads(SESSIONS["gemini"]()), "tools": tools}))
    report = json.loads(foldline("inspect", str(file), "--json").stdout)
    assert set(report["by_tool"]) == {"grep", "cat", "googleSearch"}
    assert report["by_tool"]["grep"]["definition"] > 0
    assert {row["role"] for row in report["largest"]} == {"tool"}
