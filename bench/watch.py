"""Measures the events per second that `foldline watch` reads, its memory on a long stream, and the start of the status
line.

The stream has events of a coding agent in usual proportions and sizes. With `--data`, recorded Claude Code sessions are
read instead. All steps are measured: reading lines, parsing JSON, meter, costs, dead ends, and writing scratch files.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

EVENTS_GOAL, STATUS_GOAL_MS, MEMORY_GOAL_MB = 50_000, 100, 100
ROUNDS = 5
TIMED = 200_000
"""Total number of timed events. A short stream is read several times, and the fastest run counts."""
_TEXT = "the parser fails on the second line because the table has a heading that nobody expected there"


def stream(count: int, seed: int = 1) -> Iterator[bytes]:
    """The lines of a stream: parts of replies, replies, calls, results, prompts and ends of turns."""
    chance = random.Random(seed)
    for number in range(count):
        yield json.dumps(_event(number, chance), separators=(",", ":")).encode() + b"\n"


def _event(number: int, chance: random.Random) -> dict[str, Any]:
    words = _TEXT.split()
    text = " ".join(chance.choice(words) for _ in range(chance.randint(5, 60)))
    base = {"session_id": "00000000-0000-4000-8000-000000000001", "parent_tool_use_id": None, "uuid": f"{number:032x}"}
    usage = {"input_tokens": 4, "cache_creation_input_tokens": 900, "cache_read_input_tokens": 20_000 + number % 90_000}
    message: dict[str, Any] = {"id": f"msg_{number}", "role": "assistant", "model": "claude-sonnet-4-5", "usage": usage}
    kind = number % 20
    if kind < 8:
        given = {"file_path": f"/w/src/file{number % 50}.py", "old_string": text[:80], "new_string": text}
        if number % 3:
            given = {"command": f"go test ./pkg{number % 9}/... 2>&1 | tail -20", "description": "Run tests"}
        name = "Bash" if number % 3 else "Edit"
        message["content"] = [{"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": given}]
        return {"type": "assistant", "message": message, **base}
    if kind < 16:
        output = "\n".join(f"{line:>5}\t{text}" for line in range(chance.randint(1, 12)))
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": f"toolu_{number - 8}", "content": output}
        block["is_error"] = not number % 40
        return {"type": "user", "message": {"role": "user", "content": [block]}, **base}
    if kind < 18:
        message["content"] = [{"type": "text", "text": text}]
        return {"type": "assistant", "message": message, **base}
    if kind == 18:
        delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text[:20]}}
        return {"type": "stream_event", "event": delta, **base}
    if number % 400 == 19:
        return {"type": "result", "subtype": "success", "total_cost_usd": number / 1e4, "usage": usage, **base}
    return {"type": "system", "subtype": "status", "status": None, **base}


def recorded(folder: Path) -> Iterator[bytes]:
    """The lines of every Claude Code session of a folder."""
    for file in sorted((folder / "entire-claude-code").glob("*.jsonl.gz")):
        with gzip.open(file, "rb") as lines:
            yield from lines


def rate(lines: list[bytes]) -> float:
    """Events per second of CPU time, for all steps."""
    from foldline.text_lines import CHUNK_BYTES, LineSplitter, raw_lines_of_file
    from foldline.watch.agent_events import load
    from foldline.watch.scratch_files import ScratchWriter
    from foldline.watch.watcher import Watcher

    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "session.jsonl"
        file.write_bytes(b"".join(lines))
        watch = Watcher(writer=ScratchWriter(place))
        start = time.process_time()
        tee = lambda chunk: watch.pace(behind=len(chunk) == CHUNK_BYTES)  # noqa: E731
        for line in raw_lines_of_file(str(file), LineSplitter(), tee=tee):
            event = load(line)
            if event is not None:
                watch.feed(event)
        watch.end()
        return len(lines) / (time.process_time() - start)


def bare_rate(lines: list[bytes]) -> float:
    """Lines per second of CPU time with `json.loads` alone, for comparison."""
    start = time.process_time()
    for line in lines:
        json.loads(line)
    return len(lines) / (time.process_time() - start)


def memory(megabytes: int) -> tuple[float, float]:
    """Peak memory of the command in megabytes for a stream of this size, and the seconds it took (on Linux)."""
    piece = b"".join(stream(4_000))
    code = (
        "import sys\nfrom foldline.cli import main\ntry:\n  main()\nfinally:\n"
        "  said = dict(line.split(':') for line in open('/proc/self/status'))\n"
        "  print(int(said['VmHWM'].split()[0]) / 1024, file=sys.stderr)"
    )
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-c", code, "watch", "--json", "--scratch", place]
        start = time.perf_counter()
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert child.stdin is not None
        for _ in range(megabytes * 2**20 // len(piece)):
            child.stdin.write(piece)
        child.stdin.close()
        assert child.stderr is not None
        said = child.stderr.read().decode().split()
        child.wait()
        return float(said[-1]), time.perf_counter() - start


def cold(*arguments: str, given: bytes = b"") -> float:
    """Milliseconds of CPU time of a new process; the minimum of several runs."""
    times = []
    for _ in range(ROUNDS):
        before = os.times()
        subprocess.run([sys.executable, *arguments], input=given, capture_output=True, check=False)
        after = os.times()
        times.append((after.children_user + after.children_system) - (before.children_user + before.children_system))
    return min(times) * 1000


STATUS = json.dumps(
    {
        "session_id": "s1",
        "model": {"id": "claude-sonnet-4-5", "display_name": "Sonnet 4.5"},
        "context_window": {"context_window_size": 200_000, "current_usage": {"input_tokens": 9_000}},
        "cost": {"total_cost_usd": 0.42},
    }
).encode()


def main(argv: list[str]) -> int:
    options = argparse.ArgumentParser(prog="python -m bench watch", description=__doc__)
    options.add_argument("--data", type=Path, help="a folder with recorded sessions")
    options.add_argument("--events", type=int, default=8_000)
    options.add_argument("--megabytes", type=int, default=100)
    given = options.parse_args(argv)
    sources = {"made": list(stream(given.events))}
    if given.data:
        sources["recorded"] = list(recorded(given.data))
    failed = 0
    reader = "orjson" if importlib.util.find_spec("orjson") else "json (pip install '.[fast]' is faster)"
    print(f"Python {sys.version.split()[0]}, events read by {reader}")
    for name, lines in sources.items():
        size = sum(map(len, lines))
        rounds = max(ROUNDS, TIMED // len(lines))
        found = max(rate(lines) for _ in range(rounds))
        bare = max(bare_rate(lines) for _ in range(rounds))
        failed += found < EVENTS_GOAL
        print(
            f"{name}: {found:,.0f} events/s of {size / len(lines):,.0f} bytes each (goal {EVENTS_GOAL:,}); "
            f"json.loads alone {bare:,.0f}, {bare / found:.1f} times as many"
        )
    most, seconds = memory(given.megabytes)
    failed += most > MEMORY_GOAL_MB
    print(f"{given.megabytes} MB through the command: {most:.0f} MB at most (goal {MEMORY_GOAL_MB}), {seconds:.1f} s")
    bare, line = cold("-c", "pass"), cold("-m", "foldline.cli", "statusline", given=STATUS)
    failed += line > STATUS_GOAL_MS
    print(f"statusline, cold: {line:.0f} ms of CPU (goal {STATUS_GOAL_MS}), of which Python itself {bare:.0f}")
    return 1 if failed else 0
