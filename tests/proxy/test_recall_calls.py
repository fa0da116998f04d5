"""With `--recall`, the proxy offers the recall tool to the model and answers it. The client never sees a call."""

from __future__ import annotations

import http.client
import json
import re
from pathlib import Path
from typing import Any

import pytest

from foldline.testing.provider import ScriptedReply, SimulatedProvider, fail
from support.command import foldline
from support.proxies import RunningProxy
from support.proxy_agents import BOUND, Agent, elements, folding, receipts

pytest.importorskip("aiohttp")
FORMATS = ("anthropic", "openai", "openai-responses", "gemini")
CALL = ScriptedReply(text="Let me look it up. ", calls=(("recall", {"query": "the secret word"}),))
SECRET = "the secret word is heliotrope"


def folded_agent(provider: SimulatedProvider, running: RunningProxy, format: str = "anthropic", **given: Any) -> Agent:
    """An agent whose first message is folded away."""
    agent = Agent(running.url, format, headers={"x-foldline-session": "work"}, **given)
    agent.say(f"Remember: {SECRET}. " + "More of it follows. " * 20)
    agent.work(provider, 40, words=200, thinking="Let me think." if given.get("extra") else "")
    assert int(agent.answers[-1][1]["x-foldline-folds"]) >= 1
    return agent


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("format", FORMATS)
def test_a_recall_call_is_answered_by_the_proxy_and_unseen_by_the_client(
    tmp_path: Path, format: str, streams: bool
) -> None:
    with folding(tmp_path, offers_recall=True) as (provider, running):
        agent = folded_agent(provider, running, format, streams=streams)
        before = len(provider.requests)
        provider.script(CALL, ScriptedReply(text="It is heliotrope."))
        status, headers, data = agent.say("What was the secret word?")
        assert (status, headers["x-foldline-session"]) == (200, "work")
        assert b'"recall"' not in data
        shown = json.dumps(agent.messages)
        assert "recall" not in shown
        assert "Let me look it up. " in shown
        assert "It is heliotrope." in shown
        first, second = provider.requests[before:]
        assert '"recall"' in json.dumps(first.body["tools"])
        assert elements(second)[: len(elements(first))] == elements(first)
        assert SECRET in json.dumps(elements(second)[-1])
        agent.work(provider, 12)
        last = elements(provider.requests[-1])
        assert elements(second) == last[: len(elements(second))] or int(agent.answers[-1][1]["x-foldline-folds"]) > 1
        assert provider.refused == []
    with_call = [one for one in receipts(tmp_path) if one.recall_calls]
    assert len(with_call) == 1
    billed = provider.bill.usd
    assert sum(one.usd or 0 for one in receipts(tmp_path)) == pytest.approx(billed, rel=0.02)


@pytest.mark.parametrize("format", FORMATS)
def test_several_calls_in_one_reply_and_in_a_row_are_answered(tmp_path: Path, format: str) -> None:
    with folding(tmp_path, offers_recall=True) as (provider, running):
        agent = folded_agent(provider, running, format)
        two = ScriptedReply(calls=(("recall", {"query": "secret"}), ("recall", {"query": "heliotrope"})))
        provider.script(two, CALL, ScriptedReply(text="Done.", calls=(("bash", {"command": "ls"}),)))
        assert agent.say("What was it?")[0] == 200
        assert "recall" not in json.dumps(agent.messages)
        agent.answer_calls("a.txt")
        agent.work(provider, 4)
        assert provider.refused == []


@pytest.mark.parametrize("format", FORMATS)
def test_a_call_beside_the_client_s_own_calls_is_answered_with_the_next_request(tmp_path: Path, format: str) -> None:
    with folding(tmp_path, offers_recall=True) as (provider, running):
        agent = folded_agent(provider, running, format)
        both = (("recall", {"query": "secret"}), ("bash", {"command": "ls"}))
        provider.script(ScriptedReply(text="Both.", calls=both))
        assert agent.say("Look at both.")[0] == 200
        shown = json.dumps(agent.messages)
        assert "recall" not in shown
        assert "ls" in json.dumps(agent.messages[-1])
        agent.answer_calls("a.txt")
        assert provider.refused == []
        assert SECRET in json.dumps(elements(provider.requests[-1])[-4:])
        agent.say("Thanks.")
        assert provider.refused == []


