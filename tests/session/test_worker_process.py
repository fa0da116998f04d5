"""Worker processes make the folds that sessions request, each once, also when one of them is killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import foldline
from foldline.cli.app import cli
from foldline.digest.digester import Digester
from foldline.errors import ConfigError, LedgerUnavailable
from foldline.ledger import Store
from foldline.ledger.jobs import JobRequest
from foldline.message import Message, assistant, user
from foldline.plan.gate import Need
from foldline.policy import Policy
from foldline.session import Ledger, Session
from foldline.session import worker as background
from foldline.session.worker_process import JobReport, WorkerProcess
from foldline.testing import Scripted, proper

ROOMY = Policy.preset("balanced").but(window_tokens=8_000, reply_tokens=0, counter="chars/4")
WAIT_S = 60.0
COMMAND = [sys.executable, "-m", "foldline.cli", "worker", "--json"]
on_postgres = pytest.mark.parametrize("url", ["postgres"], indirect=True)


@pytest.fixture
def opens(url: str) -> Iterator[Callable[..., Ledger]]:
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(foldline.open(url, worker="process", **options))


def turn(number: int) -> tuple[Message, Message]:
    return user(f"question {number} " + "why " * 100), assistant(f"answer {number} " + "so " * 500)


def request_fold(session: Session) -> Session:
    """Add turns until a view finds that a fold is due, and requests it."""
    number = len(session.timeline) // 2
    while session.view().need is Need.NONE:
        session.add(*turn(number))
        number += 1
    return session


def worker_process(found: Ledger, **options: Any) -> tuple[WorkerProcess, list[JobReport]]:
    reports: list[JobReport] = []
    given = {"digester": Digester(complete=Scripted(proper), model="worker's own"), "poll_s": 0.05, **options}
    return WorkerProcess(found.store, on_report=reports.append, **given), reports


def run_once(process: WorkerProcess, url: str) -> None:
    asyncio.run(asyncio.wait_for(process.run(url, asyncio.Event(), once=True), WAIT_S))


def queued(store: Store) -> list[JobRequest]:
    """The jobs that wait for a worker."""
    if store.tx.pool.database.name == "sqlite":
        return store.jobs.pending()
    if not store.tx.read(lambda connection: connection.run("SELECT to_regclass('pgqueuer')"))[0][0]:
        return []
    rows = store.tx.read(lambda connection: connection.run("SELECT payload FROM pgqueuer ORDER BY id"))
    return [JobRequest(*json.loads(row[0])) for row in rows]


@contextmanager
def started(*options: str) -> Iterator[subprocess.Popen[str]]:
    """A worker in a process of its own."""
    command = [*COMMAND, "--poll", "0.1", *options]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield worker
    finally:
        worker.kill()
        worker.communicate()


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.05)


def folds(found: Ledger, name: str = "s") -> int:
    return len(found.store.state(found.store.session(name)).folds)


@pytest.mark.promise("S3.34", "S3.35", "I11")
def test_a_requested_fold_is_made_by_a_worker(opens: Callable[..., Ledger], url: str) -> None:
    found = opens()
    session = request_fold(found.session("s", policy=ROOMY))
    session.view()
    assert session.folds == 0
    assert queued(found.store) == [JobRequest("", "s", "main", "fold")], "requested once, however many views there were"
    process, reports = worker_process(opens())
    run_once(process, url)
    assert [(report.request.session, report.outcome) for report in reports] == [("s", "committed")]
    assert session.view().need is Need.NONE
    assert session.folds == 1
    assert session.timeline.fold is not None
    assert session.timeline.fold.digest is not None
    assert session.timeline.fold.digest.by == "worker's own"
    assert queued(found.store) == []
    assert list(found.verify()) == []


@pytest.mark.promise("S3.37", "I3")
def test_without_a_worker_a_session_that_must_fold_does_it_itself(opens: Callable[..., Ledger]) -> None:
    session = request_fold(opens().session("s", policy=ROOMY))
    for number in range(20, 40):
        session.add(*turn(number))
        view = session.view()
        assert view.tokens <= view.usable
    assert session.folds


@pytest.mark.promise("I17")
def test_a_worker_serves_its_owner_or_all_owners(opens: Callable[..., Ledger], url: str) -> None:
    names = ("ann", "bob")
    sessions = {name: request_fold(opens(owner=name).session("s", policy=ROOMY)) for name in names}
    process, reports = worker_process(opens(owner="ann"))
    run_once(process, url)
    assert {report.request.owner for report in reports} == {"ann"}
    process, reports = worker_process(opens(owner="ann"), all_owners=True)
    run_once(process, url)
    assert {report.request.owner for report in reports} == {"bob"}
    for session in sessions.values():
        session.view()
        assert session.folds == 1


def test_the_job_of_a_deleted_session_does_nothing(opens: Callable[..., Ledger], url: str) -> None:
    found = opens()
    request_fold(found.session("gone", policy=ROOMY))
    found.prune(older_than=2e12)
    process, reports = worker_process(opens())
    assert process.run_job(JobRequest("", "gone", "main", "fold")).outcome == "nothing"
    run_once(process, url)
    assert {report.outcome for report in reports} == {"nothing"}
    assert found.sessions() == ()


@pytest.mark.promise("I7", "I11")
def test_the_job_of_a_fold_that_is_no_longer_due_does_nothing(opens: Callable[..., Ledger], url: str) -> None:
    found = opens()
    session = request_fold(found.session("s", policy=ROOMY))
    assert session.fold(digest="by hand") is not None
    process, reports = worker_process(opens())
    run_once(process, url)
    assert [report.outcome for report in reports] == ["nothing"]
    assert folds(found) == 1


@pytest.mark.promise("I7", "I11")
@pytest.mark.parametrize("change", ["cancel", "clear", "pin"])
def test_a_fold_that_is_superseded_while_it_is_made_is_dropped(
    opens: Callable[..., Ledger], url: str, change: str
) -> None:
    found = opens()
    session = request_fold(found.session("s", policy=ROOMY))
    changes: dict[str, Callable[[], object]] = {
        "cancel": session.cancel,
        "clear": session.clear,
        "pin": lambda: session.pin("the port is 4711"),
    }

    def write(ask: Any) -> Any:
        changes[change]()
        return proper(ask)

    process, reports = worker_process(opens(), digester=Digester(complete=Scripted(write), window=100_000))
    run_once(process, url)
    assert [report.outcome for report in reports] == ["dropped"]
    assert folds(found) == 0
    assert queued(found.store) == []


KILLED = """
import asyncio, sys, threading
import foldline
from foldline.digest.digester import Digester
from foldline.session.worker_process import WorkerProcess

