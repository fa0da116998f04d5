"""What a session knows follows from its record: whoever opens it again sees the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import foldline
import foldline.events
from foldline.errors import ViewTooLarge
from foldline.fold import Fold
from foldline.message import Message, Text, ToolCall, ToolResult, assistant, system, tool, user
from foldline.policy import Policy
from foldline.session import Session
from foldline.session.record import BranchRecord
from foldline.view.compose import View
from support.knobs import policies
from support.paths import talks

TIGHT = Policy.preset("balanced").but(window_tokens=3_000, reply_tokens=0, counter="chars/4")


def seen(session: Session) -> tuple[Message, ...] | str:
    """What would be sent, or why nothing is."""
    try:
        return session.view().messages
    except ViewTooLarge:
        return "too large"


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(policies(), talks(most=25), st.integers(1, 7))
def test_a_session_opened_again_sends_the_same(policy: Policy, messages: list[Message], every: int) -> None:
    with foldline.open(":memory:") as ledger:
        first = ledger.session("s", policy=policy)
        for index, message in enumerate(messages):
            first.add(message)
            if index % every == 0:
                seen(first)
        again = ledger.session("s")
        assert again.policy == first.policy
        assert seen(again) == seen(first) == seen(ledger.session("s"))


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(policies(), talks(most=25))
def test_memory_and_ledger_tell_the_same(policy: Policy, messages: list[Message]) -> None:
    with foldline.open(":memory:") as ledger:
        one, other = Session(policy=policy), ledger.session("s", policy=policy)
        for message in messages:
            one.add(message)
            other.add(message)
            assert seen(one) == seen(other)
        assert one.folds == other.folds


def filled(session: Session, turns: int, *, chars: int = 900) -> Session:
    """Turns that say something, with a view at each."""
    for number in range(turns):
        session.add(user(f"question {number} " + "why " * (chars // 8)), assistant(f"answer {number} " + "so " * 100))
        session.view()
    return session


def view_of(session: Session) -> View:
    return session.view()


def test_two_processes_on_one_session_see_each_other(tmp_path: Path) -> None:
    with foldline.open(tmp_path / "a.db") as ledger, foldline.open(tmp_path / "a.db") as elsewhere:
        here, there = ledger.session("s", policy=TIGHT), elsewhere.session("s")
        here.add(system("be brief"), user("one"))
        there.add(assistant("two"))
        here.add(user("three"))
        assert [message.text for message in here.view().messages] == ["be brief", "one", "two", "three"]
        assert here.view().messages == there.view().messages
        filled(here, 24)
        assert here.folds
        assert there.view().messages == here.view().messages


@pytest.mark.promise("S3.40", "S2.5")
def test_only_what_stands_in_the_view_is_read_again(tmp_path: Path) -> None:
    with foldline.open(tmp_path / "a.db") as ledger:
        filled(ledger.session("s", policy=TIGHT), 40)
        again = ledger.session("s")
        known = [index for index, message in enumerate(again.timeline.messages) if message.role != "gone"]
        fold = again.timeline.fold
        assert fold is not None
        assert set(known) == {*fold.pinned, *fold.carried, *range(fold.cut, 80)}
        assert isinstance(again.record, BranchRecord)
        assert [message.text for message in again.record.read(0, 2)] == [message.text for message in _turn(0)]


def _turn(number: int) -> tuple[Message, Message]:
    return user(f"question {number} " + "why " * (900 // 8)), assistant(f"answer {number} " + "so " * 100)


@pytest.mark.promise("S2.25", "S2.6")
def test_model_and_policy_change_at_run_time(tmp_path: Path) -> None:
    with foldline.open(tmp_path / "a.db") as ledger:
        session = ledger.session("s", model="claude-sonnet-5", policy="balanced")
        filled(session, 20)
        assert session.timeline.fold is None
        session.use(model="gpt-5", policy=TIGHT)
        assert session.view().tokens < 3_000
        assert session.folds == 1
        assert ledger.session("s").model.name == "gpt-5"


def test_unfold_gives_everything_back() -> None:
    session = Session(policy=TIGHT)
    for number in range(4):
        session.add(*_turn(number))
    before = session.view().messages
    assert session.fold(force=True) is not None
    assert len(session.view().messages) < len(before)
    session.unfold()
    assert session.view().messages == before


def test_a_pin_stays_word_for_word(tmp_path: Path) -> None:
    with foldline.open(tmp_path / "a.db") as ledger:
        session = ledger.session("s", policy=TIGHT)
        session.add(user("start"), assistant("ok"))
        session.pin("the port is 4711")
        filled(session, 30)
        assert sum(message.text == "the port is 4711" for message in session.view().messages) == 1
        assert ledger.session("s").view().messages == session.view().messages


def test_preview_tells_what_a_fold_would_do() -> None:
    session = filled(Session(policy=TIGHT), 3)
    preview = session.preview(force=True)
    assert preview is not None
    assert not session.folds
    fold = session.fold(force=True)
    assert fold == preview.fold
    assert "would leave" in str(preview)
    assert session.view().tokens == pytest.approx(preview.after, rel=0.02)


def test_clear_begins_anew_and_the_record_stays(tmp_path: Path) -> None:
    with foldline.open(tmp_path / "a.db") as ledger:
        session = filled(ledger.session("s", policy=TIGHT), 3)
        session.clear()
        assert session.view().messages == ()
        session.add(user("again"))
        assert [message.text for message in ledger.session("s").view().messages] == ["again"]
        assert not list(ledger.verify())


def test_branches_share_what_was_said_and_then_go_their_own_way(tmp_path: Path) -> None:
    with foldline.open(tmp_path / "a.db") as ledger:
        session = ledger.session("s", policy=TIGHT)
        session.add(user("one"), assistant("two"), user("three"))
        other = session.branch("try", at=2)
        other.add(user("else"))
        assert [message.text for message in other.view().messages] == ["one", "two", "else"]
        assert [message.text for message in session.view().messages] == ["one", "two", "three"]
        assert ledger.session("s", branch="try").view().messages == other.view().messages


@pytest.mark.parametrize("url", ["", ":memory:"])
def test_what_left_the_view_is_recalled(url: str) -> None:
    session = foldline.open(url).session("s", policy=TIGHT) if url else Session(policy=TIGHT)
    session.add(user("The worker listens on port 4711."), assistant("Noted."))
    filled(session, 30)
    assert session.folds
    assert "4711" in str(session.recall("which port does the worker use?"))
    assert "4711" in str(session.recall(handle="#1"))


def test_events_tell_what_is_a_fact() -> None:
    told: list[foldline.events.Event] = []
    session = Session(policy=TIGHT, name="s", listener=told.append)
    filled(session, 30)
    kinds = [event.kind for event in told]
    assert kinds.count("committed") == session.folds > 0
    assert kinds.index("warned") < kinds.index("planned") < kinds.index("committed")
    assert all("question" not in str(event) for event in told)


def fold_of_a_long_turn(session: Session) -> Fold:
    """The fold that a session makes in a turn of many calls."""
    session.add(user("first"), assistant("yes"), user("the task"))
    for number in range(34):
        session.add(assistant("", ToolCall(id=f"c{number}", name="run", arguments="{}")))
        session.add(tool(f"c{number}", f"step {number} " + "so " * 120))
    session.add(user("and then?"))
    session.view()
    fold = session.timeline.fold
    assert fold is not None
    return fold


@pytest.mark.promise("S3.38", "I8", "I14")
def test_the_newest_prompt_stays_where_a_branch_ends_before_the_one_that_a_fold_kept(tmp_path: Path) -> None:
    with foldline.open(tmp_path / "a.db") as ledger:
        session = ledger.session("s", policy=TIGHT)
        fold = fold_of_a_long_turn(session)
        assert 3 < fold.cut < len(session.timeline) - 3
        other = session.branch("try", at=fold.cut + 1)
        assert "the task" in [message.text for message in other.view().messages]
        assert ledger.session("s", branch="try").view().messages == other.view().messages


@pytest.mark.promise("I12", "I14")
def test_a_stub_that_a_fold_made_stays_after_the_session_was_read_again_and_folded_again() -> None:
    session = Session(policy=TIGHT)
    waiting = ToolResult(call_id="open", parts=(Text(text="started"),), interim=True)
    session.add(user("the task"), assistant("", ToolCall(id="open", name="agent"), ToolCall(id="b", name="run")))
    session.add(tool("b", "row of a table " * 20), Message(role="tool", parts=(waiting,)))
    session.add(assistant("one"), user("two"), assistant("three"), user("four"))
    stubs = {2: (tool("b", "[a table]"), 8)}
    fold = Fold(cut=4, carried=(1, 2, 3), carried_tokens=50, stubs=stubs, made_at=len(session.timeline))
    session.record.fold(fold, session.state.snapshot.version.entry)
    session.reload()
    session.add(assistant("five " * 400), user("six"))
    assert session.fold(force=True) is not None
    before = session.view().messages
    assert [part.text for message in before for part in message.results] == ["[a table]", "started"]
    session.reload()
    assert session.view().messages == before


@pytest.mark.promise("I12", "I14")
@pytest.mark.parametrize("in_ledger", [False, True])
def test_a_branch_that_ends_inside_a_fold_sends_the_same_after_it_grew(in_ledger: bool, tmp_path: Path) -> None:
    with foldline.open(tmp_path / "a.db") as ledger:
        policy = TIGHT.but(prune_fold_tokens=100)
        session = ledger.session("s", policy=policy) if in_ledger else Session(policy=policy)
        fold = fold_of_a_long_turn(session)
        other = session.branch("try", at=fold.cut + 1)
        while len(other.timeline) <= fold.made_at:
            other.add(assistant("go on?"), user(f"yes, {len(other.timeline)}"))
        before = other.view().messages
        assert "the task" in [message.text for message in before]
        other.reload()
        assert other.view().messages == before
