"""The commands `verify` and `prune`, and what the others say about damaged rows."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest

import foldline as library
from support.command import ENTRY, clean, foldline, one_sentence
from support.shapes import documented, report, wrong


def test_verify_reports_changed_rows(place: str) -> None:
    assert report("verify", "--ledger", place)["sound"]
    with closing(sqlite3.connect(place)) as link, link:
        link.execute("UPDATE messages SET body = X'00' WHERE id = 3")
    done = foldline("verify", "--ledger", place)
    assert done.returncode == 1
    assert "message 2 of segment 1" in done.stdout
    found = json.loads(foldline("verify", "--json", "--ledger", place).stdout)
    assert not wrong(found, documented("verify"))
    assert not found["sound"]


def flip_a_byte(url: str, *, compressed: bool) -> None:
    """Damage every stored message that is compressed, or every one that is not."""
    with closing(sqlite3.connect(url)) as link, link:
        rows = link.execute("SELECT body, id FROM messages").fetchall()
        chosen = [(body, id_) for body, id_ in rows if body.startswith(b"x") == compressed]
        assert chosen
        damaged = [(body[:9] + bytes([body[9] ^ 0xFF]) + body[10:], id_) for body, id_ in chosen]
        link.executemany("UPDATE messages SET body = ? WHERE id = ?", damaged)


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize(
    "command",
    [
        ["show", "-s", "3f0c"],
        ["recall", "the queue", "-s", "3f0c"],
        ["pin", "x", "-s", "3f0c"],
        ["unfold", "-s", "3f0c"],
        ["handoff", "3f0c", "--to", "markdown"],
        ["export", "-o", "-"],
        ["usage"],
    ],
    ids=lambda command: command[0],
)
def test_a_damaged_row_is_named_in_one_sentence(command: list[str], compressed: bool, place: str) -> None:
    flip_a_byte(place, compressed=compressed)
    assert "is damaged: foldline verify" in one_sentence(foldline(*command, "--ledger", place), code=4)


def test_prune_names_a_damaged_row(place: str) -> None:
    with library.open(place) as opened:
        opened.session("3f0c").recall("queue")  # the index is complete, so prune must read what it removes from it
    flip_a_byte(place, compressed=True)
    with closing(sqlite3.connect(place)) as link, link:
        link.execute("UPDATE entries SET at = ? WHERE branch = 1", (time.time() - 100 * 86_400,))
    done = foldline("prune", "--older-than", "90d", "--yes", "--ledger", place)
    assert "a message is damaged" in one_sentence(done, code=4)


def test_a_row_that_is_no_text_is_an_error_of_the_ledger(place: str) -> None:
    with closing(sqlite3.connect(place)) as link, link:
        link.execute("UPDATE messages SET body = CAST(X'7BFF' AS TEXT) WHERE id = 3")
    assert "Could not decode" in one_sentence(foldline("show", "-s", "3f0c", "--ledger", place), code=4)


def test_prune_lists_sessions_and_asks_before_it_deletes(place: str) -> None:
    with closing(sqlite3.connect(place)) as link, link:
        link.execute("UPDATE entries SET at = ? WHERE branch = 1", (time.time() - 100 * 86_400,))
    old = ("prune", "--older-than", "90d", "--ledger", place)
    assert report(*old) == {
        "ledger": place,
        "deleted": False,
        "sessions": [{"owner": "", "session": "3f0c"}],
    }
    done = foldline(*old)
    assert done.returncode == 2
    assert "3f0c" in done.stdout
    assert "--yes" in done.stderr
    assert len(report("sessions", "--ledger", place)["sessions"]) == 2
    assert report(*old, "--yes")["deleted"]
    assert [row["name"] for row in report("sessions", "--ledger", place)["sessions"]] == ["ticket-42"]
    assert "no session in" in foldline(*old).stdout
    for age in ("90", "0d", "soon", "-3d"):
        assert "at least 1 and a unit, such as 90d" in foldline("prune", "--older-than", age, "--ledger", place).stderr


def test_verify_and_prune_can_cover_all_owners(place: str, transcript: Path) -> None:
    assert foldline("import", str(transcript), "--ledger", place, "--owner", "bob").returncode == 0
    with closing(sqlite3.connect(place)) as link, link:
        (bob,) = link.execute("SELECT id FROM owners WHERE name = 'bob'").fetchone()
        link.execute("UPDATE entries SET at = 1 WHERE owner = ?", (bob,))
    assert report("verify", "--ledger", place)["sessions"] == 2
    found = report("verify", "--all-owners", "--ledger", place)
    assert found["sessions"] == 3
    assert {fault["owner"] for fault in found["faults"]} == {"bob"}
    assert report("prune", "--older-than", "1d", "--yes", "--ledger", place)["sessions"] == []
    everybody = ("prune", "--older-than", "1d", "--all-owners", "--ledger", place)
    assert "bob: 3f0c: " in foldline(*everybody).stdout
    assert report(*everybody, "--yes")["sessions"] == [{"owner": "bob", "session": "3f0c"}]
    assert report("verify", "--all-owners", "--ledger", place)["sound"]


@pytest.mark.parametrize(("answer", "left"), [("n\n", 2), ("y\n", 1)])
def test_prune_deletes_only_after_yes(place: str, answer: str, left: int) -> None:
    with closing(sqlite3.connect(place)) as link, link:
        link.execute("UPDATE entries SET at = 1 WHERE branch = 1")
    main, terminal = os.openpty()
    command = [*ENTRY, "prune", "--older-than", "90d", "--ledger", place]
    with subprocess.Popen(command, stdin=terminal, stdout=subprocess.PIPE, env=clean(), text=True) as running:
        os.close(terminal)
        os.write(main, answer.encode())
        assert running.stdout is not None
        assert "permanently delete" in running.stdout.read()
    os.close(main)
    assert len(report("sessions", "--ledger", place)["sessions"]) == left
