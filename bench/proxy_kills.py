"""Kills the proxy of `foldline run` many times, and counts the failed turns of a client.

The client is the official Python SDK of Anthropic with its own retries. In each turn, the process that serves the proxy
gets SIGKILL: at a random moment around the request, or when the first text of the stream has arrived. Every tenth time,
the parent process gets SIGKILL, too. If a stream breaks off, the client repeats the request, as agents do. The number
of kills, failed turns and repeated requests is printed, and the time of a turn. The exit status is 1 if a turn failed
or a reply is wrong.

    python -m bench proxy_kills --kills 1000
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

MODEL = "claude-sonnet-4-5"
ATTEMPTS = 4
"""Number of attempts after which a turn counts as failed."""
EVENT_S = 0.01
"""Seconds between two events of a stream."""
TURNS = 20
"""Number of turns of one conversation."""


def proxies(ledger: str) -> list[int]:
    """The process ids of the proxy that writes to a ledger: first the parent, then the worker."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_text().split("\0")
        except OSError:
            continue
        if "--descriptor" in words and ledger in words:
            found.append(int(process.name))
    parents = {pid: _parent(pid) for pid in found}
    return sorted(found, key=lambda pid: parents[pid] in found)


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def kill(ledger: str, *, parent: bool) -> bool:
    """Kill the worker of a proxy, or also its parent. Returns whether there was such a process."""
    found = proxies(ledger)
    if len(found) < 2 and not (parent and found):
        return False
    try:
        os.kill(found[0] if parent else found[-1], signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _kill_into(done: list[bool], ledger: str, parent: bool) -> None:
    done.append(kill(ledger, parent=parent))


def client(base: str, ledger: str, kills: int, seed: int) -> int:
    """Hold conversations through the proxy, and kill it in each turn. Prints one JSON object."""
    import anthropic
    import httpx2

    drawn, sdk = random.Random(seed), anthropic.Anthropic(base_url=base, api_key="none", timeout=30)
    killed = failed = repeated = wrong = turn = 0
    waits: list[float] = []
    messages: list[Any] = []
    while killed < kills:
        if turn % TURNS == 0:
            messages = []
        question = f"question {turn} of seed {seed} " + "why is that so? " * 200
        messages.append({"role": "user", "content": question})
        in_stream, parent = drawn.random() < 0.5, drawn.random() < 0.1
        done: list[bool] = []
        timer = threading.Timer(drawn.uniform(0, 0.1), _kill_into, (done, ledger, parent))
        if not in_stream:
            timer.start()
        start, text, attempts = time.perf_counter(), "", 0
        while not text and attempts < ATTEMPTS:
            attempts += 1
            headers = {"x-foldline-session": f"kills-{seed}-{turn // TURNS}"}
            try:
                with sdk.messages.stream(
                    model=MODEL, max_tokens=2_000, messages=messages, extra_headers=headers
                ) as stream:
                    pieces = []
                    for piece in stream.text_stream:
                        pieces.append(piece)
                        if in_stream and not done:
                            _kill_into(done, ledger, parent)
                    text = "".join(pieces) if stream.get_final_message().stop_reason == "end_turn" else ""
            except (anthropic.APIError, OSError, ValueError, httpx2.HTTPError) as error:
                print(f"turn {turn}: {type(error).__name__}", file=sys.stderr)
        if not in_stream:
            timer.join()
        killed += sum(done)
        repeated += attempts > 1
        failed += not text
        wrong += bool(text) and f"question {turn} of seed {seed} " not in text
        waits.append(time.perf_counter() - start)
        messages.append({"role": "assistant", "content": text or "?"})
        turn += 1
        if turn % 25 == 0:
            print(f"{killed} kills, {turn} turns, {failed} failed", file=sys.stderr, flush=True)
    found: dict[str, Any] = {"kills": killed, "turns": turn, "failed": failed, "wrong": wrong, "again": repeated}
    print(json.dumps(found | {"p50": statistics.median(waits), "max": max(waits)}))
    return 0


def run(kills: int, seed: int, place: str) -> int:
    import foldline
    from foldline.testing.provider import SimulatedProvider

    ledger = f"{place}/ledger.db"
    with SimulatedProvider(event_pause_s=EVENT_S) as provider:
        command = [sys.executable, "-m", "foldline.cli", "run", "-u", provider.url, "--ledger", ledger]
        command += ["--env", "BASE={url}", sys.executable, "-m", "bench", "proxy_kills", "--kills", str(kills)]
        command += ["--seed", str(seed), "--ledger", ledger]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        requests, refused = len(provider.requests), len(provider.refused)
    found = json.loads(done.stdout.splitlines()[-1]) if done.stdout else {}
    if not found or done.returncode:
        print(f"the client ended with {done.returncode}")
        return 1
    with foldline.open(ledger) as opened:
        sessions = [info for info in opened.sessions() if info.messages]
    recorded = sum(info.messages for info in sessions)
    print(
        f"{found['kills']} kills in {found['turns']} turns: {found['failed']} failed, {found['wrong']} wrong replies, "
        f"{found['again']} asked for again; waited p50 {found['p50']:.2f} s, at most {found['max']:.2f} s"
    )
    print(f"provider: {requests} requests, {refused} refused; ledger: {len(sessions)} sessions, {recorded} messages")
    return 1 if found["failed"] or found["wrong"] or refused else 0


def main(argv: list[str]) -> int:
    options = argparse.ArgumentParser(prog="python -m bench proxy_kills", description=__doc__)
    options.add_argument("--kills", type=int, default=1_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--ledger", default="", help=argparse.SUPPRESS)
    given = options.parse_args(argv)
    if given.ledger:
        return client(os.environ["BASE"], given.ledger, given.kills, given.seed)
    if not Path("/proc").is_dir():
        print("this needs /proc")
        return 2
    with tempfile.TemporaryDirectory() as place:
        return run(given.kills, given.seed, place)
