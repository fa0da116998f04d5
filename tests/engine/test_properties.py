"""What holds of every view, whatever the conversation, the preset, the window and the provider: I1 to I13 of the rules.

Each property is driven the way a client drives a session: message by message, with a view at every request. A few
hundred examples run with the suite; `--hypothesis-profile=nightly` runs more than ten thousand of each.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import FrameType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foldline.errors import ViewTooLarge
from foldline.measure.counter import upper
from foldline.message import Message, Part, Text, Thinking, ToolCall, ToolResult, assistant, tool, user
from foldline.plan.cut import floor, newest
from foldline.plan.gate import Need, gate
from foldline.plan.plan import MARKER_TOKENS
from foldline.policy import Policy, Rule, presets
from foldline.session import Session
from foldline.view.compose import View
from foldline.wire.codec import PROVIDERS
from foldline.wire.rules import check
from strategies import arrived, broken, sound
from support.paths import MODELS, TALK, accidents, ask, blocks, drive, odd_policies, policies, small, talks

slow = settings(
    max_examples=max(200, settings().max_examples),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
FOLDING = tuple(name for name in presets() if name not in {"verbatim", "teaparty"})
models = st.sampled_from(MODELS)
any_policy = policies() | odd_policies()
folding = policies(names=FOLDING) | odd_policies()


def conversations() -> st.SearchStrategy[list[Message]]:
    """Sound ones, small and long, neutral and as they came."""
    return talks() | sound(turns=6) | st.sampled_from(PROVIDERS).flatmap(arrived)


def size_of(session: Session, view: View) -> int:
    """The size of a view, counted anew."""
    return session.tools + sum(session.size(message) for message in view.messages)


# Sendable


@slow
@given(any_policy, models, conversations())
def test_every_view_is_one_that_every_provider_takes(policy: Policy, model: str, messages: list[Message]) -> None:
    for sent in drive(Session(model=model, policy=policy), messages):
        if sent.view is not None:
            for provider in PROVIDERS:
                assert not check(provider, sent.view.render(provider).body)


@slow
@given(any_policy, models, broken() | accidents())
def test_a_broken_history_is_sendable_too(policy: Policy, model: str, messages: list[Message]) -> None:
    for sent in drive(Session(model=model, policy=policy), messages):
        if sent.view is not None:
            for provider in PROVIDERS:
                assert not check(provider, sent.view.render(provider).body)


@slow
@given(any_policy, models, broken() | accidents() | talks(most=8))
def test_a_view_may_be_asked_for_at_any_moment(policy: Policy, model: str, messages: list[Message]) -> None:
    session = Session(model=model, policy=policy)
    ask(session)
    for message in messages:
        session.add(message)
        sent = ask(session)
        if sent.view is not None and message.role in {"user", "tool"}:
            for provider in PROVIDERS:
                assert not check(provider, sent.view.render(provider).body)


# Fits, or says so


HEALED = 40
"""Tokens that one healed place may add: a line that says what is missing."""


@slow
@given(any_policy, models, conversations() | broken() | accidents(), st.integers(0, 40))
def test_a_view_fits_or_is_refused_with_its_bill(
    policy: Policy, model: str, messages: list[Message], width: int
) -> None:
    tools = [{"name": "run", "description": "word " * width}] * (width > 0)
    session = Session(model=model, policy=policy, tools=tools)
    for sent in drive(session, messages):
        if sent.view is not None:
            healed = HEALED * len(session.path.broken)
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
    path, policy = session.path, session.policy
    start = newest(path, policy)
    first = path.prompts[:1] if policy.keep_first_prompt else []
    asked = {index for index in (*first, *path.prompts[-1:]) if index < start}
    kept = [*range(path.lead), *asked, *range(start, len(path))]
    digest = policy.digest_tokens if policy.leave == "digest" else MARKER_TOKENS
    return session.tools + digest + sum(session.size(shrunk(path.messages[index])) for index in kept)


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


@slow
@given(folding, models, conversations())
def test_only_what_must_stay_is_a_reason_to_refuse(policy: Policy, model: str, messages: list[Message]) -> None:
    rules = (*policy.rules, Rule.parse("fold when request > 100%"))
    session = Session(model=model, policy=policy.but(rules=rules, keep_hard=False, prune_protect=()))
    for sent in drive(session, messages):
        if sent.refused is not None:
            assert upper(at_least(session)) > session.usable


# What stays


def unanswered(messages: Sequence[Message]) -> list[Message]:
    """Prompts that no reply has followed yet; at least the newest prompt."""
    last = max((n for n, message in enumerate(messages) if message.role == "assistant"), default=-1)
    waiting = [message for message in messages[last + 1 :] if message.is_prompt]
    return waiting or [message for message in messages if message.is_prompt][-1:]


def spoken(message: Message) -> tuple[object, ...]:
    """What a person said in a message, beside results."""
    return tuple(part for part in message.parts if not isinstance(part, ToolResult))


@slow
@given(any_policy, models, conversations())
def test_system_and_unanswered_prompts_stay_word_for_word(policy: Policy, model: str, messages: list[Message]) -> None:
    session = Session(model=model, policy=policy)
    lead = next((n for n, message in enumerate(messages) if message.role != "system"), len(messages))
    for sent in drive(session, messages):
        if sent.view is None:
            continue
        assert all(a is b for a, b in zip(sent.view.messages, messages[:lead], strict=False))
        shown = Counter(spoken(message) for message in sent.view.messages)
        for prompt, times in Counter(map(spoken, unanswered(messages[: sent.given]))).items():
            assert shown[prompt] >= times


@slow
@given(folding, models, talks(), st.sets(st.integers(0, 20), max_size=3))
def test_pins_stay_whole_and_once(policy: Policy, model: str, messages: list[Message], pins: set[int]) -> None:
    session = Session(model=model, policy=policy)
    pins = {index for index in pins if index < len(messages)}
    for sent in drive(session, messages, pins=pins):
        if sent.view is not None:
            shown = Counter(id(message) for message in sent.view.messages)
            assert all(shown[id(messages[index])] == 1 for index in pins if index < sent.given)
            assert max(shown.values()) == 1


# Identity and idempotence


@slow
@given(any_policy, models, conversations())
def test_under_budget_the_view_is_the_input(policy: Policy, model: str, messages: list[Message]) -> None:
    session = Session(model=model, policy=policy.but(prune_arrival_tokens=None, prune_arrival_ratio=None))
    for sent in drive(session, messages):
        if sent.view is None or session.folds:
            return
        assert len(sent.view.messages) == sent.given
        assert all(a is b for a, b in zip(sent.view.messages, messages, strict=False))


@slow
@given(any_policy, models, conversations() | broken() | accidents())
def test_asking_twice_changes_nothing(policy: Policy, model: str, messages: list[Message]) -> None:
    session = Session(model=model, policy=policy)
    for sent in drive(session, messages):
        again = ask(session)
        assert not again.folds
        if sent.view is not None:
            assert again.view is not None
            assert again.view.messages == sent.view.messages
            assert (again.view.tokens, again.view.blocks) == (sent.view.tokens, sent.view.blocks)
        else:
            assert str(again.refused) == str(sent.refused)


@slow
@given(any_policy, models, conversations() | broken())
def test_the_same_messages_give_the_same_views(policy: Policy, model: str, messages: list[Message]) -> None:
    first, second = (Session(model=model, policy=policy) for _ in range(2))
    for one, other in zip(drive(first, messages), drive(second, messages), strict=True):
        assert (one.view and one.view.messages) == (other.view and other.view.messages)
        assert str(one.refused) == str(other.refused)


# Stable prefix


@slow
@given(any_policy, models, conversations())
def test_between_folds_a_request_only_grows_at_its_end(policy: Policy, model: str, messages: list[Message]) -> None:
    session = Session(model=model, policy=policy)
    before: dict[str, list[str]] = {}
    for sent in drive(session, messages):
        if sent.view is None:
            continue
        now = {provider: blocks(sent.view.render(provider).body) for provider in PROVIDERS}
        if not sent.folds:
            for provider, run in before.items():
                assert now[provider][: len(run)] == run
        before = now


# Progress


@slow
@given(any_policy, models, conversations())
def test_a_fold_makes_the_request_smaller_and_lands_below_its_trigger(
    policy: Policy, model: str, messages: list[Message]
) -> None:
    session = Session(model=model, policy=policy)
    for sent in drive(session, messages):
        assert sent.folds <= 1
        if sent.folds:
            assert sent.view is not None
            after = size_of(session, sent.view)
            assert after < sent.before
            fired = [rule for rule in gate(session.load(), policy).fired if rule.action in {"fold", "clip"}]
            again = [rule for rule in fired if rule.basis != "cost"]
            last = newest(session.path, policy)
            if policy.keep_hard or any(rule.basis != "request" for rule in again):
                last = min(last, floor(session.path, policy, session.usable))
            assert not again or sent.view.cut == last


@slow
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
            assert gain >= ratio * sum(session.size(message) for message in session.path.shown[before : sent.view.cut])
        before = session.path.cut


# Conservation


@slow
@given(folding, models, talks())
def test_everything_said_is_shown_or_named(policy: Policy, model: str, messages: list[Message]) -> None:
    session = Session(model=model, policy=policy)
    for sent in drive(session, messages):
        if sent.view is not None:
            account(session, sent.view, messages[: sent.given])


def account(session: Session, view: View, record: Sequence[Message]) -> None:
    """Hold a view against the record: every message whole, cut short under its handle, or in the digest's range."""
    lead, tail = session.path.lead, len(record) - view.cut
    head, kept = view.messages[: len(view.messages) - tail], view.messages[len(view.messages) - tail :]
    for index, (was, now) in enumerate(zip(record[view.cut :], kept, strict=True), start=view.cut):
        cut_short(was, now, f"#{index + 1}")
    known = {id(message): index for index, message in enumerate(record)}
    before = [known.get(id(message), -1) for message in head]
    shown = [index for index in before if index >= 0]
    assert shown == list(dict.fromkeys(shown))
    assert all(index < view.cut for index in shown)
    ours = [message for message, index in zip(head, before, strict=True) if index < 0]
    words = [message for message in ours if message.is_prompt]
    assert all(any(spoken(message) == spoken(was) for was in record[lead : view.cut]) for message in words)
    named = [message.text for message in ours if message.kind in {"digest", "note"}]
    assert len(ours) == len(named) + len(words)
    if view.cut > lead and session.policy.leave != "nothing":
        assert sum(bool(re.search(rf"#{lead + 1}(-{view.cut})?\b", text)) for text in named) >= 1


