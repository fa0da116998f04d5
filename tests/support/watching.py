"""Watch a stream, in this process or in one of its own, and read what is reported and noted."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any, NoReturn

import pytest

from foldline.watch.scratch import ScratchModel
from foldline.watch.watcher import Watcher, WatchEvent
from support.agent_events import answer, call, lines, reply, result, said
from support.command import ENTRY, clean, foldline

WATCH = [*ENTRY, "watch"]
SECONDS = 60
TURN = lines(said("keep the tabs"), reply(1_000), result(total_cost_usd=0.1))
FULL_TURN = lines(
    said("keep the tabs"), reply(150_000, call("Write", file_path="a.py", content="x")), answer("ok"), result()
)


def run(*options: str, given: bytes = b"", **more: Any) -> subprocess.CompletedProcess[bytes]:
    """Watch a whole stream."""
    more = {"env": clean(), "timeout": SECONDS, **more}
    return subprocess.run([*WATCH, *options], input=given, capture_output=True, check=False, **more)


class Running:
    """A watch that gets its stream piece by piece."""

    def __init__(self, *options: str, **more: Any) -> None:
        self.process = subprocess.Popen(
            [*WATCH, "--json", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **{"env": clean(), **more},
        )
        self.told: list[dict[str, Any]] = []

    def give(self, *events: Any) -> None:
        """Let it see more events."""
        assert self.process.stdin is not None
        self.process.stdin.write(lines(*events))
        self.process.stdin.flush()

    def until(self, event: str, **facts: Any) -> dict[str, Any]:
        """Read what it tells up to such an event."""
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            found: dict[str, Any] = json.loads(line)
            self.told.append(found)
            if found["event"] == event and facts.items() <= found.items():
                return found
        raise AssertionError(f"no {event} was told")

    def end(self) -> dict[str, Any]:
        """End the stream; the last event."""
        out, err = self.process.communicate(timeout=SECONDS)
        assert b"Traceback" not in err
        self.told += [json.loads(line) for line in out.splitlines()]
        assert self.told[-1]["event"] == "end"
        assert self.told[-1]["code"] == self.process.returncode
        return self.told[-1]


def feed_all(watcher: Watcher, *events: dict[str, Any]) -> list[WatchEvent]:
    """Everything a watcher reports about these events."""
    return [report for event in events for report in watcher.feed(event)]


def named(reports: list[WatchEvent], name: str) -> list[WatchEvent]:
    """The reports of one name."""
    return [report for report in reports if report.event == name]


def notes(tree: Path, file: str = "human-input.md") -> list[str]:
    """The entries of a detail file."""
    text = (tree / ".context" / file).read_text()
    return re.findall(r"^## #\d+.*\n> (.*)$", text, re.MULTILINE)


def entries(tree: Path, file: str) -> list[tuple[int, str]]:
    """Number and first line of every entry of a detail file."""
    text = (tree / ".context" / file).read_text("utf-8")
    return [(int(number), line) for number, line in re.findall(r"^## #(\d+)\n> (.*)$", text, re.MULTILINE)]


def index_says(tree: Path, section: str) -> int:
    """Number of entries that the index gives for a section."""
    page = (tree / ".context" / "scratch.md").read_text("utf-8")
    found = re.search(rf"^## {section}\n([\d,]+) entr", page, re.MULTILINE)
    assert found is not None
    return int(found[1].replace(",", ""))


def spawn(
    *arguments: str, given: bytes = b"", cwd: Path | None = None, **env: str
) -> subprocess.CompletedProcess[bytes]:
    """Run any command of foldline in a process of its own."""
    return subprocess.run(
        [*ENTRY, *arguments], input=given, capture_output=True, env=clean(**env), cwd=cwd, timeout=120, check=False
    )


def start(*arguments: str, **env: str) -> subprocess.Popen[bytes]:
    """Start any command of foldline, with pipes."""
    pipe = subprocess.PIPE
    return subprocess.Popen([*ENTRY, *arguments], stdin=pipe, stdout=pipe, stderr=pipe, env=clean(**env))


def shell(command: str, cwd: Path, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command with streams that are closed or full, as only a shell can start it."""
    return subprocess.run(
        f"{shlex.join(ENTRY)} {command}",
        shell=True,
        input=given,
        capture_output=True,
        text=True,
        env=clean(CLAUDE_PROJECT_DIR=""),
        cwd=cwd,
        timeout=60,
        check=False,
    )


def events_of(output: bytes) -> list[dict[str, Any]]:
    """Printed events."""
    return [json.loads(line) for line in output.splitlines()]


def strict(line: str) -> dict[str, Any]:
    """One printed event, read as every other language reads JSON: without NaN and Infinity."""

    def refuse(word: str) -> NoReturn:
        raise AssertionError(f"{word} is not JSON")

    found = json.loads(line, parse_constant=refuse)
    assert isinstance(found, dict)
    return found


def watch_json(folder: pytest.TempPathFactory, stream: bytes, *options: str) -> list[dict[str, Any]]:
    """Events that the command prints about a stream."""
    file = folder.mktemp("stream") / "stream.jsonl"
    file.write_bytes(stream)
    done = foldline("watch", "--json", *options, str(file))
    assert not done.stderr
    events = [strict(line) for line in done.stdout.splitlines()]
    assert events[-1]["event"] == "end"
    assert events[-1]["code"] == done.returncode
    return events


def filed(event: dict[str, Any]) -> dict[str, Any]:
    """An event as a session file has it."""
    return {**event, "sessionId": event["session_id"], "session_id": None}


def text_block(words: str) -> dict[str, str]:
    """A text in a reply."""
    return {"type": "text", "text": words}


def full_model(count: int) -> ScratchModel:
    """A model with so many entries in every section."""
    model = ScratchModel(job="a job", phase="a phase")
    for number in range(1, count + 1):
        model.extract(said(f"words {number}"))
        model.extract(reply(9, call("Write", file_path=f"file{number}.py")))
        model.record_state_change(f"A{number}", f"B{number}")
        model.add_dead_end(f"trap {number}")
    return model
