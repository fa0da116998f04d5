"""A replay accounts for requests as a provider would, whatever the policy."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.message import Message, Meta, assistant, tool, user
from foldline.message import ToolCall as Call
from foldline.models.table import model
from foldline.plan.fold_cost import prices_of, request_cost
from foldline.policy import Policy, presets
from foldline.replay import MILLION, CachedCounter, Replay, replay, request_positions
from foldline.session.transcript_session import context_segments
from foldline.wire import Transcript, parse
from support.sessions import SESSIONS

MODEL = "claude-sonnet-4-5"


def session(steps: int, *, gap: float = 10.0, words: int = 300) -> Transcript:
    messages: list[Message] = [user("Find out why port 7091 drops jobs.")]
    for step in range(steps):
        messages.append(assistant(f"Step {step}.", Call(id=f"c{step}", name="grep")))
        messages.append(tool(f"c{step}", f"part_{step} " * words))
    timed = [
        Message(role=one.role, parts=one.parts, kind=one.kind, meta=Meta(at=place * gap))
        for place, one in enumerate(messages)
    ]
    return Transcript(format="anthropic", messages=tuple(timed), model=MODEL)


def run(transcript: Transcript, policy: Policy, **options: int) -> Replay:
    return replay(transcript, policy, name="tried", counter=CachedCounter(MODEL), **options)


@given(steps=st.integers(1, 12), gap=st.sampled_from([10.0, 400.0]), system_tokens=st.sampled_from([0, 18_000]))
def test_a_policy_that_never_folds_sends_everything(steps: int, gap: float, system_tokens: int) -> None:
    made = run(session(steps, gap=gap), Policy.preset("verbatim"), system_tokens=system_tokens)
    assert (made.sent, made.cost, made.folds, made.refused) == (made.everything, made.cost_everything, 0, 0)
    assert made.largest == made.whole == max(made.sizes)
    assert made.requests == steps


def test_extra_tokens_beside_the_messages_make_the_default_policy_fold() -> None:
    """System prompt and tool schemas that no message shows count for the gate, not only for the account."""
    policy = Policy.preset("balanced").but(window_tokens=30_000, reply_tokens=0)
    assert run(session(12), policy).folds == 0
    made = run(session(12), policy, system_tokens=18_000)
    assert made.folds > 0
    assert made.over == 0


def test_what_the_cache_has_is_read_and_the_rest_written() -> None:
    """By hand: every request begins with the whole one before it."""
    transcript = session(6)
    made = run(transcript, Policy.preset("verbatim"))
    sizes, prices = made.sizes, prices_of(model(MODEL))
    by_hand = request_cost(prices, tokens=sizes[0], common=0, warm=True)
    for before, now in pairwise(sizes):
        by_hand += request_cost(prices, tokens=now, common=before, warm=True)
    assert made.cost == pytest.approx(by_hand / MILLION)
    assert made.read == sum(size for size in sizes[:-1] if size >= prices.min_prefix)


def test_after_a_long_pause_nothing_is_read() -> None:
    warm, cold = run(session(6), Policy.preset("verbatim")), run(session(6, gap=400.0), Policy.preset("verbatim"))
    assert cold.read == 0
    assert cold.sent == warm.sent
    assert cold.cost is not None
    assert warm.cost is not None
    assert cold.cost > warm.cost


def test_a_fold_pays_for_what_it_rewrites() -> None:
    policy = Policy.preset("balanced").but(window_tokens=8_000, reply_tokens=0)
    made = run(session(40), policy)
    assert made.folds > 0
    assert made.folded > 0
    assert max(made.sizes) <= 8_000 < made.whole
    assert made.sent < made.everything
    assert 0 < made.read < made.sent


@pytest.mark.parametrize("name", presets())
def test_every_preset_counts_by_the_same_measure(name: str) -> None:
    """A policy may decide by words or characters; what it sent is told in the model's tokens."""
    made = run(session(8), Policy.preset(name))
    assert made.everything == run(session(8), Policy.preset("verbatim")).everything
    assert made.requests == 8


