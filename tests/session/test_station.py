"""Worker processes: what a session leaves to others is made by one of them, also when another was killed."""

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
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import foldline
from foldline.cli.app import cli
from foldline.digest.digester import Digester
from foldline.ledger.jobs import JobRequest
from foldline.message import Message, assistant, user
from foldline.plan.gate import Need
from foldline.policy import Policy
from foldline.session import Ledger, Session
from foldline.session.worker_process import Done, Station
from foldline.testing import Scripted, proper

ROOMY = Policy.preset("balanced").but(window_tokens=8_000, reply_tokens=0, counter="chars/4")
WAIT_S = 60.0
COMMAND = [sys.executable, "-m", "foldline.cli", "worker", "--json"]


@pytest.fixture
def opens(url: str) -> Iterator[Callable[..., Ledger]]:
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(foldline.open(url, worker="process", **options))


def turn(number: int) -> tuple[Message, Message]:
    return user(f"question {number} " + "why " * 100), assistant(f"answer {number} " + "so " * 500)


def due(session: Session) -> Session:
    """Until a fold is due, and asked for."""
    number = len(session.timeline) // 2
    while session.view().need is Need.NONE:
        session.add(*turn(number))
        number += 1
    return session


def station(found: Ledger, **options: Any) -> tuple[Station, list[Done]]:
    done: list[Done] = []
    digester = Digester(complete=Scripted(proper), model="worker's own")
    return Station(found.store, done=done.append, **{"digester": digester, "poll_s": 0.05, **options}), done


def once(made: Station, url: str) -> None:
    asyncio.run(asyncio.wait_for(made.run(url, asyncio.Event(), once=True), WAIT_S))


@contextmanager
def process(*options: str) -> Iterator[subprocess.Popen[str]]:
    """A worker that is a process of its own."""
    command = [*COMMAND, "--poll", "0.1", *options]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield worker
    finally:
        worker.kill()
        worker.communicate()


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < end, "nothing came of it"
        time.sleep(0.05)


@pytest.mark.promise("S3.34", "S3.35", "I11")
def test_a_fold_is_left_to_a_worker(opens: Callable[..., Ledger], url: str) -> None:
    found = opens()
    session = due(found.session("s", policy=ROOMY))
    assert session.folds == 0
    assert found.store.jobs.pending() == [JobRequest("", "s", "main", "fold")]
    made, done = station(opens())
    once(made, url)
    assert [(each.wanted.session, each.came) for each in done] == [("s", "committed")]
    assert session.view().need is Need.NONE
    assert session.folds == 1
    assert session.timeline.fold is not None
    assert session.timeline.fold.digest is not None
    assert session.timeline.fold.digest.by == "worker's own"
    assert found.store.jobs.pending() == []
    assert list(found.verify()) == []


@pytest.mark.promise("S3.37", "I3")
def test_without_a_worker_what_must_fit_is_folded_here(opens: Callable[..., Ledger]) -> None:
    session = due(opens().session("s", policy=ROOMY))
    for number in range(20, 40):
        session.add(*turn(number))
        view = session.view()
        assert view.tokens <= view.usable
    assert session.folds


@pytest.mark.promise("I17")
def test_a_worker_serves_its_owner_or_all_of_them(opens: Callable[..., Ledger], url: str) -> None:
    names = ("ann", "bob")
    sessions = {name: due(opens(owner=name).session("s", policy=ROOMY)) for name in names}
    made, done = station(opens(owner="ann"))
    once(made, url)
    assert {each.wanted.owner for each in done} == {"ann"}
    made, done = station(opens(owner="ann"), everybody=True)
    once(made, url)
    assert {each.wanted.owner for each in done} == {"bob"}
    for session in sessions.values():
        session.view()
        assert session.folds == 1


def test_a_session_that_is_gone_is_passed_over(opens: Callable[..., Ledger]) -> None:
    made, done = station(opens())
    assert made.take(JobRequest("", "gone", "main", "fold")) == "nothing"
    assert [info.name for info in opens().sessions()] == []
    assert len(done) == 1


