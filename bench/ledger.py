"""What a turn costs in a small ledger and in a large one, and what PostgreSQL does with many sessions at once.

    python -m bench ledger --path /tmp/bench            # builds two ledgers there, and keeps them for the next run
    python -m bench ledger --path /tmp/bench --postgres # throughput with 1, 4 and 16 sessions at once

A turn is four messages of about 1 KB (prompt, call, result, reply), durable before the next one starts. The turns of
both ledgers are timed in bursts, one ledger after the other, in processes of their own, so that a busy machine is busy
for both; beside them stands what the disk alone takes to sync as many bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles
from threading import Thread

from bench.servers import postgres
from foldline import ledger
from foldline.message import Message, ToolCall, assistant, tool, user

SMALL, LARGE = 1_000, 1_000_000
SESSION = 1_000
"""Messages in a session of the ledger that is built."""
TURNS, BURST = 600, 50
"""Turns that are timed, and how many of one ledger before it is the other's turn."""
TAIL = 40
SYNCED = 65_536
"""Bytes that a turn writes, about."""
GOAL_MS, GOAL_RATIO = 2.0, 1.5
WORDS = (Path(os.__file__).read_text("utf-8") + Path(random.__file__).read_text("utf-8")).split()


def text(chance: random.Random, size: int) -> str:
    """Words of a program, `size` characters of them."""
    start = chance.randrange(len(WORDS) - 400)
    return " ".join((*WORDS[start : start + size // 6], str(chance.random())))


def turn(chance: random.Random) -> list[Message]:
    """A prompt, a call, its result, a reply: about 4 KB."""
    call = f"call_{chance.getrandbits(48):x}"
    return [
        user(text(chance, 400)),
        assistant(
            text(chance, 300), ToolCall(id=call, name="run", arguments=json.dumps({"command": text(chance, 100)}))
        ),
        tool(call, text(chance, 2_400)),
        assistant(text(chance, 800)),
    ]


def build(path: Path, count: int) -> None:
    """A ledger of `count` messages, unless it is there already."""
    if path.exists():
        return
    chance = random.Random(count)
    store = ledger.open(path)
    started = time.perf_counter()
    for number in range(max(1, count // SESSION)):
        main = store.session(f"session-{number}")
        store.append(main, [message for _ in range(SESSION // 4) for message in turn(chance)])
        if number % 100 == 99:
            print(f"  {(number + 1) * SESSION:,} messages, {time.perf_counter() - started:.0f} s", file=sys.stderr)
    store.close()


def measure(path: Path) -> Iterator[dict[str, float]]:
    """In a process of its own: open, then wait for a line before each burst of turns, and say what each took."""
    chance = random.Random()
    begun = time.perf_counter()
    store = ledger.open(path)
    main = store.session("session-0")
    head = store.head(main)
    tail = list(store.read(head, start=max(0, head.length - TAIL)))
    yield {"open_ms": (time.perf_counter() - begun) * 1e3, "tail": len(tail)}
    for said in (turn(chance) for _ in sys.stdin for _ in range(BURST)):
        begun, worked = time.perf_counter(), time.process_time()
        head = store.append(main, said, expected=head.key).head
        took, work = time.perf_counter() - begun, time.process_time() - worked
        begun = time.perf_counter()
        list(store.read(head, start=head.length - TAIL))
        read = time.perf_counter() - begun
        synced = sync_ms(path.with_suffix(".sync"))
        rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        yield {"append_ms": took * 1e3, "work_ms": work * 1e3, "read_ms": read * 1e3, "sync_ms": synced, "rss_mb": rss}


class Worker:
    """A process that measures one ledger."""

    def __init__(self, path: Path) -> None:
        command = [sys.executable, "-m", "bench", "ledger", "--measure", str(path)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.opened = self._read()
        self.turns: list[dict[str, float]] = []

    def _read(self) -> dict[str, float]:
        assert self.process.stdout
        found: dict[str, float] = json.loads(self.process.stdout.readline())
        return found

    def burst(self) -> None:
        """Let it take some turns."""
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.turns += [self._read() for _ in range(BURST)]

    def close(self) -> None:
        """Let it end."""
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()

    def middle(self, name: str) -> float:
        """The median of a figure."""
        return median(turn[name] for turn in self.turns)


def sync_ms(path: Path) -> float:
    """What the disk takes at this moment to append and sync as much as a turn writes."""
    with path.open("ab") as file:
        begun = time.perf_counter()
        file.write(os.urandom(SYNCED))
        file.flush()
        os.fdatasync(file.fileno())
        return (time.perf_counter() - begun) * 1e3


def embedded(folder: Path, large: int) -> int:
    paths = {SMALL: folder / f"{SMALL}.db", large: folder / f"{large}.db"}
    for count, path in paths.items():
        if count == SMALL:
            path.unlink(missing_ok=True)
        build(path, count)
    workers = {count: Worker(path) for count, path in paths.items()}
    for _ in range(TURNS // BURST):
        for worker in workers.values():
            worker.burst()
    print("  messages  file MB  open ms  turn ms    p95  CPU ms  tail of 40  RSS MB")
    for count, worker in workers.items():
        worker.close()
        paths[count].with_suffix(".sync").unlink()
        p95 = quantiles([turn["append_ms"] for turn in worker.turns], n=20)[-1]
        print(
            f"{count:>10,} {paths[count].stat().st_size / 1e6:>8,.0f} {worker.opened['open_ms']:>8.1f} "
            f"{worker.middle('append_ms'):>8.2f} {p95:>6.1f} {worker.middle('work_ms'):>7.2f} "
            f"{worker.middle('read_ms'):>10.2f} "
            f"{worker.turns[-1]['rss_mb']:>7.0f}"
        )
    turn_ms = workers[large].middle("append_ms")
    ratio = turn_ms / workers[SMALL].middle("append_ms")
    synced = workers[large].middle("sync_ms")
    print(f"turn {turn_ms:.2f} ms (goal {GOAL_MS}), of which the disk alone takes {synced:.2f} at this moment")
    print(f"a turn takes {ratio:.2f} times what it takes at {SMALL:,} (goal {GOAL_RATIO})")
    return int(turn_ms > GOAL_MS or ratio > GOAL_RATIO)


def shared(url: str) -> None:
    """Turns per second on one server, by how many sessions write at once."""
    for sessions in (1, 4, 16):
        store = ledger.open(url)
        counts = [0] * sessions
        until = time.perf_counter() + 5

        def work(number: int, store: ledger.Store = store, counts: list[int] = counts, until: float = until) -> None:
            chance = random.Random()
            main = store.session(f"bench-{len(counts)}-{number}-{chance.random()}")
            while time.perf_counter() < until:
                store.append(main, turn(chance))
                counts[number] += 1

        threads = [Thread(target=work, args=(number,)) for number in range(sessions)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        store.close()
        print(f"{sessions:>3} sessions: {sum(counts) / 5:>7,.0f} turns/s, slowest session {min(counts) / 5:,.0f}")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench ledger", description=__doc__)
    parser.add_argument("--path", type=Path, default=Path("bench-ledger"), help="a folder for the ledgers")
    parser.add_argument("--messages", type=int, default=LARGE)
    parser.add_argument("--postgres", action="store_true", help="measure a server instead, durable as it comes")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.measure:
        for found in measure(options.measure):
            print(json.dumps(found), flush=True)
        return 0
    if options.postgres:
        support = postgres()
        with support.server(support.DURABLE) as admin, support.database(admin) as url:
            shared(url)
        return 0
    options.path.mkdir(parents=True, exist_ok=True)
    return embedded(options.path, options.messages)
