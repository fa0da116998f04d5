"""`foldline watch`: options, events, exit codes, cost limits, and outputs that cannot be written."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import resource
import select
import subprocess
import termios
from pathlib import Path
from typing import Any

import pytest

from foldline.cli.watch import COMPACT, COST, CUT, EXITS, FAILED, NO_EVENTS, REFUSED, UNWRITTEN
from support.agent_events import answer, boundary, call, lines, reply, result, said
from support.command import ENTRY
from support.sessions import SESSIONS
from support.shapes import documented, wrong
from support.watching import (
    FULL_TURN,
    SECONDS,
    TURN,
    WATCH,
    Running,
    events_of,
    notes,
    run,
    spawn,
)

PAGE = Path(__file__).parents[2] / "docs" / "watch.md"


def redirected(redirection: str, *options: str, given: bytes = TURN) -> subprocess.CompletedProcess[bytes]:
    """The command as a shell starts it with some of its streams led elsewhere."""
    shell = ["sh", "-c", f'exec "$@" {redirection}', "sh", *WATCH, *options]
    return subprocess.run(shell, input=given, capture_output=True, timeout=SECONDS, check=False)


@pytest.mark.promise("S1.32")
@pytest.mark.parametrize("job", [("--job", "fix"), ()])
def test_two_processes_of_one_job_share_the_projects_limit(tmp_path: Path, job: tuple[str, ...]) -> None:
    costs = ("--project-limit", "1", "--project-costs", str(tmp_path / "costs.jsonl"))
    both = [Running(*job, *costs), Running(*job, *costs)]
    for spent in (0.3, 0.6, 0.9):
        for one in both:
            one.give(reply(1_000), result(total_cost_usd=spent))
            one.until("turn", cost_usd=spent)
    ends = [one.end()["code"] for one in both]
    assert ends == [COST, COST]
    limit = next(event for event in both[1].told if event["event"] == "cost_limit")
    assert (limit["scope"], limit["spent"]) == ("project", pytest.approx(1.2))


@pytest.mark.promise("S1.32")
def test_a_job_continued_by_another_process_continues_its_total(tmp_path: Path) -> None:
    costs = ("--job", "fix", "--project-limit", "1", "--project-costs", str(tmp_path / "costs.jsonl"))
    codes = [run(*costs, given=lines(reply(9), result(total_cost_usd=0.4))).returncode for _ in range(3)]
    assert codes == [0, 0, COST]


@pytest.mark.promise("S1.30")
def test_the_warning_for_a_limit_of_ten_cents_comes_at_eight() -> None:
    done = run("--json", "--cost-limit", "0.1", given=lines(reply(9), result(total_cost_usd=0.08)))
    assert b'"event": "cost_warning"' in done.stdout


@pytest.mark.promise("S1.32")
def test_a_new_run_reports_at_once_that_the_project_limit_is_reached(tmp_path: Path) -> None:
    costs = tmp_path / "costs.jsonl"
    costs.write_text('{"job": "before", "usd": 1.5}\n')
    given = lines(reply(9, model="unpriced"), result())
    done = run("--json", "--project-limit", "1", "--project-costs", str(costs), given=given)
    assert b'"event": "input_requested"' in done.stdout
    assert done.returncode == COST


@pytest.mark.promise("S1.31")
@pytest.mark.parametrize(("answer", "asked"), [("y", ["turn", "turn", "end"]), ("n", ["turn", "intervention", "end"])])
def test_at_a_cost_limit_the_question_is_asked_on_the_terminal(answer: str, asked: list[str]) -> None:
    ours, theirs = pty.openpty()
    watch = Running(
        *("--ask", "--cost-limit", "1"),
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0) and None,
        pass_fds=(theirs,),
    )
    watch.give(reply(9), result(total_cost_usd=1.5))
    watch.until("turn")
    shown = b""
    while b"[y/N]" not in shown and select.select([ours], [], [], 10)[0]:
        shown += os.read(ours, 1_000)
    assert b"the job has used up its budget ($1.50 of $1.00): continue? [y/N]" in shown
    os.write(ours, answer.encode() + b"\n")
    if answer == "y":
        watch.give(reply(10), result(total_cost_usd=1.6))
    assert watch.end()["code"] == (0 if answer == "y" else COST)
    os.close(ours)
    os.close(theirs)
    assert [event["event"] for event in watch.told if event["event"] in ("turn", "intervention", "end")] == asked


def refused(tmp_path: Path, trap: str) -> tuple[str, ...]:
    """Options that cannot work."""
    costs = tmp_path / "costs"
    if trap == "link":
        (tmp_path / ".context").symlink_to(tmp_path)
    elif trap == "costs":
        costs.mkdir()
    else:
        os.mkfifo(costs)
    if trap.startswith("costs"):
        return "--project-limit", "1", "--project-costs", str(costs)
    return "--scratch", str(tmp_path)


@pytest.mark.parametrize("trap", ["link", "costs", "costs fifo"])
def test_impossible_options_are_refused_before_a_byte_is_read(tmp_path: Path, trap: str) -> None:
    options = refused(tmp_path, trap)
    reading, writing = os.pipe()
    os.write(writing, TURN)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        done = subprocess.run(
            [*WATCH, "--pass-through", *options], stdin=stream, capture_output=True, timeout=SECONDS, check=False
        )
        assert stream.read() == TURN
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"foldline: " + str(tmp_path).encode())
    assert done.stderr.count(b"\n") == 1
    assert re.search(rb": (remove it|name a)", done.stderr)


def little_room() -> None:
    """No file of this process grows beyond some entries."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


