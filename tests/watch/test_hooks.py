"""`foldline hook`: what each hook event records and answers, and that no failure blocks the agent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foldline.watch.agent_hooks import EVENTS, handle
from support.agent_events import ANYTHING, boundary, lines, reply, said
from support.command import ENTRY, clean
from support.watching import FULL_TURN, entries, index_says, shell, spawn, start


def run_hook(
    tree: Path, event: str, transcript: Path | None = None, **fields: Any
) -> subprocess.CompletedProcess[bytes]:
    given = {
        "session_id": "s1",
        "cwd": str(tree),
        "hook_event_name": event,
        "transcript_path": str(transcript),
        **fields,
    }
    return spawn("hook", given=json.dumps(given).encode(), CLAUDE_PROJECT_DIR="")


def test_a_prompt_is_recorded_and_a_full_window_is_reported(tmp_path: Path) -> None:
    session = tmp_path / "s.jsonl"
    session.write_bytes(FULL_TURN)
    done = run_hook(tmp_path, "UserPromptSubmit", session, prompt="never touch main.py")
    assert "75% full" in json.loads(done.stdout)["systemMessage"]
    assert "> never touch main.py" in (tmp_path / ".context" / "human-input.md").read_text()
    session.write_bytes(lines(reply(9_000)))
    assert not run_hook(tmp_path, "UserPromptSubmit", session, prompt="again").stdout


@pytest.mark.promise("F12")
def test_before_a_compaction_the_notes_of_the_session_are_written(tmp_path: Path) -> None:
    session = tmp_path / "s.jsonl"
    session.write_bytes(FULL_TURN)
    run_hook(tmp_path, "UserPromptSubmit", session, prompt="keep the tabs")
    done = run_hook(tmp_path, "PreCompact", session, trigger="auto", custom_instructions=None)
    assert b".context/scratch.md (1 human inputs, 1 changed files)" in done.stdout
    page = (tmp_path / ".context" / "scratch.md").read_text()
    assert page.count("keep the tabs") == 1
    assert "a.py" in page


def test_after_a_compaction_the_agent_is_told_where_the_notes_are(tmp_path: Path) -> None:
    assert not run_hook(tmp_path, "SessionStart", source="compact").stdout
    run_hook(tmp_path, "PostCompact", trigger="auto", compact_summary="the summary\nin two lines")
    assert "> in two lines" in (tmp_path / ".context" / "state-changes.md").read_text()
    run_hook(tmp_path, "UserPromptSubmit", prompt="go on")
    answer = json.loads(run_hook(tmp_path, "SessionStart", source="compact").stdout)["hookSpecificOutput"]
    assert answer["hookEventName"] == "SessionStart"
    assert "read .context/scratch.md (1 human inputs)" in answer["additionalContext"]
    assert "- #1: go on" in (tmp_path / ".context" / "scratch.md").read_text()
    assert not run_hook(tmp_path, "SessionStart", source="startup").stdout


@pytest.mark.parametrize(
    "given", [b"", b"nonsense", b"[]", b"{}", b'{"hook_event_name": null}', b'{"hook_event_name": "Stop"}']
)
def test_no_hook_input_blocks_the_agent(given: bytes, tmp_path: Path) -> None:
    done = spawn("hook", given=given, cwd=tmp_path)
    assert done.returncode in (0, 1)
    assert not done.stdout
    assert b"Traceback" not in done.stderr


def test_one_compaction_is_recorded_once(tmp_path: Path) -> None:
    session = tmp_path / "s.jsonl"
    session.write_bytes(FULL_TURN)
    run_hook(tmp_path, "PreCompact", session, trigger="auto")
    run_hook(tmp_path, "PostCompact", session, trigger="auto", compact_summary="the summary")
    session.write_bytes(FULL_TURN + lines(boundary()))
    for _ in range(2):
        run_hook(tmp_path, "PreCompact", session, trigger="auto")
    text = (tmp_path / ".context" / "state-changes.md").read_text()
    assert text.count("→ compacted (") == 1
    assert text.count("the summary") == 1


def test_the_path_of_the_notes_works_in_the_agents_current_folder(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    session = tmp_path / "s.jsonl"
    session.write_bytes(FULL_TURN)

    def told(event: str, cwd: Path, **fields: Any) -> str:
        given = {"hook_event_name": event, "cwd": str(cwd), "transcript_path": str(session), **fields}
        return spawn("hook", given=json.dumps(given).encode(), CLAUDE_PROJECT_DIR=str(tmp_path)).stdout.decode()

    for event, fields in (
        ("PreCompact", {"trigger": "auto"}),
        ("PostCompact", {"trigger": "auto"}),
        ("SessionStart", {"source": "compact"}),
    ):
        assert f" {tmp_path / '.context' / 'scratch.md'} (" in told(event, inner, **fields)
        assert " .context/scratch.md (" in told(event, tmp_path, **fields)


@pytest.mark.parametrize("name", ["/gone\0", "/\ud800", "/nowhere/at/all"])
def test_a_missing_project_folder_is_named_in_the_error(name: str) -> None:
    done = run_hook(Path("."), "UserPromptSubmit", prompt="x", cwd=name)
    assert done.returncode == 1
    assert b"no such folder: no notes were written" in done.stderr
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("name", ["/gone\0", "/\ud800", "/nowhere", "/"])
@pytest.mark.parametrize("event", ["UserPromptSubmit", "PreCompact"])
def test_an_unreadable_session_file_does_not_make_the_hook_fail(tmp_path: Path, name: str, event: str) -> None:
    done = run_hook(tmp_path, event, prompt="keep the tabs", transcript_path=name)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / ".context" / "human-input.md").exists() is (event == "UserPromptSubmit")


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit")
def test_a_full_disk_error_names_the_file_and_what_to_do(tmp_path: Path) -> None:
    given = {"hook_event_name": "UserPromptSubmit", "cwd": str(tmp_path), "prompt": "x"}
    done = subprocess.run(
        ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", *ENTRY, "hook"],
        input=json.dumps(given).encode(),
        capture_output=True,
        env=clean(CLAUDE_PROJECT_DIR=""),
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"foldline hook: {tmp_path / '.context'}".encode())
    assert b"ulimit" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_a_link_in_place_of_the_notes_folder_does_not_block_the_agent(tmp_path: Path) -> None:
    (tmp_path / ".context").symlink_to("/etc")
    done = run_hook(tmp_path, "UserPromptSubmit", prompt="x")
    assert done.returncode == 1
    assert done.stderr.count(b"\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="a shell closes the files")
@pytest.mark.parametrize("name", ["hook", "statusline"])
@pytest.mark.parametrize("files", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full", "2>/dev/full"])
def test_closed_and_full_standard_streams_never_block_the_agent(tmp_path: Path, name: str, files: str) -> None:
    given = {"hook_event_name": "PostCompact", "cwd": str(tmp_path), "trigger": "auto"}
    done = shell(f"{name} {files}", tmp_path, json.dumps(given))
    assert done.returncode in (0, 1)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert done.stderr.count("\n") <= 1


def test_a_session_path_that_is_a_pipe_does_not_make_a_hook_wait(tmp_path: Path) -> None:
    """A pipe named as the session file would be waited for until the hook is killed."""
    pipe = tmp_path / "s.jsonl"
    os.mkfifo(pipe)
    began = time.monotonic()
    for event in ("UserPromptSubmit", "PreCompact"):
        given = {"hook_event_name": event, "cwd": str(tmp_path), "transcript_path": str(pipe), "prompt": "hello"}
        assert shell("hook", tmp_path, json.dumps(given)).returncode == 0
    assert time.monotonic() - began < 20
    assert "hello" in (tmp_path / ".context" / "human-input.md").read_text()


FIELDS = st.fixed_dictionaries(
    {"hook_event_name": st.sampled_from(EVENTS)},
    optional={
        **dict.fromkeys(("cwd", "transcript_path"), st.one_of(ANYTHING, st.sampled_from(["\0", "\ud800", "/", "."]))),
        **dict.fromkeys(
            ("prompt", "session_id", "trigger", "compact_summary", "turn_id"), ANYTHING | st.just("\ud800")
        ),
        "source": st.sampled_from(["compact", "resume", None]),
    },
)


@given(st.lists(FIELDS, min_size=1, max_size=4))
@settings(max_examples=40)
def test_any_hook_input_gives_a_valid_answer(
    tmp_path_factory: pytest.TempPathFactory, given: list[dict[str, Any]]
) -> None:
    tree = tmp_path_factory.mktemp("tree")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLAUDE_PROJECT_DIR", str(tree))
        for one in given:
            answer = handle(one)
            assert not answer or one["hook_event_name"] == "PreCompact" or json.loads(answer)
            assert (tree / ".context" / "scratch.md").exists() or not answer or "% full" in answer


def hook_input(tree: Path, event: str, **fields: Any) -> bytes:
    return json.dumps({"hook_event_name": event, "session_id": "s1", "cwd": str(tree), **fields}).encode()


def together(*given: bytes) -> None:
    """So many hooks at once, none of which may fail."""
    crowd = [start("hook", CLAUDE_PROJECT_DIR="") for _ in given]
    for process, text in zip(crowd, given, strict=True):
        assert process.stdin is not None
        process.stdin.write(text)
        process.stdin.close()
        process.stdin = None
    for process in crowd:
        assert process.communicate(timeout=60)[1] == b""
        assert process.returncode == 0


def test_many_hooks_at_once_record_each_prompt_once(tmp_path: Path) -> None:
    session = tmp_path / "session.jsonl"
    prompts = [hook_input(tmp_path, "UserPromptSubmit", prompt=f"prompt {number}") for number in range(6)]
    compaction = hook_input(tmp_path, "PreCompact", trigger="auto", transcript_path=str(session))
    together(*prompts[:3])
    session.write_bytes(lines(*(said(f"prompt {number}") for number in range(3)), said("before the hooks")))
    together(*prompts[3:], compaction, compaction)
    found = entries(tmp_path, "human-input.md")
    assert [number for number, _ in found] == list(range(1, 8))
    assert sorted(text for _, text in found) == ["before the hooks", *(f"prompt {number}" for number in range(6))]
    spawn("hook", given=compaction)  # a prompt may have come after the last index: it is in the next one
    assert index_says(tmp_path, "Human Input") == 7
    assert entries(tmp_path, "human-input.md") == found


def test_the_same_prompt_given_three_times_is_three_entries(tmp_path: Path) -> None:
    session = tmp_path / "session.jsonl"
    for _ in range(3):
        spawn("hook", given=hook_input(tmp_path, "UserPromptSubmit", prompt="continue"))
    session.write_bytes(lines(*[said("continue")] * 3))
    spawn("hook", given=hook_input(tmp_path, "PreCompact", trigger="auto", transcript_path=str(session)))
    assert entries(tmp_path, "human-input.md") == [(1, "continue"), (2, "continue"), (3, "continue")]


@pytest.mark.parametrize("name", ["with space", "✓", "'\"$(touch pwned)`x`", "-f", "new\nline"])
def test_a_project_folder_of_any_name_gets_its_notes(tmp_path: Path, name: str) -> None:
    tree = tmp_path / name
    tree.mkdir()
    done = spawn("hook", given=hook_input(tree, "UserPromptSubmit", prompt="hi"))
    assert (done.returncode, done.stderr) == (0, b"")
    assert entries(tree, "human-input.md") == [(1, "hi")]
    assert os.listdir(tmp_path) == [name]
