"""Files that a command reads only in part, or not at all, and the words that say so."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from foldline.wire import read
from support.command import foldline, one_sentence
from support.sessions import SESSIONS


def report(*arguments: str) -> Any:
    done = foldline(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def several(tmp_path: Path) -> Path:
    file = tmp_path / "several.json"
    runs = [[{"role": "user", "content": f"question {number}"}] for number in range(3)]
    file.write_text(json.dumps({"runs": runs}))
    return file


@pytest.fixture
def gemini_recording(tmp_path: Path) -> Path:
    tokens = {"input": 1_000, "output": 10, "cached": 200, "thoughts": 0, "tool": 0, "total": 1_010}
    records = [
        {"id": "0", "type": "user", "content": "hello", "timestamp": "2026-03-01T10:00:00Z"},
        {"id": "1", "type": "gemini", "content": "hi", "tokens": tokens, "model": "gemini-2.5-flash"},
    ]
    file = tmp_path / "recording.json"
    file.write_text(json.dumps({"sessionId": "s", "messages": records}))
    return file


def test_one_of_several_conversations_can_be_folded(several: Path, tmp_path: Path) -> None:
    out, fold = tmp_path / "out.json", ("fold", str(several), "-o", str(tmp_path / "out.json"))
    said = one_sentence(foldline(*fold))
    assert "contains 3 conversations: choose one with --conversation, 1 to 3" in said
    assert "only 3 conversations" in one_sentence(foldline(*fold, "--conversation", "4"))
    assert "--to" in foldline(*fold, "--conversation", "2").stderr
    assert foldline(*fold, "--conversation", "2", "--to", "openai").returncode == 0
    assert [message.text for message in read(out).messages] == ["question 1"]


def test_inspect_numbers_the_conversations_of_a_file(several: Path) -> None:
    lines = foldline("inspect", str(several)).stdout.splitlines()
    starts = [lines.index(f"conversation {number} of 3") for number in (1, 2, 3)]
    assert [lines[start - 1] for start in starts[1:]] == ["", ""]


def test_a_preview_names_the_parts_of_a_message_without_text_and_marks_a_cut(tmp_path: Path) -> None:
    file, ledger = tmp_path / "session.json", str(tmp_path / "a.db")
    thinking = {"type": "thinking", "thinking": "", "signature": "abc"}
    messages = [
        {"role": "user", "content": "word " * 100},
        {"role": "assistant", "content": [thinking]},
        {"role": "user", "content": ""},
    ]
    file.write_text(json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": messages}))
    assert foldline("inspect", str(file)).stdout.count("word…\n") == 1
    assert foldline("import", str(file), "--ledger", ledger).returncode == 0
    starts = [row["starts"] for row in json.loads(foldline("show", "--ledger", ledger, "--json").stdout)["view"]]
    assert starts[1:] == ["(thinking)", "(empty)"]


def test_one_of_several_conversations_can_be_handed_over(several: Path) -> None:
    said = one_sentence(foldline("handoff", str(several)))
    assert "contains 3 conversations: choose one with --conversation, 1 to 3" in said
    assert "question 1" in foldline("handoff", str(several), "--conversation", "2").stdout


@pytest.mark.parametrize("command", ["inspect", "handoff", "usage", "replay", "import"])
def test_an_unclear_format_can_be_named_with_the_option_that_the_error_names(command: str, tmp_path: Path) -> None:
    file, ledger = tmp_path / "list.json", ("--ledger", str(tmp_path / "a.db")) if command == "import" else ()
    file.write_text('[{"what": "is this"}]')
    said = one_sentence(foldline(command, str(file), *ledger))
    assert "name the format with --format, one of" in said
    help_text = foldline(command, "--help").stdout
    assert "--format FORMAT" in help_text


def test_a_file_with_the_ending_gz_is_written_compressed(tmp_path: Path) -> None:
    file, out = tmp_path / "session.jsonl", tmp_path / "out.jsonl.gz"
    file.write_text(SESSIONS["claude-code"]())
    done = report("fold", str(file), "-o", str(out))
    assert gzip.decompress(out.read_bytes()) == file.read_bytes()
    assert done["bytes"] == out.stat().st_size


def test_a_format_in_which_no_message_is_found_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    file.write_text(json.dumps([{"instance_id": "a-1", "resolved": True}, {"instance_id": "a-2", "resolved": False}]))
    for command in (("inspect",), ("fold", "-o", str(tmp_path / "out.json"))):
        said = one_sentence(foldline(*command, str(file), "--format", "openhands"))
        assert "no message in the format openhands: openhands has events with an action or an observation" in said
        assert "leave out --format" not in said


@pytest.mark.parametrize("format", ["openhands", "anthropic", "codex"])
def test_the_error_about_a_named_format_does_not_ask_for_the_format(format: str, tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    file.write_text('{"a": 1}')
    said = one_sentence(foldline("inspect", str(file), "--format", format))
    assert f"the input is not in the format {format}: {format} has " in said
    assert "--format" not in said


def test_a_file_that_is_not_json_is_answered_with_what_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "chat.md"
    file.write_text("# aider chat started at 2026-03-01\n\n#### add a test\n")
    assert "a session file of Claude Code, Codex, pi" in one_sentence(foldline("inspect", str(file)))


def test_an_export_is_named_as_one(tmp_path: Path) -> None:
    file, ledger, out = tmp_path / "session.jsonl", str(tmp_path / "a.db"), tmp_path / "export.jsonl"
    file.write_text(SESSIONS["claude-code"](3))
    foldline("import", str(file), "--ledger", ledger)
    foldline("export", "-o", str(out), "--ledger", ledger)
    for command in ("inspect", "replay"):
        assert "is an export of a ledger" in one_sentence(foldline(command, str(out)))


def test_usage_reads_other_formats_and_refuses_what_it_cannot_read(gemini_recording: Path, tmp_path: Path) -> None:
    total = report("usage", str(gemini_recording))["total"]
    assert (total["requests"], total["cache_read"], total["output"]) == (1, 200, 10)
    chat = tmp_path / "chat.md"
    chat.write_text("# aider chat started at 2026-03-01\n")
    assert "chat.md" in one_sentence(foldline("usage", str(chat)))


def test_watch_says_which_files_it_reads(gemini_recording: Path) -> None:
    done = foldline("watch", str(gemini_recording))
    assert "watch reads session files of Claude Code and Codex" in done.stderr


def test_a_model_without_a_price_has_no_cost(tmp_path: Path) -> None:
    file = tmp_path / "session.json"
    file.write_text(SESSIONS["openai"](3))
    done = foldline("replay", str(file), "--model", "nobody/knows-this")
    assert "$" not in done.stdout


def test_similar_problems_share_a_line(tmp_path: Path) -> None:
    file = tmp_path / "session.json"
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for number in range(8):
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": "edit", "input": {}}
        messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": f"and {number}"}]
    file.write_text(json.dumps(messages))
    text = foldline("inspect", str(file)).stdout
    assert text.count("has no result") == 1
    assert "#2, #4, #6, #8 and 4 more: the call edit toolu_0 has no result" in text


def test_no_line_of_a_table_ends_with_blanks(tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    file.write_text(SESSIONS["claude-code"]())
    for command in (("inspect",), ("replay",), ("usage", "--by", "model", "--by", "session")):
        for line in foldline(*command, str(file)).stdout.splitlines():
            assert line == line.rstrip()
