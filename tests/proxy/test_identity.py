"""Which session a request belongs to: by the client's id or by the history that it sends, and never across keys."""

from __future__ import annotations

import json
import sqlite3
import threading
from pathlib import Path

import pytest

import foldline
from foldline import ledger
from foldline.testing.provider import ScriptedReply
from support.proxies import proxy
from support.proxy_agents import POLICY, Agent, elements, folding, receipts, sessions

pytest.importorskip("aiohttp")


def branches(tmp_path: Path) -> list[tuple[str, ...]]:
    """The branches of every session of every tenant."""
    store = ledger.open(tmp_path / "ledger.db")
    found = []
    for owner in ledger.owners(store):
        with foldline.open(tmp_path / "ledger.db", owner=owner) as opened:
            found += [info.branches for info in opened.sessions() if info.messages]
    store.close()
    return found


@pytest.mark.parametrize("format", ["anthropic", "openai", "openai-responses", "gemini"])
def test_without_an_id_a_history_is_found_by_what_it_says(tmp_path: Path, format: str) -> None:
    with folding(tmp_path) as (provider, running):
        one, other = Agent(running.url, format), Agent(running.url, format)
        for _ in range(8):
            one.work(provider, 4, words=200)
            other.work(provider, 4, words=200)
        assert provider.refused == []
    found = sessions(tmp_path)
    assert len(found) == 2
    assert all(messages == len(one.messages) + 1 for _, messages, _ in found)


def test_two_conversations_that_begin_alike_are_apart(tmp_path: Path) -> None:
    with folding(tmp_path) as (provider, running):
        one, other = Agent(running.url), Agent(running.url)
        provider.script("first", "second")
        one.say("hi")
        other.say("hi")
        one.say("and now?")
        other.say("and now?")
    assert [messages for _, messages, _ in sessions(tmp_path)] == [5, 5]


def test_a_session_goes_on_after_a_restart_with_the_same_fold(tmp_path: Path) -> None:
    with folding(tmp_path) as (provider, running):
        agent = Agent(running.url, headers={"x-foldline-session": "work"})
        nameless = Agent(running.url)
        agent.work(provider, 40, words=200)
        nameless.work(provider, 40, words=200)
        before = elements(provider.requests[39])
        with proxy(provider.url, mode="fold", policy=POLICY, ledger=str(tmp_path / "ledger.db")) as restarted:
            agent.url = nameless.url = restarted.url
            agent.say("Go on.")
            assert elements(provider.requests[-1])[: len(before)] == before
            nameless.say("Go on.")
            assert len(elements(provider.requests[-1])) < 40
        assert provider.refused == []
    assert len(sessions(tmp_path)) == 2


def test_the_same_id_with_another_key_is_another_session(tmp_path: Path) -> None:
    with folding(tmp_path) as (provider, running):
        mine = Agent(running.url, headers={"x-foldline-session": "work"}, key="sk-mine")
        mine.work(provider, 40, words=200)
        thief = Agent(running.url, headers={"x-foldline-session": "work"}, key="sk-thief")
        thief.messages = list(mine.messages)
        thief.say("What was said before?")
        assert "x-foldline-folds" not in thief.answers[-1][1] or thief.answers[-1][0] == 200
        mine.say("Go on.")
        assert provider.refused == []
    found = sessions(tmp_path)
    assert [name for name, _, _ in found] == ["work", "work"]


def test_no_key_is_stored_anywhere(tmp_path: Path) -> None:
    key = "sk-ant-SECRETSECRETSECRET"
    with folding(tmp_path) as (provider, running):
        Agent(running.url, key=key).work(provider, 30, words=200)
    for file in tmp_path.iterdir():
        data = file.read_bytes()
        assert b"SECRETSECRET" not in data
    with sqlite3.connect(tmp_path / "ledger.db") as rows:
        owners = [name for (name,) in rows.execute("SELECT name FROM owners")]
    rows.close()
    assert any(name.startswith("key-") for name in owners)


def test_an_edited_history_becomes_a_branch(tmp_path: Path) -> None:
    with folding(tmp_path) as (_, running):
        agent = Agent(running.url, headers={"x-foldline-session": "work"})
        for number in range(6):
            agent.say(f"question {number}")
        kept = list(agent.messages)
        agent.messages = agent.messages[:6]
        agent.say("a better question")
        agent.say("and one more")
        agent.messages = kept
        agent.say("back to the first way")
    assert branches(tmp_path) == [("main", "main-2")]
    assert sessions(tmp_path)[0][1] == 15


