"""Threads, event loops and processes that share a session or a ledger."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import foldline
from foldline.digest.digester import Digester, DigesterCall
from foldline.errors import LedgerError
from foldline.events import Event
from foldline.message import assistant, user
from foldline.policy import Policy
from foldline.session import Ledger, Session
from foldline.session.async_session import AsyncSession
from foldline.testing import Scripted, assert_sendable, faulty, proper

TIGHT = Policy.preset("balanced").but(window_tokens=3_000, reply_tokens=0, counter="chars/4")
ROOMY = TIGHT.but(window_tokens=8_000)
WAIT_S = 30.0


class Slow:
    """A digester that answers when it is told to."""

    def __init__(self) -> None:
        self.go, self.asked = threading.Event(), threading.Event()
        self.digester = Digester(complete=self, model="slow", window=100_000)

    def __call__(self, ask: DigesterCall) -> Any:
        self.asked.set()
        assert self.go.wait(WAIT_S)
        return Scripted(proper)(ask)


def due(session: Session) -> None:
    number = 0
    while session.plan().fold is None:
        session.add(user(f"question {number} " + "why " * 100), assistant(f"answer {number} " + "so " * 500))
        number += 1


def texts(session: Session) -> list[str]:
    return [message.text for message in session.view().messages]


@contextmanager
def hasty() -> Iterator[None]:
    """Switch threads as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@pytest.mark.promise("I11")
@pytest.mark.parametrize("kind", ["memory", "ledger"])
def test_threads_share_a_session(kind: str) -> None:
    with foldline.open(":memory:") as ledger, hasty():
        session = Session(policy=TIGHT) if kind == "memory" else ledger.session("s", policy=TIGHT)

        def talk(number: int) -> None:
            for turn in range(8):
                session.add(user(f"{number}.{turn} " + "w" * 200), assistant("a" * 100))
                view = session.view()
                assert view.tokens <= view.usable
                assert_sendable(view.render("anthropic"))

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(talk, range(4)))
        said = [message.text.split()[0] for message in session.record.read(0, 1_000) if message.role == "user"]
        assert sorted(said) == sorted(f"{number}.{turn}" for number in range(4) for turn in range(8))
        assert len(session.timeline) == 64
        if kind == "ledger":
            assert texts(session) == texts(ledger.session("s"))
            assert list(ledger.verify()) == []


def test_a_session_outlives_its_event_loop() -> None:
    async def several(session: AsyncSession, first: int) -> None:
        await asyncio.gather(*(session.add(user(f"m{number}")) for number in range(first, first + 3)))

    with foldline.open(":memory:") as ledger:
        session = AsyncSession(ledger.session("s"))
        for first in (0, 3):
            asyncio.run(several(session, first))
        assert texts(session.session) == [f"m{number}" for number in range(6)]


@pytest.mark.promise("I7", "I11")
def test_a_cancelled_call_runs_to_its_end_or_not_at_all() -> None:
    slow = Slow()

    async def torment(ledger: Ledger) -> list[str]:
        session = AsyncSession(ledger.session("s", policy=ROOMY.but(background=False)))
        due(session.session)
        looking = asyncio.create_task(session.view())
        assert await asyncio.to_thread(slow.asked.wait, WAIT_S)
        adding = [asyncio.create_task(session.add(user(f"late {number}"))) for number in range(9)]
        await asyncio.sleep(0)
        for task in (looking, *adding[::2]):
            task.cancel()
        slow.go.set()
        done = await asyncio.gather(looking, *adding, return_exceptions=True)
        assert [isinstance(each, asyncio.CancelledError) for each in done[1:]] == [True, False] * 4 + [True]
        view = await session.view()
        assert session.session.folds == 1, "the fold was finished"
        assert_sendable(view.render("anthropic"))
        return [message.text for message in view.messages if message.text.startswith("late")]

    with foldline.open(":memory:", digester=slow.digester) as ledger:
        assert asyncio.run(torment(ledger)) == [f"late {number}" for number in (1, 3, 5, 7)]


@pytest.mark.skipif(not hasattr(os, "fork") or sys.version_info >= (3, 12), reason="threads and forks warn there")
def test_a_process_is_forked_while_a_fold_is_made(url: str) -> None:
    slow = Slow()
    with foldline.open(url, digester=slow.digester) as ledger:
        session = ledger.session("s", policy=ROOMY)
        due(session)
        session.view()
        assert slow.asked.wait(WAIT_S)
        child = os.fork()
        if child == 0:
            try:
                began = time.monotonic()
                assert ledger.wait(WAIT_S)
                session.add(user("from the child"))
                session.view()
                ledger.close()
                os._exit(int(time.monotonic() - began > WAIT_S / 2))
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        slow.go.set()
        assert ledger.wait(WAIT_S)
        assert session.view().messages[-1].text == "from the child"
        assert session.folds == 1
        assert list(ledger.verify()) == []


@pytest.mark.parametrize("fault", ["hang", "late", "raise"])
def test_a_ledger_is_closed_while_a_fold_is_made(tmp_path: Path, fault: str) -> None:
    path = tmp_path / "agent.db"
    ledger = foldline.open(path, digester=faulty(fault))
    session = ledger.session("s", policy=ROOMY)
    due(session)
    before = texts(session)
    began = time.monotonic()
    ledger.close()
    ledger.close()
    assert time.monotonic() - began < WAIT_S / 2
    assert not [thread for thread in threading.enumerate() if thread.name == "foldline-fold"]
    with pytest.raises(LedgerError, match="closed"):
        session.add(user("too late"))
    assert not (tmp_path / "agent.db-wal").exists(), "every connection is closed"
    with foldline.open(path) as again:
        assert [message.text for message in again.session("s").record.read(0, 1_000)] == before
        assert list(again.verify()) == []


EXIT = """
import sys, threading, foldline
from foldline.policy import Policy
from foldline.message import user, assistant
from foldline.testing import faulty
ledger = foldline.open(sys.argv[1], digester=faulty(sys.argv[2]))
policy = Policy.preset("balanced").but(window_tokens=8_000, reply_tokens=0, counter="chars/4")
session = ledger.session("s", policy=policy)
while session.plan().fold is None:
    session.add(user("why " * 100), assistant("so " * 500))
session.view()
while not any(thread.name == "foldline-digest" for thread in threading.enumerate()) and not session.view().cut:
    pass
print(len(session.timeline))
"""


def test_a_process_ends_while_a_fold_is_made(tmp_path: Path) -> None:
    path = str(tmp_path / "agent.db")
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", EXIT, path, "hang"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    with foldline.open(path) as ledger:
        assert len(ledger.session("s").timeline) == int(ended.stdout)
        assert list(ledger.verify()) == []


@pytest.mark.promise("I19")
def test_committed_is_emitted_once_other_connections_can_read_the_fold(url: str) -> None:
    told: list[int] = []

    def listen(event: Event) -> None:
        if event.kind == "committed":
            with foldline.open(url) as elsewhere:
                told.append(elsewhere.session("s").folds)

    with foldline.open(url, listener=listen, digester=Digester(complete=Scripted(proper), model="m")) as ledger:
        session = ledger.session("s", policy=ROOMY)
        due(session)
        session.view()
        assert ledger.wait(WAIT_S)
        session.fold(force=True)
        session.clear()
        session.add(user("a" * 4_000), assistant("b" * 4_000), user("c"))
        preview = session.preview(force=True)
        assert preview is not None
        session.approve(preview)
    assert told == [1, 2, 1]
