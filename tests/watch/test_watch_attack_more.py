"""What the machine may do to `watch` and the hooks: killed processes, torn characters, readers that leave, crowds."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support.agent_events import boundary, call, lines, reply, result, said
from support.command import ENTRY, clean

NOTES = 5_000
PER_TURN = 20


def start(*arguments: str, **env: str) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen([*ENTRY, *arguments], stdin=pipe, stdout=pipe, stderr=pipe, env=clean(**env))


def run(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*ENTRY, *arguments], input=given, capture_output=True, env=clean(), timeout=60, check=False)


def entries(tree: Path, file: str) -> list[tuple[int, str]]:
    """Number and first line of every entry of a detail file."""
    text = (tree / ".context" / file).read_text("utf-8")
    return [(int(number), line) for number, line in re.findall(r"^## #(\d+)\n> (.*)$", text, re.MULTILINE)]


def index_says(tree: Path, section: str) -> int:
    page = (tree / ".context" / "scratch.md").read_text("utf-8")
    found = re.search(rf"^## {section}\n([\d,]+) entr", page, re.MULTILINE)
    assert found is not None
    return int(found[1].replace(",", ""))


def note(number: int) -> str:
    """Words that are so long that they are written in many goes, although the whole stream waits to be read."""
    return f"note {number} " + "and so on " * 100 + "."


def wait_until_larger(file: Path, size: int) -> None:
    until = time.monotonic() + 20
    while not (file.exists() and file.stat().st_size > size):
        assert time.monotonic() < until, file
        time.sleep(0.005)


@pytest.mark.promise("S1.26", "S1.34")
def test_killed_in_the_middle_and_begun_again_nothing_is_lost_and_nothing_twice(tmp_path: Path) -> None:
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
        found = entries(tmp_path, "human-input.md")
        assert found == [(number + 1, note(number)) for number in range(len(found))]
        assert len(found) < NOTES
    assert run("watch", "--scratch", str(tmp_path), str(stream)).returncode == 0
    assert entries(tmp_path, "human-input.md") == [(number + 1, note(number)) for number in range(NOTES)]
    assert len(entries(tmp_path, "artifacts.md")) == 50
    assert (index_says(tmp_path, "Human Input"), index_says(tmp_path, "Artifacts")) == (NOTES, 50)


def test_stopped_by_hand_in_the_middle_of_a_turn_what_was_said_is_kept(tmp_path: Path) -> None:
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


def test_every_byte_passes_through_and_events_stay_beside_them() -> None:
    every = bytes(range(256))
    stream = every * 300 + b"\0" * 70_000 + b"\xef\xbb\xbf\r\n" + lines(reply(9), result()) + b"\xe2\x9c" * 40_000
    done = run("watch", "--json", "--pass-through", given=stream)
    assert done.stdout == stream
    told = [json.loads(line) for line in done.stderr.splitlines()]
    assert told[-1]["used"] == 9


def test_a_reader_that_leaves_costs_no_note(tmp_path: Path) -> None:
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


def test_a_followed_file_that_is_cut_and_written_in_torn_characters_is_read_on(tmp_path: Path) -> None:
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


def hook(tree: Path, event: str, **fields: Any) -> bytes:
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


def test_a_crowd_of_hooks_records_each_prompt_once(tmp_path: Path) -> None:
    session = tmp_path / "session.jsonl"
    prompts = [hook(tmp_path, "UserPromptSubmit", prompt=f"prompt {number}") for number in range(6)]
    compaction = hook(tmp_path, "PreCompact", trigger="auto", transcript_path=str(session))
    together(*prompts[:3])
    session.write_bytes(lines(*(said(f"prompt {number}") for number in range(3)), said("before the hooks")))
    together(*prompts[3:], compaction, compaction)
    found = entries(tmp_path, "human-input.md")
    assert [number for number, _ in found] == list(range(1, 8))
    assert sorted(text for _, text in found) == ["before the hooks", *(f"prompt {number}" for number in range(6))]
    run("hook", given=compaction)  # a prompt may have come after the last index: it is in the next one
    assert index_says(tmp_path, "Human Input") == 7
    assert entries(tmp_path, "human-input.md") == found


def test_the_same_word_said_three_times_is_three_prompts(tmp_path: Path) -> None:
    session = tmp_path / "session.jsonl"
    for _ in range(3):
        run("hook", given=hook(tmp_path, "UserPromptSubmit", prompt="continue"))
    session.write_bytes(lines(*[said("continue")] * 3))
    run("hook", given=hook(tmp_path, "PreCompact", trigger="auto", transcript_path=str(session)))
    assert entries(tmp_path, "human-input.md") == [(1, "continue"), (2, "continue"), (3, "continue")]


@pytest.mark.parametrize("name", ["with space", "✓", "'\"$(touch pwned)`x`", "-f", "new\nline"])
def test_a_work_tree_of_any_name_has_its_notes(tmp_path: Path, name: str) -> None:
    tree = tmp_path / name
    tree.mkdir()
    done = run("hook", given=hook(tree, "UserPromptSubmit", prompt="hi"))
    assert (done.returncode, done.stderr) == (0, b"")
    assert entries(tree, "human-input.md") == [(1, "hi")]
    assert os.listdir(tmp_path) == [name]


@pytest.mark.promise("S1.32")
def test_four_jobs_at_once_share_one_limit(tmp_path: Path) -> None:
    shared = ("--project-limit", "1", "--project-costs", str(tmp_path / "costs.jsonl"))
    jobs = [start("watch", "--json", "--job", f"job {number}", *shared) for number in range(4)]
    for number, job in enumerate(jobs):
        assert job.stdin is not None
        turns = [result(session_id=f"s{number}", total_cost_usd=0.03 * turn) for turn in range(1, 11)]
        job.stdin.write(lines(reply(9, session=f"s{number}"), *turns))
        job.stdin.close()
        job.stdin = None
    told = [[json.loads(line) for line in job.communicate(timeout=60)[0].splitlines()] for job in jobs]
    limits = [event for events in told for event in events if event["event"] == "cost_limit"]
    assert limits
    assert all(event["scope"] == "project" and 1 <= event["spent"] <= 1.2 for event in limits)
    assert {events[-1]["code"] for events in told} <= {0, 11}
    late = run("watch", "--json", "--job", "late", *shared, given=lines(reply(9), result(total_cost_usd=0.01)))
    assert late.returncode == 11


@pytest.mark.parametrize("trap", ["link", "file", "fifo"])
def test_a_scratch_that_cannot_be_is_one_sentence_with_a_way_out(tmp_path: Path, trap: str) -> None:
    place, elsewhere = tmp_path / ".context", tmp_path / "elsewhere"
    elsewhere.mkdir()
    if trap == "link":
        place.symlink_to(elsewhere)
    elif trap == "file":
        place.write_text("mine")
    else:
        os.mkfifo(place)
    done = run("watch", "--scratch", str(tmp_path), given=lines(said("x"), boundary(), result()))
    assert done.returncode == 2
    assert done.stderr.count(b"foldline: ") == 1
    assert b"remove it, or name another folder" in done.stderr
    assert not os.listdir(elsewhere)


def test_memory_stays_bounded_whatever_is_never_answered() -> None:
    """Calls without results, files without end, sessions without number."""
    code = (
        "import json, resource, sys\nfrom foldline.watch.watcher import Watcher\n"
        "watch = Watcher()\nfor line in sys.stdin.buffer:\n    watch.feed(json.loads(line))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )

    def peak(count: int) -> int:
        stream = b"".join(
            lines(
                reply(9, call("Bash", f"b{number}", command=f"{number} " + "c" * 2_000)),
                reply(9, call("Write", f"w{number}", file_path=f"/w/{number}", content=f"{number} " * 400)),
            )
            for number in range(count)
        )
        done = subprocess.run([sys.executable, "-c", code], input=stream, capture_output=True, check=True)
        return int(done.stdout)

    assert peak(4_000) < 1.5 * peak(400)