def hang(ask):
    print("asked", flush=True)
    threading.Event().wait()

with foldline.open(sys.argv[1]) as ledger:
    digester = Digester(complete=hang, model="hangs", window=100_000)
    process = WorkerProcess(ledger.store, digester=digester, lease_s=2, poll_s=0.1)
    asyncio.run(process.run(sys.argv[1], asyncio.Event()))
"""


@pytest.mark.promise("I11", "I23")
def test_the_job_of_a_worker_that_was_killed_is_finished_by_another(url: str, opens: Callable[..., Ledger]) -> None:
    found = opens()
    session = request_fold(found.session("s", policy=ROOMY))
    branch = found.store.session("s")
    command = [sys.executable, "-c", KILLED, url]
    with started("--ledger", url, "--lease", "2") as other:
        other.send_signal(signal.SIGSTOP)  # so that the first job goes to the one that is killed
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as killed:
            assert killed.stdout is not None
            assert killed.stdout.readline() == "asked\n"
            before = found.store.jobs.get(branch)
            assert before.is_held
            killed.kill()
        other.send_signal(signal.SIGCONT)
        until(lambda: folds(found) > 0)
        other.send_signal(signal.SIGTERM)
        out, err = other.communicate(timeout=WAIT_S)
    assert other.returncode == 0, err
    assert [json.loads(line)["outcome"] for line in out.splitlines()] == ["committed"]
    session.view()
    assert session.folds == 1
    assert found.store.jobs.get(branch).fence == before.fence + 1
    assert queued(found.store) == []


def test_ctrl_c_ends_a_worker_cleanly(url: str, opens: Callable[..., Ledger]) -> None:
    found = opens()
    with started("--ledger", url) as worker:
        request_fold(found.session("s", policy=ROOMY))
        until(lambda: folds(found) > 0)
        worker.send_signal(signal.SIGINT)
        out, err = worker.communicate(timeout=WAIT_S)
    assert (worker.returncode, err.strip()) == (130, "stopped")
    assert json.loads(out)["session"] == "s"


@pytest.mark.promise("S3.35")
def test_two_workers_share_the_work_and_make_each_fold_once(url: str, opens: Callable[..., Ledger]) -> None:
    found = opens()
    sessions = [found.session(f"s{number}", policy=ROOMY) for number in range(8)]
    with started("--ledger", url) as one, started("--ledger", url) as two:
        for session in sessions:
            request_fold(session)
        until(lambda: all(folds(found, session.name) for session in sessions))
        for worker in (one, two):
            worker.send_signal(signal.SIGTERM)
        lines = [
            json.loads(line) for worker in (one, two) for line in worker.communicate(timeout=WAIT_S)[0].splitlines()
        ]
    committed = [line["session"] for line in lines if line["outcome"] == "committed"]
    assert sorted(committed) == sorted(session.name for session in sessions)
    assert all(folds(found, session.name) == 1 for session in sessions)


@pytest.mark.promise("I5")
def test_a_digester_that_fails_is_retried_and_then_replaced_by_the_local_digest(
    opens: Callable[..., Ledger], url: str
) -> None:
    session = request_fold(opens().session("s", policy=ROOMY))
    asked: list[float] = []

    def refuse(ask: Any) -> Any:
        asked.append(time.monotonic())
        raise ConnectionError("connection refused")

    process, reports = worker_process(opens(), digester=Digester(complete=refuse, model="down", window=100_000))
    run_once(process, url)
    pauses = [after - before for before, after in pairwise(asked)]
    assert len(asked) == 3
    assert pauses[0] > 0.4
    assert pauses[1] > 0.8, "each back-off is longer than the one before"
    assert [report.outcome for report in reports] == ["committed"]
    session.view()
    assert session.timeline.fold is not None
    assert session.timeline.fold.digest is not None
    assert session.timeline.fold.digest.by == "local"
    assert "connection refused" in session.timeline.fold.digest.cause


@on_postgres
@pytest.mark.promise("I5", "I23")
def test_a_job_that_fails_is_retried_by_the_queue_and_the_breaker_survives_a_restart(
    opens: Callable[..., Ledger], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background.job_queue_module(), "BACKOFF_S", 0.2)
    session = request_fold(opens().session("s", policy=ROOMY))
    commit, attempts = Store.append_fold, []

    def fail(self: Store, *arguments: Any, **options: Any) -> Any:
        attempts.append(time.monotonic())
        if len(attempts) <= background.BREAKER_FAILURES:
            raise LedgerUnavailable("the disk is full")
        return commit(self, *arguments, **options)

    monkeypatch.setattr(Store, "append_fold", fail)
    process, reports = worker_process(opens())
    run_once(process, url)
    assert [report.outcome for report in reports] == ["failed"] * background.BREAKER_FAILURES + ["committed"]
    assert "the disk is full" in reports[0].cause
    pauses = [after - before for before, after in pairwise(attempts)]
    assert pauses[1] > 0.3
    assert pauses[2] > 0.6, "each back-off is longer than the one before"
    session.view()
    assert session.timeline.fold is not None
    assert session.timeline.fold.digest is not None
    assert (session.timeline.fold.digest.by, session.timeline.fold.digest.cause) == (
        "local",
        f"the job failed {background.BREAKER_FAILURES} times in a row",
    )


@pytest.mark.promise("I5", "I23")
def test_the_breaker_counts_failures_of_earlier_processes(opens: Callable[..., Ledger], url: str) -> None:
    found = opens()
    branch = found.store.session("s")
    for _ in range(background.BREAKER_FAILURES):
        claim = found.store.jobs.claim(branch, lease_s=30, deadline_s=60)
        assert claim is not None
        found.store.jobs.fail(claim, "no")
    session = request_fold(found.session("s", policy=ROOMY))
    asked = Scripted(proper)
    process, reports = worker_process(opens(), digester=Digester(complete=asked, model="model"))
    run_once(process, url)
    assert [report.outcome for report in reports] == ["committed"]
    assert asked.asks == []
    session.view()
    assert session.folds == 1


@on_postgres
def test_a_job_that_a_thread_worker_has_is_retried_later(opens: Callable[..., Ledger], url: str) -> None:
    found = opens()
    session = request_fold(found.session("s", policy=ROOMY))
    held = found.store.jobs.claim(found.store.session("s"), lease_s=2, deadline_s=60, holder="a thread worker")
    assert held is not None
    process, reports = worker_process(opens(), lease_s=1)
    run_once(process, url)
    assert [report.outcome for report in reports] == ["committed"]
    session.view()
    assert session.folds == 1


@on_postgres
def test_a_worker_that_is_stopped_puts_its_job_back(opens: Callable[..., Ledger], url: str) -> None:
    found = opens()
    request_fold(found.session("s", policy=ROOMY))
    stop = asyncio.Event()

    async def run() -> None:
        loop = asyncio.get_running_loop()

        def write(ask: Any) -> Any:
            loop.call_soon_threadsafe(stop.set)
            time.sleep(WAIT_S / 4)
            return proper(ask)

        digester = Digester(complete=Scripted(write), model="slow", window=100_000)
        await asyncio.wait_for(worker_process(opens(), digester=digester)[0].run(url, stop), WAIT_S)

    began = time.monotonic()
    asyncio.run(run())
    assert time.monotonic() - began < WAIT_S / 5, "it does not wait for the digest"
    assert queued(found.store) == [JobRequest("", "s", "main", "fold")]
    assert folds(found) == 0
    run_once(worker_process(opens())[0], url)
    assert folds(found) == 1


@on_postgres
def test_a_worker_starts_a_new_job_at_once_without_polling(url: str, opens: Callable[..., Ledger]) -> None:
    found = opens()
    session = found.session("s", policy=ROOMY)
    with started("--ledger", url, "--poll", "600") as worker:
        until(lambda: bool(found.store.tx.read(lambda link: link.run("SELECT to_regclass('pgqueuer')"))[0][0]))
        time.sleep(1)  # by now it has found the queue empty
        request_fold(session)
        until(lambda: folds(found) > 0)
        worker.send_signal(signal.SIGTERM)
        worker.communicate(timeout=WAIT_S)


@on_postgres
def test_a_worker_for_all_owners_serves_an_owner_who_came_later(url: str, opens: Callable[..., Ledger]) -> None:
    with started("--ledger", url, "--all-owners"):
        opens()
        time.sleep(1)
        found = opens(owner="new")
        request_fold(found.session("s", policy=ROOMY))
        until(lambda: folds(found) > 0)


@on_postgres
def test_without_pgqueuer_a_remote_worker_on_postgres_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "foldline.session.job_queue", raising=False)
    monkeypatch.delattr("foldline.session.job_queue", raising=False)
    for name in [name for name in sys.modules if name.split(".")[0] == "pgqueuer"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pgqueuer", None)
    with pytest.raises(ConfigError, match=r"foldline\[worker\]"):
        foldline.open(url, worker="process")
    foldline.open(url, worker="thread").close()


def run(*arguments: str) -> Any:
    return CliRunner().invoke(cli, ["worker", *arguments], catch_exceptions=False)


class TestCommand:
    def test_once_runs_the_queued_jobs_and_ends(self, tmp_path: Path) -> None:
        url = str(tmp_path / "a.db")
        with foldline.open(url, worker="process") as found:
            request_fold(found.session("s", policy=ROOMY))
        done = run("--ledger", url, "--once", "--json")
        assert done.exit_code == 0
        assert {**json.loads(done.output), "seconds": 0} == {
            "owner": "", "session": "s", "branch": "main", "name": "fold", "outcome": "committed", "seconds": 0,
        }  # fmt: skip
        assert run("--ledger", url, "--once").output == ""

    def test_people_get_a_line_for_each_job(self, tmp_path: Path) -> None:
        url = str(tmp_path / "a.db")
        with foldline.open(url, worker="process") as found:
            request_fold(found.session("s", policy=ROOMY))
        assert run("--ledger", url, "--once").output.startswith("s (main): committed, ")

    def test_a_ledger_that_is_not_there_is_not_created(self, tmp_path: Path) -> None:
        with pytest.raises(foldline.InputError, match="there is no ledger"):
            run("--ledger", str(tmp_path / "a.db"), "--once")
        assert os.listdir(tmp_path) == []

    def test_help_has_an_example_and_the_exit_codes(self) -> None:
        text = run("--help").output
        assert "Example:  foldline worker" in text
        assert "Exit codes: 0 no job is left" in text
