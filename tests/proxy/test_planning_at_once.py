"""A short request is planned without a thread. Nothing that a client, a provider or a reader of the ledger sees
depends on that.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import foldline
from foldline import ledger
from foldline.message import Message
from foldline.proxy import conversations
from foldline.testing.provider import ScriptedReply, SimulatedProvider
from support.proxy_agents import MODELS, Agent, folding

pytest.importorskip("aiohttp")
FORMATS = ("anthropic", "openai", "openai-responses", "gemini")
CALL = (("bash", {"command": "grep -n port src/config.py"}),)
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
OTHER_MODEL = {
    "anthropic": "claude-opus-5-5",
    "openai": "gpt-5",
    "openai-responses": "gpt-5",
    "gemini": "gemini-3-flash",
}
ACTIONS = ("say", "say", "call", "call", "long", "again", "edit", "back", "model", "tools", "image", "pin", "pause")


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def at_once(allowed: bool) -> Iterator[None]:
    """With False, every request is planned in a thread."""
    most = conversations.AT_ONCE_BYTES if allowed else -1
    with patch.object(conversations, "AT_ONCE_BYTES", most):
        yield


def act(agent: Agent, provider: SimulatedProvider, action: str, number: int, folder: Path, clock: Clock) -> None:
    """One action of a client, or of a person."""
    clock.now += 400 if action == "pause" else 5
    if action == "pin":
        with stored(folder) as session:
            if session is not None:
                session.pin(f"Remember the number {number}.")
    elif action == "model":
        models = (MODELS[agent.format], OTHER_MODEL[agent.format])
        agent.model = models[agent.model == models[0]]
    elif action == "again" and agent.messages:
        agent.messages = agent.messages[:-1]
    elif action == "edit" and len(agent.messages) > 2:
        agent.messages = agent.messages[:-2]
    elif action == "back":
        agent.messages = agent.messages[: len(agent.messages) // 4 * 2]
    elif action == "tools":
        agent.extra = {} if agent.extra else {"metadata": {"user_id": "x"}}
    calls = CALL if action == "call" else ()
    provider.script(ScriptedReply(text=f"Reply {number}. " + "It went well. " * 20, calls=calls))
    words = 1_500 if action == "long" else 40
    if waits_for_results(agent):
        agent.answer_calls(f"result {number} " + f"word{number} " * words)
    elif action == "image" and agent.format == "anthropic":
        agent.messages.append({"role": "user", "content": [IMAGE, {"type": "text", "text": "What is this?"}]})
        agent.send()
    else:
        agent.say(f"question {number} " + f"word{number} " * words)


@contextmanager
def stored(folder: Path) -> Iterator[Any]:
    """The session `work`, opened beside the proxy; None if it is not stored yet."""
    store = ledger.open(folder / "ledger.db")
    owner = next((one for one in ledger.owners(store) if ledger.for_owner(store, one).branches("work")), None)
    store.close()
    if owner is None:
        yield None
        return
    with foldline.open(folder / "ledger.db", owner=owner) as opened:
        yield opened.session("work")


def record(folder: Path) -> dict[str, list[tuple[Message, ...]]]:
    """All messages of all branches, without their times."""
    store, found = ledger.open(folder / "ledger.db"), {}
    for name in ledger.owners(store):
        own = ledger.for_owner(store, name)
        for info in own.sessions():
            found[info.name] = [tuple(one.message for one in own.read(branch)) for branch in own.branches(info.name)]
    store.close()
    return found


def run(format: str, actions: list[str], *, allowed: bool) -> tuple[list[Any], list[Any], Any]:
    """What the provider got, what the client got, and what is in the ledger."""
    clock = Clock()
    with TemporaryDirectory() as place, at_once(allowed):
        folder = Path(place)
        with folding(folder, clock=clock) as (provider, running):
            agent = Agent(running.url, format, headers={"x-foldline-session": "work"})
            for number, action in enumerate(actions):
                act(agent, provider, action, number, folder, clock)
            sent = [request.body for request in provider.requests]
            got = [(status, own_headers(headers), data) for status, headers, data in agent.answers]
        return sent, got, record(folder)


def waits_for_results(agent: Agent) -> bool:
    """Whether the last reply has calls."""
    if not agent.messages:
        return False
    last = agent.messages[-1]
    names = ("tool_use", "function_call", "tool_calls", "functionCall")
    return last.get("role") != "user" and any(f'"{name}"' in json.dumps(last) for name in names)


def own_headers(headers: dict[str, str]) -> dict[str, str]:
    """The headers that foldline adds."""
    return {name: value for name, value in headers.items() if name.startswith("x-foldline")}


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=5, deadline=None)
@given(actions=st.lists(st.sampled_from(ACTIONS), min_size=3, max_size=14))
def test_all_bytes_and_the_record_are_the_same_as_if_every_request_were_planned_in_a_thread(
    format: str, actions: list[str]
) -> None:
    at_once_run, threaded = run(format, actions, allowed=True), run(format, actions, allowed=False)
    assert at_once_run[0] == threaded[0], "the provider gets the same requests"
    assert at_once_run[1] == threaded[1], "the client gets the same responses"
    assert at_once_run[2] == threaded[2], "the ledger has the same messages"
