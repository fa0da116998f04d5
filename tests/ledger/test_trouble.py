"""When the disk, the file, the server or another process does not play along: a clear error, and nothing is lost."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from bench import crash, races
from foldline import ledger
from foldline.errors import (
    Conflict,
    InputError,
    LedgerBusy,
    LedgerCorrupt,
    LedgerError,
    LedgerTooNew,
    LedgerUnavailable,
)
from foldline.ledger import ROOT, Store, schema
from foldline.message import user
from support.ledgers import FOLD, talk, texts


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A small ledger in a file."""
    path = tmp_path / "agent.db"
    store = ledger.open(path)
    store.append(store.session("s"), talk("a", "b"))
    store.close()
    return path


def still_good(path: Path) -> None:
    """The next start works, and what was acknowledged is there."""
    store = ledger.open(path)
    assert texts(store, store.session("s"))[:2] == ["a", "b"]
    assert list(store.verify()) == []
    store.append(store.session("s"), talk("next"))
    store.close()


def test_a_file_that_another_process_holds(path: Path) -> None:
    store = ledger.open(path, wait_s=0.05)
    main = store.session("s")
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerBusy, match="another process held the lock") as caught:
        store.append(main, talk("c"))
    assert caught.value.retryable
    assert texts(store, main) == ["a", "b"], "reading goes on"
    holder.execute("ROLLBACK")
    holder.close()
    store.append(main, talk("c"))
    store.close()
    still_good(path)


