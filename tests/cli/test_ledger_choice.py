"""Which ledger and which session a command uses, and what it says if it cannot use them."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import foldline as library
from foldline.cli.shared import ledger_choice as ledgers
from support.command import ENTRY, clean, foldline, one_sentence, spawned
from support.shapes import report

READING = (["sessions"], ["show"], ["recall", "port"], ["verify"], ["export", "-o", "-"], ["pin", "x"], ["unfold"])
"""Commands that need a ledger to be there, with just enough to run."""


def test_the_ledger_is_set_by_flag_environment_or_file(place: str, tmp_path: Path) -> None:
    project = tmp_path / "project" / "deep"
    project.mkdir(parents=True)
    (tmp_path / "project" / ".git").mkdir()
    (tmp_path / "project" / "foldline.toml").write_text('ledger = "../agent.db"\n')
    for given in (
        foldline("sessions", "--ledger", place),
        foldline("sessions", FOLDLINE_LEDGER=place),
        foldline("sessions", cwd=project),
    ):
        assert "ticket-42" in given.stdout, given.stderr
    assert "--ledger" in one_sentence(foldline("sessions", FOLDLINE_LEDGER=":memory:"))
    assert "postgresql://" in one_sentence(foldline("sessions", "--ledger", "mysql://me:hunter2@host/x"))
    assert "hunter2" not in foldline("sessions", "--ledger", "mysql://me:hunter2@host/x").stderr


def test_an_owner_sees_only_own_sessions(place: str, transcript: Path) -> None:
    assert "no sessions" in one_sentence(foldline("show", "--ledger", place, "--owner", "bob"))
    assert report("import", str(transcript), "--ledger", place, "--owner", "bob")["sessions"][0]["new"]
    names = [row["name"] for row in report("sessions", "--ledger", place, "--owner", "bob")["sessions"]]
    assert names == ["3f0c"]
    assert len(report("sessions", "--ledger", place)["sessions"]) == 2


def test_the_last_used_session_is_the_default_and_is_printed(place: str) -> None:
    done = foldline("recall", "port", "--ledger", place)
    assert "session ticket-42, the last used of 2; choose another with --session" in done.stderr
    assert not foldline("recall", "port", "--ledger", place, "-s", "3f0c").stderr
    assert report("show", "--ledger", place, "-s", "tick")["session"] == "ticket-42", "how it begins is enough"
    assert "foldline sessions" in one_sentence(foldline("show", "--ledger", place, "-s", "nothing"))
    assert "main" in one_sentence(foldline("show", "--ledger", place, "-s", "3f0c", "--branch", "nothing"))
    foldline("pin", "x", "--ledger", place, "-s", "ticket-42")
    with library.open(place) as opened:
        opened.session("ticket-43")
    assert "ticket-42" in one_sentence(foldline("show", "--ledger", place, "-s", "ticket"))


def test_a_branch_is_chosen_by_name(place: str) -> None:
    with library.open(place) as opened:
        opened.session("ticket-42").branch("try", at=1).add({"role": "user", "content": "Another way."})
    assert report("show", "--ledger", place, "-s", "ticket-42", "--branch", "try")["messages"] == 2
    assert "branches: try" in foldline("sessions", "--ledger", place).stdout
    assert "Another way" in foldline("recall", "another", "way", "--ledger", place, "--branch", "try").stdout


def test_completion_offers_session_names(place: str, tmp_path: Path) -> None:
    def ask(words: str) -> str:
        count = str(len(words.split(" ")) - 1)
        return str(spawned(_FOLDLINE_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=count).stdout)

    assert ask(f"foldline show --ledger {place} --session tick").split() == ["plain,ticket-42"]
    assert not ask(f"foldline show --ledger {tmp_path}/none.db --session x").split()


def test_sessions_are_listed(place: str) -> None:
    rows = report("sessions", "--ledger", place)["sessions"]
    assert [row["name"] for row in rows] == ["ticket-42", "3f0c"]
    assert rows[1]["folds"] == 2
    printed = foldline("sessions", "--ledger", place).stdout
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d +\d+ +2 +3f0c", printed)


def test_a_worker_makes_a_queued_fold(tmp_path: Path) -> None:
    url = str(tmp_path / "agent.db")
    policy = library.Policy.preset("balanced").but(window_tokens=8_000, reply_tokens=0, counter="chars/4")
    with library.open(url, worker="process") as opened:
        session = opened.session("s", policy=policy)
        while session.view().need is library.Need.NONE:
            session.add({"role": "user", "content": "why " * 100}, {"role": "assistant", "content": "so " * 500})
    made = report("worker", "--once", "--ledger", url)
    assert (made["session"], made["outcome"]) == ("s", "committed")
    assert report("show", "--ledger", url)["folds"]


@pytest.mark.parametrize("command", READING, ids=lambda command: command[0])
def test_a_reading_command_creates_no_ledger(command: list[str], tmp_path: Path) -> None:
    url, empty = tmp_path / "agent.db", tmp_path / "empty.db"
    empty.touch()
    for one in (url, empty):
        assert "there is no ledger" in one_sentence(foldline(*command, "--ledger", str(one)))
    assert not url.exists()
    assert empty.stat().st_size == 0


@pytest.mark.parametrize("command", [*READING, ["import"]], ids=lambda command: command[0])
def test_a_file_that_is_no_ledger_is_refused(command: list[str], transcript: Path, tmp_path: Path) -> None:
    text, database, future = tmp_path / "text.db", tmp_path / "other.db", tmp_path / "future.db"
    text.write_bytes(b"this is no ledger at all " * 100)
    with closing(sqlite3.connect(database)) as link, link:
        link.execute("CREATE TABLE recipes (name TEXT)")
    library.open(future).close()
    with closing(sqlite3.connect(future)) as link, link:
        link.execute("INSERT INTO migrations (number, name, at) VALUES (999, 'from the future', 0)")
    more = [str(transcript)] if command == ["import"] else []
    no_database = "is not a ledger (file is not a database): choose another file"
    for one, says in ((text, no_database), (database, "not a ledger"), (future, "update foldline")):
        assert says in one_sentence(foldline(*command, *more, "--ledger", str(one)), code=4)
    assert "is a folder" in one_sentence(foldline(*command, *more, "--ledger", str(tmp_path)), code=4)


@contextmanager
def held(place: str) -> Iterator[None]:
    with closing(sqlite3.connect(place, isolation_level=None)) as link:
        link.execute("BEGIN IMMEDIATE")
        yield
        link.execute("ROLLBACK")


def test_a_ledger_can_be_read_while_another_process_writes(
    place: str, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledgers, "WAIT_SECONDS", 0.2)
    with held(place):
        for command in READING[:4]:
            assert foldline(*command, "--ledger", place).returncode == 0, command
        for writing in (["pin", "x", "-s", "3f0c"], ["unfold", "-s", "3f0c"], ["import", str(transcript), "-s", "new"]):
            assert "another process held the lock" in one_sentence(foldline(*writing, "--ledger", place), code=4)
    assert report("verify", "--ledger", place)["sound"]


def test_an_unreachable_server_exits_with_4() -> None:
    said = one_sentence(foldline("sessions", "--ledger", "postgresql://me:hunter2@127.0.0.1:9/none"), code=4)
    assert "check that the server runs" in said
    assert "hunter2" not in said


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_ledger_without_read_permission_is_refused(place: str) -> None:
    os.chmod(place, 0)
    one_sentence(foldline("sessions", "--ledger", place), code=4)


@pytest.mark.parametrize("command", [["show"], ["export", "-o", "-"], ["recall", "port"]], ids=lambda words: words[0])
def test_a_closed_pipe_is_no_error(command: list[str], place: str) -> None:
    whole = (
        [*ENTRY, *command, "--ledger", place, "-s", "3f0c"]
        if command[0] != "export"
        else [*ENTRY, *command, "--ledger", place]
    )
    with subprocess.Popen(whole, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean()) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == 0


def test_ctrl_c_waits_for_an_atomic_change() -> None:
    done: list[str] = []

    def write() -> None:
        with ledgers.defer_interrupt():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("written")

    with pytest.raises(KeyboardInterrupt):
        write()
    assert done == ["written"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