def test_refused_requests_cost_nothing() -> None:
    made = run(session(6), Policy.preset("verbatim").but(window_tokens=1_200, reply_tokens=0))
    assert made.refused == made.sizes.count(0) > 0
    assert made.sent < made.everything


def test_a_policy_that_counts_too_low_is_found_out() -> None:
    policy = Policy(counter="words", window_tokens=6_000, reply_tokens=0, rules=())
    made = run(session(12), policy)
    assert made.over > 0


def test_the_agents_own_digests_change_nothing() -> None:
    plain = parse(SESSIONS["claude-code"](6))
    digest = user("This session is being continued.", kind="digest")
    compacted = Transcript(
        format=plain.format, messages=(*plain.messages[:5], digest, *plain.messages[5:]), model=plain.model
    )
    one, other = (run(each, Policy.preset("balanced"), system_tokens=0) for each in (plain, compacted))
    assert one == other
    assert [len(part) for part in context_segments(compacted)] == [5, len(plain.messages) - 4]


def test_a_model_without_prices_has_no_cost() -> None:
    made = replay(session(3), Policy.preset("balanced"), name="x", counter=CachedCounter("nobody/knows-this"))
    assert made.cost is None
    assert made.cost_everything is None
    assert made.sent > 0


def test_requests_are_where_a_reply_begins() -> None:
    talk = [user("a"), assistant("b"), assistant("c"), user("d"), assistant("e")]
    assert request_positions(talk) == [1, 4]
    assert request_positions([assistant("b"), user("a")]) == []


def test_a_refused_request_is_explained_by_its_parts() -> None:
    transcript = session(6)
    made = run(transcript, Policy.preset("balanced").but(window_tokens=8_000), system_tokens=9_000)
    assert made.refused == made.requests == 6
    assert made.refused_parts["hidden"] == 9_000
    assert sum(made.refused_parts.values()) > made.usable
    assert f"({', '.join(f'{name} {size:,}' for name, size in made.refused_parts.items() if size)})" in made.refusal
    assert made.remedy
    assert made.remedy in made.refusal


@pytest.mark.parametrize("policy", ["balanced", "verbatim"])
def test_the_largest_message_of_a_refused_request_is_named(policy: str) -> None:
    messages = (user("Read this. " + "word " * 30_000), assistant("I see."), user("Go on."), assistant("Yes."))
    transcript = Transcript(format="anthropic", messages=messages, model=MODEL)
    made = run(transcript, Policy.preset(policy).but(window_tokens=32_000))
    assert made.refused == 2
    assert made.largest_message == 1
    assert made.largest_message_tokens > made.usable


def test_the_margin_of_an_estimate_lowers_the_limits() -> None:
    made = run(session(40), Policy.preset("balanced").but(window_tokens=16_000))
    assert made.folds
    assert made.folds_at < made.ceiling < made.usable < made.window
    assert max(made.sizes) <= made.folds_at


def test_a_blank_reply_in_the_middle_costs_no_cache_miss() -> None:
    """The reply is left out of later requests. What was sent before it stays the same, so it is read from the cache."""
    elements: list[dict[str, object]] = [{"role": "user", "content": "Find out why port 7091 drops jobs."}]
    for step in range(6):
        calls = [{"type": "tool_use", "id": f"{name}{step}", "name": "grep", "input": {}} for name in "ab"]
        elements.append({"role": "assistant", "content": calls})
        for call in calls:
            result = {"type": "tool_result", "tool_use_id": call["id"], "content": f"part_{step} " * 300}
            elements.append({"role": "user", "content": [result]})
        if step == 3:
            elements.append({"role": "assistant", "content": [{"type": "text", "text": " "}]})
            elements.append({"role": "user", "content": "Go on."})
    messages = parse(elements, "anthropic").messages
    timed = [replace(message, meta=Meta(at=place * 10.0)) for place, message in enumerate(messages)]
    made = run(Transcript(format="anthropic", messages=tuple(timed), model=MODEL), Policy.preset("verbatim"))
    assert made.cost is not None
    assert made.cost_everything == pytest.approx(made.cost, rel=0.01)
