"""`foldline watch`, `hook`, `statusline` and `install` through the real entry point."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.cli.watch import COMPACT, COST, CUT, FAILED
from foldline.text_lines import EVENT_BYTES, LineSplitter
from foldline.watch import meter
from foldline.watch import status_line as statusline
from foldline.watch.installer import TARGETS, plan_change, settings_path
from support.agent_events import ANYTHING, answer, boundary, call, reply, result, said
from support.shapes import documented, wrong

COMMAND = [sys.executable, "-m", "foldline.cli"]
PLAIN = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}


def foldline(
    *arguments: str, given: bytes = b"", cwd: Path | None = None, **env: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *arguments],
        input=given,
        capture_output=True,
        env={**PLAIN, **env},
        cwd=cwd,
        timeout=120,
        check=False,
    )


def stream(*events: Any) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def events_of(output: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def failure(call_id: str) -> dict[str, Any]:
    return answer("Exit code 2\nmake: *** no rule for x", call_id, error=True)


TURN = stream(
    said("keep the tabs"), reply(150_000, call("Write", file_path="a.py", content="x")), answer("ok"), result()
)


class TestWatch:
    def test_a_person_sees_the_meter_and_where_the_notes_are(self, tmp_path: Path) -> None:
        done = foldline("watch", "--scratch", str(tmp_path), given=TURN)
        said_to_person = done.stderr.decode()
        assert done.returncode == 0
        assert not done.stdout
        assert "75%" in said_to_person
        assert "150k of 200k" in said_to_person
        assert "a compaction is near" in said_to_person
        assert str(tmp_path / ".context" / "scratch.md") in said_to_person
        assert "keep the tabs" in (tmp_path / ".context" / "scratch.md").read_text()

    @pytest.mark.promise("S1.13", "F12")
    def test_an_orchestrator_reads_events(self, tmp_path: Path) -> None:
        given = stream(said("x"), reply(160_000), result(total_cost_usd=0.5))
        done = foldline("watch", "--json", "--scratch", str(tmp_path), "--job", "tabs", "--state", "WORK", given=given)
        events = events_of(done.stdout)
        assert [event["event"] for event in events] == [
            *("session", "meter", "meter", "warning", "compact", "turn", "intervention", "end")
        ]
        assert events[-2]["text"].splitlines() == [
            "/compact focus on tabs -- current CfA state is WORK",
            "After compaction, read .context/scratch.md for preserved context.",
        ]
        assert events[-1]["cost_usd"] == 0.5
        assert events[-1]["code"] == done.returncode == COMPACT

    def test_every_event_has_the_documented_shape(self, tmp_path: Path) -> None:
        twice = [
            event for number in "12" for event in (reply(9, call("Bash", number, command="make")), failure(number))
        ]
        given = stream(
            *(said("x"), reply(160_000), *twice, boundary(), {"type": "system", "subtype": "compact_boundary"}),
            *(reply(160_000), result(total_cost_usd=0.9), reply(9), result(total_cost_usd=2)),
        )
        done = foldline("watch", "--json", "--cost-limit", "1", "--scratch", str(tmp_path), given=given)
        shapes, events = documented("watch"), events_of(done.stdout)
        assert {event["event"] for event in events} == set(shapes) - {"not_written"}
        assert not [fault for event in events for fault in wrong(event, shapes[event["event"]])]

    def test_the_input_passes_through_unchanged(self) -> None:
        given = TURN + b'garbage \xff\xfe\n{"half": \n\n' + TURN.removesuffix(b"\n")
        done = foldline("watch", "--json", "--pass-through", given=given)
        assert done.stdout == given
        assert events_of(done.stderr)[-1]["event"] == "end"

    @pytest.mark.parametrize(
        ("given", "code"),
        [
            (stream(reply(9), result()), 0),
            (stream(reply(9), result(is_error=True)), FAILED),
            (stream(reply(160_000), result()), COMPACT),
            (stream(reply(9), result(total_cost_usd=3)), COST),
            (stream(reply(9)), CUT),
            (b"", CUT),
        ],
    )
    def test_the_exit_code_says_why(self, given: bytes, code: int) -> None:
        assert foldline("watch", "--json", "--cost-limit", "2", given=given).returncode == code

    def test_garbage_half_lines_and_nulls_are_survived(self) -> None:
        given = b"\x00\xff not json\n[1, 2]\nnull\n" + stream(
            {}, {"type": None}, {"type": "assistant", "message": None}
        )
        given += b'{"type": "result", "usage": ' + b"\n" + stream(result()) + b'{"type": "assis'
        done = foldline("watch", "--json", given=given)
        end = events_of(done.stdout)[-1]
        assert done.returncode == 0
        assert not done.stderr
        assert end["garbage"] == 5

    def test_a_file_is_followed_while_it_is_written(self, tmp_path: Path) -> None:
        file = tmp_path / "session.jsonl"
        file.write_bytes(TURN)

        def write_on() -> None:
            time.sleep(0.4)
            half = stream(reply(170_000))
            with open(file, "ab", buffering=0) as out:
                out.write(half[:40])
                time.sleep(0.3)
                out.write(half[40:] + stream(boundary()))

        writer = threading.Thread(target=write_on)
        writer.start()
        done = foldline("watch", "--json", "--follow", "--idle", "2", str(file))
        writer.join()
        kinds = [event["event"] for event in events_of(done.stdout)]
        assert kinds.index("compact") < kinds.index("compacted")
        assert events_of(done.stdout)[-1]["garbage"] == 0

    def test_the_limit_of_a_project_needs_its_file(self) -> None:
        done = foldline("watch", "--project-limit", "3", given=TURN)
        assert done.returncode == 2
        assert b"need each other" in done.stderr

    @pytest.mark.promise("S1.31", "S1.32")
    def test_at_a_limit_the_person_is_asked_and_a_no_has_the_agent_wrap_up(self, tmp_path: Path) -> None:
        given = stream(reply(9), result(total_cost_usd=3), reply(9), result(total_cost_usd=4))
        costs = str(tmp_path / "costs.jsonl")
        options = ("--ask", "--project-limit", "2", "--project-costs", costs, "--job", "a")
        detached = subprocess.run(  # without a terminal nobody can say yes
            [*COMMAND, "watch", "--json", *options],
            input=given,
            capture_output=True,
            start_new_session=True,
            timeout=60,
            check=False,
        )
        events = events_of(detached.stdout)
        assert detached.returncode == COST
        kinds = [event["event"] for event in events]
        assert kinds[-6:] == ["cost_warning", "cost_limit", "input_requested", "turn", "intervention", "end"]
        assert "Then stop." in next(event["text"] for event in events if event["event"] == "intervention")

    def test_a_missing_file_is_one_plain_sentence(self) -> None:
        done = foldline("watch", "nowhere.jsonl")
        assert done.returncode == 2
        assert done.stderr.decode() == "foldline: nowhere.jsonl: cannot be read (No such file or directory)\n"


class TestLines:
    @given(st.lists(st.binary(max_size=40)), st.integers(1, 30))
    def test_chunks_become_the_same_lines_however_they_are_cut(self, lines: list[bytes], size: int) -> None:
        data = b"\n".join(lines)
        splitter = LineSplitter()
        found = [line for at in range(0, len(data), size) for line in splitter.lines(data[at : at + size])]
        rest = splitter.rest()
        assert found + ([rest] if rest else []) == [line for line in data.split(b"\n") if line]

    def test_a_line_without_end_is_skipped_in_bounded_memory(self) -> None:
        splitter = LineSplitter()
        chunk = b"x" * (1 << 20)
        found = [line for _ in range(EVENT_BYTES // len(chunk) + 3) for line in splitter.lines(chunk)]
        found += list(splitter.lines(b"the end of it\nnext\n"))
        assert found == [b"next"]
        assert splitter.too_long == 1


def hook(tree: Path, event: str, transcript: Path | None = None, **fields: Any) -> subprocess.CompletedProcess[bytes]:
    given = {
        "session_id": "s1",
        "cwd": str(tree),
        "hook_event_name": event,
        "transcript_path": str(transcript),
        **fields,
    }
    return foldline("hook", given=json.dumps(given).encode(), CLAUDE_PROJECT_DIR="")


class TestHook:
    def test_a_prompt_is_recorded_and_a_full_window_is_told(self, tmp_path: Path) -> None:
        session = tmp_path / "s.jsonl"
        session.write_bytes(TURN)
        done = hook(tmp_path, "UserPromptSubmit", session, prompt="never touch main.py")
        assert "75% full" in json.loads(done.stdout)["systemMessage"]
        assert "> never touch main.py" in (tmp_path / ".context" / "human-input.md").read_text()
        session.write_bytes(stream(reply(9_000)))
        assert not hook(tmp_path, "UserPromptSubmit", session, prompt="again").stdout

    @pytest.mark.promise("F12")
    def test_before_a_compaction_the_session_is_written_down(self, tmp_path: Path) -> None:
        session = tmp_path / "s.jsonl"
        session.write_bytes(TURN)
        hook(tmp_path, "UserPromptSubmit", session, prompt="keep the tabs")
        done = hook(tmp_path, "PreCompact", session, trigger="auto", custom_instructions=None)
        assert b".context/scratch.md (1 human inputs, 1 changed files)" in done.stdout
        page = (tmp_path / ".context" / "scratch.md").read_text()
        assert page.count("keep the tabs") == 1
        assert "a.py" in page

    def test_after_a_compaction_the_agent_is_pointed_to_the_notes(self, tmp_path: Path) -> None:
        assert not hook(tmp_path, "SessionStart", source="compact").stdout
        hook(tmp_path, "PostCompact", trigger="auto", compact_summary="the summary\nin two lines")
        assert "> in two lines" in (tmp_path / ".context" / "state-changes.md").read_text()
        hook(tmp_path, "UserPromptSubmit", prompt="go on")
        answer = json.loads(hook(tmp_path, "SessionStart", source="compact").stdout)["hookSpecificOutput"]
        assert answer["hookEventName"] == "SessionStart"
        assert "read .context/scratch.md (1 human inputs)" in answer["additionalContext"]
        assert "- #1: go on" in (tmp_path / ".context" / "scratch.md").read_text()
        assert not hook(tmp_path, "SessionStart", source="startup").stdout

    @pytest.mark.parametrize(
        "given", [b"", b"nonsense", b"[]", b"{}", b'{"hook_event_name": null}', b'{"hook_event_name": "Stop"}']
    )
    def test_nothing_that_comes_in_blocks_the_agent(self, given: bytes, tmp_path: Path) -> None:
        done = foldline("hook", given=given, cwd=tmp_path)
        assert done.returncode in (0, 1)
        assert not done.stdout
        assert b"Traceback" not in done.stderr

    def test_one_compaction_is_recorded_once(self, tmp_path: Path) -> None:
        session = tmp_path / "s.jsonl"
        session.write_bytes(TURN)
        hook(tmp_path, "PreCompact", session, trigger="auto")
        hook(tmp_path, "PostCompact", session, trigger="auto", compact_summary="the summary")
        session.write_bytes(TURN + stream(boundary()))
        for _ in range(2):
            hook(tmp_path, "PreCompact", session, trigger="auto")
        text = (tmp_path / ".context" / "state-changes.md").read_text()
        assert text.count("→ compacted (") == 1
        assert text.count("the summary") == 1

    def test_the_notes_are_named_by_a_path_that_works_where_the_agent_is(self, tmp_path: Path) -> None:
        inner = tmp_path / "inner"
        inner.mkdir()
        session = tmp_path / "s.jsonl"
        session.write_bytes(TURN)

        def told(event: str, cwd: Path, **fields: Any) -> str:
            given = {"hook_event_name": event, "cwd": str(cwd), "transcript_path": str(session), **fields}
            return foldline("hook", given=json.dumps(given).encode(), CLAUDE_PROJECT_DIR=str(tmp_path)).stdout.decode()

        for event, fields in (
            ("PreCompact", {"trigger": "auto"}),
            ("PostCompact", {"trigger": "auto"}),
            ("SessionStart", {"source": "compact"}),
        ):
            assert f" {tmp_path / '.context' / 'scratch.md'} (" in told(event, inner, **fields)
            assert " .context/scratch.md (" in told(event, tmp_path, **fields)

    @pytest.mark.parametrize("name", ["/gone\0", "/\ud800", "/nowhere/at/all"])
    def test_a_folder_that_is_none_is_named(self, name: str) -> None:
        done = hook(Path("."), "UserPromptSubmit", prompt="x", cwd=name)
        assert done.returncode == 1
        assert b"no such folder: no notes were written" in done.stderr
        assert done.stderr.count(b"\n") == 1

    @pytest.mark.parametrize("name", ["/gone\0", "/\ud800", "/nowhere", "/"])
    @pytest.mark.parametrize("event", ["UserPromptSubmit", "PreCompact"])
    def test_a_session_that_cannot_be_read_is_no_reason_to_fail(self, tmp_path: Path, name: str, event: str) -> None:
        done = hook(tmp_path, event, prompt="keep the tabs", transcript_path=name)
        assert (done.returncode, done.stderr) == (0, b"")
        assert (tmp_path / ".context" / "human-input.md").exists() is (event == "UserPromptSubmit")

    @pytest.mark.skipif(sys.platform == "win32", reason="no such limit")
    def test_a_full_disk_is_said_with_the_file_and_what_to_do(self, tmp_path: Path) -> None:
        given = {"hook_event_name": "UserPromptSubmit", "cwd": str(tmp_path), "prompt": "x"}
        done = subprocess.run(
            ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", *COMMAND, "hook"],
            input=json.dumps(given).encode(),
            capture_output=True,
            env={**PLAIN, "CLAUDE_PROJECT_DIR": ""},
            timeout=60,
            check=False,
        )
        assert done.returncode == 1
        assert done.stderr.startswith(f"foldline hook: {tmp_path / '.context'}".encode())
        assert b"ulimit" in done.stderr
        assert done.stderr.count(b"\n") == 1

    def test_a_folder_that_is_a_trap_costs_no_turn(self, tmp_path: Path) -> None:
        (tmp_path / ".context").symlink_to("/etc")
        done = hook(tmp_path, "UserPromptSubmit", prompt="x")
        assert done.returncode == 1
        assert done.stderr.count(b"\n") == 1


GIVEN = {
    "model": {"id": "claude-opus-4-6", "display_name": "Opus 4.6"},
    "context_window": {
        "context_window_size": 200_000,
        "current_usage": {
            "input_tokens": 10_000,
            "output_tokens": 99_000,
            "cache_creation_input_tokens": 20_000,
            "cache_read_input_tokens": 130_000,
        },
    },
    "cost": {"total_cost_usd": 1.234},
}


class TestStatusline:
    def test_the_line_has_the_meters_figures(self) -> None:
        done = foldline("statusline", given=json.dumps(GIVEN).encode())
        assert done.stdout.decode() == "Opus 4.6 ▰▰▰▰▰▰▰▰▱▱ 80% 160k/200k, time to compact $1.23\n"

    def test_right_after_a_compaction_nothing_is_measured(self) -> None:
        context = {"context_window_size": 200_000, "current_usage": None, "used_percentage": None}
        assert statusline.line({"context_window": context}) == "▱▱▱▱▱▱▱▱▱▱ not measured yet"
        assert statusline.line({"context_window": {**context, "used_percentage": 40}}) == "▰▰▰▰▱▱▱▱▱▱ 40% 80k/200k"

    def test_its_thresholds_are_the_meters(self) -> None:
        assert (statusline.WARN, statusline.COMPACT) == (meter.WARN_RATIO, meter.COMPACT_RATIO)

    @given(ANYTHING)
    def test_anything_that_comes_in_gives_one_line(self, value: Any) -> None:
        assert len(statusline.line(value, colour=True).splitlines()) <= 1

    @pytest.mark.parametrize("given", [b"", b"\xff", b"null", b"[" * 100_000])
    def test_garbage_gives_an_empty_line(self, given: bytes) -> None:
        done = foldline("statusline", given=given)
        assert (done.returncode, done.stdout) == (0, b"\n")

    def test_it_starts_without_the_rest(self) -> None:
        code = (
            "import sys; sys.argv = ['foldline', 'statusline']\nfrom foldline.cli import main\n"
            "try:\n main()\nexcept SystemExit:\n print(*sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", code], input=b"{}", capture_output=True, check=True)
        loaded = set(done.stdout.decode().split())
        assert not {"click", "rich", "tomllib", "foldline.wire", "foldline.errors"} & loaded


class TestInstall:
    def test_it_shows_the_change_writes_it_and_takes_it_out(self, tmp_path: Path) -> None:
        file = tmp_path / ".claude" / "settings.json"
        shown = foldline("install", "claude-code", "--project", "--dry-run", cwd=tmp_path)
        assert b'+    "PreCompact": [' in shown.stdout
        assert not file.exists()
        refused = foldline("install", "claude-code", "--project", cwd=tmp_path, given=b"n\n")
        assert refused.returncode == 130
        assert not file.exists()
        assert foldline("install", "claude-code", "--project", "--yes", cwd=tmp_path).returncode == 0
        command = json.loads(file.read_text())["statusLine"]["command"]
        line = subprocess.run(command, shell=True, input=b"{}", capture_output=True, check=True)
        assert line.stdout == b"\n"
        again = foldline("install", "claude-code", "--project", "--yes", cwd=tmp_path)
        assert b"nothing to change" in again.stderr
        assert foldline("install", "claude-code", "--project", "--uninstall", "--yes", cwd=tmp_path).returncode == 0
        assert not file.exists()

    def test_a_status_line_of_the_users_own_stays(self, tmp_path: Path) -> None:
        file = tmp_path / ".claude" / "settings.json"
        file.parent.mkdir()
        file.write_text('{"statusLine": {"type": "command", "command": "mine.sh"}}')
        done = foldline("install", "claude-code", "--project", "--yes", cwd=tmp_path)
        assert json.loads(file.read_text())["statusLine"]["command"] == "mine.sh"
        assert b"your own status line stays" in done.stderr

    def test_the_users_own_settings_are_found(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "moved"))
        assert settings_path(TARGETS["claude-code"], project=None) == tmp_path / "moved" / "settings.json"
        monkeypatch.delenv("CODEX_HOME", raising=False)
        monkeypatch.setenv("HOME", str(tmp_path))
        assert settings_path(TARGETS["codex"], project=None) == tmp_path / ".codex" / "hooks.json"

    def test_a_link_stays_a_link_and_the_mode_stays(self, tmp_path: Path) -> None:
        real = tmp_path / "dotfiles.json"
        real.write_text("{}")
        real.chmod(0o640)
        link = tmp_path / "settings.json"
        link.symlink_to(real)
        plan_change(TARGETS["claude-code"], link).apply()
        assert link.is_symlink()
        assert real.stat().st_mode & 0o777 == 0o640
        assert "foldline" in real.read_text()