def test_a_file_that_cannot_be_written() -> None:
    code = (
        "import os, sys\n"
        "from foldline import errors, ledger\n"
        "from foldline.ledger import sqlite\n"
        "from foldline.message import user\n"
        "if os.geteuid() == 0: os.setgid(65534); os.setuid(65534)\n"
        "try:\n"
        "    store = ledger.open(sys.argv[1])\n"
        "    store.append(store.session('s'), [user('c')])\n"
        "except errors.LedgerUnavailable as error: print(error)\n"
    )
    with TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "agent.db"
        store = ledger.open(path)
        store.append(store.session("s"), talk("a", "b"))
        store.close()
        folder.chmod(0o555)
        path.chmod(0o444)
        found = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
        folder.chmod(0o755)
        path.chmod(0o644)
        assert "and its folder writable" in found.stdout or "check the file, its folder" in found.stdout
        still_good(path)


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnavailable, match="does not exist"):
        ledger.open(tmp_path / "nowhere" / "agent.db")
    with pytest.raises(LedgerUnavailable):
        ledger.open(tmp_path)


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A disk of 400 KB, where one may be made."""
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", folder], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("a file system cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def test_a_full_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path) as disk:
        path = disk / "agent.db"
        store = ledger.open(path)
        main = store.session("s")
        store.append(main, talk("a", "b"))
        kept = fill(store)
        assert kept > 2
        assert len(texts(store, main)) == kept
        store.close()
        store = ledger.open(path)
        assert len(texts(store, main)) == kept
        assert list(store.verify()) == []
        store.close()


def fill(store: Store) -> int:
    """Write until it is refused; how many messages were acknowledged."""
    main = store.session("s")
    kept = store.head(main).length
    try:
        for number in range(10_000):
            kept = store.append(main, [user(f"{number} " + os.urandom(500).hex())]).head.length
    except LedgerUnavailable as full:
        if "free disk space" in full.hint:
            return kept
        raise
    raise AssertionError("it was never full")


def test_a_quota_that_is_used_up(path: Path) -> None:
    store = ledger.open(path)
    with store.tx.pool.connection() as connection:
        connection.run("PRAGMA max_page_count = 60")
    kept = fill(store)
    assert len(texts(store, store.session("s"))) == kept
    store.close()
    still_good(path)


def test_what_is_no_ledger(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("remember the milk " * 100)
    with pytest.raises(LedgerCorrupt, match="not a database"):
        ledger.open(text)
    assert text.read_text() == "remember the milk " * 100
    other = tmp_path / "other.db"
    link = sqlite3.connect(other)
    link.execute("CREATE TABLE bookmarks (url TEXT)")
    link.close()
    before = other.read_bytes()
    with pytest.raises(LedgerCorrupt, match="not a ledger"):
        ledger.open(other)
    assert other.read_bytes() == before


def use(path: Path) -> None:
    store = ledger.open(path)
    try:
        list(store.read(store.session("s")))
        store.append(store.session("s"), talk("c"))
    finally:
        store.close()


def test_a_file_that_was_cut_off(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(LedgerCorrupt):
        use(path)


def test_a_schema_from_the_future(opened: Callable[..., Store]) -> None:
    store = opened()
    store.append(store.session("s"), talk("a"))
    with store.tx.pool.transaction() as connection:
        connection.run("INSERT INTO migrations (number, name, at) VALUES (999, 'tomorrow', 0)")
    with pytest.raises(LedgerTooNew, match="update foldline"):
        opened()
    with store.tx.pool.transaction() as connection:
        connection.run("DELETE FROM migrations WHERE number = 999")
    assert texts(opened(), store.session("s")) == ["a"]


def test_a_migration_is_whole_or_not_there(opened: Callable[..., Store], monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened()
    store.append(store.session("s"), talk("a"))
    good = schema.Migration("more", "CREATE TABLE more (id {id}, note TEXT)")
    bad = schema.Migration("broken", "CREATE TABLE half (id {id}); CREATE NONSENSE")
    before = schema.MIGRATIONS
    monkeypatch.setattr(schema, "MIGRATIONS", (*before, bad))
    with pytest.raises(LedgerError):
        opened()
    monkeypatch.setattr(schema, "MIGRATIONS", (*before, good, good._replace(sql="CREATE TABLE half (id {id})")))
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: opened(), range(4)))
    assert texts(found[3], store.session("s")) == ["a"]
    with found[0].tx.pool.connection() as connection:
        assert connection.run("SELECT COUNT(*) FROM migrations")[0][0] == len(before) + 2
        assert connection.run("SELECT COUNT(*) FROM more")[0][0] == 0


def test_many_processes_may_open_a_new_ledger_at_once(url: str) -> None:
    code = "import sys; from foldline import ledger; ledger.open(sys.argv[1]).session('s'); print('ok')"
    command = [sys.executable, "-c", code, url]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [process.communicate()[0] for process in processes] == ["ok\n"] * 4
    store = ledger.open(url)
    assert len(store.sessions()) == 1
    store.close()


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


@pytest.mark.promise("I11")
def test_everybody_appends_and_nothing_is_lost(opened: Callable[..., Store]) -> None:
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


def test_two_sessions_may_say_the_same_at_the_same_time(opened: Callable[..., Store]) -> None:
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


def test_an_event_loop_uses_a_thread(store: Store) -> None:
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


def test_a_closed_ledger_says_so(store: Store) -> None:
    store.close()
    with pytest.raises(LedgerError, match="closed"):
        store.session("s")


class TestServer:
    """What only a server can do to us."""

    @pytest.fixture
    def url(self, cleared_postgres: str) -> Iterator[str]:
        from support import postgres

        yield cleared_postgres
        postgres.clear(cleared_postgres)

    def kill(self, url: str) -> None:
        sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "
        with psycopg.connect(url, autocommit=True) as link:
            link.execute(sql + "pg_backend_pid()")

    def test_a_lost_connection_is_made_anew(self, store: Store, url: str) -> None:
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
        with store.tx.pool.connection() as connection:
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

    def test_a_lock_that_is_held_too_long(self, url: str) -> None:
        store = ledger.open(url, wait_s=0.1)
        main = store.session("s")
        with psycopg.connect(url) as link:
            link.execute("SELECT 1 FROM foldline.branches FOR UPDATE")
            with pytest.raises(LedgerBusy, match="another process held the lock"):
                store.append(main, talk("a"))
        store.append(main, talk("a"))
        store.close()

    def test_no_server(self) -> None:
        with pytest.raises(LedgerUnavailable, match="check that the server runs") as caught:
            ledger.open("postgresql://somebody:hunter2@127.0.0.1:1/none")
        assert "hunter2" not in str(caught.value)

    def test_a_role_that_may_not_write(self, url: str) -> None:
        store = ledger.open(url)
        main = store.session("s")
        with store.tx.pool.connection() as connection:
            connection.run("SELECT set_config('default_transaction_read_only', 'on', false)")
        with pytest.raises(LedgerUnavailable, match="read-only"):
            store.append(main, talk("a"))
        store.close()

    def test_the_tables_stand_beside_those_of_others(self, url: str) -> None:
        with psycopg.connect(url, autocommit=True) as link:
            link.execute("CREATE TABLE messages (mine TEXT)")
            store = ledger.open(url)
            store.append(store.session("s"), talk("a"))
            store.close()
            assert link.execute("SELECT COUNT(*) FROM public.messages").fetchone() == (0,)
            link.execute("DROP TABLE messages")


def test_expected_root_is_an_empty_branch(store: Store) -> None:
    main = store.session("s")
    store.append(main, talk("a"), expected=ROOT)
    with pytest.raises(InputError, match="has 1 messages"):
        store.append(main, talk("b"), at=5)
    with pytest.raises(InputError, match="reserved kind"):
        store.note(main, "fold", {})


@pytest.mark.promise("I7", "I14", "I23")
def test_killed_at_any_moment(url: str) -> None:
    """A few of the runs that `python -m bench crash` makes by the thousand."""
    found = crash.runs(url, 0, 12)
    assert found["sound"] + found["killed before the first acknowledgement"] == 12, found


@pytest.mark.promise("I11", "S3.34", "S3.35")
def test_two_writers_and_two_workers_on_one_session(url: str) -> None:
    """A little of what `python -m bench races` does for a minute."""
    counts, wrong = races.run(url, 1.5)
    assert not wrong
    assert counts["append"]
    assert counts["fold"]
