"""Measures the time of a turn in a small and in a large ledger, and the throughput of PostgreSQL with many sessions.

    python -m bench ledger --path /tmp/bench            # builds two ledgers there, and keeps them for the next run
    python -m bench ledger --path /tmp/bench --one      # the large one is a single session
    python -m bench ledger --path /tmp/bench --postgres # throughput with 1, 4 and 16 sessions at once

A turn is four messages of about 1 KB: prompt, call, result and reply. They are added to a session and are on disk
before the view is made. The next turn starts after that. Some turns also index new messages. No fold is made, because
the window has room for all turns. Each ledger is measured in a process of its own. The two processes take turns after
every burst, so that a busy machine slows both down equally. For comparison, the time that the disk needs to sync the
same number of bytes is measured.

Then both ledgers are searched, in the session and in all sessions: for a number that occurs once, for some words of one
message, and for words that half of all messages contain.
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
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean, median, quantiles
from threading import Thread

import foldline
from bench.servers import postgres
from foldline import Policy, ledger
from foldline.fold import Fold
from foldline.message import Message, ToolCall, assistant, tool, user
from foldline.recall.text_index import TextIndex
from foldline.session import Session

SMALL, LARGE = 1_000, 1_000_000
NAME = "session-0"
"""Name of the session that gets the measured turns."""
SESSION = 1_000
"""Number of messages in each session of a new ledger."""
TURNS, BURST = 600, 50
"""Number of turns that are timed, and number of turns in a burst."""
TAIL = 40
"""Number of messages in the view when a session is opened. All earlier messages are folded."""
ROOMY = Policy(window_tokens=10_000_000)
SEARCHES = 15
"""Number of timed searches of each kind."""
COMMON = "the self import return"
GOAL_SEARCH_MS = 100.0
SYNCED = 65_536
"""Approximate number of bytes that a turn writes."""
GOAL_MS, GOAL_RATIO = 2.0, 1.5
WORDS = (Path(os.__file__).read_text("utf-8") + Path(random.__file__).read_text("utf-8")).split()


def text(chance: random.Random, size: int) -> str:
    """About `size` characters of words from the source of a program."""
    start = chance.randrange(len(WORDS) - 400)
    return " ".join((*WORDS[start : start + size // 6], str(chance.random())))


def turn(chance: random.Random) -> list[Message]:
    """The messages of a turn: a prompt, a call, its result and a reply. They have about 4 KB."""
    call = f"call_{chance.getrandbits(48):x}"
    return [
        user(text(chance, 400)),
        assistant(
            text(chance, 300), ToolCall(id=call, name="run", arguments=json.dumps({"command": text(chance, 100)}))
        ),
        tool(call, text(chance, 2_400)),
        assistant(text(chance, 800)),
    ]


def build(path: Path, count: int, *, one: bool) -> None:
    """Build a ledger with `count` messages, unless it exists already."""
    if path.exists():
        return
    chance = random.Random(count)
    store = ledger.open(path, index=TextIndex())
    started = time.perf_counter()
    for number in range(max(1, count // SESSION)):
        main = store.session(NAME if one else f"session-{number}")
        length = store.append(main, [message for _ in range(SESSION // 4) for message in turn(chance)]).head.length
        if number == 0 or one:
            store.append_fold(main, Fold(cut=length - TAIL, reason="built so"))
        if number % 100 == 99:
            print(f"  {(number + 1) * SESSION:,} messages, {time.perf_counter() - started:.0f} s", file=sys.stderr)
    store.close()


def measure(path: Path) -> Iterator[dict[str, float]]:
    """Measure one ledger: the main function of a worker process. Yields the times.

    Before each burst of turns, the process waits for a line on standard input. The searches are measured at the end.
    """
    chance = random.Random()
    begun = time.perf_counter()
    house = foldline.open(path)
    session = house.session(NAME, model="claude-sonnet-5", policy=ROOMY)
    yield {"open_ms": (time.perf_counter() - begun) * 1e3}
    for said in (turn(chance) for _ in sys.stdin for _ in range(BURST)):
        begun, worked = time.perf_counter(), time.process_time()
        session.add(*said)
        added = time.perf_counter()
        session.view()
        ended, work = time.perf_counter(), time.process_time() - worked
        yield {
            "turn_ms": (ended - begun) * 1e3,
            "add_ms": (added - begun) * 1e3,
            "work_ms": work * 1e3,
            "sync_ms": sync_ms(path.with_suffix(".sync")),
            "rss_mb": _rss_mb(),
        }
    yield from searches(session, chance)


def searches(session: Session, chance: random.Random) -> Iterator[dict[str, float]]:
    """The median time of each kind of search."""
    store, branch = session.record.search_target()
    length = store.head(branch).length
    begun = time.perf_counter()
    session.recall("whatever was said last")
    first = time.perf_counter() - begun

    def words() -> list[str]:
        at = chance.randrange(length - TAIL)
        return next(store.read(branch, start=at, stop=at + 1)).message.text.split() or ["none"]

    kinds: dict[str, Callable[[], str]] = {
        "rare": lambda: words()[-1],
        "ordinary": lambda: " ".join(chance.choices(words(), k=6)),
        "common": lambda: COMMON,
    }
    found = {"first, with the unread": first * 1e3}
    for kind, question in kinds.items():
        for where in ("here", "everywhere"):
            asked = [question() for _ in range(SEARCHES)]
            times = [_search_ms(session, query, where) for query in asked]
            found[f"{kind} {where}"] = median(wall for wall, _ in times)
            found[f"{kind} {where}, CPU"] = median(work for _, work in times)
    yield found | {"(RSS MB)": _rss_mb()}


def _search_ms(session: Session, query: str, where: str) -> tuple[float, float]:
    """The elapsed time and the CPU time of a search, in milliseconds."""
    begun, worked = time.perf_counter(), time.process_time()
    session.recall(query, everywhere=where == "everywhere")
    return (time.perf_counter() - begun) * 1e3, (time.process_time() - worked) * 1e3


def _rss_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


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
        """Measure a burst of turns."""
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.turns += [self._read() for _ in range(BURST)]

    def searches(self) -> dict[str, float]:
        """Measure the searches, and end the process."""
        assert self.process.stdin
        self.process.stdin.close()
        found = self._read()
        self.process.wait()
        return found

    def middle(self, name: str) -> float:
        """The median of a figure."""
        return median(turn[name] for turn in self.turns)


def sync_ms(path: Path) -> float:
    """The time that the disk needs now to append and sync as many bytes as a turn writes."""
    with path.open("ab") as file:
        begun = time.perf_counter()
        file.write(os.urandom(SYNCED))
        file.flush()
        os.fdatasync(file.fileno())
        return (time.perf_counter() - begun) * 1e3


def embedded(folder: Path, large: int, *, one: bool) -> int:
    """Measure a small and a large ledger, and print the times."""
    paths = {SMALL: folder / f"{SMALL}.db", large: folder / f"{large}{'-one' if one else ''}.db"}
    for count, path in paths.items():
        if count == SMALL:
            path.unlink(missing_ok=True)
        build(path, count, one=one)
    workers = {count: Worker(path) for count, path in paths.items()}
    for _ in range(TURNS // BURST):
        for worker in workers.values():
            worker.burst()
    found = {count: worker.searches() for count, worker in workers.items()}
    print("  messages  file MB  open ms  turn ms  of it add   mean    p95  CPU ms  RSS MB")
    for count, worker in workers.items():
        paths[count].with_suffix(".sync").unlink()
        turns = [turn["turn_ms"] for turn in worker.turns]
        print(
            f"{count:>10,} {paths[count].stat().st_size / 1e6:>8,.0f} {worker.opened['open_ms']:>8.1f} "
            f"{median(turns):>8.2f} {worker.middle('add_ms'):>10.2f} {mean(turns):>6.2f} "
            f"{quantiles(turns, n=20)[-1]:>6.1f} {worker.middle('work_ms'):>7.2f} {worker.turns[-1]['rss_mb']:>7.0f}"
        )
    return int(_turns(workers, large) | _searches(found, large))


def _turns(workers: dict[int, Worker], large: int) -> bool:
    """Print whether a turn is short enough. Returns True if a goal is missed."""
    turn_ms = workers[large].middle("turn_ms")
    ratio = turn_ms / workers[SMALL].middle("turn_ms")
    synced = workers[large].middle("sync_ms")
    print(f"turn {turn_ms:.2f} ms (goal {GOAL_MS}); the disk alone needs {synced:.2f} ms")
    print(f"a turn takes {ratio:.2f} times as long as with {SMALL:,} messages (goal {GOAL_RATIO})")
    return turn_ms > GOAL_MS or ratio > GOAL_RATIO


def _searches(found: dict[int, dict[str, float]], large: int) -> bool:
    """Print the times of the searches. Returns True if an ordinary search took too long."""
    print("\nmedian time of search (ms)" + "".join(f"{count:>12,}" for count in found))
    for kind in found[large]:
        print(f"  {kind:<24}" + "".join(f"{some[kind]:>12.1f}" for some in found.values()))
    slow = max(found[large]["ordinary here"], found[large]["ordinary everywhere"])
    print(f"an ordinary search takes at most {slow:.0f} ms (goal {GOAL_SEARCH_MS:.0f})")
    return slow > GOAL_SEARCH_MS


def shared(url: str) -> None:
    """Turns per second on one server, for several numbers of sessions that write at once."""
    for sessions in (1, 4, 16):
        store = ledger.open(url, index=TextIndex())
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
    parser.add_argument("--one", action="store_true", help="all of the large ledger's messages in one session")
    parser.add_argument(
        "--postgres", action="store_true", help="measure a PostgreSQL server with its default settings instead"
    )
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
    return embedded(options.path, options.messages, one=options.one)
