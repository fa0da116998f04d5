"""What holds of every view, whatever the conversation, the preset, the window and the provider: I1 to I13 of the rules.

Each property is driven the way a client drives a session: message by message, with a view at every request. A few
hundred examples run with the suite; `--hypothesis-profile=nightly` runs more than ten thousand of each.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.errors import InputError, ViewTooLarge
from foldline.measure.estimator import with_margin
from foldline.message import Message, Part, Text, ToolCall, ToolResult
from foldline.plan.cut import floor, newest_unit
from foldline.plan.gate import Need, gate
from foldline.plan.plan import DIGEST_SHARE, MARKER_TOKENS
from foldline.policy import Policy, Rule
from foldline.session import Session
from foldline.view.bound_thinking import without_thinking
from foldline.view.compose import View
from foldline.wire.formats import REQUEST_FORMATS
from foldline.wire.validate import check
from strategies import arrived, broken, sound
from support.knobs import any_policy, folding, models, thorough
from support.paths import TALK, accidents, ask, blocks, drive, spoken, talks, turning_points


def conversations() -> st.SearchStrategy[list[Message]]:
    """Sound ones, small and long, neutral and as they came."""
    return talks() | talks() | sound() | st.sampled_from(REQUEST_FORMATS).flatmap(arrived)


def size_of(session: Session, view: View) -> int:
    """The size of a view, counted anew. Thinking of earlier turns does not count if the provider drops it."""
    counted = list(view.messages)
    if session.state.setup.model.drops_thinking:
        newest = max((index for index, message in enumerate(counted) if message.is_prompt), default=0)
        counted[:newest] = map(without_thinking, counted[:newest])
    return session.state.tools + sum(map(session.size, counted))


# Sendable


@pytest.mark.promise("I1", "I2")
@thorough
@given(any_policy, models, conversations())
def test_every_view_is_one_that_every_provider_takes(policy: Policy, model: str, messages: list[Message]) -> None:
    for sent in turning_points(Session(model=model, policy=policy, clock=lambda: None), messages):
        if sent.view is not None:
            for provider in REQUEST_FORMATS:
                assert not check(provider, sent.view.render(provider).body)


def assert_sendable_everywhere(view: View) -> None:
    """The view is valid in every format, apart from types from the future, which foldline sends as they are.

    A view of nothing but blank and system messages is an error.
    """
    for provider in REQUEST_FORMATS:
        try:
            body = view.render(provider).body
        except InputError:
            talk = [message for message in view.messages if message.role != "system"]
            assert not any(any(map(str.isprintable, message.text.strip())) or message.calls for message in talk)
            assert not any(message.results for message in talk)
        else:
            assert not [each for each in check(provider, body) if "item_from_the_future" not in str(each)]


@pytest.mark.promise("I1", "I2")
@thorough
@given(any_policy, models, broken() | accidents())
def test_a_broken_history_is_sendable_too(policy: Policy, model: str, messages: list[Message]) -> None:
    for sent in drive(Session(model=model, policy=policy, clock=lambda: None), messages):
        if sent.view is not None:
            assert_sendable_everywhere(sent.view)


@pytest.mark.promise("I2")
@thorough
@given(any_policy, models, broken() | accidents() | talks(most=8))
def test_a_view_may_be_asked_for_at_any_moment(policy: Policy, model: str, messages: list[Message]) -> None:
    session = Session(model=model, policy=policy, clock=lambda: None)
    ask(session)
    for message in messages:
        session.add(message)
        sent = ask(session)
        if sent.view is not None and message.role in {"user", "tool"}:
            assert_sendable_everywhere(sent.view)


# Fits, or says so


HEALED = 40
"""Tokens that one healed place may add: a line that says what is missing."""


@pytest.mark.promise("I3", "F16")
@thorough
@given(any_policy, models, conversations() | broken() | accidents(), st.integers(0, 40))
def test_a_view_fits_or_is_refused_with_its_bill(
    policy: Policy, model: str, messages: list[Message], width: int
) -> None:
    tools = [{"name": "run", "description": "word " * width}] * (width > 0)
    session = Session(model=model, policy=policy, tools=tools)
    for sent in drive(session, messages):
        if sent.view is not None:
            healed = HEALED * len(session.timeline.broken)
            assert size_of(session, sent.view) <= sent.view.usable + healed
            assert abs(sum(sent.view.blocks.values()) - sent.view.tokens) <= healed
            assert sent.view.tokens <= sent.view.usable
        else:
            refused = sent.refused
            assert isinstance(refused, ViewTooLarge)
            assert refused.limit == session.usable < refused.tokens == sum(refused.bill.values())
            assert refused.hint
            assert all(amount >= 0 for amount in refused.bill.values())


def at_least(session: Session) -> int:
    """What no policy may drop: the newest unit with its results cut short, the words the user waits on, the system."""
    timeline, policy = session.timeline, session.policy
    start = newest_unit(timeline, policy)
    first = timeline.prompts[:1] if policy.keep_first_prompt else []
    asked = {index for index in (*first, *timeline.prompts[-1:]) if index < start}
    kept = [*range(timeline.lead), *asked, *range(start, len(timeline))]
    room = max(MARKER_TOKENS, int(DIGEST_SHARE * session.usable))
    digest = MARKER_TOKENS + (min(policy.digest_tokens, room) if policy.leave == "digest" else 0)
    return session.state.tools + digest + sum(session.size(shrunk(timeline.messages[index])) for index in kept)


def shrunk(message: Message) -> Message:
    """A message as small as it may honestly be: the start of each result, and of each long argument."""
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, ToolResult) and len(part.text) > 200:
            parts.append(replace(part, parts=(Text(text=part.text[:200] + "x" * 150),)))
        elif isinstance(part, ToolCall) and len(part.arguments) > 400:
            given = {key: value[:100] + "x" * 60 for key, value in json.loads(part.arguments).items()}
            parts.append(replace(part, arguments=json.dumps(given, ensure_ascii=False)))
        else:
            parts.append(part)
    return replace(message, parts=tuple(parts))


@pytest.mark.promise("I3")
@thorough
@given(folding, models, conversations())
def test_only_what_must_stay_is_a_reason_to_refuse(policy: Policy, model: str, messages: list[Message]) -> None:
    rules = (*policy.rules, Rule.parse("fold when request > 100%"))
    session = Session(model=model, policy=policy.but(rules=rules, keep_hard=False, prune_protect=()))
    for sent in drive(session, messages):
        if sent.refused is not None:
            assert with_margin(at_least(session)) > session.usable


# What stays


def unanswered(messages: Sequence[Message]) -> list[Message]:
    """Prompts that no reply has followed yet; at least the newest prompt."""
    last = max((n for n, message in enumerate(messages) if message.role == "assistant"), default=-1)
    waiting = [message for message in messages[last + 1 :] if message.is_prompt]
    return waiting or [message for message in messages if message.is_prompt][-1:]


@pytest.mark.promise("I8")
@thorough
@given(any_policy, models, conversations())
def test_system_and_unanswered_prompts_stay_word_for_word(policy: Policy, model: str, messages: list[Message]) -> None:
    session = Session(model=model, policy=policy, clock=lambda: None)
    lead = next((n for n, message in enumerate(messages) if message.role != "system"), len(messages))
    for sent in drive(session, messages):
        if sent.view is None:
            continue
        assert all(a is b for a, b in zip(sent.view.messages, messages[:lead], strict=False))
        shown = Counter(spoken(message) for message in sent.view.messages)
        for prompt, times in Counter(map(spoken, unanswered(messages[: sent.given]))).items():
            assert shown[prompt] >= times


@pytest.mark.promise("I8")
@thorough
@given(folding, models, talks(), st.sets(st.integers(0, 20), max_size=3))
def test_pins_stay_whole_and_once(policy: Policy, model: str, messages: list[Message], pins: set[int]) -> None:
    session = Session(model=model, policy=policy, clock=lambda: None)
    pins = {index for index in pins if index < len(messages)}
    for sent in drive(session, messages, pins=pins):
        if sent.view is not None:
            shown = Counter(id(message) for message in sent.view.messages)
            assert all(shown[id(messages[index])] == 1 for index in pins if index < sent.given)
            assert max(shown.values()) == 1


@pytest.mark.promise("I8")
@thorough
@given(folding, models, talks(kinds=(*TALK, "pending", "pending")))
def test_the_first_task_and_open_calls_stay_once(policy: Policy, model: str, messages: list[Message]) -> None:
    """A call that has only said "still running" is open, however long ago it was made."""
    session = Session(model=model, policy=policy.but(keep_first_prompt=True))
    task = next(message for message in messages if message.is_prompt)
    for sent in drive(session, messages):
        if sent.view is not None:
            assert sum(spoken(message) == spoken(task) for message in sent.view.messages) == 1
            asked = Counter(call.id for message in sent.view.messages for call in message.calls)
            assert all(asked[name] == 1 for name in session.timeline.waiting)
            assert set(asked.values()) <= {1}


# Identity and idempotence


@pytest.mark.promise("I6")
@thorough
@given(any_policy, models, conversations())
def test_under_budget_the_view_is_the_input(policy: Policy, model: str, messages: list[Message]) -> None:
    policy = policy.but(prune_arrival_tokens=None, prune_arrival_ratio=None)
    session = Session(model=model, policy=policy, clock=lambda: None)
    for sent in drive(session, messages):
        if sent.view is None or session.folds:
            return
        assert len(sent.view.messages) == sent.given
        assert all(a is b for a, b in zip(sent.view.messages, messages, strict=False))


@pytest.mark.promise("I5")
@thorough
@given(any_policy, models, conversations() | broken() | accidents())
def test_asking_twice_changes_nothing(policy: Policy, model: str, messages: list[Message]) -> None:
    session = Session(model=model, policy=policy, clock=lambda: None)
    for sent in drive(session, messages):
        again = ask(session)
        assert not again.folds
        if sent.view is not None:
            assert again.view is not None
            assert again.view.messages == sent.view.messages
            assert (again.view.tokens, again.view.blocks) == (sent.view.tokens, sent.view.blocks)
        else:
            assert str(again.refused) == str(sent.refused)


@thorough
@given(any_policy, models, conversations() | broken())
def test_the_same_messages_give_the_same_views(policy: Policy, model: str, messages: list[Message]) -> None:
    first, second = (Session(model=model, policy=policy, clock=lambda: None) for _ in range(2))
    for one, other in zip(drive(first, messages), drive(second, messages), strict=True):
        assert (one.view and one.view.messages) == (other.view and other.view.messages)
        assert str(one.refused) == str(other.refused)


# Stable prefix


@pytest.mark.promise("I12")
@thorough
@given(any_policy, models, conversations())
def test_between_folds_a_request_only_grows_at_its_end(policy: Policy, model: str, messages: list[Message]) -> None:
    session = Session(model=model, policy=policy, clock=lambda: None)
    before: dict[str, list[str]] = {}
    for sent in drive(session, messages):
        if sent.view is None:
            continue
        now = {provider: blocks(sent.view.render(provider).body) for provider in REQUEST_FORMATS}
        if not sent.folds:
            for provider, run in before.items():
                assert now[provider][: len(run)] == run
        before = now


# Progress


@pytest.mark.promise("I5", "I12")
@thorough
@given(any_policy, models, conversations())
def test_a_fold_makes_the_request_smaller_and_lands_below_its_trigger(
    policy: Policy, model: str, messages: list[Message]
) -> None:
    session = Session(model=model, policy=policy, clock=lambda: None)
    for sent in drive(session, messages):
        assert sent.folds <= 1
        if sent.folds:
            assert sent.view is not None
            after = size_of(session, sent.view)
            assert after < sent.before
            fired = [rule for rule in gate(session.load(), policy).fired if rule.action in {"fold", "clip"}]
            again = [rule for rule in fired if rule.basis != "cost"]
            last = newest_unit(session.timeline, policy)
            if policy.keep_hard or any(rule.basis != "request" for rule in again):
                last = min(last, floor(session.timeline, policy, session.usable))
            assert not again or sent.view.cut == last


@pytest.mark.promise("I5")
@thorough
@given(folding, st.integers(0, 800), st.floats(0, 0.9), models, talks(most=40))
def test_a_wish_is_granted_only_for_a_gain(
    policy: Policy, tokens: int, ratio: float, model: str, messages: list[Message]
) -> None:
    session = Session(model=model, policy=policy.but(min_gain_tokens=tokens, min_gain_ratio=ratio))
    before = 0
    for sent in drive(session, messages):
        if sent.folds and sent.view is not None and sent.need is Need.SOFT:
            gain = sent.before - size_of(session, sent.view)
            assert gain >= tokens
            assert gain >= ratio * sum(
                session.size(message) for message in session.timeline.shown[before : sent.view.cut]
            )
        before = session.timeline.cut
