"""What a person or a listener may ask for, up to and past the limits: done, or refused and nothing changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import foldline
from foldline.digest.digester import Digester
from foldline.errors import ConfigError, Conflict, InputError, ViewTooLarge
from foldline.events import Event
from foldline.message import assistant, user
from foldline.policy import Policy, presets
from foldline.session import Session
from foldline.testing import Scripted, assert_sendable, proper
from support import postgres
from support.ledgers import turns

TIGHT = Policy.preset("balanced").but(window_tokens=3_000, reply_tokens=0, counter="chars/4")
WAIT_S = 30.0


@pytest.fixture(params=["memory", "ledger"])
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    if request.param == "memory":
        yield Session(policy=TIGHT)
        return
    with foldline.open(":memory:") as ledger:
        yield ledger.session("s", policy=TIGHT)


@pytest.mark.promise("I3", "I5", "I7")
@pytest.mark.parametrize("digest", ["word " * 20_000, "word " * 1_900, "", " \n"])
def test_a_manual_digest_that_saves_nothing_is_refused(session: Session, digest: str) -> None:
    session.add(*turns(4))
    before, preview = session.view(), session.preview(force=True)
    assert preview is not None
    with pytest.raises(InputError, match=r"would grow|is empty"):
        session.fold(force=True, digest=digest)
    with pytest.raises(InputError, match=r"would grow|is empty"):
        session.approve(preview, digest=digest)
    assert session.view().messages == before.messages
    assert session.folds == 0
    assert session.approve(preview, digest="The build is green.").after < before.tokens


@pytest.mark.promise("I3", "I22")
def test_a_long_digest_is_replaced_when_the_window_shrinks(session: Session) -> None:
    session.use(policy=TIGHT.but(window_tokens=20_000))
    session.add(*turns(30))
    assert session.fold(force=True, digest="word " * 4_000) is not None
    session.use(policy=TIGHT)
    for first in (100, 101, 102):
        view = session.view()
        assert view.tokens <= view.usable
        assert_sendable(view.render("anthropic"))
        session.add(*turns(1, first))


@pytest.mark.promise("I3", "I8")
def test_a_pin_that_does_not_fit_is_reported_and_can_be_removed(session: Session) -> None:
    session.add(*turns(2))
    session.pin("x " * 20_000, name="big")
    session.add(user("and now?"))
    with pytest.raises(ViewTooLarge):
        session.view()
    session.unpin("big")
    session.add(assistant("well"), *turns(1, 10))
    view = session.view()
    assert view.tokens <= view.usable


def test_all_folds_can_be_taken_back(session: Session) -> None:
    session.use(policy=TIGHT.but(window_tokens=20_000))
    seen = []
    for number in range(4):
        session.add(*turns(3, 3 * number))
        seen.append(session.view().messages)
        assert session.fold(force=True) is not None
    for before in reversed(seen):
        session.unfold()
        assert session.view().messages[: len(before)] == before
    assert session.view().messages == tuple(session.record.read(0, 1_000))
    with pytest.raises(InputError, match="nothing is folded"):
        session.unfold()


@pytest.mark.promise("S2.25", "I14", "I22")
def test_policy_and_model_can_be_changed_in_any_order(tmp_path: Path) -> None:
    with foldline.open(tmp_path / "agent.db") as ledger:
        session = ledger.session("s", model="claude-sonnet-5")
        session.add(*turns(60))
        for number, (preset, model) in enumerate(
            zip(presets(), ("gpt-4", "claude-sonnet-5", "gpt-4o-mini", "a-model-nobody-knows") * 9, strict=False)
        ):
            session.use(policy=preset, model=model)
            session.add(*turns(1, 1_000 + number))
            view, again = session.view(), ledger.session("s").view()
            assert view.tokens <= view.usable
            assert (again.messages, again.tokens, again.usable) == (view.messages, view.tokens, view.usable)
            assert ledger.session("s").policy == Policy.preset(preset)
            assert_sendable(view.render("openai"))
        assert list(ledger.verify()) == []


def test_a_listener_in_a_worker_thread_can_wait_for_the_worker() -> None:
    waited: list[bool] = []

    def listen(event: Event) -> None:
        if event.kind == "committed":
            waited.append(ledger.wait(WAIT_S / 10))

    digester = Digester(complete=Scripted(proper), model="model", window=100_000)
    with foldline.open(":memory:", digester=digester, listener=listen) as ledger:
        session = ledger.session("s", policy=TIGHT)
        while session.plan().fold is None:
            session.add(*turns(1, len(session.timeline)))
        session.view()
        assert ledger.wait(WAIT_S)
        assert waited == [True]


@pytest.mark.promise("I22")
def test_invalid_arguments_of_open_are_refused() -> None:
    with pytest.raises(ConfigError, match="thread, process"):
        foldline.open(":memory:", worker="somebody")  # type: ignore[arg-type]  # that is the point
    with pytest.raises(InputError, match="invalid ledger address"):
        foldline.open("agent\0.db")


@pytest.mark.promise("I14", "S3.30")
def test_an_imported_export_shows_the_same_views(tmp_path: Path, cleared_postgres: str) -> None:
    """Folds, pins, branches, what was taken back and what was cleared, from a file to a server and back."""
    with foldline.open(tmp_path / "one.db") as ledger:
        session = ledger.session("s", model="claude-sonnet-5", policy=TIGHT)
        session.add(*turns(14))
        session.pin("keep me", name="kept")
        session.view()
        session.pin(handle="#6", name="again")
        side = session.branch("side", at=44)
        side.add(*turns(4, 60))
        side.view()
        third = side.branch("third")
        third.clear()
        third.add(user("x"))
        session.unfold()
        session.add(*turns(1, 80))
        session.fold(force=True)
        branches = ("main", "side", "third")
        views = [ledger.session("s", branch=name).view() for name in branches]
        lines = list(ledger.export())
    for place in (cleared_postgres, str(tmp_path / "two.db")):
        with foldline.open(place, owner="somebody else") as other:
            other.load(lines)
            found = [other.session("s", branch=name) for name in branches]
            assert [each.view().messages for each in found] == [view.messages for view in views]
            assert [each.view().tokens for each in found] == [view.tokens for view in views]
            assert [each.policy for each in found] == [TIGHT] * 3
            assert list(other.verify()) == []
            lines = list(other.export())
            found[0].unfold()
            with pytest.raises((InputError, Conflict)):
                other.load(lines)
    postgres.clear(cleared_postgres)
