"""A cancelled fold stops its digester within a second and is never committed."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import foldline
from foldline.digest.digester import Digester, DigesterCall, DigesterReply
from foldline.errors import Cancelled
from foldline.ledger import Store
from foldline.policy import Policy
from foldline.session import Ledger, Session
from foldline.session.async_session import AsyncSession
from foldline.session.worker import CONCURRENCY
from foldline.session.worker_process import WorkerProcess
from foldline.testing import Scripted, proper
from support.ledgers import Open, turn

ROOMY = Policy.preset("balanced").but(window_tokens=8_000, reply_tokens=0, counter="chars/4")
WAIT_S = 20.0


class Patient:
    """A digester that never answers, and says when it was asked and when it was told to stop."""

    def __init__(self) -> None:
        self.asked, self.stopped = threading.Event(), threading.Event()
        self.digester = Digester(complete=self, model="patient", window=100_000)

    def __call__(self, call: DigesterCall) -> DigesterReply:
        self.asked.set()
        end = time.monotonic() + WAIT_S
        while not call.signal.is_set():
            assert time.monotonic() < end, "it was not told to stop"
            time.sleep(0.01)
        self.stopped.set()
        return DigesterReply(text="late")


def due(session: Session) -> Session:
    """The session, with turns until a fold is due."""
    while session.plan().fold is None:
        session.add(*turn(len(session.timeline) // 2))
    return session


A_SECOND_S = 5.0
"""A second, and the delays of a busy machine. A digester that is not told to stop takes `WAIT_S`."""


def jobs_end_within_a_second(ledger: Ledger, stopped: threading.Event) -> None:
    began = time.monotonic()
    assert stopped.wait(WAIT_S)
    assert ledger.wait(WAIT_S)
    assert time.monotonic() - began < A_SECOND_S


@pytest.mark.promise("I11", "I23")
def test_cancel_stops_the_digester_of_a_background_fold_within_a_second(opens: Open) -> None:
    patient = Patient()
    ledger = opens(digester=patient.digester)
    session = due(ledger.session("s", policy=ROOMY))
    session.view()
    assert patient.asked.wait(WAIT_S)
    assert session.cancel()
    jobs_end_within_a_second(ledger, patient.stopped)
    assert not session.cancel()
    assert ledger.session("s").folds == 0


def test_cancel_by_another_process_stops_the_digester_within_a_second(opens: Open) -> None:
    patient = Patient()
    ledger, other = opens(digester=patient.digester), opens()
    due(ledger.session("s", policy=ROOMY)).view()
    assert patient.asked.wait(WAIT_S)
    assert other.session("s").cancel()
    jobs_end_within_a_second(ledger, patient.stopped)
    assert other.session("s").folds == 0


def test_a_job_that_has_not_begun_can_be_cancelled(opens: Open) -> None:
    go = threading.Event()

    def wait(call: DigesterCall) -> Any:
        assert go.wait(WAIT_S)
        return Scripted(proper)(call)

    ledger = opens(digester=Digester(complete=wait, model="m", window=100_000))
    sessions = [due(ledger.session(f"s{number}", policy=ROOMY)) for number in range(CONCURRENCY + 1)]
    for session in sessions:
        session.view()
    assert sessions[-1].cancel()
    go.set()
    assert ledger.wait(WAIT_S)
    assert [ledger.session(session.name).folds for session in sessions] == [1] * CONCURRENCY + [0]


def test_cancel_ends_a_coroutine_of_the_digester(opens: Open) -> None:
    asked, ended = threading.Event(), threading.Event()

    async def complete(_: DigesterCall) -> DigesterReply:
        asked.set()
        try:
            await asyncio.sleep(WAIT_S)
        finally:
            ended.set()
        return DigesterReply()

    ledger = opens(digester=Digester(complete=complete, model="m", window=100_000))
    session = due(ledger.session("s", policy=ROOMY))
    session.view()
    assert asked.wait(WAIT_S)
    assert session.cancel()
    jobs_end_within_a_second(ledger, ended)


def test_cancel_from_another_thread_ends_a_fold_that_a_caller_waits_for() -> None:
    patient = Patient()
    session = due(Session(policy=ROOMY, digester=patient.digester))
    raised: list[BaseException] = []

    def fold() -> None:
        try:
            session.fold(force=True)
        except Cancelled as error:
            raised.append(error)

    thread = threading.Thread(target=fold)
    thread.start()
    assert patient.asked.wait(WAIT_S)
    assert session.cancel()
    thread.join(1.0)
    assert raised
    assert session.folds == 0
    assert session.refusal is None
    assert not session.cancel()


def test_a_view_whose_fold_was_cancelled_is_not_folded() -> None:
    """The fold could wait, so the view is sent without it."""
    patient = Patient()
    session = due(Session(policy=ROOMY, digester=patient.digester))
    threading.Thread(target=lambda: patient.asked.wait(WAIT_S) and session.cancel()).start()
    assert len(session.view().messages) == len(session.timeline)
    assert session.folds == 0


@pytest.mark.promise("I7", "I11")
def test_a_cancelled_async_fold_is_never_committed(opens: Open) -> None:
    """Whenever it is cancelled: either the fold is returned, or it is not made, then or later."""
    chance, ends = random.Random(4), {True: 0, False: 0}

    def answer(call: DigesterCall) -> Any:
        time.sleep(chance.random() * 0.01)
        return Scripted(proper)(call)

    ledger = opens(digester=Digester(complete=answer, model="m", window=100_000))

    async def one(session: AsyncSession) -> None:
        task = asyncio.create_task(session.fold(force=True))
        await asyncio.sleep(chance.random() * 0.04)
        task.cancel()
        try:
            made = await task is not None
        except asyncio.CancelledError:
            made = False
        ends[made] += 1
        await asyncio.sleep(0.03)
        assert ledger.session("s").folds == made
        if made:
            await session.unfold()

    async def many() -> None:
        session = AsyncSession(due(ledger.session("s", policy=ROOMY)))
        for _ in range(30):
            await one(session)

    asyncio.run(many())
    assert ends[False] > 0


@pytest.mark.parametrize("when", ["queued", "seen by the worker"])
def test_a_requested_fold_that_was_cancelled_is_not_made(
    opens: Callable[..., Ledger], url: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opens(worker="process")
    session = due(ledger.session("s", policy=ROOMY))
    session.view()
    store, digester = foldline.ledger.open(url), Digester(complete=Scripted(proper), model="m", window=100_000)
    if when == "queued":
        assert session.cancel()
        assert not session.cancel()
    else:
        branches = Store.branches

        def late(store: Store, name: str) -> Any:
            """The worker has taken the request, and looks for its branch."""
            assert store is ledger.store or session.cancel()
            return branches(store, name)

        monkeypatch.setattr(Store, "branches", late)
    asyncio.run(WorkerProcess(store, digester=digester).run(url, asyncio.Event(), once=True))
    assert ledger.session("s").folds == 0
    monkeypatch.undo()
    session.view()
    asyncio.run(WorkerProcess(store, digester=digester).run(url, asyncio.Event(), once=True))
    store.close()
    assert ledger.session("s").folds == 1, "the next request is new"
