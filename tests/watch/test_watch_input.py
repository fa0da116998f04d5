"""What `foldline watch` reads: streams, pipes, compressed files, files that grow or are replaced."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import threading
import time
from codecs import BOM_UTF8
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.text_lines import CHUNK_BYTES, EVENT_BYTES, LineSplitter
from support.agent_events import boundary, lines, reply, result, said
from support.watching import (
    FULL_TURN,
    SECONDS,
    TURN,
    WATCH,
    Running,
    entries,
    events_of,
    notes,
    run,
    spawn,
    start,
)


@pytest.mark.parametrize("way", ["stream", "followed", "pipe"])
def test_a_chunk_of_exactly_the_full_size_is_reported_at_once(tmp_path: Path, way: str) -> None:
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
def test_a_followed_file_that_is_replaced_is_read_from_its_beginning(tmp_path: Path, how: str) -> None:
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


def test_a_byte_order_mark_loses_no_event(tmp_path: Path) -> None:
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


def test_a_named_pipe_loses_no_event(tmp_path: Path) -> None:
    pipe = tmp_path / "stream"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(TURN))
    writer.start()
    done = run("--json", str(pipe))
    writer.join()
    assert json.loads(done.stdout.splitlines()[-1])["garbage"] == 0
    assert done.returncode == 0


def test_a_truncated_compressed_file_gives_a_one_line_error(tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl.gz"
    file.write_bytes(gzip.compress(TURN * 50)[:-20])
    done = run("--scratch", str(tmp_path), str(file))
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert b"session.jsonl.gz: cannot be read" in done.stderr
    assert b"leave out --follow" in run("--follow", str(file)).stderr


def test_a_file_is_followed_while_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    file.write_bytes(FULL_TURN)

    def write_on() -> None:
        time.sleep(0.4)
        half = lines(reply(170_000))
        with open(file, "ab", buffering=0) as out:
            out.write(half[:40])
            time.sleep(0.3)
            out.write(half[40:] + lines(boundary()))

    writer = threading.Thread(target=write_on)
    writer.start()
    done = spawn("watch", "--json", "--follow", "--idle", "2", str(file))
    writer.join()
    kinds = [event["event"] for event in events_of(done.stdout)]
    assert kinds.index("compact") < kinds.index("compacted")
    assert events_of(done.stdout)[-1]["garbage"] == 0


@given(st.lists(st.binary(max_size=40)), st.integers(1, 30))
def test_lines_do_not_depend_on_how_the_bytes_are_split_into_chunks(lines: list[bytes], size: int) -> None:
    data = b"\n".join(lines)
    splitter = LineSplitter()
    found = [line for at in range(0, len(data), size) for line in splitter.lines(data[at : at + size])]
    rest = splitter.rest()
    assert found + ([rest] if rest else []) == [line for line in data.removeprefix(BOM_UTF8).split(b"\n") if line]


def test_a_line_that_never_ends_is_skipped_in_bounded_memory() -> None:
    splitter = LineSplitter()
    chunk = b"x" * (1 << 20)
    found = [line for _ in range(EVENT_BYTES // len(chunk) + 3) for line in splitter.lines(chunk)]
    found += list(splitter.lines(b"the end of it\nnext\n"))
    assert found == [b"next"]
    assert splitter.too_long == 1


def test_a_followed_file_that_is_truncated_and_written_byte_by_byte_is_read_on(tmp_path: Path) -> None:
    session = tmp_path / "session.jsonl"
    session.write_bytes(lines(said("a long first message " * 20), reply(1_000)))
    watch = start("watch", "--json", "--follow", "--idle", "1", "--scratch", str(tmp_path), str(session))
    assert watch.stdout is not None
    while b'"used": 1000' not in watch.stdout.readline():
        pass
    session.write_bytes(lines(reply(2_222)))
    while b'"used": 2222' not in watch.stdout.readline():
        pass
    with open(session, "ab", buffering=0) as out:
        for byte in json.dumps(said("✓ é 👩‍👧"), ensure_ascii=False).encode() + b"\r\n" + lines(result()):
            out.write(bytes([byte]))
            time.sleep(0.0005)
    out_, err = watch.communicate(timeout=20)
    assert (watch.returncode, err) == (0, b"")
    assert json.loads(out_.splitlines()[-1])["garbage"] == 0
    assert entries(tmp_path, "human-input.md")[-1][1] == "✓ é 👩‍👧"


def test_a_non_blocking_stream_is_read_to_its_end() -> None:
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
