"""Threads that write at the same time share commits, and each of them gets its own result or its own error."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from foldline import ledger
from foldline.errors import Conflict, LedgerBusy
from foldline.ledger import Store
from foldline.message import user
from foldline.recall.text_index import TextIndex
from support.ledgers import texts

THREADS = 12


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return ledger.open(tmp_path / "agent.db", index=TextIndex(), groups_commits=True, wait_s=1.0)


def test_many_threads_write_and_each_reads_what_it_wrote(store: Store) -> None:
    def talk_alone(number: int) -> list[str]:
        main = store.session(f"s{number}")
        for turn in range(20):
            result = store.append(main, [user(f"{number}.{turn}")], events=[("note", {"turn": turn})])
            assert result.head == store.head(main)
        return texts(store, main)

    with ThreadPoolExecutor(THREADS) as threads:
        found = list(threads.map(talk_alone, range(THREADS)))
    assert found == [[f"{number}.{turn}" for turn in range(20)] for number in range(THREADS)]
    assert list(store.verify()) == []


def test_an_error_reaches_only_the_thread_that_caused_it(store: Store) -> None:
    def talk(number: int) -> int:
        main, refused = store.session(f"s{number}"), 0
        for turn in range(20):
            try:
                wrong = number % 3 == 0 and turn % 2
                store.append(main, [user(f"{turn}")], expected=b"no such key" if wrong else None)
            except Conflict:
                refused += 1
        return refused

    with ThreadPoolExecutor(THREADS) as threads:
        assert list(threads.map(talk, range(THREADS))) == [0 if number % 3 else 10 for number in range(THREADS)]
    for number in range(THREADS):
        assert texts(store, store.session(f"s{number}")) == [
            f"{turn}" for turn in range(20) if number % 3 or turn % 2 == 0
        ]
    assert list(store.verify()) == []


def test_threads_append_to_one_session_and_no_message_is_lost(store: Store) -> None:
    main = store.session("s")

    def talk(number: int) -> None:
        for turn in range(20):
            store.append(main, [user(f"{number}.{turn}")])

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(talk, range(THREADS)))
    said = texts(store, main)
    assert len(said) == len(set(said)) == 20 * THREADS
    for number in range(THREADS):
        assert [text for text in said if text.startswith(f"{number}.")] == [f"{number}.{turn}" for turn in range(20)]


def test_while_another_process_holds_the_lock_every_thread_gets_an_error_and_can_go_on(
    store: Store, tmp_path: Path
) -> None:
    branches = [store.session(f"s{number}") for number in range(THREADS)]
    other = sqlite3.connect(tmp_path / "agent.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    errors: list[type[BaseException]] = []

    def talk(number: int) -> None:
        try:
            store.append(branches[number], [user("x")])
        except LedgerBusy as error:
            errors.append(type(error))

    threads = [threading.Thread(target=talk, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [LedgerBusy] * THREADS
    other.execute("ROLLBACK")
    store.append(branches[0], [user("x")])
    assert texts(store, branches[0]) == ["x"]


WRITER = """
import sys, threading
from foldline import ledger
from foldline.message import user
store = ledger.open(sys.argv[1], groups_commits=True)
lock = threading.Lock()
def talk(number):
    main = store.session(f"s{number}")
    for turn in range(1000):
        store.append(main, [user(f"{turn}")])
        with lock:
            print(number, turn, flush=True)
for number in range(8):
    threading.Thread(target=talk, args=(number,)).start()
"""


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        acknowledged = [writer.stdout.readline().split() for _ in range(150)]
        writer.kill()
        acknowledged += [line.split() for line in writer.stdout.read().splitlines()]
    store = ledger.open(path)
    for number in range(8):
        last = max((int(turn) for name, turn in acknowledged if int(name) == number), default=-1)
        said = texts(store, store.session(f"s{number}"))
        assert said == [f"{turn}" for turn in range(len(said))]
        assert len(said) >= last + 1
    assert list(store.verify()) == []
