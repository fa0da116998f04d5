"""A session follows a history that somebody else owns: appended, shortened, edited, and several at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import foldline
from foldline import Policy, Session
from foldline.errors import LedgerBusy
from foldline.integrations.fitted_items import fit_items
from foldline.integrations.followed_session import FollowedSession, PreparedRequest
from foldline.integrations.item_codec import wire_codec

CODEC = wire_codec("openai")
POLICY = Policy.preset("balanced").but(window_tokens=4_000, reply_tokens=400)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def reply(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def texts(request: PreparedRequest) -> list[str]:
    assert request.branch is not None
    return [message.text for message in request.branch.session.messages]


def test_a_history_that_fits_is_returned_as_the_same_object() -> None:
    items = [user("one"), reply("two"), user("three")]
    request = FollowedSession(Session(policy=POLICY), CODEC).prepare(items)
    assert request.items is items
    assert not request.is_changed


def test_a_session_that_cannot_be_opened_does_not_disturb_the_framework() -> None:
    attempts: list[str] = []

    def open_session() -> Session:
        attempts.append("open")
        if len(attempts) == 1:
            raise LedgerBusy("the ledger is locked")
        return Session(policy=POLICY)

    followed, items = FollowedSession(open_session, CODEC), [user("one")]
    assert attempts == []
    assert followed.prepare(items).items is items
    assert texts(followed.prepare(items)) == ["one"]


def test_only_new_messages_are_added_also_if_the_owner_copies_its_messages() -> None:
    session = Session(policy=POLICY)
    followed = FollowedSession(session, CODEC)
    request = followed.prepare([user("one")])
    followed.record(request, reply("two"))
    followed.prepare([dict(user("one")), dict(reply("two")), user("three")])
    assert [message.text for message in session.messages] == ["one", "two", "three"]


def test_a_reply_that_the_owner_discards_leaves_the_session() -> None:
    session = Session(policy=POLICY)
    followed = FollowedSession(session, CODEC)
    followed.record(followed.prepare([user("one")]), reply("bad"))
    followed.record(followed.prepare([user("one")]), reply("good"))
    request = followed.prepare([user("one"), reply("good"), user("three")])
    assert texts(request) == ["one", "good", "three"]
    assert request.branch is not None
    assert request.branch.session is session


def test_an_edited_history_is_a_branch_and_the_original_stays() -> None:
    session = Session(policy=POLICY)
    followed = FollowedSession(session, CODEC)
    followed.prepare([user("one"), reply("two"), user("three"), reply("four"), user("five")])
    edited = followed.prepare([user("one"), reply("two"), user("another")])
    assert texts(edited) == ["one", "two", "another"]
    assert [message.text for message in session.messages] == ["one", "two", "three", "four", "five"]
    again = followed.prepare([user("one"), reply("two"), user("three"), reply("four"), user("five"), reply("six")])
    assert again.branch is not None
    assert again.branch.session is session


def test_a_reply_that_comes_after_the_history_went_on_gets_its_own_branch() -> None:
    session = Session(policy=POLICY)
    followed = FollowedSession(session, CODEC)
    first = followed.prepare([user("one")])
    second = followed.prepare([user("one")])
    followed.record(first, reply("a"))
    followed.record(second, reply("b"))
    for text in ("a", "b"):
        assert texts(followed.prepare([user("one"), reply(text), user("next")])) == ["one", text, "next"]


def test_unchanged_messages_of_a_folded_view_are_the_owners_objects() -> None:
    session = Session(policy=POLICY)
    followed = FollowedSession(session, CODEC)
    items: list[Any] = [{"role": "system", "content": "Be brief."}]
    for turn in range(12):
        items += [user(f"Question {turn}: " + "some words of the text " * 80), reply(f"Answer {turn}.")]
    items.append(user("And now?"))
    request = followed.prepare(items)
    assert session.folds >= 1
    assert request.items[0] is items[0]
    assert request.items[-1] is items[-1]
    added = [item for item in request.items if not any(item is each for each in items)]
    assert 1 <= len(added) <= 2
    assert "recall" not in str(added)


def test_a_list_without_a_session_is_fitted() -> None:
    items: list[Any] = []
    for turn in range(12):
        items += [user(f"Question {turn}: " + "some words of the text " * 40), reply(f"Answer {turn}.")]
    items.append(user("And now?"))
    short = items[:2]
    assert fit_items(short, CODEC, budget=4_000) is short
    fitting = fit_items(items, CODEC, budget=2_000)
    assert len(fitting) < len(items)
    assert fitting[-1] is items[-1]


def test_a_fault_is_logged_and_the_history_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    items = [{"role": "user", "content": 7}]
    request = FollowedSession(Session(policy=POLICY), CODEC).prepare(items)
    assert request.items is items
    assert "foldline failed" in caplog.text


def test_a_reply_that_the_owner_rewrites_after_a_restart_leaves_the_session(tmp_path: Path) -> None:
    with foldline.open(tmp_path / "ledger.db") as ledger:
        followed = FollowedSession(ledger.session("work", policy=POLICY), CODEC)
        followed.record(followed.prepare([user("one")]), reply("two"))
    with foldline.open(tmp_path / "ledger.db") as ledger:
        session = ledger.session("work")
        FollowedSession(session, CODEC).prepare([user("one"), reply("two, in other words"), user("three")])
        assert [message.text for message in session.messages] == ["one", "two, in other words", "three"]