def test_notes_that_cannot_be_written_do_not_end_the_stream(tmp_path: Path) -> None:
    given = b"".join(lines(said(f"{number} {'x' * 500}"), reply(9), result()) for number in range(300))
    done = run("--json", "--pass-through", "--scratch", str(tmp_path), given=given, preexec_fn=little_room)
    told = [json.loads(line) for line in done.stderr.splitlines()]
    assert done.stdout == given
    (said_once,) = [event["text"] for event in told if event["event"] == "not_written"]
    assert said_once.startswith(f"the notes cannot be written: {tmp_path}/.context")
    assert told[-1]["missing"] == [said_once]
    assert (told[-1]["turns"], told[-1]["code"]) == (300, UNWRITTEN) == (300, done.returncode)
    assert notes(tmp_path)[0].startswith("0 xxx")


def test_a_write_failure_is_printed_once_and_again_at_the_end(tmp_path: Path) -> None:
    given = b"".join(lines(said(f"{number} {'x' * 500}"), reply(9), result()) for number in range(100))
    done = run("--scratch", str(tmp_path), given=given, preexec_fn=little_room)
    assert done.stderr.count(b"the notes cannot be written") == 2
    assert EXITS[UNWRITTEN].encode() in done.stderr


def test_costs_that_cannot_be_recorded_still_count(tmp_path: Path) -> None:
    costs = tmp_path / "costs.jsonl"
    watch = Running("--project-limit", "1", "--project-costs", str(costs))
    watch.give(reply(9), result(total_cost_usd=0.5))
    watch.until("turn")
    costs.unlink()
    costs.mkdir()
    watch.give(reply(10), result(total_cost_usd=0.6))
    assert str(costs) in watch.until("not_written")["text"]
    watch.give(reply(11), result(total_cost_usd=1.1))
    watch.until("cost_limit")
    end = watch.end()
    assert (end["code"], len(end["missing"])) == (COST, 1)


@pytest.mark.parametrize(
    ("redirection", "code", "text"),
    [
        ("<&-", 2, b"nothing on standard input"),
        (">&-", 0, b""),
        ("2>&-", 0, b""),
        ("2>/dev/full", UNWRITTEN, b""),
        (">&- 2>&-", 0, b""),
    ],
)
def test_closed_or_full_standard_streams_give_no_traceback(redirection: str, code: int, text: bytes) -> None:
    done = redirected(redirection)
    assert done.returncode == code
    assert text in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("option", ["--json", "--pass-through"])