def test_a_reply_that_the_client_changed_replaces_the_recorded_one(tmp_path: Path) -> None:
    with folding(tmp_path) as (_, running):
        agent = Agent(running.url, headers={"x-foldline-session": "work"})
        for number in range(6):
            agent.say(f"question {number}")
            agent.messages[-1] = {"role": "assistant", "content": f"my own words {number}"}
        agent.say("the end")
    assert branches(tmp_path) == [("main",)]
    assert sessions(tmp_path)[0][1] == 15


def test_parallel_requests_with_one_id_are_not_mixed(tmp_path: Path) -> None:
    with folding(tmp_path) as (provider, running):
        agents = [Agent(running.url, headers={"x-foldline-session": "work"}) for _ in range(4)]
        agents[0].say("shared beginning")
        for agent in agents[1:]:
            agent.messages = list(agents[0].messages)
        provider.script(*[ScriptedReply(text=f"reply {number}", seconds=0.05) for number in range(40)])

        def talk(number: int) -> None:
            for turn in range(5):
                agents[number].say(f"agent {number} says {turn}")

        threads = [threading.Thread(target=talk, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert provider.refused == []
        sent = [request.body["messages"] for request in provider.requests]
    for number, agent in enumerate(agents):
        assert agent.messages[:-1] in sent, number
    ((_, messages, _),) = sessions(tmp_path)
    assert messages == 1 + 12
    assert len(branches(tmp_path)[0]) == 4


def test_sub_agents_have_sessions_of_their_own(tmp_path: Path) -> None:
    with folding(tmp_path) as (_, running):
        parent = {"x-claude-code-session-id": "abc"}
        Agent(running.url, headers=parent).say("I am the parent")
        Agent(running.url, headers={**parent, "x-claude-code-agent-id": "7"}).say("I am the child")
    assert sorted(name for name, _, _ in sessions(tmp_path)) == ["abc", "abc/7"]


def test_a_second_conversation_under_one_id_gets_a_numbered_name(tmp_path: Path) -> None:
    with folding(tmp_path) as (_, running):
        agent = Agent(running.url, headers={"x-session-id": "abc"})
        agent.say("Fix the build")
        title = Agent(running.url, headers={"x-session-id": "abc"})
        title.say("Write a title for: Fix the build")
        agent.say("Now the tests")
    assert sorted((name, messages) for name, messages, _ in sessions(tmp_path)) == [("abc", 5), ("abc.2", 3)]


def test_a_client_that_compacts_itself_stays_in_its_session(tmp_path: Path) -> None:
    with folding(tmp_path) as (provider, running):
        agent = Agent(running.url, headers={"x-claude-code-session-id": "abc"})
        agent.work(provider, 16)
        recorded = len(agent.messages)
        summary = (
            "This session is being continued from a previous conversation that ran out of context. Summary: all good."
        )
        agent.messages = []
        agent.say(summary)
        agent.work(provider, 8)
        assert provider.requests[-1].body["messages"] == agent.messages[:-1]
        assert provider.refused == []
        agent.work(provider, 60, words=200)
        assert provider.refused == []
        assert len(elements(provider.requests[-1])) < 60
    ((name, messages, _),) = sessions(tmp_path)
    assert name == "abc"
    assert messages == 1 + recorded + len(agent.messages)


def test_a_client_that_compacts_itself_gives_foldline_no_saving(tmp_path: Path) -> None:
    with folding(tmp_path) as (provider, running):
        agent = Agent(running.url, headers={"x-claude-code-session-id": "abc"})
        agent.work(provider, 16)
        agent.messages = []
        agent.say("This session is being continued from a previous conversation. Summary: all good.")
        agent.work(provider, 8)
        assert provider.requests[-1].body["messages"] == agent.messages[:-1]
    found = receipts(tmp_path, "abc")
    assert len(found) > 8
    assert [one for one in found if one.is_folded or one.untouched != one.usage] == []


def test_marks_that_a_client_moves_do_not_change_its_history(tmp_path: Path) -> None:
    with folding(tmp_path) as (provider, running):
        agent = Agent(running.url, headers={"x-claude-code-session-id": "abc"})
        for number in range(60):
            for message in agent.messages:
                if isinstance(message["content"], list):
                    for block in message["content"]:
                        block.pop("cache_control", None)
            mark = {"cache_control": {"type": "ephemeral"}}
            agent.messages.append(
                {"role": "user", "content": [{"type": "text", "text": f"question {number} " * 120, **mark}]}
            )
            assert agent.send()[0] == 200
        assert provider.refused == []
        assert "x-foldline-folds" in agent.answers[-1][1]
        marked = [json.dumps(request.body).count('"cache_control"') for request in provider.requests]
        folded = ["x-foldline-folds" in headers for _, headers, _ in agent.answers]
        assert marked == [1 + is_folded for is_folded in folded]  # one is added before the digest
    assert branches(tmp_path) == [("main",)]
