"""A latched rule holds from the message at which it fired until the next fold, for all who read the rows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import foldline
from foldline.errors import ViewTooLarge
from foldline.message import Message, Meta, Usage, assistant, user
from foldline.plan.gate import Need
from foldline.policy import Policy
from foldline.session import Session

POLICY = Policy(window_tokens=10_000, reply_tokens=0).but(
    rules=["warn when request >= 40% latched", "pause when request >= 60% latched", "fold when request > 90%"]
)


def reply(prompt: int, text: str = "yes") -> Message:
    """A reply whose usage says how large its prompt was."""
    message = assistant(text)
    return Message(role="assistant", parts=message.parts, meta=Meta(usage=Usage(input=prompt, output=5), model="m"))


def shown(session: Session) -> tuple[Need, list[str], list[str]] | None:
    """Need, rules that hold, and texts of a session's view; None when nothing fits."""
    try:
        view = session.view()
    except ViewTooLarge:
        return None
    return view.need, [str(rule) for rule in view.verdict.fired], [message.text for message in view.messages]


@pytest.mark.promise("I12", "I14")
def test_two_sessions_on_the_same_rows_need_the_same_also_when_one_was_opened_later() -> None:
    """The first one has seen the request grow and shrink again; the second one reads of it."""
    with foldline.open(":memory:") as ledger:
        first = ledger.session("s", model="m", policy=POLICY)
        first.add(user("one"), reply(7_000))
        assert first.view().need is Need.SOFT
        first.add(user("two"), reply(7_000), user("three"), reply(3_600), user("four " * 200), reply(3_800))
        first.add(user("five"))
        assert first.load().request < 4_000, "the figure is far below the rule by now"
        assert first.view().need is Need.SOFT
        assert shown(ledger.session("s")) == shown(first)


def test_a_rule_that_fired_between_two_views_holds_in_the_second() -> None:
    viewed, blind = Session(model="m", policy=POLICY), Session(model="m", policy=POLICY)
    talk = [user("one"), reply(7_000), user("two"), reply(7_000), user("three"), reply(3_600), user("four " * 200)]
    talk += [reply(3_800), user("five")]
    for message in talk:
        viewed.add(message)
        viewed.view()
        blind.add(message)
    assert shown(viewed) == shown(blind)
    assert viewed.view().need is Need.SOFT


def test_a_fold_ends_it() -> None:
    session = Session(model="m", policy=POLICY)
    session.add(user("word " * 4_600), assistant("yes"), user("two"), assistant("so"), user("three"))
    assert session.view().verdict.fired
    assert session.fold(force=True)
    assert not session.view().verdict.fired


@pytest.mark.promise("I12", "I14")
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.integers(0, 1_200), st.integers(0, 4_500)), min_size=1, max_size=12), st.integers(1, 4))
def test_any_conversation_gives_the_same_need_to_all_who_read_it(turns: list[tuple[int, int]], every: int) -> None:
    with foldline.open(":memory:") as ledger:
        first = ledger.session("s", model="m", policy=POLICY)
        for number, (words, prompt) in enumerate(turns):
            first.add(user("why " * words + "?"))
            if number % every == 0:
                shown(first)
            first.add(reply(prompt))
        first.add(user("so?"))
        assert shown(first) == shown(ledger.session("s")) == shown(ledger.session("s"))


OTHER = """
import json, sys, foldline
view = foldline.open(sys.argv[1]).session("s").view()
print(json.dumps([view.need.name, [str(rule) for rule in view.verdict.fired], view.render("anthropic").body]))
"""


def test_two_processes_on_the_same_rows_need_and_send_the_same(tmp_path: Path) -> None:
    with foldline.open(tmp_path / "a.db") as ledger:
        session = ledger.session("s", model="m", policy=POLICY)
        session.add(user("one"), reply(7_000), user("two"), reply(7_000), user("three"), reply(3_600), user("four"))
        view = session.view()
        command = [sys.executable, "-c", OTHER, str(tmp_path / "a.db")]
        other = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        assert other == [view.need.name, [str(rule) for rule in view.verdict.fired], view.render("anthropic").body]
        assert view.need is Need.SOFT


@pytest.mark.promise("I12", "I14")
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(50, 900), min_size=8, max_size=40))
def test_the_cost_account_of_a_session_opened_later_is_the_same(words: list[int]) -> None:
    policy = Policy.preset("thrifty").but(window_tokens=12_000)
    with foldline.open(":memory:") as ledger:
        session = ledger.session("s", model="claude-sonnet-5", policy=policy)
        for count in words:
            session.add(user("why " * count), assistant("so " * count))
            shown(session)
            assert ledger.session("s").load() == session.load()
