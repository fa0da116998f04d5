"""The sessions of every owner of a ledger can be reached from the command line, those of `foldline serve`, too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import foldline as library
from foldline import ledger as ledgers
from support import postgres
from support.command import foldline, one_sentence
from support.shapes import documented, wrong

KEYS = ("key-" + "dbc4c99c" * 4, "key-" + "dbfe37c8" * 4)
"""Tenant ids as the proxy makes them from the credentials of its clients."""


@pytest.fixture(params=["sqlite", "postgres"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield recorded(str(tmp_path / "proxy.db"))
        return
    with postgres.database(request.getfixturevalue("admin")) as url:
        yield recorded(url)


def recorded(url: str) -> str:
    for number, owner in enumerate(KEYS):
        with library.open(url, owner=owner, clock=partial(float, 1_000 + number)) as opened:
            session = opened.session(f"chat-{number}", model="claude-sonnet-5")
            session.add({"role": "user", "content": f"The worker {number} listens on port 709{number}."})
    return url


def report(*arguments: str) -> Any:
    done = foldline(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_sessions_says_that_other_owners_have_sessions_and_lists_them(ledger: str) -> None:
    done = foldline("sessions", "--ledger", ledger)
    assert "2 sessions of other owners: foldline sessions --all-owners" in done.stdout
    listed = report("sessions", "--ledger", ledger, "--all-owners")
    assert not wrong(listed, documented("sessions"))
    assert [(row["owner"], row["name"]) for row in listed["sessions"]] == [
        ("proxy:dbfe37c8", "chat-1"),
        ("proxy:dbc4c99c", "chat-0"),
    ]
    text = foldline("sessions", "--ledger", ledger, "--all-owners").stdout
    assert "proxy:dbfe37c8" in text


@pytest.mark.parametrize("owner", ["proxy:dbc4", "key-dbc4", KEYS[0]])
def test_the_beginning_of_an_owner_is_enough(owner: str, ledger: str) -> None:
    assert [row["name"] for row in report("sessions", "--ledger", ledger, "--owner", owner)["sessions"]] == ["chat-0"]
    assert report("show", "--ledger", ledger, "--owner", owner)["session"] == "chat-0"
    said = one_sentence(foldline("show", "--ledger", ledger, "--owner", "proxy:db"))
    assert "2 owners begin with 'proxy:db'" in said


EACH = {
    "sessions": (("sessions",), "chat-0"),
    "show": (("show",), "chat-0"),
    "recall": (("recall", "port"), "7090"),
    "recall everywhere": (("recall", "port", "--everywhere"), "7090"),
    "verify": (("verify",), "1 session, no faults"),
    "export": (("export", "-o", "-"), "chat-0"),
    "export one": (("export", "-o", "-", "-s", "chat-0"), "chat-0"),
    "handoff": (("handoff", "chat-0"), "7090"),
    "doctor": (("doctor",), ", 1 session"),
    "worker": (("worker", "--once"), ""),
    "pin": (("pin", "never push to main"), ""),
    "prune": (("prune", "--older-than", "1m", "--yes"), "chat-0"),
}
"""For each command that has `--owner`: its arguments, and what it prints about the only session of the first owner."""


@pytest.mark.parametrize("name", EACH)
def test_each_command_takes_the_displayed_owner_and_adds_no_owner(name: str, ledger: str) -> None:
    arguments, expected = EACH[name]
    before = owners_of(ledger)
    done = foldline(*arguments, "--ledger", ledger, "--owner", "proxy:dbc4c99c")
    assert expected in done.stdout, done.stderr
    assert done.returncode == (name == "doctor" and "✗" in done.stdout), done.stdout + done.stderr
    assert owners_of(ledger) == before


@pytest.mark.parametrize("name", EACH)
def test_each_command_refuses_an_unknown_owner_and_lists_the_known(name: str, ledger: str) -> None:
    before = owners_of(ledger)
    done = foldline(*EACH[name][0], "--ledger", ledger, "--owner", "typo")
    said = done.stdout if name == "doctor" else one_sentence(done)
    assert "the ledger has no sessions of the owner 'typo'" in said
    assert "use one of: proxy:dbc4c99c, proxy:dbfe37c8" in said
    assert owners_of(ledger) == before


def test_an_owner_row_without_sessions_does_not_hide_a_displayed_name(ledger: str) -> None:
    with library.open(ledger, owner="proxy:dbc4c99c") as opened:
        opened.store.tx.add_owner()  # as older versions did when a command read the ledger
    assert "proxy:dbc4c99c" in owners_of(ledger)
    assert [row["name"] for row in report("sessions", "--ledger", ledger, "--owner", "proxy:dbc4")["sessions"]] == [
        "chat-0"
    ]
    assert report("verify", "--ledger", ledger, "--owner", "proxy:dbc4c99c")["sessions"] == 1


def test_import_adds_sessions_to_a_displayed_owner_or_to_a_new_one(ledger: str, tmp_path: Path) -> None:
    file = tmp_path / "talk.json"
    file.write_text('[{"role": "user", "content": "Hello."}]')
    for owner, names in ("proxy:dbc4c99c", {"chat-0", "talk"}), ("proxy:db", {"talk"}):
        assert foldline("import", str(file), "--ledger", ledger, "--owner", owner).returncode == 0
        with library.open(ledger, owner=KEYS[0] if owner == "proxy:dbc4c99c" else owner) as opened:
            assert {info.name for info in opened.sessions()} == names


def test_export_and_handoff_find_the_session_of_any_owner(ledger: str) -> None:
    everyone = ("--ledger", ledger, "--all-owners")
    assert "7091" in foldline("export", "-o", "-", "-s", "chat-1", *everyone).stdout
    assert "7091" in foldline("handoff", "chat-1", *everyone).stdout
    several = foldline("export", "-o", "-", "-s", "chat-1", "-s", "chat-0", *everyone)
    assert "several owners" in several.stderr
    assert not several.stdout
    assert "--all-owners needs --session" in foldline("export", "-o", "-", *everyone).stderr


def test_export_of_an_owner_without_sessions_says_where_the_sessions_are(ledger: str, tmp_path: Path) -> None:
    said = one_sentence(foldline("export", "--ledger", ledger, "-o", str(tmp_path / "backup.jsonl")))
    assert "2 of other owners" in said
    assert not (tmp_path / "backup.jsonl").exists()


def test_verify_counts_the_sessions_that_sessions_lists(ledger: str) -> None:
    with library.open(ledger, owner="foldline-proxy") as opened:
        opened.store.session("counters")  # the proxy's own session; it has no messages
    listed = report("sessions", "--ledger", ledger, "--all-owners")["sessions"]
    assert report("verify", "--ledger", ledger, "--all-owners")["sessions"] == len(listed) == 2


def test_reading_a_ledger_for_a_new_owner_adds_no_row(ledger: str) -> None:
    with library.open(ledger, owner="carol") as opened:
        assert not opened.sessions()
        assert not list(opened.store.verify())
        assert "carol" not in owners_of(ledger)
        with library.open(ledger, owner="carol") as other:
            other.session("first").add({"role": "user", "content": "Hello."})
        assert [info.name for info in opened.sessions()] == ["first"], "a row that another process added is seen"
    assert "carol" in owners_of(ledger)


def owners_of(url: str) -> tuple[str, ...]:
    store = ledgers.open(url)
    try:
        return ledgers.owners(store)
    finally:
        store.close()


def test_all_owners_finds_a_session_by_its_name(ledger: str) -> None:
    everyone = ("--ledger", ledger, "--all-owners")
    assert report("show", *everyone)["session"] == "chat-1", "the last used of all owners"
    assert report("show", *everyone, "-s", "chat-0")["session"] == "chat-0"
    assert "7090" in foldline("recall", "port", "of", "the", "worker", *everyone, "-s", "chat-0").stdout
    assert foldline("pin", "never push to main", *everyone, "-s", "chat-0").returncode == 0
    assert report("show", *everyone, "-s", "chat-0")["messages"] == 2
    assert "unknown session 'nobody'" in one_sentence(foldline("show", *everyone, "-s", "nobody"))


def test_recall_searches_the_sessions_of_one_owner_or_of_every_owner(ledger: str) -> None:
    nobody = foldline("recall", "port", "--everywhere", "--ledger", ledger)
    assert "No message matches." in nobody.stdout
    assert "2 sessions of other owners not searched: add --all-owners" in nobody.stdout
    one = report("recall", "port", "--everywhere", "--ledger", ledger, "--owner", "proxy:dbc4")
    assert not wrong(one, documented("recall"))
    assert one["of_other_owners"] == 1
    assert [(row["owner"], row["session"]) for row in one["results"]] == [("proxy:dbc4c99c", "chat-0")]
    every = report("recall", "port", "--everywhere", "--ledger", ledger, "--all-owners")
    assert every["of_other_owners"] == 0
    assert {row["owner"]: row["lines"][0]["text"][-5:] for row in every["results"]} == {
        "proxy:dbc4c99c": "7090.",
        "proxy:dbfe37c8": "7091.",
    }
    assert (
        "session proxy:dbc4c99c: chat-0"
        in foldline("recall", "port", "--everywhere", "--ledger", ledger, "--all-owners").stdout
    )


def test_a_handle_of_another_owner_needs_all_owners(ledger: str) -> None:
    for row in report("recall", "port", "--everywhere", "--ledger", ledger, "--all-owners")["results"]:
        read = report("recall", "--handle", row["handle"], "--ledger", ledger, "--all-owners")
        assert read["results"][0]["lines"][0]["text"] == row["lines"][0]["text"]
        assert "unknown handle" in one_sentence(foldline("recall", "--handle", row["handle"], "--ledger", ledger))


def test_a_name_that_two_owners_use_needs_the_owner(ledger: str) -> None:
    with library.open(ledger, owner=KEYS[0]) as opened:
        opened.session("chat-1").add({"role": "user", "content": "Hello."})
    said = one_sentence(foldline("show", "--ledger", ledger, "--all-owners", "-s", "chat-1"))
    assert "2 owners have a session 'chat-1'" in said
    assert "--owner" in said


@pytest.mark.parametrize("command", [("show",), ("recall", "port"), ("pin", "never push"), ("unfold",)])
def test_a_beginning_that_sessions_of_two_owners_share_is_refused(command: tuple[str, ...], ledger: str) -> None:
    said = one_sentence(foldline(*command, "--ledger", ledger, "--all-owners", "-s", "chat"))
    assert "2 sessions begin with 'chat'" in said
    assert "proxy:dbc4c99c: chat-0" in said
    assert "proxy:dbfe37c8: chat-1" in said
    with library.open(ledger, owner=KEYS[0]) as opened:
        opened.session("talk").add({"role": "user", "content": "Hello."})
    with library.open(ledger, owner=KEYS[1]) as opened:
        opened.session("talk").add({"role": "user", "content": "Hello."})
    said = one_sentence(foldline(*command, "--ledger", ledger, "--all-owners", "-s", "ta"))
    assert "2 owners have a session 'talk'" in said


def test_without_an_owner_the_error_says_where_the_sessions_are(ledger: str) -> None:
    assert "2 of other owners: add --all-owners" in one_sentence(foldline("show", "--ledger", ledger))
    with library.open(ledger) as opened:
        opened.session("mine").add({"role": "user", "content": "Hello."})
        assert [info.name for info in opened.sessions()] == ["mine"], "the library gives a tenant only its own"
    said = one_sentence(foldline("recall", "port", "--ledger", ledger, "-s", "chat-0"))
    assert "belongs to the owner proxy:dbc4c99c" in said
    assert "--owner proxy:dbc4c99c" in said


def test_usage_counts_the_sessions_of_all_owners(ledger: str) -> None:
    for owner in KEYS:
        with library.open(ledger, owner=owner) as opened:
            session = opened.session("spent", model="claude-sonnet-5")
            usage = {"input_tokens": 100, "output_tokens": 10}
            reply = {"type": "message", "role": "assistant", "model": "claude-sonnet-5", "usage": usage}
            reply |= {"stop_reason": "end_turn"}
            session.add({"role": "user", "content": "Hello."})
            session.add({**reply, "id": f"msg_{owner[4:8]}", "content": [{"type": "text", "text": "Hi."}]})
    (group,) = report("usage", "--ledger", ledger)["groups"]
    assert group["requests"] == 2
    assert group["day"] == datetime.now().astimezone().date().isoformat()
