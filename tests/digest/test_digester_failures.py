"""A session whose digester fails: the view stays sendable and the record has the cause."""

from __future__ import annotations

from typing import Any

import pytest

from foldline import Session
from foldline.digest.digester import Digester, DigesterCall
from foldline.digest.markup import REFERENCE
from foldline.errors import InputError
from foldline.message import Message, Text, Thinking, ToolCall, assistant, tool, user
from foldline.plan.gate import Need
from foldline.policy import Policy
from foldline.testing import FAULTS, INJECTED, LEAKED, Scripted, assert_sendable, faulty, proper

POLICY = Policy.preset("balanced").but(window_tokens=8_000, reply_tokens=1_000, digest_tokens=800)
IMPATIENT = POLICY.but(digest_seconds=1)
SOUND = ("injected instruction", "leaked key", "invented path")
"""Faults that make a digest worse and not impossible."""


def talk(turns: int) -> list[Message]:
    said: list[Message] = []
    for turn in range(turns):
        call = ToolCall(id=f"c{turn}", name="read", arguments=f'{{"path": "src/part_{turn}.py"}}')
        said += [
            user(f"Look at src/part_{turn}.py, and never touch setup_{turn}.cfg."),
            assistant("Looking.", call),
            tool(call.id, f"def part_{turn}(): return {turn}  # a line of source text\n" * 14, name="read"),
            assistant(f"Part {turn} is as it should be, so nothing was changed."),
        ]
    return said


def filled(digester: Digester | None, policy: Policy = POLICY) -> Session:
    """A session that has just become too full."""
    session = Session(model="claude-sonnet-5", policy=policy, digester=digester)
    said = talk(60)
    for place in range(0, len(said), 4):
        session.add(*said[place : place + 4])
        if session.plan().fold is not None:
            return session
    raise AssertionError("it never became full")


def digest_of(session: Session) -> Any:
    assert session.state.timeline.fold is not None
    return session.state.timeline.fold.digest


@pytest.mark.promise("S0.45", "S0.48", "S0.56", "F2")
@pytest.mark.parametrize("fault", FAULTS)
def test_after_a_failure_the_view_is_sendable_and_the_cause_recorded(fault: str) -> None:
    session = filled(faulty(fault), IMPATIENT if fault in {"hang", "late"} else POLICY)
    before = session.state.load().request
    view = session.view()
    for provider in ("anthropic", "openai", "gemini", "openai-responses"):
        assert_sendable(view.render(provider))
    assert view.tokens < before
    assert view.need is not Need.HARD
    digest = digest_of(session)
    assert (digest.by == "local") == bool(digest.cause) == (fault not in SOUND)
    text = digest.message.text
    assert REFERENCE in text
    assert digest.message.role == "user"
    for gone in (LEAKED, INJECTED):
        assert gone not in text
    assert digest.loss is not None
    assert (fault == "invented path") <= bool(digest.loss.unsourced)


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault not in SOUND])
def test_with_on_failure_keep_the_view_stays_and_the_model_is_not_called_again_at_once(fault: str) -> None:
    scripted = faulty(fault).complete
    policy = IMPATIENT if fault in {"hang", "late"} else POLICY
    early = policy.but(rules=("fold when request > 60%",), target_ratio=0.4)
    session = filled(Digester(complete=scripted), early.but(on_failure="keep", cooldown_messages=4))
    assert isinstance(scripted, Scripted)
    shown = session.view().messages
    assert shown == tuple(session.state.timeline.shown)
    assert session.refusal is not None
    assert session.refusal.cause
    asked = len(scripted.asks)
    for _ in range(3):
        session.add(user("Go on."))
        assert session.view().messages[:-1] == shown, "everything stays"
        shown = session.view().messages
    assert len(scripted.asks) == asked, "it cools down"
    session.add(user("Go on."))
    session.view()
    assert len(scripted.asks) > asked
    cause = session.refusal.cause
    asked = len(scripted.asks)
    session.add(user("word " * 2_500))
    assert session.view().tokens <= session.state.usable, "what no longer fits does not wait"
    assert digest_of(session).cause == cause
    assert digest_of(session).by == "local"
    assert len(scripted.asks) == asked, "and nobody is paid for it"


def test_a_model_digest_is_the_prior_digest_of_the_next() -> None:
    scripted = Scripted()
    session = Session(model="claude-sonnet-5", policy=POLICY, digester=Digester(complete=scripted, model="gpt-5-mini"))
    for message in talk(80):
        session.add(message)
        session.view()
    assert session.folds >= 3
    assert digest_of(session).by == "gpt-5-mini"
    assert "<carried-digest>\n# Objective\nThe user asked: Look at src/part_" in scripted.asks[1].text
    assert "<carried-digest>" not in scripted.asks[0].text
    assert all(REFERENCE not in ask.text for ask in scripted.asks)