@pytest.mark.promise("I11", "I23")
def test_a_worker_that_was_killed_is_followed_by_another(url: str, opens: Callable[..., Ledger]) -> None:
    found = opens()
    session = due(found.session("s", policy=ROOMY))
    branch = found.store.session("s")
    dead = found.store.jobs.claim(branch, lease_s=1.5, deadline_s=60, holder="killed")
    assert dead is not None
    with process("--ledger", url, "--lease", "1.5") as worker:
        until(lambda: found.store.state(branch).folds != ())
        worker.send_signal(signal.SIGTERM)
        out, err = worker.communicate(timeout=WAIT_S)
    assert worker.returncode == 0, err
    assert [json.loads(line)["came"] for line in out.splitlines()] == ["committed"]
    session.view()
    assert session.folds == 1
    assert found.store.jobs.get(branch).holder != "killed"


def test_ctrl_c_ends_a_worker_cleanly(url: str, opens: Callable[..., Ledger]) -> None:
    found = opens()
    with process("--ledger", url) as worker:
        due(found.session("s", policy=ROOMY))
        until(lambda: found.store.state(found.store.session("s")).folds != ())
        worker.send_signal(signal.SIGINT)
        out, err = worker.communicate(timeout=WAIT_S)
    assert (worker.returncode, err.strip()) == (130, "stopped")
    assert json.loads(out)["session"] == "s"


@pytest.mark.promise("S3.35")
def test_two_workers_share_the_work_and_make_each_fold_once(url: str, opens: Callable[..., Ledger]) -> None:
    found = opens()
    sessions = [found.session(f"s{number}", policy=ROOMY) for number in range(4)]
    with process("--ledger", url) as one, process("--ledger", url) as two:
        for session in sessions:
            due(session)
        branches = [found.store.session(session.name) for session in sessions]
        until(lambda: all(found.store.state(branch).folds for branch in branches))
        for worker in (one, two):
            worker.send_signal(signal.SIGTERM)
        lines = [
            json.loads(line) for worker in (one, two) for line in worker.communicate(timeout=WAIT_S)[0].splitlines()
        ]
    committed = [line["session"] for line in lines if line["came"] == "committed"]
    assert sorted(committed) == sorted(session.name for session in sessions)
    assert all(len(found.store.state(branch).folds) == 1 for branch in branches)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(cli, ["worker", *arguments], catch_exceptions=False)


class TestCommand:
    def test_once_does_what_there_is_and_ends(self, tmp_path: Path) -> None:
        url = str(tmp_path / "a.db")
        with foldline.open(url, worker="process") as found:
            due(found.session("s", policy=ROOMY))
        done = run("--ledger", url, "--once", "--json")
        assert done.exit_code == 0
        assert {**json.loads(done.output), "seconds": 0} == {
            "owner": "", "session": "s", "branch": "main", "name": "fold", "came": "committed", "seconds": 0,
        }  # fmt: skip
        assert run("--ledger", url, "--once").output == ""

    def test_people_get_a_line(self, tmp_path: Path) -> None:
        url = str(tmp_path / "a.db")
        with foldline.open(url, worker="process") as found:
            due(found.session("s", policy=ROOMY))
        assert run("--ledger", url, "--once").output.startswith("s (main): committed, ")

    def test_a_ledger_that_is_not_there_is_not_made(self, tmp_path: Path) -> None:
        with pytest.raises(foldline.InputError, match="there is no ledger"):
            run("--ledger", str(tmp_path / "a.db"), "--once")
        assert os.listdir(tmp_path) == []

    def test_help_has_an_example_and_the_exit_codes(self) -> None:
        said = run("--help").output
        assert "Example:  foldline worker" in said
        assert "Exit codes: 0 nothing is left" in said


def test_the_session_that_asks_needs_no_queue(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foldline.session.job_queue.find_spec", lambda name: None)
    with foldline.open(url, worker="process") as found:
        due(found.session("s", policy=ROOMY))
        assert len(found.store.jobs.pending()) == 1


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_on_a_server_workers_hear_of_work_at_once(url: str, opens: Callable[..., Ledger]) -> None:
    found = opens()
    session = found.session("s", policy=ROOMY)
    with process("--ledger", url, "--poll", "600") as worker:
        until(lambda: bool(found.store.tx.read(lambda link: link.run("SELECT to_regclass('pgqueuer')"))[0][0]))
        time.sleep(1)  # it has looked into the ledger, and will not look again
        due(session)
        until(lambda: found.store.state(found.store.session("s")).folds != ())
        worker.send_signal(signal.SIGTERM)
        worker.communicate(timeout=WAIT_S)
