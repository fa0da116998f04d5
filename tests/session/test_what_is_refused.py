"""What a session refuses, and how it says so: folds without gain, windows that nothing fits, unknown models."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foldline import Session
from foldline.digest.digester import Digester
from foldline.errors import ConfigError, InputError, ViewTooLarge
from foldline.events import Event
from foldline.message import Message, assistant, system, user
from foldline.policy import Policy, Rule
from foldline.testing import Scripted, proper

SMALL = Policy.preset("balanced").but(window_tokens=4_000, reply_tokens=0, counter="chars/4")


def chat(turns: int, chars: int = 80) -> list[Message]:
    return [
        m for n in range(turns) for m in (user(f"question {n} " + "q" * chars), assistant(f"answer {n} " + "a" * chars))
    ]


class TestFoldsThatFreeNothing:
    @pytest.mark.parametrize("digester", [None, Digester(complete=Scripted(), window=50_000)], ids=["local", "model"])
    def test_a_forced_fold_of_a_short_session_is_refused_with_the_reason(self, digester: Digester | None) -> None:
        session = Session(policy=SMALL, digester=digester)
        session.add(*chat(2, chars=4), user("so?"))
        before = session.view()
        assert session.fold(force=True) is None
        assert "would not become smaller" in session.skip_reason
        assert session.view().messages == before.messages

    @given(turns=st.integers(1, 12), chars=st.integers(1, 400), force=st.booleans(), words=st.integers(0, 300))
    @settings(max_examples=60, deadline=None)
    def test_no_fold_makes_a_view_larger(self, turns: int, chars: int, force: bool, words: int) -> None:
        digester = Digester(complete=Scripted(lambda ask: proper(ask) + "\nmore" * words), window=50_000)
        session = Session(policy=SMALL, digester=digester)
        session.add(*chat(turns, chars), user("so?"))
        before = session.view().tokens
        session.fold(force=force)
        assert session.view().tokens <= before

    def test_an_approved_preview_that_would_grow_the_view_is_an_error(self) -> None:
        session = Session(policy=SMALL)
        session.add(*chat(2, chars=4), user("so?"))
        preview = session.preview(force=True)
        assert preview is not None
        with pytest.raises(InputError, match="would grow"):
            session.approve(preview)

    def test_a_fold_that_finds_nothing_to_fold_says_why(self) -> None:
        told: list[Event] = []
        session = Session(policy=SMALL.but(keep_messages=40), listener=told.append)
        session.add(*chat(3), user("so?"))
        assert session.fold() is None
        assert "keep_messages 40" in session.skip_reason
        assert told[-1].kind == "skipped"
        session = Session(policy=SMALL)
        session.add(user("so?"))
        assert session.fold(force=True) is None
        assert "before the newest user turn" in session.skip_reason
        assert session.preview(force=True) is None
        assert session.skip_reason

    def test_after_a_fold_there_is_no_reason(self) -> None:
        session = Session(policy=SMALL)
        session.add(user("so?"))
        session.fold(force=True)
        session.add(*chat(30), user("and?"))
        assert session.fold(force=True) is not None
        assert session.skip_reason == ""


class TestPolicies:
    @pytest.mark.parametrize(
        "knobs", [{"reply_tokens": 4_000}, {"reserve_tokens": 4_000}, {"reply_tokens": 3_000, "reserve_tokens": 1_000}]
    )
    def test_a_window_without_usable_tokens_fails_when_the_policy_is_made(self, knobs: dict[str, Any]) -> None:
        with pytest.raises(ConfigError, match="leave nothing of a window of 4,000"):
            Policy(window_tokens=4_000, **knobs)

    def test_a_reply_as_long_as_the_models_window_fails_when_the_session_is_made(self) -> None:
        with pytest.raises(ConfigError, match="leave nothing"):
            Session(model="gpt-4o", policy=Policy(reply_tokens=128_000))

    def test_rules_may_be_sentences(self) -> None:
        made = Policy(rules=["fold when request > 75%", Rule.parse("warn when count > 9")])  # type: ignore[arg-type]
        assert made.rules == (Rule.parse("fold when request > 75%"), Rule.parse("warn when count > 9"))
        assert Policy(rules="fold when request > 75%; warn when count > 9") == made  # type: ignore[arg-type]

    @pytest.mark.parametrize("rules", [["fold sometimes"], [7], 7, None])
    def test_other_rules_are_an_error_that_names_them(self, rules: Any) -> None:
        with pytest.raises(ConfigError, match="rule"):
            Policy(rules=rules)

    @pytest.mark.parametrize(
        "knobs",
        [{"window_tokens": 1.5}, {"window_tokens": True}, {"window_tokens": "many"}, {"leave": 3}, {"background": 7}],
    )
    def test_values_of_another_type_are_an_error(self, knobs: dict[str, Any]) -> None:
        with pytest.raises(ConfigError, match=next(iter(knobs))):
            Policy(**knobs)

    def test_one_name_is_a_list_of_one(self) -> None:
        assert Policy(prune_protect="bash").prune_protect == ("bash",)  # type: ignore[arg-type]


class TestUnknownModels:
    def test_the_assumed_window_is_emitted_once_and_shown_in_the_view(self) -> None:
        told: list[Event] = []
        session = Session(model="in-house-7b", listener=told.append)
        session.add(user("hi"))
        views = [session.view() for _ in range(3)]
        [event] = [event for event in told if event.kind == "assumed"]
        assert event.facts["window"] == session.window
        assert "'in-house-7b' is unknown" in event.facts["reason"]
        assert all("in-house-7b" in view.assumption for view in views)
        assert "window, assumed)" in str(views[0])

    @pytest.mark.parametrize(
        ("model", "policy"), [("gpt-4o", Policy()), ("in-house-7b", SMALL), ("in-house-7b[1m]", Policy())]
    )
    def test_a_stated_window_is_no_assumption(self, model: str, policy: Policy) -> None:
        told: list[Event] = []
        session = Session(model=model, policy=policy, listener=told.append)
        session.add(user("hi"))
        assert session.view().assumption == ""
        assert not [event for event in told if event.kind == "assumed"]


def _large(**knobs: Any) -> str:
    session = Session(policy=SMALL.but(**knobs))
    session.add(*chat(10, 1_500), user("so?"))
    with pytest.raises(ViewTooLarge) as caught:
        session.view()
    return caught.value.hint


class TestHintsForViewsThatDoNotFit:
    def test_a_policy_that_never_folds_is_told_one_that_does(self) -> None:
        assert 'use Policy.preset("balanced").but(window_tokens=…)' in _large(rules=())
        session = Session(policy=Policy.preset("balanced").but(window_tokens=SMALL.window_tokens))
        session.add(*chat(10, 1_500), user("so?"))
        assert session.view().tokens <= session.usable

    def test_hard_floors_are_named(self) -> None:
        assert "set keep_hard to False" in _large(keep_hard=True, keep_messages=19)

    @pytest.mark.parametrize("knobs", [{}, {"rules": ()}])
    def test_what_no_knob_can_help_names_the_block(self, knobs: dict[str, Any]) -> None:
        session = Session(policy=SMALL.but(**knobs))
        session.add(system("rule " * 4_000), user("so?"))
        with pytest.raises(ViewTooLarge, match=r"shorten the system messages, or raise window_tokens to \d,\d\d\d"):
            session.view()

    def test_a_pin_that_does_not_fit_is_named(self) -> None:
        session = Session(policy=SMALL)
        session.add(*chat(4), user("so?"))
        session.pin("never push to main " * 1_000, name="rules")
        session.add(*chat(4), user("and now?"))
        with pytest.raises(ViewTooLarge, match="unpin 'rules'") as caught:
            session.view()
        assert caught.value.bill["pins"] > 4_000
        session.unpin("rules")
        assert session.view()

    def test_the_named_window_is_large_enough(self) -> None:
        for words in (400, 2_000, 9_000):
            policy = Policy.preset("balanced").but(window_tokens=600, counter="chars/4")
            sent = [user("word " * words)]
            session = Session(policy=policy)
            session.add(*sent)
            with pytest.raises(ViewTooLarge) as caught:
                session.view()
            named = int(caught.value.hint.rpartition(" to ")[2].replace(",", ""))
            session = Session(policy=policy.but(window_tokens=named))
            session.add(*sent)
            assert session.view().tokens <= session.usable

    @pytest.mark.parametrize("knobs", [{}, {"reply_tokens": 10}, {"rules": ()}, {"window_tokens": 20_000}])
    def test_the_window_that_is_named_is_large_enough_and_not_far_too_large(self, knobs: dict[str, Any]) -> None:
        policy = SMALL.but(**knobs)

        def view(window: int) -> None:
            session = Session(policy=policy.but(window_tokens=window))
            session.add(system("rule " * 40_000), *chat(4), user("so?"))
            session.view()

        with pytest.raises(ViewTooLarge, match="raise window_tokens to") as caught:
            view(policy.window_tokens or 0)
        named = int(caught.value.hint.rpartition("raise window_tokens to ")[2].replace(",", ""))
        view(named)
        with pytest.raises(ViewTooLarge):
            view(int(named * 0.9))

    def test_a_model_whose_window_is_too_small_is_not_told_to_raise_it(self) -> None:
        session = Session(model="gpt-5")
        session.add(user("word " * 600_000))
        with pytest.raises(ViewTooLarge, match="use a model with a larger window"):
            session.view()

    def test_the_named_knob_does_help(self) -> None:
        knobs: dict[str, Any] = {"keep_hard": True, "keep_messages": 19}
        knob, _, value = _large(**knobs).rpartition("set ")[2].partition(", or")[0].partition(" to ")
        session = Session(policy=SMALL.but(**{**knobs, knob: {"False": False}.get(value, value.strip("'"))}))
        session.add(*chat(10, 1_500), user("so?"))
        assert session.view().tokens <= session.usable


class TestNothingToSend:
    @pytest.mark.parametrize("model", ["claude-sonnet-4-5", "gpt-5.1", "gemini-2.5-pro"])
    @pytest.mark.parametrize("text", ["", "  ", "\u200b", "\ufeff\u2060\n", "\x00"])
    @pytest.mark.parametrize("role", [user, assistant])
    def test_a_session_of_blank_messages_is_an_error(self, role: Any, text: str, model: str) -> None:
        session = Session(model=model)
        session.add(system("Be brief."), role(text))
        with pytest.raises(InputError, match="nothing to send"):
            session.view().render()

    @pytest.mark.parametrize("text", ["?", "…", "👍", "好"])
    def test_a_sign_is_a_message(self, text: str) -> None:
        session = Session(model="claude-sonnet-4-5")
        session.add(user(text))
        assert session.view().render().body["messages"]
