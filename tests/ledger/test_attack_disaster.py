"""Disasters under a running session: whatever the disk, the file or the server does, a clear error and nothing lost."""

from __future__ import annotations

import itertools
import random
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

import foldline
from foldline import ledger as records
from foldline.digest.digester import Digester
from foldline.errors import LedgerBusy, LedgerCorrupt, LedgerError, LedgerUnavailable
from foldline.message import user
from foldline.policy import Policy
from foldline.recall.text_index import TextIndex
from foldline.session import Ledger, Session
from foldline.testing import Scripted, assert_sendable, proper
from support import postgres
from support.ledgers import turns

TIGHT = Policy.preset("balanced").but(window_tokens=3_000, reply_tokens=0, counter="chars/4")
PAGE = 4_096


def same(session: Session, ledger: Ledger) -> None:
    """What a session shows is what another one finds, and the record is sound."""
    assert session.view().messages == ledger.session("s").view().messages
    assert list(ledger.verify()) == []


@pytest.mark.promise("I7", "I19")
def test_a_disk_that_is_full_under_a_session(tmp_path: Path) -> None:
    store = records.open(tmp_path / "agent.db", index=TextIndex())
    with Ledger(store) as ledger:
        session = ledger.session("s", policy=TIGHT)
        session.add(*turns(2))
        with store.tx.pool.connection() as connection:
            pages = connection.run("PRAGMA page_count")[0][0]
            connection.run(f"PRAGMA max_page_count = {pages + 8}")
        kept = 8
        for number in itertools.count(10):
            try:
                session.add(*turns(1, number))
                kept += 4
                session.view()
            except LedgerUnavailable as full:
                said = str(full)
                break
        assert "free disk space" in said
        assert len(list(session.record.read(0, 1_000))) == kept
        with store.tx.pool.connection() as connection:
            connection.run("PRAGMA max_page_count = 100000")
        session.add(*turns(1, 1_000))
        assert len(session.timeline) == kept + 4
        same(session, ledger)


def test_a_file_that_is_held_under_a_session(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with Ledger(records.open(path, index=TextIndex(), wait_s=0.05)) as ledger:
        session = ledger.session("s", policy=TIGHT)
        session.add(*turns(13))
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        deeds: tuple[Callable[[], object], ...] = (
            session.view,
            session.clear,
            lambda: session.add(user("x")),
            lambda: session.pin("x"),
            lambda: session.fold(force=True),
            lambda: session.branch("side"),
        )
        for deed in deeds:
            with pytest.raises(LedgerBusy, match="another process held the lock"):
                deed()
        assert "could not be searched" in str(session.recall("question 3")), "it does not say that nothing was said"
        assert "question 0" in str(session.recall(handle="#1")), "reading goes on"
        holder.execute("ROLLBACK")
        holder.close()
        assert len(session.timeline) == 52
        assert session.view().tokens <= session.usable
        assert "question 3" in str(session.recall("question 3"))
        same(session, ledger)


@pytest.mark.promise("I19")
def test_a_damaged_page_never_passes_for_sound(tmp_path: Path) -> None:
    path, chance = tmp_path / "agent.db", random.Random(7)
    with foldline.open(path) as ledger:
        session = ledger.session("s", policy=TIGHT)
        session.add(*turns(20))
        session.view()
    whole = path.read_bytes()
    for number in range(1, len(whole) // PAGE, 3):
        damaged = tmp_path / f"damaged{number}.db"
        start = number * PAGE
        damaged.write_bytes(whole[:start] + chance.randbytes(PAGE) + whole[start + PAGE :])
        try:
            with foldline.open(damaged) as ledger:
                session = ledger.session("s")
                session.view()
                session.add(user("next"))
                session.view()
                assert list(ledger.verify()), f"page {number} is noise and nobody noticed"
        except LedgerCorrupt:
            pass


def test_closing_closes_what_is_in_use_too(tmp_path: Path) -> None:
    ledger = foldline.open(tmp_path / "agent.db")
    ledger.session("s").add(user("a"))
    held, go = threading.Event(), threading.Event()

    def hold() -> None:
        with ledger.store.tx.pool.connection():
            held.set()
            go.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    ledger.close()
    go.set()
    thread.join()
    assert not (tmp_path / "agent.db-wal").exists(), "the last connection is closed"


class TestServer:
    """What only a server can do to us."""

    @pytest.fixture
    def url(self, cleared_postgres: str) -> Iterator[str]:
        yield cleared_postgres
        postgres.clear(cleared_postgres)

    @pytest.mark.promise("I7", "I11")
    def test_connections_that_are_cut_again_and_again(self, url: str) -> None:
        """Every connection of the ledger is cut at random moments while a session with a worker goes on."""
        stop = threading.Event()
        sql = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

        def cut() -> None:
            chance = random.Random(3)
            with psycopg.connect(url, autocommit=True) as link:
                while not stop.wait(chance.uniform(0.002, 0.03)):
                    link.execute(sql)

        digester = Digester(complete=Scripted(proper), model="model", window=100_000)
        acknowledged: list[str] = []
        unsure: set[str] = set()
        with foldline.open(url, digester=digester) as ledger:
            session = ledger.session("s", policy=TIGHT)
            cutter = threading.Thread(target=cut)
            cutter.start()
            try:
                for number in range(60):
                    said = turns(1, number)
                    try:
                        session.add(*said)
                        acknowledged.append(said[0].text)
                    except LedgerError:
                        unsure.add(said[0].text)
                    try:
                        view = session.view()
                    except LedgerError:
                        continue
                    assert view.tokens <= view.usable
                    assert_sendable(view.render("anthropic"))
            finally:
                stop.set()
                cutter.join()
            assert ledger.wait(30)
            prompts = [message.text for message in session.record.read(0, 1_000) if message.is_prompt]
            assert len(prompts) == len(set(prompts)), "nothing is there twice"
            assert [text for text in prompts if text not in unsure] == acknowledged
            session.add(*turns(1, 1_000))
            same(session, ledger)
