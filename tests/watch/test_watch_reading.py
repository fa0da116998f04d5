"""What `foldline watch` reads: streams, files still written, replaced or cut off, pipes, compressed ones."""

from __future__ import annotations

import gzip
import json
import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from foldline.text_lines import CHUNK_BYTES, LineSplitter
from support.agent_events import lines, reply, result, said
from support.watching import SECONDS, TURN, Running, notes, run


@pytest.mark.parametrize("way", ["stream", "followed", "pipe"])
def test_a_chunk_that_is_full_by_chance_keeps_nobody_waiting(tmp_path: Path, way: str) -> None:
    """What is told and noted waits while more waits to be read, and not for what may never come."""
    rest = lines(reply(1_000), result())
    exact = lines(said("x" * (CHUNK_BYTES - len(rest) - len(lines(said(""))))), *map(json.loads, rest.splitlines()))
    assert len(exact) == CHUNK_BYTES
    session = tmp_path / "session"
    if way == "pipe":
        os.mkfifo(session)
    held = os.open(session, os.O_RDWR | os.O_CREAT)
    named = {"stream": (), "followed": ("-f", "--idle", "60", str(session)), "pipe": (str(session),)}[way]
    watch = Running("--scratch", str(tmp_path), *named)
    assert watch.process.stdin is not None
    os.write(watch.process.stdin.fileno() if way == "stream" else held, exact)
    late = threading.Timer(SECONDS / 3, watch.process.kill)
    late.start()
    watch.until("turn", used=1_000)
    assert len(notes(tmp_path)) == 1
    late.cancel()
    watch.process.kill()
    watch.process.communicate(timeout=SECONDS)
    os.close(held)


@pytest.mark.parametrize("how", ["rename", "recreate"])
def test_a_followed_file_that_is_replaced_is_followed_on(tmp_path: Path, how: str) -> None:
    session, other = tmp_path / "session.jsonl", tmp_path / "other.jsonl"
    session.write_bytes(lines(said("before"), reply(1_000)) + b'{"half')
    watch = Running("--follow", "--idle", "2", str(session))
    watch.until("meter", used=1_000)
    if how == "rename":
        other.write_bytes(lines(reply(2_222)))
        other.replace(session)
    else:
        session.unlink()
        session.write_bytes(lines(reply(2_222)))
    watch.until("meter", used=2_222)
    with open(session, "ab") as out:
        out.write(lines(reply(3_333), result()))
    end = watch.end()
    assert (end["code"], end["used"], end["garbage"]) == (0, 3_333, 0)


def test_a_mark_of_the_encoding_costs_no_event(tmp_path: Path) -> None:
    marked = b"\xef\xbb\xbf" + TURN
    file = tmp_path / "session.jsonl"
    file.write_bytes(marked)
    for tree, done in (
        ("a", run("--json", "--pass-through", "--scratch", ".", given=marked, cwd=make(tmp_path / "a"))),
        ("b", run("--json", "--scratch", ".", str(file), cwd=make(tmp_path / "b"))),
    ):
        assert json.loads((done.stderr or done.stdout).splitlines()[-1])["garbage"] == 0
        assert notes(tmp_path / tree) == ["keep the tabs"]
        assert done.stdout == marked or tree == "b"
    splitter = LineSplitter()
    bytewise = [line for at in range(len(marked)) for line in splitter.lines(marked[at : at + 1])]
    assert b"\n".join(bytewise) + b"\n" == TURN


def make(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_a_pipe_with_a_name_loses_nothing(tmp_path: Path) -> None:
    pipe = tmp_path / "stream"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(TURN))
    writer.start()
    done = run("--json", str(pipe))
    writer.join()
    assert json.loads(done.stdout.splitlines()[-1])["garbage"] == 0
    assert done.returncode == 0


def test_a_compressed_file_that_is_cut_off_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl.gz"
    file.write_bytes(gzip.compress(TURN * 50)[:-20])
    done = run("--scratch", str(tmp_path), str(file))
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert b"session.jsonl.gz: cannot be read" in done.stderr
    assert b"leave out --follow" in run("--follow", str(file)).stderr


def test_notes_are_there_when_a_followed_session_rests(tmp_path: Path) -> None:
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
def test_a_signal_tears_no_event_although_the_reader_is_slow(number: signal.Signals) -> None:
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