STUB = re.compile(
    r"(?s)(?P<shown>.*?)\n?\[pruned, [^\n]*?: (?P<count>[\d,]+) of (?P<all>[\d,]+) characters shown"
    r"(?P<left> and \d+ attachments? left out)?; the whole is (?P<name>#\d+), ask recall for it\]"
)
SHORT = re.compile(r"(?s)(?P<shown>.*)\[(?P<count>[\d,]+) characters left out; the whole is (?P<name>#\d+)\]")


def cut_short(was: Message, now: Message, name: str) -> None:
    """A message is the same object, or its results and arguments are honest pieces of what they were."""
    if was is now:
        return
    assert (was.role, was.kind, len(was.parts)) == (now.role, now.kind, len(now.parts))
    for old, new in zip(was.parts, now.parts, strict=True):
        if isinstance(old, ToolResult) and isinstance(new, ToolResult) and old != new:
            stub = STUB.fullmatch(new.text)
            assert stub is not None
            assert (stub["name"], stub["count"], stub["all"]) == (
                name,
                f"{len(stub['shown']):,}",
                f"{len(old.text):,}",
            )
            assert old.text.startswith(stub["shown"])
            assert len(stub["shown"]) < len(old.text) or stub["left"]
            assert (old.call_id, old.name, old.is_error) == (new.call_id, new.name, new.is_error)
            assert all(isinstance(part, Text) for part in new.parts)
        elif isinstance(old, ToolCall) and isinstance(new, ToolCall) and old != new:
            assert (old.id, old.name) == (new.id, new.name)
            same_keys(json.loads(old.arguments), json.loads(new.arguments), name)
        else:
            assert old is new


