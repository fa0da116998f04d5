"""Somebody else acts between any two looks that a session takes at its record, and whoever listens acts too."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import foldline
from foldline.errors import Conflict, InputError, LedgerUnavailable
from foldline.events import Event
from foldline.fold import Fold
from foldline.ledger import Branch, Store
from foldline.ledger.jobs import Claim
from foldline.message import Message, ToolCall, assistant, tool, user
from foldline.policy import Policy
from foldline.session import Ledger, Session
from foldline.session.record import BranchRecord, Refusal, Snapshot, Version
from foldline.testing import assert_sendable
from foldline.view.compose import View
from support.ledgers import turns as shorter

TIGHT = Policy.preset("balanced").but(window_tokens=3_000, reply_tokens=0, counter="chars/4")
OTHERS, BREAK = "theirs", "break"


class Crowded(BranchRecord):
    """A branch on which somebody else may be at work before and after each call."""

    def __init__(self, store: Store, branch: Branch) -> None:
        super().__init__(store, branch)
        self.meddle: Callable[[], None] = lambda: None

    def _amid(self, call: Callable[[], Any]) -> Any:
        self.meddle()
        found = call()
        self.meddle()
        return found

    def version(self) -> Version:
        return self._amid(super().version)  # type: ignore[no-any-return]  # what `look` gives

    def snapshot(self) -> Snapshot:
        return self._amid(super().snapshot)  # type: ignore[no-any-return]  # what `known` gives

    def read(self, start: int, stop: int) -> Iterator[Message]:
        for message in self._amid(lambda: list(BranchRecord.read(self, start, stop))):
            yield message
            self.meddle()

    def append(self, messages: Sequence[Message]) -> Version:
        return self._amid(lambda: BranchRecord.append(self, messages))  # type: ignore[no-any-return]  # what `append` gives

    def fold(self, fold: Fold, entry: int, claim: Claim | None = None) -> Version:
        return self._amid(lambda: BranchRecord.fold(self, fold, entry, claim))  # type: ignore[no-any-return]  # and so on

    def refuse(self, refusal: Refusal, entry: int) -> Version:
        return self._amid(lambda: BranchRecord.refuse(self, refusal, entry))  # type: ignore[no-any-return]  # and so on

    def unfold(self, entry: int) -> Version:
        return self._amid(lambda: BranchRecord.unfold(self, entry))  # type: ignore[no-any-return]  # and so on

    def pin(self, name: str, position: int, entry: int, *, is_note: bool = False) -> Version:
        pin = partial(BranchRecord.pin, self, name, position, entry, is_note=is_note)
        return self._amid(pin)  # type: ignore[no-any-return]  # and so on

    def move(self, to: int, entry: int) -> Version:
        return self._amid(lambda: BranchRecord.move(self, to, entry))  # type: ignore[no-any-return]  # and so on

    def configure(self, settings: Mapping[str, Any], entry: int) -> Version:
        return self._amid(lambda: BranchRecord.configure(self, settings, entry))  # type: ignore[no-any-return]  # and so on


class Person:
    """Does things to a session; a clear begins a new age, and all that is said tells its age."""

    ages = 0
    numbers = itertools.count()

    def __init__(self, session: Session, name: str) -> None:
        self.session, self.name = session, name

    def turn(self, size: int, *, calls: bool = False) -> list[Message]:
        number = next(Person.numbers)
        said = [user(f"{self.name} {Person.ages} asks {number} " + "w" * size)]
        if calls:
            said.append(assistant("", ToolCall(id=f"c{number}", name="run", arguments="{}")))
            said.append(tool(f"c{number}", f"result {number} " + "r" * size))
        return [*said, assistant(f"{self.name} {Person.ages} answers {number} " + "a" * size)]

    def clear(self) -> None:
        self.session.clear()
        Person.ages += 1

    def more(self, count: int) -> None:
        for _ in range(count):
            self.session.add(*self.turn(250))

    def anew(self) -> None:
        self.clear()
        self.more(6)

    def do(self, deed: str) -> View | None:
        session = self.session
        deeds: dict[str, Callable[[], object]] = {
            "add": lambda: session.add(*self.turn(300, calls=True)),
            "more": lambda: self.more(5),
            "clear": self.clear,
            "anew": self.anew,
            "fold": lambda: session.fold(force=True),
            "unfold": session.unfold,
            "pin": lambda: session.pin(f"note {next(Person.numbers)}"),
            "pin 3": lambda: session.pin(handle="#3"),
            "unpin": lambda: session.unpin("#3"),
            "policy": lambda: session.use(policy=TIGHT.but(window_tokens=2_500 + 100 * (next(Person.numbers) % 9))),
            "approve": lambda: (preview := session.preview(force=True)) and session.approve(preview),
        }
        if deed == BREAK:
            raise LedgerUnavailable("the connection was lost")
        with suppress(Conflict, InputError, LedgerUnavailable):  # told
            if deed == "view":
                return session.view()
            if deed:
                deeds[deed]()
        return None


DEEDS = ("add", "more", "clear", "fold", "unfold", "view", "pin", "pin 3", "unpin", "policy", "approve")
MEDDLING = ("", "", "", "anew", "anew", BREAK, BREAK, *DEEDS[:-1])


def check(view: View) -> None:
    if not view.messages:
        return
    assert view.tokens <= view.usable
    assert_sendable(view.render("anthropic"))
    ages = {message.text.split()[1] for message in view.messages if message.text.startswith(OTHERS)}
    assert len(ages) <= 1, "cleared messages are in the view with later ones"
    assert "gone" not in {message.role for message in view.messages}


@pytest.mark.promise("I7", "I8", "I11", "I14")
@settings(max_examples=40)
@given(
    before=st.lists(st.sampled_from(DEEDS), max_size=4),
    mine=st.lists(st.sampled_from(DEEDS), min_size=1, max_size=4),
    theirs=st.lists(st.sampled_from(MEDDLING), max_size=20),
)
def test_changes_by_other_processes_between_two_reads_keep_the_view_valid(
    before: list[str], mine: list[str], theirs: list[str]
) -> None:
    with foldline.open(":memory:") as ledger:
        branch = ledger.store.session("s")
        other = Person(ledger.session("s", policy=TIGHT), OTHERS)
        record = Crowded(ledger.store, branch)
        me = Person(Session(record=record), "mine")
        for deed in ("add", *before):
            other.do(deed)
        plan, at_it = list(theirs), [False]

        def meddle() -> None:
            if plan and not at_it[0]:
                at_it[0] = True
                try:
                    other.do(plan.pop(0))
                finally:
                    at_it[0] = False

        record.meddle = meddle
        for deed in (*mine, "view", "view"):
            seen = me.do(deed)
            if seen is not None:
                check(seen)
        plan.clear()
        views = [session.view() for session in (me.session, other.session, ledger.session("s"))]
        check(views[0])
        assert views[0].messages == views[1].messages == views[2].messages
        assert len({(view.tokens, view.cut) for view in views}) == 1
        for pin in ledger.store.state(branch).pins:
            assert pin.position is not None
            pinned = next(iter(ledger.store.read(branch, start=pin.position))).message
            assert sum(message == pinned for message in views[0].messages) == 1
        assert list(ledger.verify()) == []


def turns(count: int, first: int = 0) -> list[Message]:
    return shorter(count, first, chars=400)


def texts(session: Session) -> list[str]:
    return [message.text for message in session.view().messages]


def test_a_pinned_text_is_found_when_others_add_messages_after_it() -> None:
    with foldline.open(":memory:") as ledger:
        other, record = ledger.session("s", policy=TIGHT), Crowded(ledger.store, ledger.store.session("s"))
        session = Session(record=record)
        record.meddle = lambda: other.add(user("noise"))
        session.pin("the port is 4711", name="port")
        record.meddle = lambda: None
        (pin,) = ledger.store.state(record.branch).pins
        assert next(iter(record.read(pin.position or 0, 10_000))).text == "the port is 4711"


@pytest.mark.promise("I8")
@pytest.mark.parametrize("kind", ["memory", "ledger"])
@pytest.mark.parametrize(("handle", "says"), [("#5", "question 1"), ("#7", "result 1"), ("#6", "run {}")])
def test_a_folded_message_can_be_pinned(kind: str, handle: str, says: str) -> None:
    with foldline.open(":memory:") as ledger:
        session = Session(policy=TIGHT) if kind == "memory" else ledger.session("s", policy=TIGHT)
        session.add(*turns(12))
        before = session.view().messages
        assert session.timeline.cut > 8
        assert session.pin(handle=handle, name="kept") == ("kept",)
        after = session.view().messages
        assert after[: len(before)] == before, "the view only grows at its end"
        for start in (20, 40, 60):
            session.add(*turns(6, start))
            view = session.view()
            assert_sendable(view.render("anthropic"))
            assert sum(says in message.text and message.kind == "note" for message in view.messages) == 1
        if kind == "ledger":
            assert texts(ledger.session("s")) == texts(session)
        session.unpin("kept")
        session.add(*turns(12, 80))
        assert not any(message.kind == "note" for message in session.view().messages)
        session.recall(handle=handle)


def test_a_handle_of_another_session_is_refused() -> None:
    with foldline.open(":memory:") as ledger:
        ledger.session("other").add(user("the port is 4711"))
        session = ledger.session("s")
        session.add(user("something else"))
        found = str(session.recall("port", everywhere=True))
        handle = next(word for word in found.split() if "#" in word)
        with pytest.raises(InputError, match="is not in this session"):
            session.pin(handle=handle)


@pytest.mark.promise("I7", "I11")
@pytest.mark.parametrize("kind", ["memory", "ledger"])
@pytest.mark.parametrize("spoil", ["clear", "pin", "fold", "policy", "another session", "twice"])
def test_a_preview_is_refused_after_the_session_changed(kind: str, spoil: str) -> None:
    with foldline.open(":memory:") as ledger:
        make: Callable[[str], Session] = (
            (lambda _: Session(policy=TIGHT)) if kind == "memory" else (lambda name: ledger.session(name, policy=TIGHT))
        )
        session, other = make("s"), make("other")
        session.add(*turns(3))
        other.add(*turns(4, 50))
        preview, target = session.preview(force=True), session
        assert preview is not None
        if spoil == "clear":
            session.clear()
            session.add(*turns(4, 20))
        elif spoil == "pin":
            session.pin(handle="#1")
        elif spoil == "fold":
            session.fold(digest="by hand", force=True)
            session.unfold()
        elif spoil == "policy":
            session.use(policy=TIGHT.but(keep_ratio=0.1))
        elif spoil == "twice":
            session.approve(preview)
        else:
            target = other
        before = texts(target)
        with pytest.raises(Conflict):
            target.approve(preview)
        assert texts(target) == before


@pytest.mark.promise("I7", "I11")
@pytest.mark.parametrize("kind", ["measured", "warned", "planned", "started", "committed"])
@pytest.mark.parametrize("deed", ["clear", "add", "fold", "pin", "view", "raise"])
def test_a_listener_may_change_the_session(kind: str, deed: str) -> None:
    done: list[str] = []
    ledger: Ledger
    session: Session

    def listen(event: Event) -> None:
        if event.kind == kind and not done and len(session.timeline) > 40:
            done.append(kind)
            if deed == "clear":
                session.clear()
                session.add(*turns(3, 100))
            elif deed == "add":
                session.add(*turns(3, 100))
            elif deed == "fold":
                session.fold(force=True)
            elif deed == "pin":
                session.pin(handle="#5")
            elif deed == "view":
                session.view()
            else:
                raise ValueError("no")

    with foldline.open(":memory:", listener=listen) as ledger:
        session = ledger.session("s", policy=TIGHT)
        session.add(*turns(12))
        view = session.view()
        assert done
        assert view.tokens <= view.usable
        assert_sendable(view.render("anthropic"))
        assert texts(session) == texts(ledger.session("s"))
        assert list(ledger.verify()) == []


@pytest.mark.promise("I7", "I14")
@pytest.mark.parametrize("deed", ["view", "use", "fold"])
@pytest.mark.parametrize("after", range(1, 9))
def test_a_broken_connection_leaves_a_consistent_session(deed: str, after: int) -> None:
    with foldline.open(":memory:") as ledger:
        other, record = ledger.session("s", policy=TIGHT), Crowded(ledger.store, ledger.store.session("s"))
        other.add(*turns(1))
        session = Session(record=record)
        other.add(*turns(1, 1))
        calls = itertools.count(1)

        def meddle() -> None:
            if next(calls) == after:
                raise LedgerUnavailable("the connection was lost")

        record.meddle = meddle
        with suppress(LedgerUnavailable):
            if deed == "view":
                session.view()
            elif deed == "fold":
                session.fold(force=True)
            else:
                session.use(policy=TIGHT.but(window_tokens=2_900))
        record.meddle = lambda: None
        assert texts(session) == texts(ledger.session("s"))
        assert session.usable == ledger.session("s").usable


def test_a_session_deleted_by_prune_raises_an_error() -> None:
    with foldline.open(":memory:") as ledger:
        session = ledger.session("s", policy=TIGHT)
        session.add(*turns(3))
        assert ledger.prune(older_than=1e12) == ("s",)
        for deed in (
            session.view,
            session.clear,
            lambda: session.add(user("x")),
            lambda: session.recall("question"),
            lambda: session.pin("the port is 4711"),
        ):
            with pytest.raises(Conflict, match="no longer has"):
                deed()
        assert ledger.sessions() == ()
        assert texts(ledger.session("s")) == []


@pytest.mark.parametrize("kind", ["memory", "ledger"])
@pytest.mark.parametrize("at", [-1, 13])
def test_a_branch_outside_the_messages_is_refused(kind: str, at: int) -> None:
    with foldline.open(":memory:") as ledger:
        session = Session() if kind == "memory" else ledger.session("s")
        session.add(*turns(3))
        with pytest.raises(InputError, match="12 messages"):
            session.branch("side", at=at)
