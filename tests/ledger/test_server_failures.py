"""A PostgreSQL server that fails raises a clear error, and no acknowledged message is lost."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator

import psycopg
import pytest

import foldline
from foldline import ledger
from foldline.digest.digester import Digester
from foldline.errors import (
    LedgerBusy,
    LedgerError,
    LedgerUnavailable,
)
from foldline.ledger import Store
from foldline.ledger.databases.postgres import PostgresConnection
from foldline.message import user
from foldline.policy import Policy
from foldline.session import Ledger, Session
from foldline.testing import Scripted, assert_sendable, proper
from support import postgres
from support.ledgers import FOLD, talk, texts, turns

TIGHT = Policy.preset("balanced").but(window_tokens=3_000, reply_tokens=0, counter="chars/4")


def same(session: Session, ledger: Ledger) -> None:
    """What a session shows is what another one finds, and the record is sound."""
    assert session.view().messages == ledger.session("s").view().messages
    assert list(ledger.verify()) == []


class TestServer:
    """Failures of a PostgreSQL server."""

    @pytest.fixture
    def url(self, cleared_postgres: str) -> Iterator[str]:
        yield cleared_postgres
        postgres.clear(cleared_postgres)

    def kill(self, url: str) -> None:
        sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "
        with psycopg.connect(url, autocommit=True) as link:
            link.execute(sql + "pg_backend_pid()")

    def test_a_lost_connection_is_opened_again(self, store: Store, url: str) -> None:
        main = store.session("s")
        store.append(main, talk("a"))
        self.kill(url)
        assert texts(store, main) == ["a"]
        self.kill(url)
        store.append(main, talk("b"))
        self.kill(url)
        claim = store.jobs.claim(main, lease_s=60, deadline_s=60)
        self.kill(url)
        store.append_fold(main, FOLD, claim=claim) if store.head(main).length > 1 else None
        assert texts(store, main) == ["a", "b"]
        assert list(store.verify()) == []

    def cut(self, store: Store, url: str, when: str) -> None:
        """Let the wire break at the next commit: before it arrived, or after."""
        connection = store.tx.pool.read(lambda connection: connection)
        assert isinstance(connection, PostgresConnection)
        commit = connection.commit

        def broken() -> None:
            if when == "after":
                commit()
            self.kill(url)
            connection.run("SELECT 1")

        connection.commit = broken  # type: ignore[method-assign]  # the wire, not what we do with it

    @pytest.mark.parametrize("when", ["before", "after"])
    def test_a_connection_lost_at_the_commit_writes_once(self, store: Store, url: str, when: str) -> None:
        """Whether the commit arrived or not, the work is there exactly once."""
        main = store.session("s")
        expected = store.append(main, talk("a")).head.key
        self.cut(store, url, when)
        head = store.append(main, [user("b")], expected=expected).head
        assert texts(store, main) == ["a", "b"]
        assert head == store.head(main)
        self.cut(store, url, when)
        claim = store.jobs.claim(main, lease_s=60, deadline_s=60)
        assert claim is not None
        self.cut(store, url, when)
        store.append_fold(main, FOLD, claim=claim)
        assert len(store.state(main).folds) == 1
        self.cut(store, url, when)
        side = store.fork(main, "side")
        assert texts(store, side) == ["a", "b"]
        failing = store.jobs.claim(side, lease_s=60, deadline_s=60)
        assert failing is not None
        self.cut(store, url, when)
        store.jobs.fail(failing, "no")
        assert store.jobs.get(side).failures == 1
        self.cut(store, url, when)
        assert store.session("new") == store.session("new")
        assert list(store.verify()) == []

    def test_a_lock_held_too_long_raises_ledger_busy(self, url: str) -> None:
        store = ledger.open(url, wait_s=0.1)
        main = store.session("s")
        with psycopg.connect(url) as link:
            link.execute("SELECT 1 FROM foldline.branches FOR UPDATE")
            with pytest.raises(LedgerBusy, match="another process held the lock"):
                store.append(main, talk("a"))
        store.append(main, talk("a"))
        store.close()

    def test_a_server_that_does_not_run_raises_a_clear_error(self) -> None:
        with pytest.raises(LedgerUnavailable, match="check that the server runs") as caught:
            ledger.open("postgresql://somebody:hunter2@127.0.0.1:1/none")
        assert "hunter2" not in str(caught.value)

    def test_a_role_without_write_access_raises_a_clear_error(self, url: str) -> None:
        store = ledger.open(url)
        main = store.session("s")
        read_only = "SELECT set_config('default_transaction_read_only', 'on', false)"
        store.tx.pool.read(lambda connection: connection.run(read_only))
        with pytest.raises(LedgerUnavailable, match="read-only"):
            store.append(main, talk("a"))
        store.close()

    def test_the_tables_are_in_a_schema_of_their_own(self, url: str) -> None:
        with psycopg.connect(url, autocommit=True) as link:
            link.execute("CREATE TABLE messages (mine TEXT)")
            store = ledger.open(url)
            store.append(store.session("s"), talk("a"))
            store.close()
            assert link.execute("SELECT COUNT(*) FROM public.messages").fetchone() == (0,)
            link.execute("DROP TABLE messages")

    @pytest.mark.promise("I7", "I11")
    def test_a_session_survives_connections_that_are_cut_repeatedly(self, url: str) -> None:
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
                    if not view.messages:  # no message could be added yet
                        assert not acknowledged
                        continue
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