def test_a_full_output_is_reported(option: str) -> None:
    done = redirected(">/dev/full", option)
    assert done.returncode == UNWRITTEN
    assert done.stderr.count(b"No space left on device; watching goes on") in (1, 2)


def test_pass_through_needs_a_standard_output() -> None:
    done = redirected(">&-", "--pass-through")
    assert done.returncode == 2
    assert b"standard output is closed" in done.stderr


@pytest.mark.parametrize("given", [b"", b"I fixed the tests.\nThey are green now.\n"])
def test_without_events_the_reason_says_how_to_get_them(given: bytes) -> None:
    done = run("--json", given=given)
    end = json.loads(done.stdout.splitlines()[-1])
    assert (end["reason"], end["code"]) == (NO_EVENTS, CUT)
    assert "--output-format stream-json --verbose" in NO_EVENTS
    assert b"stream-json" in run(given=given).stderr
    assert b"stream-json" not in run("--json", given=lines(reply(9))).stdout


def test_a_file_that_is_no_session_file_of_a_watched_agent_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "pi.jsonl"
    file.write_text(SESSIONS["pi"]())
    done = run(str(file))
    assert done.returncode == REFUSED
    assert b"for other files use foldline inspect" in done.stderr


@pytest.mark.parametrize(
    "options",
    [
        ("--follow",),
        ("--follow", "-"),
        ("--follow", "--idle", "-1", "FILE"),
        ("--follow", "--idle", "nan", "FILE"),
        ("--follow", "--idle", "0", "FILE"),
        ("--idle", "2", "FILE"),
    ],
)
def test_options_without_effect_are_refused(tmp_path: Path, options: tuple[str, ...]) -> None:
    file = tmp_path / "session.jsonl"
    file.write_bytes(TURN)
    done = run(*(str(file) if option == "FILE" else option for option in options), given=TURN)
    assert done.returncode == 2
    assert b"--follow" in done.stderr or b"give seconds above 0" in done.stderr


def test_the_documentation_lists_every_exit_code() -> None:
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    assert {int(code): why for code, why in rows} == EXITS


def failure(call_id: str) -> dict[str, Any]:
    return answer("Exit code 2\nmake: *** no rule for x", call_id, error=True)


def test_the_meter_and_the_path_of_the_notes_are_printed(tmp_path: Path) -> None:
    done = spawn("watch", "--scratch", str(tmp_path), given=FULL_TURN)
    said_to_person = done.stderr.decode()
    assert done.returncode == 0
    assert not done.stdout
    assert "75%" in said_to_person
    assert "150k of 200k" in said_to_person
    assert "a compaction is near" in said_to_person
    assert str(tmp_path / ".context" / "scratch.md") in said_to_person
    assert "keep the tabs" in (tmp_path / ".context" / "scratch.md").read_text()


@pytest.mark.promise("S1.13", "F12")
def test_an_orchestrator_reads_events(tmp_path: Path) -> None:
    given = lines(said("x"), reply(160_000), result(total_cost_usd=0.5))
    done = spawn("watch", "--json", "--scratch", str(tmp_path), "--job", "tabs", "--state", "WORK", given=given)
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


def test_every_event_has_the_documented_shape(tmp_path: Path) -> None:
    twice = [event for number in "12" for event in (reply(9, call("Bash", number, command="make")), failure(number))]
    given = lines(
        *(said("x"), reply(160_000), *twice, boundary(), {"type": "system", "subtype": "compact_boundary"}),
        *(reply(160_000), result(total_cost_usd=0.9), reply(9), result(total_cost_usd=2)),
    )
    done = spawn("watch", "--json", "--cost-limit", "1", "--scratch", str(tmp_path), given=given)
    shapes, events = documented("watch"), events_of(done.stdout)
    assert {event["event"] for event in events} == set(shapes) - {"not_written"}
    assert not [fault for event in events for fault in wrong(event, shapes[event["event"]])]


