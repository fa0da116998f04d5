"""Background folds: a view returns at once, and the fold is committed once, later, if it still applies."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from foldline.digest.digester import Digester, DigesterCall
from foldline.errors import Conflict
from foldline.events import Event
from foldline.message import user
from foldline.plan.gate import Need
from foldline.policy import Policy
from foldline.session import Ledger, Session
from foldline.session.record import BranchRecord
from foldline.session.worker import BREAKER_FAILURES, ThreadWorker, run_fold_job
from foldline.testing import Scripted, assert_sendable, faulty, proper
from support.ledgers import Open, turn

ROOMY = Policy.preset("balanced").but(window_tokens=8_000, reply_tokens=0, counter="chars/4")
"""Folds from 6,800 tokens on, and there is room for some turns more."""
WAIT_S = 20.0


class Slow:
    """A digester that answers when `go` is set."""

    def __init__(self, meanwhile: Callable[[], object] | None = None) -> None:
        self.go, self.asked = threading.Event(), threading.Event()
        self.asks: list[DigesterCall] = []
        self.meanwhile = meanwhile
        self.digester = Digester(complete=self, model="slow", window=100_000)

    def __call__(self, ask: DigesterCall) -> Any:
        self.asks.append(ask)
        self.asked.set()
        if self.meanwhile is not None:
            self.meanwhile()
        else:
            assert self.go.wait(WAIT_S)
        return Scripted(proper)(ask)


def due(session: Session) -> int:
    """Turns until a fold is due; the number of the next."""
    number = len(session.timeline) // 2
    while session.plan().fold is None:
        session.add(*turn(number))
        number += 1
    return number


def texts(session: Session) -> list[str]:
    return [message.text for message in session.view().messages]


@pytest.mark.promise("S3.34", "S3.35", "I11")
def test_a_view_does_not_wait_for_a_digest(opens: Open) -> None:
    slow = Slow()
    ledger = opens(digester=slow.digester)
    session = ledger.session("s", policy=ROOMY)
    number = due(session)
    before = session.view()
    assert before.need is Need.SOFT
    assert slow.asked.wait(WAIT_S)
    job = ledger.store.jobs.get(ledger.store.session("s"))
    assert job.is_held, "the record says that it is under way"
    session.add(*turn(number))
    meanwhile = session.view()
    assert meanwhile.messages[: len(before.messages)] == before.messages, "it runs on with the whole history"
    assert session.folds == 0
    slow.go.set()
    assert ledger.wait(WAIT_S)
    after = session.view()
    assert session.folds == 1
    assert session.timeline.fold is not None
    assert session.timeline.fold.digest is not None
    assert session.timeline.fold.digest.by == "slow"
    assert after.messages[-2:] == meanwhile.messages[-2:], "what was said meanwhile is there"
    assert after.tokens < before.tokens
    assert after.need is Need.NONE
    assert len(slow.asks) == 1, "asked for once, however many views there were"
    assert list(ledger.verify()) == []
    assert ledger.session("s").view().messages == after.messages


def spoil_clear(session: Session) -> None:
    session.clear()


def spoil_fold(session: Session) -> None:
    assert session.fold(digest="by hand") is not None


def spoil_pin(session: Session) -> None:
    session.pin("the port is 4711")


def spoil_policy(session: Session) -> None:
    session.use(policy=ROOMY.but(keep_ratio=0.1))


def spoil_cancel(session: Session) -> None:
    assert session.cancel()
    assert not session.cancel()


@pytest.mark.promise("S3.34", "I7", "I11")
@pytest.mark.parametrize("spoil", [spoil_clear, spoil_fold, spoil_pin, spoil_policy, spoil_cancel])
def test_a_fold_is_dropped_if_its_messages_were_changed(opens: Open, spoil: Callable[[Session], None]) -> None:
    events: list[Event] = []
    session: Session
    slow = Slow(meanwhile=lambda: spoil(session))
    ledger = opens(digester=slow.digester, listener=events.append)
    session = ledger.session("s", policy=ROOMY)
    due(session)
    folds = session.folds
    session.view()
    assert ledger.wait(WAIT_S)
    now = ledger.session("s")
    assert now.folds == folds + (spoil is spoil_fold)
    assert [event.facts["by"] for event in events if event.kind == "committed"] == ["hand"] * (spoil is spoil_fold)
    assert "skipped" in [event.kind for event in events]
    assert not ledger.store.jobs.get(ledger.store.session("s")).is_held
    assert list(ledger.verify()) == []


@pytest.mark.promise("S3.34", "I3")
def test_a_view_that_must_fold_does_not_wait_and_the_late_digest_is_dropped(opens: Open) -> None:
    slow = Slow()
    ledger = opens(digester=slow.digester)
    session = ledger.session("s", policy=ROOMY)
    number = due(session)
    session.view()
    assert slow.asked.wait(WAIT_S)
    while session.plan().verdict.need is not Need.HARD:
        session.add(*turn(number))
        number += 1
    began = time.monotonic()
    view = session.view()
    assert time.monotonic() - began < WAIT_S / 4
    assert view.tokens <= view.usable
    fold = session.timeline.fold
    assert fold is not None
    assert fold.digest is not None
    assert (fold.digest.by, fold.digest.cause) == (
        "local",
        "the request could not wait for the model; with background=False, requests wait",
    )
    slow.go.set()
    assert ledger.wait(WAIT_S)
    assert session.view().messages == view.messages
    assert session.folds == 1


@pytest.mark.promise("S3.35", "I11")
def test_only_one_of_many_processes_makes_the_fold(opens: Open) -> None:
    slows = [Slow() for _ in range(3)]
    ledgers = [opens(digester=slow.digester) for slow in slows]
    sessions = [ledgers[0].session("s", policy=ROOMY)]
    due(sessions[0])
    sessions += [ledger.session("s") for ledger in ledgers[1:]]
    sessions[0].view()
    assert slows[0].asked.wait(WAIT_S)
    for session in sessions[1:]:
        session.view()
    assert all(ledger.wait(WAIT_S) for ledger in ledgers[1:]), "another worker has the claim"
    slows[0].go.set()
    assert ledgers[0].wait(WAIT_S)
    assert [len(slow.asks) for slow in slows] == [1, 0, 0]
    assert [texts(session) for session in sessions] == [texts(sessions[0])] * 3
    assert [session.folds for session in sessions] == [1, 1, 1]


@pytest.mark.promise("S3.37")
@pytest.mark.parametrize("missing", ["digester", "ledger", "background"])
def test_without_a_digester_a_ledger_or_the_background_knob_a_session_folds_at_once(opens: Open, missing: str) -> None:
    digester = None if missing == "digester" else Digester(complete=Scripted(proper), model="quick")
    policy = ROOMY.but(background=missing != "background")
    ledger = opens(digester=digester)
    session = Session(policy=policy, digester=digester) if missing == "ledger" else ledger.session("s", policy=policy)
    due(session)
    assert session.view().need is Need.NONE
    assert session.folds == 1


def test_closing_drops_a_running_fold_and_another_worker_can_make_it(opens: Open) -> None:
    slow, quick = Slow(), Digester(complete=Scripted(proper), model="quick")
    ledger = opens(digester=slow.digester)
    due(ledger.session("s", policy=ROOMY))
    ledger.session("s").view()
    assert slow.asked.wait(WAIT_S)
    ledger.close()
    other = opens(digester=quick)
    session = other.session("s")
    assert session.folds == 0
    session.view()
    assert other.wait(WAIT_S)
    assert session.view().need is Need.NONE
    assert session.folds == 1


@pytest.mark.promise("I5", "I23")
def test_after_repeated_crashes_the_local_digest_is_made(opens: Open) -> None:
    now = [1_000.0]
    ledger = opens(digester=faulty("hang"), clock=lambda: now[0])
    session = ledger.session("s", policy=ROOMY)
    due(session)
    branch = ledger.store.session("s")
    for _ in range(BREAKER_FAILURES):
        assert ledger.store.jobs.claim(branch, lease_s=30, deadline_s=90) is not None
        session.view()
        assert ledger.wait(WAIT_S)
        assert session.plan().verdict.need is Need.SOFT
        now[0] += 31
    session.view()
    assert ledger.wait(WAIT_S)
    session.view()
    assert session.folds == 1
    assert session.timeline.fold is not None
    assert session.timeline.fold.digest is not None
    assert "in a row" in session.timeline.fold.digest.cause


@pytest.mark.promise("I5", "I23")
def test_a_refused_digest_is_not_requested_again_at_once(opens: Open) -> None:
    policy = ROOMY.but(on_failure="keep")
    digester = faulty("empty")
    ledger = opens(digester=digester)
    session = ledger.session("s", policy=policy)
    due(session)
    asked = digester.complete
    assert isinstance(asked, Scripted)
    for _ in range(3):
        session.view()
        assert ledger.wait(WAIT_S)
    assert len(asked.asks) == 1
    assert session.refusal is not None
    again = opens(digester=digester).session("s")
    assert again.refusal == session.refusal, "the refusal is part of the record"


@pytest.mark.promise("I23")
def test_a_lease_is_renewed_while_the_digest_is_written(opens: Open) -> None:
    slow = Slow()
    ledger = opens(digester=slow.digester)
    session = ledger.session("s", policy=ROOMY)
    due(session)
    branch = ledger.store.session("s")
    worker = ThreadWorker(ledger.store, digester=slow.digester, lease_s=1.0)
    worker.request_fold(branch)
    assert slow.asked.wait(WAIT_S)
    time.sleep(1.6)
    assert ledger.store.jobs.claim(branch, lease_s=1, deadline_s=1) is None, "it is still held after its first lease"
    slow.go.set()
    assert worker.wait(WAIT_S)
    session.view()
    assert session.folds == 1


@pytest.mark.promise("I11")
def test_a_worker_that_lost_its_lease_commits_nothing(opens: Open) -> None:
    now = [1_000.0]
    ledger = opens(clock=lambda: now[0])
    session = ledger.session("s", policy=ROOMY)
    due(session)
    branch = ledger.store.session("s")

    def steal() -> None:
        now[0] += 31
        assert ledger.store.jobs.claim(branch, lease_s=30, deadline_s=60) is not None

    mine = Session(digester=Slow(meanwhile=steal).digester, record=BranchRecord(ledger.store, branch))
    assert run_fold_job(mine, ledger.store.jobs, branch, lease_s=30) == "dropped"
    assert ledger.session("s").folds == 0


@pytest.mark.promise("I19")
def test_events_are_emitted_after_the_commit(opens: Open) -> None:
    events: list[tuple[str, int]] = []
    ledger: Ledger

    def listen(event: Event) -> None:
        events.append((event.kind, len(ledger.store.state(ledger.store.session("s")).folds)))

    ledger = opens(digester=Digester(complete=Scripted(proper), model="quick"), listener=listen)
    session = ledger.session("s", policy=ROOMY)
    due(session)
    session.view()
    assert ledger.wait(WAIT_S)
    kinds = [kind for kind, _ in events]
    assert kinds.index("planned") < kinds.index("started") < kinds.index("committed")
    assert dict(events)["started"] == 0
    assert dict(events)["committed"] == 1


def test_every_view_during_background_folds_can_be_sent(opens: Open) -> None:
    ledger = opens(digester=Digester(complete=Scripted(proper), model="quick"))
    session = ledger.session("s", policy=ROOMY)
    for number in range(40):
        session.add(*turn(number), user(f"and {number}?"))
        view = session.view()
        assert view.tokens <= view.usable
        assert view.messages[-1].text == f"and {number}?"
        assert_sendable(view.render("anthropic"))
        if number % 3 == 0:
            ledger.wait(WAIT_S)
    assert session.folds > 1


def test_an_approval_of_an_outdated_preview_is_refused(opens: Open) -> None:
    ledger = opens()
    session = ledger.session("s", policy=ROOMY)
    due(session)
    preview = session.preview()
    assert preview is not None
    session.pin("the port is 4711")
    with pytest.raises(Conflict):
        session.approve(preview)
    assert session.folds == 0


SCRIPT = """
import sys, threading, time
import foldline
from foldline.digest.digester import Digester
from foldline.message import assistant, user
from foldline.policy import Policy

asked = threading.Event()

def hang(ask):
    asked.set()
    threading.Event().wait()

policy = Policy.preset("balanced").but(window_tokens=8_000, reply_tokens=0, counter="chars/4")
before = threading.active_count()
ledger = foldline.open(sys.argv[1], digester=Digester(complete=hang, window=100_000))
session = ledger.session("s", policy=policy)
assert threading.active_count() == before, "no thread is started before there is a job"
while not session.view().need:
    session.add(user("why " * 100), assistant("so " * 500))
assert asked.wait(20)
print(len(session.view().messages))
"""


@pytest.mark.promise("I23")
def test_a_process_ends_without_waiting_for_its_fold(opens: Open, url: str) -> None:
    began = time.monotonic()
    command = [sys.executable, "-c", SCRIPT, url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S * 3, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert time.monotonic() - began < WAIT_S
    ledger = opens(digester=Digester(complete=Scripted(proper), model="next"), clock=lambda: time.time() + 31)
    session = ledger.session("s")
    assert len(session.view().messages) == int(done.stdout)
    assert ledger.wait(WAIT_S)
    session.view()
    assert session.folds == 1, "the next one takes it up when the lease is over"
