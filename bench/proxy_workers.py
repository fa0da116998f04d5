"""Checks that no exchange is lost or mixed up if worker processes with one PostgreSQL ledger are killed under load.

Each client has its own sessions with tool calls. It repeats a request if the connection breaks, and reaches another
worker with every new connection. From time to time, a worker gets SIGKILL. At the end, the ledger must contain every
exchange whose response the client received completely: once, and in the right session. The number of requests, kills,
lost and mixed exchanges is printed, with the slowest request and the memory of the workers over time. The exit status
is 1 if there is a fault.

    python -m bench proxy_workers --seconds 60
    python -m bench proxy_workers --seconds 600 --kill-every 0     # flat memory
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.servers import places

MODEL = "claude-sonnet-4-5"
TIMEOUT_S = 30.0
WINDOW = 20_000


@dataclass
class Client:
    """A client that holds one session after the other, each with several turns."""

    url: str
    number: int
    turns: int
    until: float
    done: dict[str, list[str]] = field(default_factory=dict)
    """For each session, the acknowledged texts in order."""
    slowest: float = 0.0
    requests: int = 0
    again: int = 0
    failed: int = 0

    def run(self) -> None:
        """Hold sessions until the time is over."""
        session = 0
        while time.monotonic() < self.until:
            name = f"client-{self.number}-{session}"
            messages: list[Any] = []
            texts = self.done.setdefault(name, [])
            for turn in range(self.turns):
                question = f"{name} turn {turn}: " + "why is that so? " * 60
                messages.append({"role": "user", "content": question})
                reply = self.ask(name, messages)
                if reply is None:
                    self.failed += 1
                    break
                messages.append({"role": "assistant", "content": reply})
                texts += [question, reply]
                if time.monotonic() > self.until:
                    break
            session += 1

    def ask(self, name: str, messages: list[Any]) -> str | None:
        """The reply to a request; None if all attempts failed."""
        body = json.dumps({"model": MODEL, "max_tokens": 1_000, "stream": True, "messages": messages})
        headers = {"x-api-key": f"key-{self.number}", "anthropic-version": "2023-06-01", "x-foldline-session": name}
        for _ in range(8):
            start = time.monotonic()
            connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=TIMEOUT_S)
            try:
                connection.request("POST", "/v1/messages", body, headers)
                response = connection.getresponse()
                data = response.read()
                if response.status == 200:
                    self.requests += 1
                    return text_of(data)
            except (OSError, http.client.HTTPException, ValueError):
                pass
            finally:
                connection.close()
                self.slowest = max(self.slowest, time.monotonic() - start)
            self.again += 1
            time.sleep(0.1)
        return None


def text_of(data: bytes) -> str:
    """The text of a streamed reply. Raises `ValueError` if it is not complete."""
    if b"message_stop" not in data:
        raise ValueError("not complete")
    events = [json.loads(line[6:]) for line in data.decode().splitlines() if line.startswith("data: ")]
    return "".join(event["delta"].get("text", "") for event in events if event["type"] == "content_block_delta")


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def memory(pid: int) -> float:
    """The resident memory of a process in MB."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except OSError:
        return 0.0


def recorded(ledger: str) -> dict[str, list[list[str]]]:
    """The texts of each branch of each session."""
    import foldline
    from foldline import ledger as ledgers

    found: dict[str, list[list[str]]] = {}
    store = ledgers.open(ledger)
    for owner in ledgers.owners(store):
        with foldline.open(ledger, owner=owner) as opened:
            own = opened.store
            for info in opened.sessions():
                for branch in own.branches(info.name):
                    texts = [stored.message.text for stored in own.read(branch)]
                    found.setdefault(info.name, []).append(texts)
    store.close()
    return found


def judge(clients: list[Client], found: dict[str, list[list[str]]]) -> tuple[int, int, int]:
    """The number of lost texts, of texts in a wrong session, and of texts that a branch has twice."""
    lost = mixed = twice = 0
    for client in clients:
        for name, texts in client.done.items():
            branches = found.get(name, [])
            everything = {text for branch in branches for text in branch}
            lost += sum(text not in everything for text in texts)
            mixed += sum(bool(text) and name not in text for text in everything)
            asked = [[text for text in branch if text.startswith(name)] for branch in branches]
            twice += sum(len(branch) - len(set(branch)) for branch in asked)
    return lost, mixed, twice


def run(given: argparse.Namespace, ledger: str) -> int:
    from foldline.testing.provider import SimulatedProvider

    with SimulatedProvider(event_pause_s=0.002) as provider:
        command = [sys.executable, "-m", "foldline.cli", "serve", "--json", "--port", "0", "-u", provider.url]
        command += ["--ledger", ledger, "--workers", str(given.workers), "--window", str(WINDOW)]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert running.stdout is not None
        url, until = json.loads(running.stdout.readline())["address"], time.monotonic() + given.seconds
        clients = [Client(url, number, given.turns, until) for number in range(given.clients)]
        threads = [threading.Thread(target=client.run) for client in clients]
        for thread in threads:
            thread.start()
        kills, drawn, last = 0, random.Random(given.seed), time.monotonic()
        start, sizes = time.monotonic(), list[tuple[float, float]]()
        while time.monotonic() < until:
            time.sleep(min(given.kill_every or 5.0, 5.0))
            workers = children(running.pid)
            sizes.append((time.monotonic() - start, sum(map(memory, workers))))
            provider.requests.clear()
            if given.kill_every and workers and time.monotonic() - last >= given.kill_every:
                os.kill(drawn.choice(workers), signal.SIGKILL)
                kills, last = kills + 1, time.monotonic()
        for thread in threads:
            thread.join()
        running.send_signal(signal.SIGTERM)
        running.wait(60)
    lost, mixed, twice = judge(clients, recorded(ledger))
    requests, again = sum(client.requests for client in clients), sum(client.again for client in clients)
    failed, slowest = sum(client.failed for client in clients), max(client.slowest for client in clients)
    print(f"{requests} requests of {given.clients} clients, {given.workers} workers, {kills} kills: {failed} failed, "
          f"{again} asked again, slowest {slowest:.1f} s; {lost} lost, {mixed} mixed, {twice} twice")  # fmt: skip
    minutes = [[size for at, size in sizes if at // 60 == minute] for minute in range(int(given.seconds // 60) or 1)]
    means = [f"{sum(found) / len(found):.0f}" for found in minutes if found]
    print(f"memory of the workers in MB, by minute: {', '.join(means)}")
    return 1 if lost or mixed or twice or failed or slowest > TIMEOUT_S else 0


def main(argv: list[str]) -> int:
    options = argparse.ArgumentParser(prog="python -m bench proxy_workers", description=__doc__)
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("--clients", type=int, default=12)
    options.add_argument("--turns", type=int, default=30, help="turns of a session")
    options.add_argument("--workers", type=int, default=4)
    options.add_argument("--kill-every", type=float, default=2.0, help="seconds between two kills; 0 for none")
    options.add_argument("--sqlite", action="store_true", help="a SQLite file instead of PostgreSQL")
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args(argv)
    with places(on_postgres=not given.sqlite) as ledgers:
        return run(given, next(ledgers))
