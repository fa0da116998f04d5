"""A disk or file that fails raises a clear error, and no acknowledged message is lost."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import foldline
from foldline import ledger
from foldline import ledger as records
from foldline.errors import (
    LedgerBusy,
    LedgerCorrupt,
    LedgerError,
    LedgerUnavailable,
)
from foldline.ledger import Store
from foldline.message import user
from foldline.policy import Policy
from foldline.recall.text_index import TextIndex
from foldline.session import Ledger, Session
from support.ledgers import talk, texts, turns

TIGHT = Policy.preset("balanced").but(window_tokens=3_000, reply_tokens=0, counter="chars/4")
PAGE = 4_096


def same(session: Session, ledger: Ledger) -> None:
    """What a session shows is what another one finds, and the record is sound."""
    assert session.view().messages == ledger.session("s").view().messages
    assert list(ledger.verify()) == []


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


def test_a_locked_file_raises_ledger_busy(path: Path) -> None:
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


def test_a_read_only_file_raises_a_clear_error() -> None:
    code = (
        "import os, sys\n"
        "from foldline import errors, ledger\n"
        "from foldline.ledger.databases import sqlite\n"
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


def test_a_missing_folder_raises_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnavailable, match="does not exist"):
        ledger.open(tmp_path / "nowhere" / "agent.db")
    with pytest.raises(LedgerUnavailable):
        ledger.open(tmp_path)
    with pytest.raises(LedgerUnavailable, match="the path of the ledger is empty"):
        ledger.open("")


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


def test_a_ledger_on_a_read_only_file_system_can_be_read(path: Path, tmp_path: Path) -> None:
    mount = tmp_path / "mount"
    mount.mkdir()
    with small_disk(mount) as disk:
        copy = shutil.copy(path, disk)
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        store = ledger.open(copy)
        main = store.session("s")
        assert texts(store, main) == ["a", "b"]
        assert list(store.verify()) == []
        assert list(store.export())
        with pytest.raises(LedgerUnavailable, match="make the file and its folder writable"):
            store.append(main, talk("c"))
        store.close()


def test_a_full_disk_loses_no_acknowledged_message(tmp_path: Path) -> None:
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


def test_an_exhausted_quota_loses_no_acknowledged_message(path: Path) -> None:
    store = ledger.open(path)
    store.tx.pool.read(lambda connection: connection.run("PRAGMA max_page_count = 60"))
    kept = fill(store)
    assert len(texts(store, store.session("s"))) == kept
    store.close()
    still_good(path)


def test_a_file_that_is_not_a_ledger_is_refused(tmp_path: Path) -> None:
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


def test_a_truncated_file_is_reported(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(LedgerCorrupt):
        use(path)


def test_a_closed_ledger_raises_a_clear_error(store: Store) -> None:
    store.close()
    with pytest.raises(LedgerError, match="closed"):
        store.session("s")


@pytest.mark.promise("I7", "I19")
def test_a_session_survives_a_full_disk(tmp_path: Path) -> None:
    store = records.open(tmp_path / "agent.db", index=TextIndex())
    with Ledger(store) as ledger:
        session = ledger.session("s", policy=TIGHT)
        session.add(*turns(2))
        pages = store.tx.pool.read(lambda connection: connection.run("PRAGMA page_count"))[0][0]
        store.tx.pool.read(lambda connection: connection.run(f"PRAGMA max_page_count = {pages + 8}"))
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
        store.tx.pool.read(lambda connection: connection.run("PRAGMA max_page_count = 100000"))
        session.add(*turns(1, 1_000))
        assert len(session.timeline) == kept + 4
        same(session, ledger)


def test_a_session_reports_a_locked_file(tmp_path: Path) -> None:
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
def test_verify_finds_every_damaged_page(tmp_path: Path) -> None:
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
                assert list(ledger.verify()), f"page {number} is damaged, but was not reported"
        except LedgerCorrupt:
            pass


def test_closing_also_closes_connections_in_use(tmp_path: Path) -> None:
    ledger = foldline.open(tmp_path / "agent.db")
    ledger.session("s").add(user("a"))
    held, go = threading.Event(), threading.Event()

    def hold() -> None:
        held.set()
        go.wait(10)

    thread = threading.Thread(target=lambda: ledger.store.tx.pool.read(lambda _: hold()))
    thread.start()
    held.wait(10)
    ledger.close()
    go.set()
    thread.join()
    assert not (tmp_path / "agent.db-wal").exists(), "the last connection is closed"
