"""Measures the time to the first event, early and late in one long session.

The requests go to the provider directly, through a bare pass-through, and through foldline.

The client sends its whole history with every request, so every server needs more time for a later request. `added` is
the difference to the requests that go to the provider directly. A mark is a number of requests. At each mark, the
medians of the latest requests are printed, and the processor time of each server per request, which does not depend on
other work on the machine. The processor time of foldline includes recording. By default, the session is folded many
times; with a large window, it is never folded.

    python -m bench proxy_turns
    python -m bench proxy_turns --window 10000000
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
from pathlib import Path

from bench.proxy_latency import Server, Talk, first_event, servers

MARKS = (10, 100, 500, 1_000, 2_000)
SAMPLE = 50
"""Number of requests before each mark that are measured."""
_WHY = "why is that so? " * 20


async def run(started: dict[str, Server], marks: list[int]) -> None:
    """Send the requests of one session, and print the times at each mark."""
    import aiohttp

    talk = Talk("turns", 0)
    found: dict[str, list[float]] = {name: [] for name in started}
    before: dict[str, float] = {}
    async with aiohttp.ClientSession() as client:
        for number in range(1, marks[-1] + 1):
            body = talk.body(_WHY)
            is_measured = any(mark - SAMPLE < number <= mark for mark in marks)
            if is_measured and not before:
                before = {name: one.cpu_seconds() for name, one in started.items()}
            for name in random.sample(list(started), len(started)) if is_measured else ["foldline"]:
                seconds = await first_event(client, started[name].url, talk.name, body)
                if is_measured:
                    found[name].append(seconds)
            if number in marks:
                used = {name: (one.cpu_seconds() - before[name]) / len(found[name]) for name, one in started.items()}
                show(number, len(body), found, used)
                found, before = {name: [] for name in started}, {}


def show(number: int, size: int, found: dict[str, list[float]], used: dict[str, float]) -> None:
    """Print the row of a mark."""
    middle = {name: statistics.median(values) * 1e3 for name, values in found.items()}
    least = {name: min(values) * 1e3 for name, values in found.items()}
    cells = [f"{name} {middle[name]:6.2f} ms (least {least[name]:5.2f})" for name in middle]
    added = [f"{name} {middle[name] - middle['direct']:5.2f}" for name in middle if name != "direct"]
    times = ", ".join(f"{name} {seconds * 1e3:.1f}" for name, seconds in used.items())
    print(f"request {number:>5,}, {size:>9,} bytes: {', '.join(cells)}; added: {', '.join(added)}; "
          f"processor time: {times}", flush=True)  # fmt: skip


def main(argv: list[str]) -> int:
    options = argparse.ArgumentParser(prog="python -m bench proxy_turns", description=__doc__)
    options.add_argument("--requests", type=int, default=MARKS[-1])
    options.add_argument("--window", type=int, default=20_000)
    given = options.parse_args(argv)
    marks = [mark for mark in MARKS if mark < given.requests] + [given.requests]
    with tempfile.TemporaryDirectory() as place, servers(Path(place), window=given.window) as started:
        asyncio.run(run(started, marks))
    return 0
