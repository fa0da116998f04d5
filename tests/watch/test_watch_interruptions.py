"""`foldline watch` that is killed, stopped by a signal, or left by its readers loses nothing."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from support.agent_events import call, lines, reply, result, said
from support.watching import SECONDS, Running, entries, index_says, notes, spawn, start

NOTES = 5_000


PER_TURN = 20


def note(number: int) -> str:
    """Words that are so long that they are written in many goes, although the whole stream waits to be read."""
    return f"note {number} " + "and so on " * 100 + "."


def wait_until_larger(file: Path, size: int) -> None:
    until = time.monotonic() + 20
    while not (file.exists() and file.stat().st_size > size):
        assert time.monotonic() < until, file
        time.sleep(0.005)


@pytest.mark.promise("S1.26", "S1.34")
def test_after_a_kill_and_a_restart_every_entry_is_there_once(tmp_path: Path) -> None:
    stream = tmp_path / "stream.jsonl"
    with open(stream, "wb") as out:
        for number in range(NOTES):
            write = call("Write", f"w{number}", file_path=f"/w/{number % 50}.py", content="y" * 600)
            out.write(lines(said(note(number)), reply(1_000, write)))
            if number % PER_TURN == PER_TURN - 1:
                out.write(lines(result()))
    size = 0
    for _ in range(3):
        watch = start("watch", "--scratch", str(tmp_path), str(stream))
        wait_until_larger(tmp_path / ".context" / "human-input.md", size)
        watch.kill()
        watch.communicate()
        assert watch.returncode == -signal.SIGKILL
        size = (tmp_path / ".context" / "human-input.md").stat().st_size
        *found, (last, beginning) = entries(tmp_path, "human-input.md")
        assert found == [(number + 1, note(number)) for number in range(len(found))]
        assert last == len(found) + 1 < NOTES
        assert note(len(found)).startswith(beginning)  # the kernel may end a write of a killed process in the middle
    assert spawn("watch", "--scratch", str(tmp_path), str(stream)).returncode == 0
    assert entries(tmp_path, "human-input.md") == [(number + 1, note(number)) for number in range(NOTES)]
    assert len(entries(tmp_path, "artifacts.md")) == 50
    assert (index_says(tmp_path, "Human Input"), index_says(tmp_path, "Artifacts")) == (NOTES, 50)


def test_after_ctrl_c_within_a_turn_the_notes_are_written(tmp_path: Path) -> None:
    watch = start("watch", "--json", "--scratch", str(tmp_path))
    assert watch.stdin is not None
    assert watch.stdout is not None
    watch.stdin.write(lines(said("never touch main.py"), reply(1_000)))
    watch.stdin.flush()
    while b'"used": 1000' not in watch.stdout.readline():
        pass
    watch.send_signal(signal.SIGINT)
    _, err = watch.communicate(timeout=20)
    assert watch.returncode == 130
    assert b"Traceback" not in err
    assert entries(tmp_path, "human-input.md") == [(1, "never touch main.py")]


def test_a_reader_that_closes_its_pipe_loses_no_note(tmp_path: Path) -> None:
    watch = start("watch", "--pass-through", "--scratch", str(tmp_path))
    assert watch.stdout is not None
    assert watch.stdin is not None
    watch.stdin.write(lines(said("before")))
    watch.stdin.flush()
    assert watch.stdout.read(10)
    watch.stdout.close()
    for number in range(40):
        watch.stdin.write(lines(said(f"after {number}"), reply(9, {"type": "text", "text": "y" * 5_000})))
        watch.stdin.flush()
    watch.stdin.write(lines(result()))
    watch.stdin.close()
    assert watch.wait(timeout=20) == 0
    assert watch.stderr is not None
    assert b"Traceback" not in watch.stderr.read()
    watch.stderr.close()
    assert [text for _, text in entries(tmp_path, "human-input.md")] == ["before", *(f"after {n}" for n in range(40))]


def test_notes_are_kept_until_their_folder_is_back(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_within_a_turn_loses_no_note(tmp_path: Path, number: signal.Signals) -> None:
    watch = Running("--scratch", str(tmp_path))
    watch.give(said("never touch main.py"), reply(1_000))
    watch.until("meter", used=1_000)
    watch.process.send_signal(number)
    end = watch.end()
    assert (end["code"], end["reason"]) == (128 + number, f"stopped by {number.name}")
    assert notes(tmp_path) == ["never touch main.py"]


def test_an_ignored_hangup_stays_ignored(tmp_path: Path) -> None:
    watch = Running(
        "--scratch", str(tmp_path), preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN) and None
    )
    watch.give(said("before"), reply(1_000))
    watch.until("meter", used=1_000)
    watch.process.send_signal(signal.SIGHUP)
    watch.give(said("after"), result())
    assert watch.end()["code"] == 0
    assert notes(tmp_path) == ["before", "after"]


def test_an_orchestrator_that_closes_its_pipe_does_not_end_the_stream(tmp_path: Path) -> None:
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


def test_notes_are_written_when_a_followed_session_pauses(tmp_path: Path) -> None:
    session = tmp_path / "session.jsonl"
    session.write_bytes(lines(said("keep the tabs"), reply(1_000)))
    watch = Running("--scratch", str(tmp_path), "-f", "--idle", "60", str(session))
    watch.until("meter", used=1_000)
    until = time.monotonic() + SECONDS / 3
    while not (tmp_path / ".context" / "human-input.md").exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    watch.process.terminate()
    assert watch.end()["code"] == 143


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_cuts_no_event_when_the_reader_is_slow(number: signal.Signals) -> None:
    watch = Running()
    assert watch.process.stdin is not None
    stream = lines(*(reply(1_000 + number) for number in range(9_000)))
    feeding = threading.Thread(target=_fed, args=(os.dup(watch.process.stdin.fileno()), stream))
    feeding.start()
    watch.until("meter", used=1_001)
    watch.process.send_signal(number)
    end = watch.until("end")
    watch.process.communicate(timeout=SECONDS)
    feeding.join()
    assert end["code"] == 128 + number
    assert end["used"] == [event["used"] for event in watch.told if event["event"] == "meter"][-1]


def _fed(pipe: int, stream: bytes) -> None:
    with suppress(BrokenPipeError):
        while stream:
            stream = stream[os.write(pipe, stream) :]
    os.close(pipe)
