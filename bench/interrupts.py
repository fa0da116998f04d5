"""Interrupts a process that uses a session, many times, while another process writes to the same ledger.

    python -m bench interrupts --runs 1000               # SQLite
    python -m bench interrupts --runs 1000 --postgres

The process adds messages, reads views, folds, pins and unfolds. Its calls are interrupted at random moments, in equal
shares by SIGINT, by an exception that another thread raises in the calling thread, and by cancelling the asyncio task.
A second process appends to the same session and to a session of its own. Neither process may wait longer than `STUCK_S`
for a lock. A cancelled fold must not be committed. The interrupted session must send the same request as a newly opened
session. Every acknowledged message must be stored, and `verify` must find no fault.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import foldline
from bench.servers import places
from foldline.digest.digester import Digester, DigesterCall
from foldline.errors import Conflict, InputError, LedgerBusy
from foldline.message import assistant, user
from foldline.policy import Policy
from foldline.session import Ledger, Session
from foldline.session.async_session import AsyncSession
from foldline.testing import Scripted, proper

POLICY = Policy.preset("balanced").but(window_tokens=12_000, reply_tokens=0, counter="chars/4")
STUCK_S = 60.0
"""A call that has not succeeded after this many seconds is stuck. On a busy machine, a lock can be held for seconds."""
LATEST_S = 0.02
"""Maximum time between the start of a call and its interrupt, in seconds."""
ROUND = 100
"""Number of interrupts in one ledger. Each check opens the session again, so a long session slows the runs down."""
SHARED, OWN = "shared", "own"


class Interrupted(BaseException):
    """The exception that another thread raises in the calling thread."""


def model() -> Digester:
    """A model that takes a moment to answer."""

    def write(ask: DigesterCall) -> str:
        time.sleep(random.random() * 0.01)
        return proper(ask)

    return Digester(complete=Scripted(write), model="model", window=200_000)


def patiently(call: Callable[[], object]) -> bool:
    """Make a call, and repeat it while the ledger is busy. Returns False if the call is stuck."""
    end = time.monotonic() + STUCK_S
    while time.monotonic() < end:
        with suppress(LedgerBusy):
            call()
            return True
    return False


def _starts_thread(ident: int) -> bool:
    """Whether a thread is starting another thread.

    Until the new thread runs, it has the id of the old thread in CPython. An exception that is raised during this time
    would end the new thread before it reports its start, and the old thread would wait for ever.
    """
    frame = sys._current_frames().get(ident)
    while frame is not None:
        if frame.f_code is threading.Thread.start.__code__:
            return True
        frame = frame.f_back
    return False


class Victim:
    """A process that uses a session and is interrupted."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger, self.session = ledger, ledger.session(SHARED, policy=POLICY)
        self.said: list[str] = []
        self.found: Counter[str] = Counter()
        self.slowest = 0.0

    def step(self) -> None:
        """One random call."""
        session, text = self.session, f"victim {len(self.said)} {random.random()} " + "w" * random.randrange(900)
        match random.choice(("add", "add", "add", "view", "view", "fold", "pin", "unfold", "reopen")):
            case "add":
                session.add(user(text), assistant("yes " * 100))
                self.said.append(text)
            case "fold":
                session.fold(force=random.random() < 0.3)
            case "pin":
                session.pin("a note", name="note")
            case "unfold":
                session.unfold()
            case "reopen":
                self.ledger.session(SHARED)
            case _:
                session.view()

    def survive(self, kind: str) -> None:
        """Count an interrupt. Check that the next call does not wait long, and that its result agrees with the
        record.
        """
        self.found[kind] += 1
        began = time.monotonic()
        self.found["stuck"] += not patiently(lambda: self.session.add(user("after"), assistant("yes")))
        self.slowest = max(self.slowest, time.monotonic() - began)
        for _ in range(20):
            self.session.plan()
            mine, other = self.session.state, self.ledger.session(SHARED).state
            if mine.version == other.version:  # otherwise the other process wrote in between
                self.found["views compared"] += 1
                self.found["views differ"] += mine.messages() != other.messages()
                return

    def by_signal(self, runs: int) -> None:
        """Interrupt calls with SIGINT, in the main thread."""
        armed = False

        def handler(*_: object) -> None:
            nonlocal armed
            if armed:
                armed = False
                raise KeyboardInterrupt

        before = signal.signal(signal.SIGINT, handler)
        while self.found["SIGINT"] < runs:
            try:
                timer = threading.Timer(random.random() * LATEST_S, os.kill, (os.getpid(), signal.SIGINT))
                timer.start()
                armed = True
                with suppress(Conflict, InputError, LedgerBusy):
                    self.step()
                armed = False
            except KeyboardInterrupt:
                self.survive("SIGINT")
            timer.join()
        signal.signal(signal.SIGINT, before)

    def by_thread(self, runs: int) -> None:
        """Interrupt calls with an exception that is raised from another thread."""
        phase = "run"

        def work() -> None:
            nonlocal phase
            while phase != "end":
                try:
                    while phase == "pause":
                        time.sleep(0.001)
                    with suppress(Conflict, InputError, LedgerBusy):
                        self.step()
                except Interrupted:
                    phase = "pause"

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        while self.found["thread"] < runs:
            phase = "run"
            time.sleep(random.random() * LATEST_S)
            ident, error = ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Interrupted)
            for _ in range(20):  # Python ignores an exception that is raised in a finalizer
                while _starts_thread(thread.ident or 0):
                    time.sleep(0.001)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, error)
                end = time.monotonic() + STUCK_S / 20
                while phase != "pause" and time.monotonic() < end:
                    time.sleep(0.001)
                if phase == "pause":
                    break
            if phase != "pause":
                self.found["stuck"] += 1
                return
            self.survive("thread")
        phase = "end"
        thread.join(STUCK_S)

    async def by_task(self, runs: int) -> None:
        """Cancel the asyncio tasks of calls."""
        self.session.use(policy=POLICY.but(background=False))
        self.ledger.wait(STUCK_S)
        session = AsyncSession(self.session)
        while self.found["task"] < runs:
            self.session.plan()
            folds = self.session.folds
            calls: list[Callable[[], Any]] = [session.fold, session.fold, session.view, self._add(session)]
            call = random.choice(calls)
            task = asyncio.create_task(call())
            await asyncio.sleep(random.random() * LATEST_S)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                await session.plan()  # after the cancelled call
                self.found["committed after cancel"] += self.session.folds > folds
                self.survive("task")
            except (Conflict, InputError, LedgerBusy):
                pass

    def _add(self, session: AsyncSession) -> Callable[[], Any]:
        return lambda: session.add(user("w" * random.randrange(4_000)), assistant("yes " * 400))


