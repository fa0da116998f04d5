"""Threads, processes and event loops write to one ledger at the same time."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bench import crash, races
from foldline.errors import (
    Conflict,
)
from foldline.ledger import Store
from foldline.message import user
from support.ledgers import talk, texts


def test_one_store_serves_many_threads(store: Store) -> None:
    def talk_alone(number: int) -> list[str]:
        main = store.session(f"s{number}")
        for turn in range(10):
            store.append(main, [user(f"{number}.{turn}")])
        return texts(store, main)

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(talk_alone, range(8)))
    assert found == [[f"{number}.{turn}" for turn in range(10)] for number in range(8)]
    assert list(store.verify()) == []


CREATE = """
import os, sys, time
from foldline import ledger
for attempt in range(40):
    start, callers = time.monotonic() + 0.01, []
    for _ in range(5):
        if not (caller := os.fork()):
            while time.monotonic() < start: pass
            ledger.open(f"{sys.argv[1]}/{attempt}.db")
            os._exit(0)
        callers.append(caller)
    if any([os.waitpid(caller, 0)[1] for caller in callers]): sys.exit("a process could not open the ledger")
"""


def test_many_processes_can_create_one_ledger_at_the_same_time(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", CREATE, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.promise("I11")
def test_many_writers_append_and_no_message_is_lost(opened: Callable[..., Store]) -> None:
    main = opened().session("s")

    def insist(number: int) -> int:
        store, refused = opened(), 0
        for turn in range(10):
            while True:
                try:
                    store.append(main, [user(f"{number}.{turn}")], expected=store.head(main).key)
                    break
                except Conflict:
                    refused += 1
        return refused

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(insist, range(4)))
    said = texts(opened(), main)
    assert sorted(said) == sorted(f"{number}.{turn}" for number in range(4) for turn in range(10))
    for number in range(4):
        own = [text for text in said if text.startswith(f"{number}.")]
        assert own == sorted(own, key=lambda text: int(text.split(".")[1]))


def test_two_sessions_can_store_the_same_messages_at_the_same_time(opened: Callable[..., Store]) -> None:
    stores = [opened() for _ in range(4)]
    start = threading.Barrier(4)

    def say(number: int) -> list[str]:
        store = stores[number]
        main = store.session(f"s{number}")
        for turn in range(15):
            start.wait()
            store.append(main, [user(f"same {turn}")])
        return texts(store, main)

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(say, range(4)))
    assert found == [[f"same {turn}" for turn in range(15)]] * 4
    assert list(stores[0].verify()) == []


def test_an_event_loop_calls_the_store_in_a_thread(store: Store) -> None:
    async def go() -> int:
        main = await asyncio.to_thread(store.session, "s")
        await asyncio.gather(*(asyncio.to_thread(store.append, main, [user(str(number))]) for number in range(5)))
        return (await asyncio.to_thread(store.head, main)).length

    assert asyncio.run(go()) == 5


def test_a_forked_process_has_connections_of_its_own(store: Store) -> None:
    if store.tx.pool.database.name == "sqlite" and sys.platform != "linux":
        pytest.skip("forking is a matter of Linux here")
    main = store.session("s")
    store.append(main, talk("parent"))
    child = os.fork()
    if child == 0:
        try:
            store.append(main, [user("child")])
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    store.append(main, talk("parent again"))
    assert texts(store, main) == ["parent", "child", "parent again"]


@pytest.mark.promise("I7", "I14", "I23")
def test_a_process_killed_at_any_moment_loses_no_acknowledged_message(url: str) -> None:
    """A few of the runs that `python -m bench crash` makes by the thousand."""
    found = crash.runs(url, 0, 12)
    assert found["sound"] + found["killed before the first acknowledgement"] == 12, found


@pytest.mark.promise("I11", "S3.34", "S3.35")
def test_two_writers_and_two_workers_share_one_session(url: str) -> None:
    """A little of what `python -m bench races` does for a minute."""
    counts, wrong = races.run(url, 1.5)
    assert not wrong
    assert counts["append"]
    assert counts["fold"]
