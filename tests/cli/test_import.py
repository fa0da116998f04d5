"""The command `import`: transcripts and exports become sessions of a ledger."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

import foldline as library
from support.command import BAD, ENTRY, clean, foldline, one_sentence
from support.compacted_session import claude_code_session
from support.sessions import SESSIONS
from support.shapes import report


def test_a_claude_code_file_becomes_a_session_of_the_default_ledger(transcript: Path, tmp_path: Path) -> None:
    home = str(tmp_path / "data")
    assert "there is no ledger at" in one_sentence(foldline("recall", "port", XDG_DATA_HOME=home))
    assert not (tmp_path / "data").exists(), "reading makes nothing"
    found = report("import", str(transcript), home=home)
    assert [(row["session"], row["format"]) for row in found["sessions"]] == [("3f0c", "claude-code")]
    assert (tmp_path / "data" / "foldline" / "ledger.db").stat().st_size
    assert (tmp_path / "data" / "foldline").stat().st_mode & 0o077 == 0, "only the user can read it"
    assert "7091" in foldline("recall", "which", "port", "drops", "jobs", XDG_DATA_HOME=home).stdout
    assert "no faults" in foldline("verify", XDG_DATA_HOME=home).stdout


@pytest.mark.parametrize("name", SESSIONS)
def test_every_format_can_be_imported(name: str, tmp_path: Path) -> None:
    file, url = tmp_path / "talk.json", str(tmp_path / "agent.db")
    file.write_text(SESSIONS[name](3))
    messages = library.read(file).messages
    assert report("import", str(file), "--ledger", url)["sessions"][0]["messages"] == len(messages)
    with library.open(url) as opened:
        kept = [stored.message for stored in opened.store.read(opened.store.session("talk"))]
    assert kept == list(messages)


def test_importing_a_grown_file_adds_only_new_messages(transcript: Path, tmp_path: Path) -> None:
    lines, url = transcript.read_text().splitlines(keepends=True), str(tmp_path / "agent.db")
    transcript.write_text("".join(lines[:10]))
    first = report("import", str(transcript), "--ledger", url)["sessions"][0]
    transcript.write_text("".join(lines))
    second = report("import", str(transcript), "--ledger", url)["sessions"][0]
    assert 0 < first["messages"] < second["messages"]
    assert second["new"] == second["messages"] - first["messages"]
    assert "none new" in foldline("import", str(transcript), "--ledger", url).stdout
    transcript.write_text(SESSIONS["anthropic"](2))
    assert "--session" in one_sentence(foldline("import", str(transcript), "--ledger", url))
    assert report("import", str(transcript), "--ledger", url, "-s", "other")["sessions"][0]["session"] == "other"


def test_imports_at_the_same_time_add_each_message_once(transcript: Path, tmp_path: Path) -> None:
    lines, url = transcript.read_text().splitlines(keepends=True), str(tmp_path / "agent.db")
    transcript.write_text("".join(lines[:10]))
    report("import", str(transcript), "--ledger", url)
    transcript.write_text("".join(lines))
    command = [*ENTRY, "import", str(transcript), "--ledger", url]
    running = [subprocess.Popen(command, env=clean(), stdout=subprocess.DEVNULL) for _ in range(4)]
    assert [each.wait(timeout=120) for each in running] == [0] * 4
    with library.open(url) as opened:
        assert len(opened.session("3f0c")) == len(library.read(transcript).messages)


def test_importing_an_older_copy_of_a_file_adds_nothing(transcript: Path, tmp_path: Path) -> None:
    lines, url = transcript.read_text().splitlines(keepends=True), str(tmp_path / "agent.db")
    whole = report("import", str(transcript), "--ledger", url)["sessions"][0]["messages"]
    transcript.write_text("".join(lines[:10]))
    done = foldline("import", str(transcript), "--ledger", url)
    assert done.returncode == 0, done.stderr
    assert "none new" in done.stdout
    assert report("show", "--ledger", url)["messages"] == whole


def test_a_compaction_by_the_agent_becomes_a_fold(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in SESSIONS["claude-code"](2).splitlines()]
    digest = {"role": "user", "content": "This session is being continued: we looked at the queue."}
    boundary = {**lines[-1], "uuid": "c-1", "type": "user", "isCompactSummary": True, "message": digest}
    after = {
        **lines[-1],
        "uuid": "c-2",
        "parentUuid": "c-1",
        "type": "user",
        "message": {"role": "user", "content": "Go"},
    }
    file, url = tmp_path / "long.jsonl", str(tmp_path / "agent.db")
    file.write_text("".join(json.dumps(line) + "\n" for line in [*lines, boundary, after]))
    row = report("import", str(file), "--ledger", url)["sessions"][0]
    assert row["compacted"] == row["messages"] - 2
    seen = report("show", "--ledger", url)
    assert seen["folded"] == f"#1-{row['compacted']}"
    assert [line["starts"][:4] for line in seen["view"]] == ["This", "Go"]
    assert "7091" in foldline("recall", "port", "--ledger", url).stdout, "and still there"


def test_a_compaction_by_the_agent_is_not_counted_as_a_fold(tmp_path: Path) -> None:
    file, url = tmp_path / "long.jsonl", str(tmp_path / "agent.db")
    file.write_text(claude_code_session(old=40, new=9, words=50))
    name = report("import", str(file), "--ledger", url)["sessions"][0]["session"]
    [row] = report("sessions", "--ledger", url)["sessions"]
    assert (row["folds"], row["compactions"]) == (0, [{"by": "agent", "folds": 1, "messages": 40}])
    assert re.search(rf"  50      0  {name}  40 compacted by the agent\n", foldline("sessions", "--ledger", url).stdout)
    assert "50 messages, 0 folds, 0 pins, 40 compacted by the agent;" in foldline("show", "--ledger", url).stdout
    with library.open(url) as ledger:
        session = ledger.session(name)
        session.branch("other")
        assert session.fold(force=True) is not None
    [row] = report("sessions", "--ledger", url)["sessions"]
    assert (row["folds"], row["compactions"]) == (1, [{"by": "agent", "folds": 1, "messages": 40}])


def test_a_folder_is_imported_and_other_files_are_skipped(transcript: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text('{"what": "is this"}')
    (tmp_path / "swe.traj").write_text('[{"role": "user", "content": "Hello."}]')
    found = report("import", str(tmp_path), "--ledger", str(tmp_path / "agent.db"))
    assert [row["session"] for row in found["sessions"]] == ["3f0c", "swe"]
    assert [Path(row["file"]).name for row in found["skipped"]] == ["notes.json"]
    assert foldline("import", str(tmp_path), "-s", "one", "--ledger", str(tmp_path / "b.db")).returncode == 2


@pytest.mark.parametrize("name", BAD)
def test_an_unreadable_file_creates_no_ledger(name: str, tmp_path: Path) -> None:
    file, url = tmp_path / "bad.json", tmp_path / "agent.db"
    file.write_bytes(BAD[name])
    assert "bad.json" in one_sentence(foldline("import", str(file), "--ledger", str(url)))
    assert not url.exists()


def test_missing_files_and_folders_without_transcripts_are_refused(tmp_path: Path) -> None:
    url = str(tmp_path / "agent.db")
    assert "nowhere.json" in one_sentence(foldline("import", str(tmp_path / "nowhere.json"), "--ledger", url))
    assert "no transcript found in" in one_sentence(foldline("import", str(tmp_path), "--ledger", url))
    assert "does not exist" in one_sentence(
        foldline("import", str(tmp_path), "--ledger", str(tmp_path / "no" / "agent.db")), code=4
    )


def test_a_session_from_standard_input_needs_a_name(transcript: Path, tmp_path: Path) -> None:
    url = str(tmp_path / "agent.db")

    def piped(*arguments: str) -> subprocess.CompletedProcess[str]:
        with transcript.open() as source:
            command = [*ENTRY, "import", "-", "--ledger", url, *arguments]
            return subprocess.run(
                command, stdin=source, env=clean(), capture_output=True, text=True, timeout=60, check=False
            )

    assert "--session" in one_sentence(piped())
    assert "session talk: claude-code" in piped("-s", "talk").stdout


def test_ctrl_c_leaves_no_partial_import(transcript: Path, tmp_path: Path) -> None:
    url, pipe = str(tmp_path / "agent.db"), tmp_path / "slow.jsonl"
    assert foldline("import", str(transcript), "--ledger", url).returncode == 0
    os.mkfifo(pipe)
    with (
        subprocess.Popen(
            [*ENTRY, "import", str(pipe), "--ledger", url], stderr=subprocess.PIPE, env=clean()
        ) as running,
        pipe.open("wb") as writer,
    ):
        writer.write(b'{"foldline":1,"owner":""}\n{"branch":"main","session":"half","origin":null,')
        writer.flush()
        time.sleep(0.3)
        running.send_signal(signal.SIGINT)
        assert running.stderr is not None
        assert running.stderr.read().split() == [b"stopped"]
    assert running.returncode == 130
    assert [row["name"] for row in report("sessions", "--ledger", url)["sessions"]] == ["3f0c"]
    assert report("verify", "--ledger", url)["sound"]