@contextmanager
def second_writer(url: str) -> Iterator[subprocess.Popen[str]]:
    """Start a process that appends messages. It prints its counts when its input is closed."""
    command = [sys.executable, "-m", "bench", "interrupts", "--url", url]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()  # it is ready
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def append_until_closed(url: str) -> None:
    """Append to both sessions until the input is closed. Then print the counts and the longest wait."""
    written, stuck, slowest = 0, 0, 0.0
    closed = threading.Thread(target=sys.stdin.read, daemon=True)
    closed.start()
    with foldline.open(url) as ledger:
        sessions: list[Session] = [ledger.session(SHARED), ledger.session(OWN)]
        print("ready", flush=True)
        while closed.is_alive():
            began, session = time.monotonic(), random.choice(sessions)
            stuck += not patiently(partial(session.add, user(f"other {written}"), assistant("ok")))
            written += 1
            slowest = max(slowest, time.monotonic() - began)
            time.sleep(random.random() * 0.005)
    print(written, stuck, f"{slowest:.3f}", flush=True)


def run(url: str, runs: int) -> tuple[Counter[str], float, list[str]]:
    """Run all interrupts. Returns the counts, the longest wait in seconds, and the faults."""
    with foldline.open(url, digester=model()) as ledger:
        victim = Victim(ledger)
        with second_writer(url) as writer:
            victim.by_signal(runs - 2 * (runs // 3))
            victim.by_thread(runs // 3)
            asyncio.run(victim.by_task(runs // 3))
            written, stuck, slowest = writer.communicate("")[0].split()
        ledger.wait(STUCK_S)
        found = victim.found
        found["appends of the second writer"] = int(written)
        found["stuck"] += int(stuck)
        wrong = [str(fault) for fault in ledger.verify()]
        stored = {message.text for message in victim.session.record.read(0, 1 << 40)}
        wrong += [f"lost: {text[:60]}" for text in victim.said if text not in stored]
        bad = ("stuck", "views differ", "committed after cancel")
        wrong += [f"{found[name]} {name}" for name in bad if found[name]]
        return found, max(victim.slowest, float(slowest)), wrong


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench interrupts", description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--url", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.url:
        append_until_closed(options.url)
        return 0
    found, slowest, wrong = Counter[str](), 0.0, list[str]()
    with places(on_postgres=options.postgres) as urls:
        for start in range(0, options.runs, ROUND):
            counted, waited, faults = run(next(urls), min(ROUND, options.runs - start))
            found, slowest, wrong = found + counted, max(slowest, waited), wrong + faults
            print(f"after {start + ROUND:,} runs: {found['stuck']} stuck, {len(wrong)} faults", flush=True)
    print(", ".join(f"{count:,} {what}" for what, count in found.items()), f"- longest wait {slowest:.2f} s")
    print("\n".join(wrong[:20]) or "0 stuck, nothing lost, nothing wrong")
    return int(bool(wrong))