def same_keys(old: object, new: object, name: str) -> None:
    """JSON with the same keys, whose strings are whole or cut short under their handle."""
    if isinstance(old, dict):
        assert isinstance(new, dict)
        assert list(old) == list(new)
        for key in old:
            same_keys(old[key], new[key], name)
    elif isinstance(old, str) and old != new:
        short = SHORT.fullmatch(str(new))
        assert short is not None
        assert old.startswith(short["shown"])
        assert (short["name"], short["count"]) == (name, f"{len(old) - len(short['shown']):,}")
    else:
        assert old == new


# Opaque data


@slow
@given(folding, models, talks(kinds=(*TALK, "thinking", "thinking", "item", "arguments")))
def test_thinking_stays_as_it_was_or_leaves_with_its_message(
    policy: Policy, model: str, messages: list[Message]
) -> None:
    session = Session(model=model, policy=policy)
    thoughts = {id(part): message for message in messages for part in message.parts if isinstance(part, Thinking)}
    for sent in drive(session, messages):
        if sent.view is None:
            continue
        for message in sent.view.messages:
            for part in message.parts:
                assert not isinstance(part, Thinking) or id(part) in thoughts
        for message in session.path.messages[sent.view.cut :]:
            assert {id(part) for part in message.parts if isinstance(part, Thinking)} <= {
                id(part) for shown in sent.view.messages for part in shown.parts
            }


# Cost


@pytest.mark.parametrize("name", presets())
def test_a_message_costs_the_same_however_long_the_conversation_is(name: str) -> None:
    """Counted in calls, not in time: the thousandth turn makes no more of them than the hundredth."""
    policy = small(name, 4_000) if name in FOLDING else Policy.preset(name).but(window_tokens=1_000_000)
    session = Session(model="claude-sonnet-5", policy=policy)
    costs = []
    for turns in (150, 150, 600, 150):
        calls = count_calls(lambda: turn(session), turns)
        costs.append(calls / turns)
    assert costs[3] <= 1.1 * max(costs[0], costs[1])


def turn(session: Session) -> None:
    """A prompt, a step, a reply."""
    place = len(session.path)
    call = ToolCall(id=f"call_{place}", name="run")
    session.add(user(f"Do {place}."))
    session.view()
    session.add(assistant("", call), tool(call.id, "done " * 20))
    session.view()
    session.add(assistant("It is done."))


def count_calls(action: Callable[[], None], times: int) -> int:
    """How many calls of Python functions some turns make."""
    calls = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(note)
    try:
        for _ in range(times):
            action()
    finally:
        sys.setprofile(None)
    return calls
