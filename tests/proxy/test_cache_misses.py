"""Every request gets a receipt, and every cache miss the cause that made it."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from foldline.ledger.receipts import sum_receipts
from support.proxy_agents import BOUND, MODELS, Agent, folding, receipts

pytest.importorskip("aiohttp")
MARKED = {"cache_control": {"type": "ephemeral"}}
SYSTEM = "You are a careful engineer. " + "Read before you write, and test what you change. " * 150


class Clock:
    """A clock that only moves when a test moves it."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


class CachingAgent(Agent):
    """An agent whose tools and requests can be changed, as an injected cause of a miss."""

    tools_text = "Run a command."

    def body(self) -> dict[str, Any]:
        body = super().body()
        if self.format == "gemini":
            body["tools"][0]["functionDeclarations"][0]["description"] = self.tools_text
        elif self.format == "openai":
            body["tools"][0]["function"] = {**body["tools"][0]["function"], "description": self.tools_text}
        else:
            body["tools"][0]["description"] = self.tools_text
        return body


def caching_agent(url: str, format: str, **given: Any) -> CachingAgent:
    extra = MARKED if format == "anthropic" else {}
    headers = {"x-foldline-session": "work"}
    return CachingAgent(url, format, headers=headers, system=SYSTEM, extra=dict(extra), **given)


def change_tools(agent: CachingAgent, _clock: Clock) -> None:
    agent.tools_text += " Only on this machine."


def change_system(agent: CachingAgent, _clock: Clock) -> None:
    agent.system = agent.system.replace("careful", "very careful")


def change_history(agent: CachingAgent, _clock: Clock) -> None:
    """Edit the second prompt of the user."""
    message = agent.messages[second_prompt(agent)]
    if agent.format == "gemini":
        message["parts"][0]["text"] += " (edited)"
    elif agent.format == "openai-responses":
        message["content"][0]["text"] += " (edited)"
    else:
        message["content"] += " (edited)"


def second_prompt(agent: CachingAgent) -> int:
    """Index of the second prompt in the agent's history."""
    found = [index for index, message in enumerate(agent.messages) if "Please look at part" in str(message)]
    return found[1]


def change_model(agent: CachingAgent, _clock: Clock) -> None:
    agent.model = {"claude-sonnet-4-5": BOUND, "gpt-5.1": "gpt-5", "gemini-3-pro": "gemini-3-flash"}[agent.model]


def wait_too_long(_agent: CachingAgent, clock: Clock) -> None:
    clock.now += 7_200.0


CAUSES: dict[str, Callable[[CachingAgent, Clock], None]] = {
    "tools": change_tools,
    "system": change_system,
    "history": change_history,
    "model": change_model,
    "expired": wait_too_long,
}
PATHS: dict[str, dict[str, str]] = {
    "tools": dict.fromkeys(MODELS, "tools[0]"),
    "system": {"openai": "messages[0]", "openai-responses": "instructions", "gemini": "systemInstruction"},
    "history": {"openai": "messages", "openai-responses": "input", "gemini": "contents"},
}


@pytest.mark.parametrize("format", MODELS)
@pytest.mark.parametrize("cause", CAUSES)
def test_the_cause_of_a_miss_is_named_with_the_place_of_the_first_difference(
    tmp_path: Path, format: str, cause: str
) -> None:
    clock = Clock()
    with folding(tmp_path, window=200_000, mode="observe", clock=clock) as (provider, running):
        agent = caching_agent(running.url, format)
        agent.work(provider, 8, words=300)
        clock.now += 30
        CAUSES[cause](agent, clock)
        agent.work(provider, 4, words=300)
        sent = [request.body for request in provider.requests]
    found = receipts(tmp_path)
    assert len(found) == len(sent)
    assert [one.miss.cause for one in found if one.miss is not None] == [cause]
    missed = found[8].miss
    assert missed is not None
    assert missed.tokens > 1_000
    assert (missed.usd or 0) > 0
    if cause in PATHS:
        place = second_prompt(agent) + (format == "openai")
        named = PATHS[cause].get(format, "messages" if cause == "history" else cause)
        assert missed.path == (f"{named}[{place}]" if cause == "history" else named)
        assert missed.offset > 0
    if cause == "expired":
        assert missed.pause_s > 7_000


def test_changed_settings_are_named_as_the_cause(tmp_path: Path) -> None:
    with folding(tmp_path, window=200_000, mode="observe") as (provider, running):
        agent = caching_agent(running.url, "anthropic")
        agent.work(provider, 8, words=300)
        agent.extra["tool_choice"] = {"type": "auto", "disable_parallel_tool_use": True}
        agent.work(provider, 4, words=300)
    assert [(one.miss.cause, one.miss.path) for one in receipts(tmp_path) if one.miss is not None] == [
        ("settings", "tool_choice")
    ]


@pytest.mark.parametrize("format", MODELS)
def test_a_fold_is_the_cause_of_the_miss_after_it_and_of_no_other(tmp_path: Path, format: str) -> None:
    with folding(tmp_path) as (provider, running):
        agent = caching_agent(running.url, format)
        agent.system = SYSTEM[:4_000]
        agent.work(provider, 60, words=200)
        assert provider.refused == []
    found = receipts(tmp_path)
    folds = [one.field_hashes.get("fold") for one in found]
    at_folds = [index for index in range(1, 60) if folds[index] != folds[index - 1]]
    assert len(at_folds) > 1
    missed = {index: one.miss.cause for index, one in enumerate(found) if one.miss is not None}
    assert missed
    assert set(missed) <= set(at_folds)
    assert set(missed.values()) == {"fold"}
    for one in found:
        if one.miss is not None:  # the digest and the new messages were in no cache
            assert one.miss.tokens + one.usage.cache_read < one.usage.prompt - 200