@pytest.mark.promise("S0.43")
def test_the_digester_sees_every_message_that_leaves() -> None:
    scripted = Scripted()
    session = Session(model="claude-sonnet-5", policy=POLICY, digester=Digester(complete=scripted, window=4_000))
    for message in talk(80):
        session.add(message)
        session.view()
    seen = "\n".join(ask.text for ask in scripted.asks)
    cut = session.state.timeline.cut
    for turn in range(1, cut // 4):
        assert f"def part_{turn}(): return" in seen
        assert f"never touch setup_{turn}.cfg" in seen


class TestByHand:
    @pytest.mark.promise("S0.52", "S0.53", "S0.54", "S0.55")
    @pytest.mark.parametrize("turns", [2, 3, 8])
    def test_a_forced_fold_covers_all_before_the_last_turn(self, turns: int) -> None:
        session = Session(policy=POLICY)
        session.add(*talk(turns))
        assert session.fold() is None, "nothing is beyond the floors"
        fold = session.fold(force=True)
        assert fold is not None
        assert fold.cut == 4 * (turns - 1)
        view = session.view()
        assert view.messages[-4:] == tuple(talk(turns)[-4:])
        assert len(view.messages) < 4 * turns
        assert_sendable(view.render("anthropic"))
        assert session.fold(force=True) is None, "there is nothing more to fold"

    @pytest.mark.parametrize("text", ["", "  ", "\u200b", "\u200b\u2060\ufeff \n", "…"])
    def test_a_digest_without_visible_text_is_refused(self, text: str) -> None:
        session = Session(policy=POLICY)
        session.add(*talk(6))
        with pytest.raises(InputError, match="the digest is empty"):
            session.fold(force=True, digest=text)
        preview = session.preview(force=True)
        assert preview is not None
        with pytest.raises(InputError, match="the digest is empty"):
            session.approve(preview, digest=text)
        assert session.view().messages == tuple(talk(6))

    @pytest.mark.parametrize("force", [False, True])
    def test_with_on_failure_keep_a_manual_fold_is_not_made_while_the_request_fits(self, force: bool) -> None:
        session = Session(
            policy=POLICY.but(on_failure="keep", keep_ratio=0.0, target_ratio=0.0), digester=faulty("empty")
        )
        session.add(*talk(6))
        assert session.fold(force=force) is None
        assert session.skip_reason == "the reply says nothing"
        assert session.preview(force=force) is None
        assert session.view().messages == tuple(talk(6))

    def test_with_on_failure_keep_a_refused_view_is_folded_locally(self) -> None:
        session = Session(policy=POLICY.but(on_failure="keep"), digester=faulty("empty"))
        session.add(*talk(6))
        fold = session.fold(refused=True)
        assert fold is not None
        assert fold.digest is not None
        assert fold.digest.by == "local"

    @pytest.mark.promise("I6")
    @pytest.mark.parametrize("force", [False, True])
    def test_a_manual_fold_under_verbatim_leaves_a_digest(self, force: bool) -> None:
        session = Session(model="claude-sonnet-5", policy="verbatim")
        session.add(*talk(8))
        assert session.view().messages == tuple(talk(8)), "it never folds by itself"
        fold = session.fold(force=force)
        assert fold is not None
        assert fold.digest is not None
        assert fold.digest.message in session.view().messages
        assert "src/part_3.py" in fold.digest.message.text

    @pytest.mark.promise("S0.52")
    def test_a_single_turn_is_not_folded(self) -> None:
        session = Session(policy=POLICY)
        session.add(*talk(1))
        assert session.fold(force=True) is None
        assert session.view().messages == tuple(talk(1))

    def test_instructions_reach_the_digester_and_never_the_view(self) -> None:
        scripted = Scripted()
        session = Session(policy=POLICY, digester=Digester(complete=scripted))
        session.add(*talk(6))
        assert session.fold(force=True, instructions="Keep the XYZZY numbers") is not None
        assert "XYZZY" in scripted.asks[0].text
        assert "XYZZY" not in str(session.view().render("anthropic").body)


class TestModel:
    def test_the_policys_digest_model_sets_the_window(self) -> None:
        scripted = Scripted()
        digester = Digester(complete=scripted, model="claude-opus-4-5", window=700)
        session = Session(policy=POLICY.but(digest_model="claude-haiku-4-5"), digester=digester)
        session.add(*talk(6))
        session.fold(force=True)
        assert {ask.model for ask in scripted.asks} == {"claude-haiku-4-5"}
        assert len(scripted.asks) == 1
        assert digest_of(session).by == "claude-haiku-4-5"

    @pytest.mark.parametrize(("model", "behind"), [("claude-sonnet-5", True), ("claude-haiku-4-5", False)])
    def test_the_cached_prefix_is_used_only_if_it_is_cheaper(self, model: str, behind: bool) -> None:
        asks: list[DigesterCall] = []

        def reply(ask: DigesterCall) -> str:
            asks.append(ask)
            return proper(ask)

        policy = POLICY.but(digest_shared=True, window_tokens=60_000, coverage_ratio=0.0)
        session = Session(
            model="claude-sonnet-5", policy=policy, digester=Digester(complete=Scripted(reply), model=model)
        )
        session.add(*talk(30))
        shown = session.view().messages
        session.fold(force=True)
        assert bool(asks[0].prefix) == behind
        if behind:
            assert asks[0].prefix == shown
            assert "part_3" not in asks[0].text

    def test_a_view_with_thinking_is_not_used_as_a_prefix(self) -> None:
        asks: list[DigesterCall] = []

        def reply(ask: DigesterCall) -> str:
            asks.append(ask)
            return proper(ask)

        policy = POLICY.but(digest_shared=True, window_tokens=60_000, coverage_ratio=0.0)
        digester = Digester(complete=Scripted(reply), model="claude-sonnet-5")
        session = Session(model="claude-sonnet-5", policy=policy, digester=digester)
        session.add(
            *talk(30), Message(role="assistant", parts=(Thinking(text="Hm.", signature="s"), Text(text="Done.")))
        )
        session.add(user("And now?"))
        session.fold(force=True)
        assert asks
        assert not any(ask.prefix for ask in asks)
