"""Schema migrations: applied once, all or nothing, and never to a newer schema."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from foldline import ledger
from foldline.errors import (
    LedgerError,
    LedgerTooNew,
)
from foldline.ledger import Store, schema
from support.ledgers import talk, texts


def test_a_newer_schema_is_refused_and_left_alone(opened: Callable[..., Store]) -> None:
    store = opened()
    store.append(store.session("s"), talk("a"))
    newer = "INSERT INTO migrations (number, name, at) VALUES (999, 'tomorrow', 0)"
    store.tx.pool.write(lambda connection: connection.run(newer))
    with pytest.raises(LedgerTooNew, match="update foldline"):
        opened()
    store.tx.pool.write(lambda connection: connection.run("DELETE FROM migrations WHERE number = 999"))
    assert texts(opened(), store.session("s")) == ["a"]


def test_a_failed_migration_leaves_nothing_behind(
    opened: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
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
    sql = "SELECT (SELECT COUNT(*) FROM migrations), (SELECT COUNT(*) FROM more)"
    assert found[0].tx.pool.read(lambda connection: connection.run(sql)) == [(len(before) + 2, 0)]


def test_many_processes_may_open_a_new_ledger_at_once(url: str) -> None:
    code = "import sys; from foldline import ledger; ledger.open(sys.argv[1]).session('s'); print('ok')"
    command = [sys.executable, "-c", code, url]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [process.communicate()[0] for process in processes] == ["ok\n"] * 4
    store = ledger.open(url)
    assert len(store.sessions()) == 1
    store.close()
