"""A text that is pinned while an agent works is in its next request, and the agent's requests stay valid."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

import foldline
from foldline import ledger
from foldline.session import Session
from foldline.testing.provider import ScriptedReply, SimulatedProvider
from support.proxy_agents import BOUND, Agent, branch_names, elements, folding

pytest.importorskip("aiohttp")
FORMATS = ("anthropic", "openai", "openai-responses", "gemini")
NOTE = "Remember: the port is 47113."
CALL = (("bash", {"command": "grep -n port src/config.py"}),)


@contextmanager
def stored_session(tmp_path: Path) -> Iterator[Session]:
    """The session `work`, opened beside the proxy, as the page and the commands open it."""
    store = ledger.open(tmp_path / "ledger.db")
    owner = next(one for one in ledger.owners(store) if ledger.for_owner(store, one).branches("work"))
    store.close()
    with foldline.open(tmp_path / "ledger.db", owner=owner) as opened:
        yield opened.session("work")


def pin(tmp_path: Path, text: str = NOTE) -> None:
    with stored_session(tmp_path) as session:
        session.pin(text, name="port")


def last_request(provider: SimulatedProvider) -> str:
    return json.dumps(provider.requests[-1].body)


def call_tool(agent: Agent, provider: SimulatedProvider, thinking: str = "") -> None:
    """One request of the agent, whose reply calls a tool."""
    provider.script(ScriptedReply(thinking=thinking, text="I look at the port.", calls=CALL))
    agent.say("Which port is it?")


def answer_tool(agent: Agent, provider: SimulatedProvider, thinking: str = "") -> None:
    """The request with the tool's result, whose reply ends the turn."""
    provider.script(ScriptedReply(thinking=thinking, text="It is done."))
    agent.answer_calls("port = 47113?")


@pytest.mark.parametrize("is_folded", [True, False])
@pytest.mark.parametrize("format", FORMATS)
def test_a_note_between_a_call_and_its_result_is_sent_and_later_requests_are_valid(
    tmp_path: Path, format: str, is_folded: bool
) -> None:
    with folding(tmp_path) as (provider, running):
        agent = Agent(running.url, format, headers={"x-foldline-session": "work"})
        agent.work(provider, 40 if is_folded else 4, words=200)
        call_tool(agent, provider)
        pin(tmp_path)
        answer_tool(agent, provider)
        assert (NOTE in last_request(provider)) is is_folded  # the request of an unfolded session is not changed
        agent.work(provider, 60, words=200)
        assert provider.refused == []
        assert last_request(provider).count(NOTE) == 1
    assert branch_names(tmp_path) == ["main"]


@pytest.mark.parametrize("format", FORMATS)
def test_after_a_note_the_request_only_grows_at_its_end(tmp_path: Path, format: str) -> None:
    with folding(tmp_path) as (provider, running):
        agent = Agent(running.url, format, headers={"x-foldline-session": "work"})
        agent.work(provider, 40, words=200)
        pin(tmp_path)
        first = len(provider.requests)
        agent.work(provider, 20, words=40)
        folds = [int(headers.get("x-foldline-folds", 0)) for _, headers, _ in agent.answers]
        for number in range(first, len(folds)):
            before, after = elements(provider.requests[number - 1]), elements(provider.requests[number])
            if folds[number] == folds[number - 1]:
                assert after[: len(before)] == before, number
        assert NOTE in json.dumps(provider.requests[first].body)


@pytest.mark.parametrize("format", FORMATS)
def test_a_note_leaves_the_requests_together_with_its_pin(tmp_path: Path, format: str) -> None:
    """The client never had the note in its own history. The proxy leaves it out, and all later requests are valid."""
    with folding(tmp_path) as (provider, running):
        agent = Agent(running.url, format, headers={"x-foldline-session": "work"})
        agent.work(provider, 40, words=200)
        pin(tmp_path)
        agent.work(provider, 4, words=40)
        assert NOTE in last_request(provider)
        with stored_session(tmp_path) as session:
            session.unpin("port", at_once=True)
        agent.work(provider, 4, words=40)
        assert NOTE not in last_request(provider)
        agent.work(provider, 60, words=200)
        assert NOTE not in last_request(provider)
        assert provider.refused == []
    assert branch_names(tmp_path) == ["main"]


def test_thinking_after_a_note_that_left_is_not_sent_again(tmp_path: Path) -> None:
    with folding(tmp_path) as (provider, running):
        extra = {"thinking": {"type": "adaptive"}}
        agent = Agent(running.url, model=BOUND, headers={"x-foldline-session": "work"}, extra=extra)
        agent.work(provider, 40, words=200, thinking="Step by step.")
        pin(tmp_path)
        agent.work(provider, 4, words=40, thinking="With the port.")
        assert "With the port." in last_request(provider)
        with stored_session(tmp_path) as session:
            session.unpin("port", at_once=True)
        agent.work(provider, 60, words=200, thinking="Without the port.")
        assert "With the port." not in last_request(provider)
        assert provider.refused == []


def test_a_note_that_is_added_while_the_model_thinks_does_not_invalidate_its_thinking(tmp_path: Path) -> None:
    with folding(tmp_path) as (provider, running):
        extra = {"thinking": {"type": "adaptive"}}
        agent = Agent(running.url, model=BOUND, headers={"x-foldline-session": "work"}, extra=extra)
        agent.work(provider, 40, words=200, thinking="Step by step.")
        provider.script(ScriptedReply(thinking="Which port?", text="I look.", calls=CALL, seconds=2.0))
        asking = Thread(target=agent.say, args=("Which port is it?",))
        asking.start()
        time.sleep(0.5)  # the request is sent, and the reply takes two seconds
        pin(tmp_path)
        asking.join()
        with stored_session(tmp_path) as session:
            texts = [message.text for message in session.timeline.messages]
            assert texts.index(NOTE) < texts.index("I look.")
        answer_tool(agent, provider, thinking="It is that one.")
        assert NOTE in last_request(provider)
        agent.work(provider, 60, words=200, thinking="Step by step.")
        assert provider.refused == []
    assert branch_names(tmp_path) == ["main"]
