"""A watch in a process of its own: given its stream piece by piece or at once, and what it tells and notes."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from support.agent_events import lines, reply, result, said
from support.command import ENTRY, clean

WATCH = [*ENTRY, "watch"]
SECONDS = 60
TURN = lines(said("keep the tabs"), reply(1_000), result(total_cost_usd=0.1))


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


def notes(tree: Path, file: str = "human-input.md") -> list[str]:
    """The entries of a detail file."""
    text = (tree / ".context" / file).read_text()
    return re.findall(r"^## #\d+.*\n> (.*)$", text, re.MULTILINE)
