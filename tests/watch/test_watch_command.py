"""`foldline watch` where something around it gives way: the agent's stream is read to its end, and the end says why."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import resource
import select
import signal
import subprocess
import termios
import threading
from pathlib import Path

import pytest

from foldline.cli.watch import COST, CUT, EXITS, NO_EVENTS, UNWRITTEN
from support.agent_events import lines, reply, result, said
from support.watching import SECONDS, TURN, WATCH, Running, notes, run

PAGE = Path(__file__).parents[2] / "docs" / "watch.md"


def redirected(redirection: str, *options: str, given: bytes = TURN) -> subprocess.CompletedProcess[bytes]:
    """The command as a shell starts it with some of its streams led elsewhere."""
    shell = ["sh", "-c", f'exec "$@" {redirection}', "sh", *WATCH, *options]
    return subprocess.run(shell, input=given, capture_output=True, timeout=SECONDS, check=False)


# Costs


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
def test_a_job_that_a_later_process_continues_goes_on_from_its_total(tmp_path: Path) -> None:
    costs = ("--job", "fix", "--project-limit", "1", "--project-costs", str(tmp_path / "costs.jsonl"))
    codes = [run(*costs, given=lines(reply(9), result(total_cost_usd=0.4))).returncode for _ in range(3)]
    assert codes == [0, 0, COST]


@pytest.mark.promise("S1.30")
def test_80_per_cent_of_ten_cents_are_eight() -> None:
    done = run("--json", "--cost-limit", "0.1", given=lines(reply(9), result(total_cost_usd=0.08)))
    assert b'"event": "cost_warning"' in done.stdout


@pytest.mark.promise("S1.32")
def test_a_job_that_costs_nothing_yet_hears_that_its_project_is_over(tmp_path: Path) -> None:
    costs = tmp_path / "costs.jsonl"
    costs.write_text('{"job": "before", "usd": 1.5}\n')
    given = lines(reply(9, model="unpriced"), result())
    done = run("--json", "--project-limit", "1", "--project-costs", str(costs), given=given)
    assert b'"event": "input_requested"' in done.stdout
    assert done.returncode == COST


@pytest.mark.promise("S1.31")
@pytest.mark.parametrize(("answer", "asked"), [("y", ["turn", "turn", "end"]), ("n", ["turn", "intervention", "end"])])
def test_at_a_limit_the_person_at_the_terminal_is_asked(answer: str, asked: list[str]) -> None:
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
    assert watch.end()["code"] == COST
    os.close(ours)
    os.close(theirs)
    assert [event["event"] for event in watch.told if event["event"] in ("turn", "intervention", "end")] == asked


# What cannot be written


def refused(tmp_path: Path, trap: str) -> tuple[str, ...]:
    """Options that cannot work."""
    costs = tmp_path / "costs"
    if trap == "link":
        (tmp_path / ".context").symlink_to(tmp_path)
    elif trap == "no folder":
        return "--scratch", str(tmp_path / "nowhere")
    elif trap == "costs":
        costs.mkdir()
    else:
        os.mkfifo(costs)
    if trap.startswith("costs"):
        return "--project-limit", "1", "--project-costs", str(costs)
    return "--scratch", str(tmp_path)


@pytest.mark.parametrize("trap", ["link", "no folder", "costs", "costs fifo"])
def test_what_cannot_work_is_refused_before_a_byte_is_read(tmp_path: Path, trap: str) -> None:
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


def test_notes_that_find_no_room_cut_no_stream(tmp_path: Path) -> None:
    given = b"".join(lines(said(f"{number} {'x' * 500}"), reply(9), result()) for number in range(300))
    done = run("--json", "--pass-through", "--scratch", str(tmp_path), given=given, preexec_fn=little_room)
    told = [json.loads(line) for line in done.stderr.splitlines()]
    assert done.stdout == given
    (said_once,) = [event["text"] for event in told if event["event"] == "not_written"]
    assert said_once.startswith(f"the notes cannot be written: {tmp_path}/.context")
    assert told[-1]["missing"] == [said_once]
    assert (told[-1]["turns"], told[-1]["code"]) == (300, UNWRITTEN) == (300, done.returncode)
    assert notes(tmp_path)[0].startswith("0 xxx")


def test_a_person_is_told_once_and_at_the_end(tmp_path: Path) -> None:
    given = b"".join(lines(said(f"{number} {'x' * 500}"), reply(9), result()) for number in range(100))
    done = run("--scratch", str(tmp_path), given=given, preexec_fn=little_room)
    assert done.stderr.count(b"the notes cannot be written") == 2
    assert EXITS[UNWRITTEN].encode() in done.stderr


def test_notes_wait_for_their_folder_to_come_back(tmp_path: Path) -> None:
    watch, folder, aside = Running("--scratch", str(tmp_path)), tmp_path / ".context", tmp_path / "aside"
    watch.give(said("before"), reply(9), result())
    watch.until("turn")
    folder.rename(aside)
    folder.write_text("in its place")
    watch.give(said("meanwhile"), reply(10), result())
    watch.until("not_written")
    watch.give(said("meanwhile too"), reply(11), result())
    watch.until("turn", turns=3)
    folder.unlink()
    aside.rename(folder)
    watch.give(said("after"), reply(12), result())
    end = watch.end()
    assert (end["code"], "missing" in end) == (0, False)
    assert notes(tmp_path) == ["before", "meanwhile", "meanwhile too", "after"]
    assert sum(event["event"] == "not_written" for event in watch.told) == 1


def test_costs_that_cannot_be_noted_are_counted_all_the_same(tmp_path: Path) -> None:
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


# Signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_in_the_middle_of_a_turn_loses_no_note(tmp_path: Path, number: signal.Signals) -> None:
    watch = Running("--scratch", str(tmp_path))
    watch.give(said("never touch main.py"), reply(1_000))
    watch.until("meter", used=1_000)
    watch.process.send_signal(number)
    end = watch.end()
    assert (end["code"], end["reason"]) == (128 + number, f"stopped by {number.name}")
    assert notes(tmp_path) == ["never touch main.py"]


def test_a_hangup_that_was_to_be_ignored_is_ignored(tmp_path: Path) -> None:
    watch = Running(
        "--scratch", str(tmp_path), preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN) and None
    )
    watch.give(said("before"), reply(1_000))
    watch.until("meter", used=1_000)
    watch.process.send_signal(signal.SIGHUP)
    watch.give(said("after"), result())
    assert watch.end()["code"] == 0
    assert notes(tmp_path) == ["before", "after"]


# Who reads


def test_an_orchestrator_that_leaves_cuts_no_stream(tmp_path: Path) -> None:
    watch = Running("--scratch", str(tmp_path)).process
    assert watch.stdin is not None
    assert watch.stdout is not None
    watch.stdin.write(lines(said("before"), reply(9)))
    watch.stdin.flush()
    assert watch.stdout.readline()
    watch.stdout.close()
    for number in range(40):
        watch.stdin.write(lines(said(f"after {number}"), reply(10 + number, {"type": "text", "text": "y" * 5_000})))
        watch.stdin.flush()
    watch.stdin.write(lines(result(is_error=True)))
    watch.stdin.close()
    assert watch.wait(timeout=SECONDS) == 1
    assert watch.stderr is not None
    assert watch.stderr.read() == b""
    watch.stderr.close()
    assert notes(tmp_path) == ["before", *(f"after {number}" for number in range(40))]


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
def test_streams_that_are_closed_or_full_end_in_no_traceback(redirection: str, code: int, text: bytes) -> None:
    done = redirected(redirection)
    assert done.returncode == code
    assert text in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("option", ["--json", "--pass-through"])
def test_an_output_that_is_full_is_told(option: str) -> None:
    done = redirected(">/dev/full", option)
    assert done.returncode == UNWRITTEN
    assert done.stderr.count(b"No space left on device; watching goes on") in (1, 2)


def test_to_pass_through_there_must_be_an_output() -> None:
    done = redirected(">&-", "--pass-through")
    assert done.returncode == 2
    assert b"needs a standard output" in done.stderr


def test_a_stream_whose_owner_does_not_wait_is_read_to_its_end() -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    watch = subprocess.Popen([*WATCH, "--json"], stdin=reading, stdout=subprocess.PIPE)
    assert watch.stdout is not None

    def write_late() -> None:
        os.write(writing, TURN)
        os.close(writing)

    threading.Timer(0.5, write_late).start()
    out, _ = watch.communicate(timeout=SECONDS)
    os.close(reading)
    assert watch.returncode == 0
    assert b'"turns": 1' in out


# What it is asked for


@pytest.mark.parametrize("given", [b"", b"I fixed the tests.\nThey are green now.\n"])
def test_without_events_it_says_how_to_get_them(given: bytes) -> None:
    done = run("--json", given=given)
    end = json.loads(done.stdout.splitlines()[-1])
    assert (end["reason"], end["code"]) == (NO_EVENTS, CUT)
    assert "--output-format stream-json --verbose" in NO_EVENTS
    assert b"stream-json" in run(given=given).stderr
    assert b"stream-json" not in run("--json", given=lines(reply(9))).stdout


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
def test_options_that_would_do_nothing_are_refused(tmp_path: Path, options: tuple[str, ...]) -> None:
    file = tmp_path / "session.jsonl"
    file.write_bytes(TURN)
    done = run(*(str(file) if option == "FILE" else option for option in options), given=TURN)
    assert done.returncode == 2
    assert b"--follow" in done.stderr or b"give seconds above 0" in done.stderr


def test_the_page_has_every_exit_code() -> None:
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    assert {int(code): why for code, why in rows} == EXITS
