"""A client's own compaction is answered from the ledger, and the session goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.proxy.compaction_answers import seal, unseal
from foldline.wire.streaming.assembler import Assembler
from support.proxy_agents import Agent, branch_names, folding, sessions

pytest.importorskip("aiohttp")
CLAUDE_CODE = (
    "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\nYour task is to create a detailed summary of the "
    "conversation so far, paying close attention to the user's explicit requests.\nWrap it in <summary> tags."
)
CODEX = (
    "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary for another LLM that will resume the "
    "task.\n\nInclude:\n- Current progress and key decisions made"
)
REMINDER = {"type": "text", "text": "<system-reminder>\nToday's date is 2026-11-17.\n</system-reminder>\n"}


def reply_text(format: str, data: bytes) -> str:
    assembler = Assembler(format)
    assembler.feed(data)
    found = assembler.finish()
    assert found is not None
    assert found.complete
    return found.messages[-1].text


@pytest.mark.parametrize("streams", [True, False])
def test_claude_code_s_compaction_is_answered_and_the_session_goes_on(tmp_path: Path, streams: bool) -> None:
    with folding(tmp_path, window=200_000, answers_compaction=True) as (provider, running):
        agent = Agent(running.url, headers={"x-claude-code-session-id": "work"}, streams=streams)
        for _ in range(3):
            agent.work(provider, 12)
            before = len(provider.requests)
            agent.messages.append({"role": "user", "content": [{"type": "text", "text": CLAUDE_CODE}]})
            status, headers, data = agent.post(agent.path, agent.body())
            assert (status, headers["x-foldline-answered"]) == (200, "compaction")
            assert len(provider.requests) == before
            text = reply_text("anthropic", data)
            assert text.startswith("<summary>\n")
            assert text.endswith("\n</summary>")
            assert "Please look at part" in text
            assert "CRITICAL" not in text
            assert "being continued" not in text  # an earlier answer is not quoted: its messages are in the ledger
            told = "This session is being continued from a previous conversation that ran out of context.\n" + text
            agent.messages = [{"role": "user", "content": [REMINDER, {"type": "text", "text": told}]}]
        assert agent.send()[0] == 200
        assert provider.refused == []
    assert [name for name, _, _ in sessions(tmp_path)] == ["work"]


def test_a_compaction_prompt_that_follows_results_in_one_message_leaves_the_session_as_it_is(tmp_path: Path) -> None:
    with folding(tmp_path, window=200_000, answers_compaction=True) as (provider, running):
        agent = Agent(running.url, headers={"x-claude-code-session-id": "work"})
        for _ in range(3):
            agent.work(provider, 7)
            *kept, last, reply = agent.messages  # Claude Code keeps the last reply and does not send it
            asked = {"role": "user", "content": [*last["content"], {"type": "text", "text": CLAUDE_CODE}]}
            status, headers, data = agent.post(agent.path, {**agent.body(), "messages": [*kept, asked]})
            assert (status, headers["x-foldline-answered"]) == (200, "compaction")
            told = "This session is being continued from a previous conversation that ran out of context.\n"
            text = told + reply_text("anthropic", data)
            assert "src/file5.py" in text
            agent.messages = [{"role": "user", "content": [REMINDER, {"type": "text", "text": text}]}, reply]
            agent.answer_calls("result")
        assert provider.refused == []
    assert branch_names(tmp_path) == ["main"]


def test_codex_s_compaction_prompt_is_answered_and_the_session_goes_on(tmp_path: Path) -> None:
    with folding(tmp_path, window=200_000, answers_compaction=True) as (provider, running):
        agent = Agent(running.url, "openai-responses", headers={"session-id": "work"})
        agent.work(provider, 12)
        before = len(provider.requests)
        asked = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": CODEX}]}
        status, _, data = agent.post(agent.path, {**agent.body(), "input": [*agent.messages, asked], "tools": []})
        assert (status, len(provider.requests)) == (200, before)
        text = reply_text("openai-responses", data)
        assert "Please look at part" in text
        kept = [one for one in agent.messages if one.get("role") == "user"]
        told = "Another language model started to solve this problem and produced a summary\n" + text
        summary = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": told}]}
        agent.messages = [*kept, summary]
        agent.work(provider, 8)
        assert provider.refused == []
    assert [name for name, _, _ in sessions(tmp_path)] == ["work"]


def test_a_compaction_trigger_gets_one_item_which_the_provider_never_sees(tmp_path: Path) -> None:
    with folding(tmp_path, window=200_000, answers_compaction=True) as (provider, running):
        agent = Agent(running.url, "openai-responses", headers={"session-id": "work"})
        agent.work(provider, 12)
        before = len(provider.requests)
        trigger = {"type": "compaction_trigger"}
        status, _, data = agent.post(agent.path, {**agent.body(), "input": [*agent.messages, trigger]})
        assert (status, len(provider.requests)) == (200, before)
        done = [json.loads(line[6:]) for line in data.decode().splitlines() if line.startswith("data: ")]
        items = [one["item"] for one in done if one["type"] == "response.output_item.done"]
        assert [item["type"] for item in items] == ["compaction"]
        assert done[-1]["type"] == "response.completed"
        assert done[-1]["response"]["output"] == items
        agent.messages = [one for one in agent.messages if one.get("role") == "user"][:1] + items
        agent.work(provider, 12)
        assert provider.refused == []
        sent = json.dumps(provider.requests[-1].body)
        assert "foldline1." not in sent
        assert "Please look at part 8" in sent  # from the digest
    assert [name for name, _, _ in sessions(tmp_path)] == ["work"]


def test_the_compact_endpoint_is_answered_with_the_user_s_messages_and_one_item(tmp_path: Path) -> None:
    with folding(tmp_path, window=200_000, answers_compaction=True) as (provider, running):
        agent = Agent(running.url, "openai-responses", headers={"session-id": "work"})
        agent.work(provider, 12)
        before = len(provider.requests)
        body = {"model": agent.model, "input": agent.messages, "instructions": agent.system}
        status, _, data = agent.post("/v1/responses/compact", body)
        assert (status, len(provider.requests)) == (200, before)
        found = json.loads(data)
        assert found["object"] == "response.compaction"
        assert [one.get("role", one["type"]) for one in found["output"]] == ["user"] * 3 + ["compaction"]
        agent.messages = found["output"]
        agent.work(provider, 8)
        assert provider.refused == []


@pytest.mark.parametrize("text", [CLAUDE_CODE + "\n\nAdditional Instructions:\nFocus on the tests.", "Summarize it."])
def test_other_requests_go_to_the_provider(tmp_path: Path, text: str) -> None:
    with folding(tmp_path, window=200_000, answers_compaction=True) as (provider, running):
        agent = Agent(running.url, headers={"x-claude-code-session-id": "work"})
        agent.work(provider, 4)
        agent.say(text)
        assert len(provider.requests) == 5


def test_without_the_option_a_compaction_goes_to_the_provider(tmp_path: Path) -> None:
    with folding(tmp_path, window=200_000) as (provider, running):
        agent = Agent(running.url, headers={"x-claude-code-session-id": "work"})
        agent.work(provider, 4)
        agent.say(CLAUDE_CODE)
        assert len(provider.requests) == 5


@given(st.text(max_size=500), st.binary(min_size=1, max_size=32))
def test_a_sealed_digest_is_read_with_its_own_key_only(text: str, key: bytes) -> None:
    clean = text.encode("utf-8", "replace").decode()
    assert unseal(seal(clean, key), key) == clean
    assert unseal(seal(clean, key), key + b"x") is None


@given(st.text() | st.none() | st.integers())
def test_any_other_content_is_not_read(content: Any) -> None:
    assert unseal(content, b"key") is None
    assert unseal(f"foldline1.{content}", b"key") is None
