"""A note that was added only to be pinned leaves the view after its pin was removed. The record keeps it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import foldline
from foldline import Session
from foldline.message import assistant, user
from foldline.session import Ledger
from foldline.testing import assert_sendable

FORMATS = ("anthropic", "openai", "openai-responses", "gemini")
TEXT = "Deploys are frozen until Monday."
POLICY = foldline.Policy.preset("balanced").but(
    window_tokens=20_000, reply_tokens=500, keep_tokens=1_500, min_gain_tokens=0, background=False
)


@pytest.fixture(params=["memory", "ledger"])
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Session]:
    """A session with 41 messages, of which the first 20 were folded."""
    if request.param == "memory":
        yield filled(Session(model="claude-sonnet-5", policy=POLICY))
        return
    with foldline.open(tmp_path / "a.db") as ledger:
        yield filled(ledger.session("talk", model="claude-sonnet-5", policy=POLICY))


def filled(session: Session) -> Session:
    for number in range(20):
        session.add(user(f"Question {number}: " + "word " * 150), assistant(f"Answer {number}."))
    session.add(user("What now?"))
    preview = session.preview(before="#21")
    assert preview is not None
    session.approve(preview)
    return session


def texts(session: Session) -> list[str]:
    return [message.text for message in session.view().messages]


def reopened(session: Session) -> Session:
    """The same session, as another process opens it; a session in memory is loaded again."""
    if isinstance(session.record, foldline.session.record.MemoryRecord):
        return Session(record=session.record)
    return Session(record=foldline.session.record.BranchRecord(*session.record.search_target()))


def check(session: Session) -> None:
    """The view is valid in every format, and another process sends the same bytes."""
    other = reopened(session)
    for format in FORMATS:
        body = session.view().render(format).body
        assert_sendable(body, format)
        assert other.view().render(format).body == body
    assert other.load().request == session.load().request


@pytest.mark.parametrize("handle", ["", "#4"])
def test_a_note_that_no_reply_followed_leaves_with_its_pin(session: Session, handle: str) -> None:
    before, size = texts(session), session.load().request
    (name,) = session.pin(handle=handle) if handle else session.pin(TEXT)
    assert len(texts(session)) == len(before) + 1
    session.unpin(name)
    assert texts(session) == before
    assert session.load().request == size
    assert len(session) == 42
    assert session.messages[41].kind == "note"
    check(session)


def test_a_note_that_a_reply_followed_leaves_with_the_next_fold(session: Session) -> None:
    session.pin(TEXT, name="freeze")
    session.add(assistant("I wait."), user("Good. " + "word " * 150))
    before = texts(session)
    session.unpin("freeze")
    assert texts(session) == before
    preview = session.preview(before="#25")
    assert preview is not None
    assert preview.leaves == "#21-24, #42"
    fold = session.approve(preview)
    assert TEXT not in texts(session)
    assert fold.after == pytest.approx(session.load().request, rel=0.02)
    check(session)
    session.add(assistant("Go on."), user("Yes."))
    assert session.fold(force=True) is not None
    assert TEXT not in texts(session)
    check(session)


def test_a_note_that_a_reply_followed_can_leave_at_once(session: Session) -> None:
    before = texts(session)
    session.pin(TEXT, name="freeze")
    session.add(assistant("I wait."), user("Good."))
    session.unpin("freeze", at_once=True)
    assert texts(session) == [*before, "I wait.", "Good."]
    check(session)
    session.add(assistant("Done."), user("Next."))
    check(session)
    assert session.fold(force=True) is not None
    assert TEXT not in texts(session)
    check(session)


def test_a_note_between_two_replies_leaves_and_the_view_stays_valid(session: Session) -> None:
    session.add(assistant("First."))
    session.pin(TEXT, name="freeze")
    session.add(assistant("Second."), user("And?"))
    session.unpin("freeze", at_once=True)
    assert texts(session)[-3:] == ["First.", "Second.", "And?"]
    check(session)


def test_a_note_that_a_fold_carried_over_leaves_at_once(session: Session) -> None:
    session.pin(TEXT, name="freeze")
    for number in range(6):
        session.add(assistant(f"More {number}."), user("word " * 150))
    session.fold(force=True)
    assert session.timeline.cut > 41
    with_note = texts(session)
    assert with_note.count(TEXT) == 1
    size = session.load().request
    session.unpin("freeze", at_once=True)
    assert texts(session) == [text for text in with_note if text != TEXT]
    assert session.load().request < size
    check(session)


def test_a_pin_that_is_set_again_shows_its_note_in_the_old_place(session: Session) -> None:
    session.pin(handle="#4")
    session.add(assistant("Aha."), user("Yes."))
    shown, length = texts(session), len(session)
    session.unpin("#4", at_once=True)
    assert session.pin(handle="#4") == ("#4",)
    assert texts(session) == shown
    assert len(session) == length
    check(session)


def test_after_a_further_reply_a_new_note_is_added_at_the_end(session: Session) -> None:
    session.pin(TEXT, name="freeze")
    session.add(assistant("Aha."), user("Yes."))
    session.unpin("freeze", at_once=True)
    session.add(assistant("Further."), user("On."))
    before = texts(session)
    session.pin(handle="#42", name="freeze")
    assert texts(session) == [*before, TEXT]
    check(session)


def test_a_text_that_replaces_another_one_leaves_only_the_new_text_after_the_next_fold(session: Session) -> None:
    session.pin(TEXT, name="state")
    session.add(assistant("Noted."), user("Go on. " + "word " * 150))
    session.pin("Deploys are free again.", name="state")
    session.add(assistant("Noted, too."), user("What now?"))
    assert TEXT in texts(session)
    preview = session.preview(before="#23")
    assert preview is not None
    session.approve(preview)
    assert TEXT not in texts(session)
    assert texts(session).count("Deploys are free again.") == 1
    session.unfold()
    assert TEXT in texts(session)
    check(session)


def test_a_note_with_two_pins_stays_until_both_are_removed(session: Session) -> None:
    session.pin(handle="#4")
    session.pin(handle="#4", name="port")
    session.unpin("#4", at_once=True)
    shown = texts(session)
    session.unpin("port", at_once=True)
    assert len(texts(session)) == len(shown) - 1
    check(session)


def test_a_note_of_the_user_stays_in_the_view_when_its_pin_is_removed(session: Session) -> None:
    session.add(user("A note of mine.", kind="note"), assistant("I see."), user("Good."))
    session.pin(handle="#42")
    session.unpin("#42", at_once=True)
    assert "A note of mine." in texts(session)
    check(session)


def test_a_branch_and_a_rewind_know_the_notes_that_left(session: Session) -> None:
    session.pin(TEXT, name="freeze")
    session.add(assistant("I wait."), user("Good."))
    session.unpin("freeze", at_once=True)
    other = session.branch("other")
    assert texts(other) == texts(session)
    session.rewind(43)
    assert TEXT not in texts(session)
    session.rewind(41)
    session.add(user("Another message at the place of the note."))
    assert texts(session)[-1] == "Another message at the place of the note."
    check(session)


def test_the_sizes_of_usage_reports_follow_a_note_that_left(tmp_path: Path) -> None:
    """The usage of an earlier request counts the note; the size without the note is smaller by the note."""
    with foldline.open(tmp_path / "a.db") as ledger:
        session = counted(ledger)
        size = session.load().request
        session.pin(TEXT * 50, name="freeze")
        reply(session, extra=session.load().request - size)
        grown = session.load().request
        session.unpin("freeze", at_once=True)
        left = grown - session.load().request
        assert left == pytest.approx(session.size(user(TEXT * 50)), rel=0.25)
        assert reopened(session).load().request == session.load().request


def counted(ledger: Ledger) -> Session:
    session = ledger.session("talk", model="claude-sonnet-5", policy=POLICY)
    for _ in range(4):
        session.add(user("word " * 200))
        reply(session)
    session.add(user("And now?"))
    return session


def reply(session: Session, extra: int = 0) -> None:
    """A reply with a usage report that counts 300 tokens more than the messages have."""
    size = sum(session.size(message) for message in session.messages)
    view = session.view()
    wire = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Yes."}]}
    usage = {"input_tokens": size + 300, "output_tokens": 5}
    session.add({**wire, "model": "claude-sonnet-5", "usage": usage}, view=view, format="anthropic")
    assert extra >= 0