def test_the_input_passes_through_unchanged() -> None:
    given = FULL_TURN + b'garbage \xff\xfe\n{"half": \n\n' + FULL_TURN.removesuffix(b"\n")
    done = spawn("watch", "--json", "--pass-through", given=given)
    assert done.stdout == given
    assert events_of(done.stderr)[-1]["event"] == "end"


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (lines(reply(9), result()), 0),
        (lines(reply(9), result(is_error=True)), FAILED),
        (lines(reply(160_000), result()), COMPACT),
        (lines(reply(9), result(total_cost_usd=3)), COST),
        (lines(reply(9)), CUT),
        (b"", CUT),
    ],
)
def test_the_exit_code_says_why_the_watch_ended(given: bytes, code: int) -> None:
    assert spawn("watch", "--json", "--cost-limit", "2", given=given).returncode == code


def test_garbage_incomplete_lines_and_nulls_are_counted_and_skipped() -> None:
    given = b"\x00\xff not json\n[1, 2]\nnull\n" + lines({}, {"type": None}, {"type": "assistant", "message": None})
    given += b'{"type": "result", "usage": ' + b"\n" + lines(result()) + b'{"type": "assis'
    done = spawn("watch", "--json", given=given)
    end = events_of(done.stdout)[-1]
    assert done.returncode == 0
    assert not done.stderr
    assert end["garbage"] == 5


def test_a_project_limit_needs_the_file_of_the_projects_costs() -> None:
    done = spawn("watch", "--project-limit", "3", given=FULL_TURN)
    assert done.returncode == 2
    assert b"use --project-limit and --project-costs together" in done.stderr


@pytest.mark.promise("S1.31", "S1.32")
def test_at_a_cost_limit_the_user_is_asked_and_a_no_makes_the_agent_wrap_up(tmp_path: Path) -> None:
    given = lines(reply(9), result(total_cost_usd=3), reply(9), result(total_cost_usd=4))
    costs = str(tmp_path / "costs.jsonl")
    options = ("--ask", "--project-limit", "2", "--project-costs", costs, "--job", "a")
    detached = subprocess.run(  # without a terminal nobody can say yes
        [*ENTRY, "watch", "--json", *options],
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


def test_a_missing_file_gives_a_one_line_error() -> None:
    done = spawn("watch", "nowhere.jsonl")
    assert done.returncode == 2
    assert done.stderr.decode() == "foldline: nowhere.jsonl: there is no such file: check the path\n"


def test_every_byte_is_copied_and_events_go_to_standard_error() -> None:
    every = bytes(range(256))
    stream = every * 300 + b"\0" * 70_000 + b"\xef\xbb\xbf\r\n" + lines(reply(9), result()) + b"\xe2\x9c" * 40_000
    done = spawn("watch", "--json", "--pass-through", given=stream)
    assert done.stdout == stream
    told = [json.loads(line) for line in done.stderr.splitlines()]
    assert told[-1]["used"] == 9


@pytest.mark.parametrize("trap", ["link", "file", "fifo"])
def test_an_unusable_scratch_folder_gives_a_one_line_error_with_a_hint(tmp_path: Path, trap: str) -> None:
    place, elsewhere = tmp_path / ".context", tmp_path / "elsewhere"
    elsewhere.mkdir()
    if trap == "link":
        place.symlink_to(elsewhere)
    elif trap == "file":
        place.write_text("mine")
    else:
        os.mkfifo(place)
    done = spawn("watch", "--scratch", str(tmp_path), given=lines(said("x"), boundary(), result()))
    assert done.returncode == 2
    assert done.stderr.count(b"foldline: ") == 1
    assert b"remove it, or name another folder" in done.stderr
    assert not os.listdir(elsewhere)