def test_thinking_that_is_bound_to_the_call_stays_valid_also_after_a_restart(tmp_path: Path) -> None:
    extra = {"thinking": {"type": "adaptive"}}
    with folding(tmp_path, offers_recall=True) as (provider, running):
        agent = folded_agent(provider, running, "anthropic", model=BOUND, extra=extra)
        thinking = ScriptedReply(thinking="I need the word.", calls=(("recall", {"query": "secret word"}),))
        provider.script(thinking, ScriptedReply(thinking="There it is.", text="Heliotrope."))
        assert agent.say("What was the secret word?")[0] == 200
        agent.work(provider, 4, thinking="Let me think.")
        assert provider.refused == []
        from support.proxies import proxy
        from support.proxy_agents import POLICY

        settings: dict[str, Any] = {"mode": "fold", "policy": POLICY, "ledger": str(tmp_path / "ledger.db")}
        with proxy(provider.url, offers_recall=True, **settings) as other:
            agent.url = other.url
            agent.work(provider, 4, thinking="Let me think.")
            assert provider.refused == []


@pytest.mark.parametrize("is_offered", [True, False])
@pytest.mark.parametrize("format", FORMATS)
def test_a_digest_advises_to_use_recall_only_if_the_tool_is_offered(
    tmp_path: Path, format: str, is_offered: bool
) -> None:
    with folding(tmp_path, offers_recall=is_offered) as (provider, running):
        folded_agent(provider, running, format)
        text = json.dumps(elements(provider.requests[-1]))
    assert re.search(r"earlier messages were condensed:(?: of)? #\d", text)
    assert ("ask recall for them" in text) == is_offered


def test_a_client_with_a_tool_of_this_name_or_without_tools_is_left_alone(tmp_path: Path) -> None:
    with folding(tmp_path, offers_recall=True) as (provider, running):
        own = {"name": "recall", "description": "My own.", "input_schema": {"type": "object", "properties": {}}}
        agent = Agent(running.url, headers={"x-foldline-session": "own"}, extra={"tools": [own]}, streams=False)
        provider.script(ScriptedReply(calls=(("recall", {}),)))
        agent.say("Use your tool.")
        assert agent.messages[-1]["content"][0]["name"] == "recall"
        assert provider.requests[-1].body["tools"] == [own]
        bare = Agent(running.url, headers={"x-foldline-session": "bare"}, extra={"tools": []}, streams=False)
        bare.say("Hello.")
        assert provider.requests[-1].body["tools"] == []


@pytest.mark.parametrize("streams", [True, False])
def test_a_follow_up_that_fails_breaks_the_response_off(tmp_path: Path, streams: bool) -> None:
    with folding(tmp_path, offers_recall=True) as (provider, running):
        agent = folded_agent(provider, running, streams=streams)
        provider.script(CALL, fail(529))
        if streams:
            with pytest.raises(http.client.IncompleteRead):
                agent.say("What was it?")
        else:
            assert agent.say("What was it?")[0] == 502
        agent.messages.pop()
        assert agent.say("And again?")[0] == 200


@pytest.mark.parametrize("format", FORMATS)
def test_usage_includes_the_requests_whose_recall_calls_the_proxy_answered(tmp_path: Path, format: str) -> None:
    with folding(tmp_path, offers_recall=True) as (provider, running):
        agent = folded_agent(provider, running, format)
        for number in range(3):
            provider.script(CALL, CALL, ScriptedReply(text=f"Answer {number}."))
            assert agent.say(f"Question {number}: what was the secret word?")[0] == 200
    bill, tokens = provider.bill, provider.bill.tokens
    report = json.loads(foldline("usage", "--ledger", str(tmp_path / "ledger.db"), "--json", HOME=str(tmp_path)).stdout)
    total = report["total"]
    assert (total["requests"], total["output"]) == (len(bill.requests), bill.output)
    assert total["cache_read"] == tokens.read
    assert total["input"] + total["cache_write"] == tokens.plain + tokens.write_5m + tokens.write_1h
    assert total["cost"] == pytest.approx(bill.usd, rel=0.001)
