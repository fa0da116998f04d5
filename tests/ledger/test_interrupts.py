"""An interrupt at any place of a call leaves no transaction open and no connection lost."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

import psycopg
import pytest

from foldline import ledger
from foldline.ledger import Store
from foldline.message import user
from support.interrupts import Stop, interrupted_at
from support.ledgers import talk

pytestmark = pytest.mark.filterwarnings(  # psycopg warns of a connection that an interrupt left half open
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)


@contextmanager
def other_writer(url: str) -> Iterator[Callable[[], None]]:
    """A function that locks the ledger for writing from another connection, and fails if it has to wait."""
    if url.startswith("postgresql"):
        with psycopg.connect(url, autocommit=True) as link:
            link.execute("SET lock_timeout = 2000")  # a cancelled statement ends soon, not at once

            def lock() -> None:
                with link.transaction():
                    link.execute("LOCK TABLE foldline.branches, foldline.entries IN ACCESS EXCLUSIVE MODE")

            yield lock
        return
    file = sqlite3.connect(url, timeout=0, isolation_level=None)

    def begin() -> None:
        file.execute("BEGIN IMMEDIATE")
        file.execute("ROLLBACK")

    yield begin
    file.close()


@pytest.mark.parametrize("error", [KeyboardInterrupt, Stop])
@pytest.mark.promise("I7", "I23")
def test_an_interrupt_at_any_place_of_an_append_leaves_no_lock(url: str, error: type[BaseException]) -> None:
    store = ledger.open(url, wait_s=0.5)
    main = store.session("s")
    store.append(main, talk("a"))
    with other_writer(url) as lock:
        for place in count(1, 5 if url.startswith("postgresql") else 1):
            if not interrupted_at(place, lambda place=place: store.append(main, [user(f"m {place}")]), error):  # type: ignore[misc]
                break
            lock()
            assert store.head(main).length <= place + 1
        assert place > 50, "some places were tried"
        store.append(main, talk("end"))
    assert list(store.verify()) == []
    store.close()


def test_interrupted_reads_lose_no_connection(url: str) -> None:
    """Each of them may have had a connection of the pool."""
    store = ledger.open(url, wait_s=0.2)
    main = store.session("s")
    store.append(main, [user(f"m {number}") for number in range(70)])

    def read(store: Store = store) -> None:
        list(store.read(main))
        list(store.verify())

    for place in range(1, 1_500, 7):
        if not interrupted_at(place, read):
            break
    assert len(list(store.read(main))) == 70
    store.append(main, talk("end"))
    assert list(store.verify()) == []
    store.close()


def test_an_interrupt_while_a_ledger_is_opened_leaves_no_lock(url: str) -> None:
    ledger.open(url).close()
    with other_writer(url) as lock:
        for place in range(1, 600, 5):
            interrupted_at(place, lambda: ledger.open(url, owner="new").close())
            lock()