def test_a_moved_cache_mark_is_no_miss(tmp_path: Path) -> None:
    with folding(tmp_path, window=200_000, mode="observe") as (_, running):
        agent = caching_agent(running.url, "anthropic")
        agent.extra = {}
        for number in range(12):
            for message in agent.messages:
                if isinstance(message["content"], list):
                    for block in message["content"]:
                        block.pop("cache_control", None)
            content = [{"type": "text", "text": f"Question {number}. " + "why? " * 200, **MARKED}]
            agent.messages.append({"role": "user", "content": content})
            assert agent.send()[0] == 200
    found = receipts(tmp_path)
    assert [one.miss for one in found] == [None] * 12
    assert found[-1].usage.cache_read > 1_000


def test_misses_are_named_right_in_a_long_session_with_many_injected_causes(tmp_path: Path) -> None:
    clock, drawn = Clock(), random.Random(17)
    injected: dict[int, str] = {}
    with folding(tmp_path, window=400_000, mode="observe", clock=clock) as (provider, running):
        agent = caching_agent(running.url, "anthropic")
        agent.work(provider, 4, words=100)
        for _ in range(40):
            cause = drawn.choice(list(CAUSES))
            if cause == "model":
                continue
            injected[len(provider.requests)] = cause
            CAUSES[cause](agent, clock)
            clock.now += drawn.randrange(1, 200)
            agent.work(provider, 4, words=30)
            clock.now += drawn.randrange(1, 100)
    found = {index: one.miss.cause for index, one in enumerate(receipts(tmp_path)) if one.miss is not None}
    assert found == injected


def test_the_causes_are_named_after_a_restart_too(tmp_path: Path) -> None:
    agent = caching_agent("", "anthropic")
    for cause in ("tools", "system"):
        with folding(tmp_path, window=200_000, mode="observe") as (provider, running):
            agent.url, agent.messages = running.url, []
            agent.headers = {"x-foldline-session": f"work-{cause}"}
            agent.work(provider, 8, words=300)
            agent.messages.append({"role": "user", "content": "And then?"})
        CAUSES[cause](agent, Clock())
        with folding(tmp_path, window=200_000, mode="observe") as (_, running):
            agent.url = running.url
            assert agent.send()[0] == 200
        newest = receipts(tmp_path, f"work-{cause}")[-1]
        assert newest.miss is not None
        assert newest.miss.cause == cause


def test_a_receipt_has_the_figures_of_the_provider_and_their_price(tmp_path: Path) -> None:
    with folding(tmp_path, window=200_000) as (provider, running):
        agent = caching_agent(running.url, "anthropic")
        agent.work(provider, 12, words=100)
        bill = provider.bill
    found = sum_receipts(receipts(tmp_path))
    assert found.requests == 12
    tokens = bill.tokens
    assert (found.usage.input, found.usage.cache_read) == (tokens.plain, tokens.read)
    assert found.usage.cache_write == tokens.write_5m
    assert found.usd == pytest.approx(bill.usd)
    assert found.untouched_usd == pytest.approx(bill.usd)


@pytest.mark.parametrize("format", MODELS)
def test_the_bill_of_the_untouched_requests_is_what_they_really_would_have_cost(tmp_path: Path, format: str) -> None:
    """The same conversation is sent through a folding proxy and without one."""
    with folding(tmp_path, window=400_000, mode="observe", ledger=str(tmp_path / "plain.db")) as (provider, running):
        agent = caching_agent(running.url, format)
        agent.work(provider, 80, words=200)
        real = provider.bill
    with folding(tmp_path) as (provider, running):
        agent = caching_agent(running.url, format)
        agent.work(provider, 80, words=200)
        sent = provider.bill
    found = sum_receipts(receipts(tmp_path))
    assert found.folded > 20
    assert found.usd == pytest.approx(sent.usd)
    assert found.untouched.prompt == pytest.approx(real.tokens.total, rel=0.05)
    assert found.untouched_usd == pytest.approx(real.usd, rel=0.08)


def test_the_price_of_a_cold_cache_is_in_a_header_before_it_is_paid(tmp_path: Path) -> None:
    clock = Clock()
    with folding(tmp_path, window=200_000, clock=clock) as (provider, running):
        agent = caching_agent(running.url, "anthropic")
        agent.work(provider, 8, words=300)
        warm = agent.answers[-1][1]["x-foldline-cache"]
        clock.now += 3_600
        agent.work(provider, 4, words=300)
        cold = agent.answers[-4][1]["x-foldline-cache"]
    found = receipts(tmp_path)
    assert warm.startswith("warm; expires=")
    assert cold.startswith("cold; expires=")
    usd = float(cold.rpartition("usd=")[2])
    missed = found[-4].miss
    assert missed is not None
    assert missed.usd == pytest.approx(usd, rel=0.02)


def test_receipts_hold_no_text_of_the_conversation(tmp_path: Path) -> None:
    with folding(tmp_path, window=200_000) as (provider, running):
        agent = caching_agent(running.url, "anthropic")
        agent.work(provider, 8, words=30)
        change_history(agent, Clock())
        agent.work(provider, 4, words=30)
    text = repr(receipts(tmp_path))
    assert "careful" not in text
    assert "edited" not in text
    assert "sk-test" not in text
