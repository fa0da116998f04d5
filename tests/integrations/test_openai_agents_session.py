"""The session of OpenAI Agents obeys its settings, as the framework's own sessions do."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import foldline
from foldline import Session

agents = pytest.importorskip("agents")


def test_the_limit_of_the_settings_is_used_without_another() -> None:
    from foldline.integrations.openai_agents import FoldlineSession

    session = FoldlineSession(Session(), session_settings={"limit": 2})
    items: list[Any] = [{"role": "user", "content": f"message {number}"} for number in range(5)]

    async def read() -> tuple[list[Any], list[Any]]:
        await session.add_items(items)
        return await session.get_items(), await session.get_items(limit=4)

    assert asyncio.run(read()) == (items[3:], items[1:])
    assert FoldlineSession(Session()).session_settings == agents.SessionSettings()


def test_reasoning_is_still_there_after_a_restart(tmp_path: Path) -> None:
    from foldline.integrations.openai_agents import FoldlineSession

    call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "read", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
    added: list[list[Any]] = [
        [{"role": "user", "content": "hello"}],
        [{"type": "reasoning", "id": "rs_1", "summary": []}, call, result],
        [{"type": "reasoning", "id": "rs_2", "summary": []}],
        [{"role": "assistant", "content": "done"}],
    ]

    async def add(session: FoldlineSession) -> None:
        for items in added:
            await session.add_items(items)

    with foldline.open(tmp_path / "ledger.db") as ledger:
        asyncio.run(add(FoldlineSession(ledger.session("work"))))
    with foldline.open(tmp_path / "ledger.db") as ledger:
        items = asyncio.run(FoldlineSession(ledger.session("work")).get_items())
    assert items == [item for each in added for item in each]


def test_leading_system_items_are_still_there_after_a_restart_but_not_the_instructions(tmp_path: Path) -> None:
    from foldline.integrations.openai_agents import FoldlineSession

    items: list[Any] = [
        {"role": "system", "content": "Answer in French."},
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": "hello"},
    ]

    def prepare(session: FoldlineSession, shown: list[Any]) -> foldline.View | None:
        return session.history.followed.prepare(shown, system=[foldline.message.system("You are a clerk.")]).view

    with foldline.open(tmp_path / "ledger.db") as ledger:
        session = FoldlineSession(ledger.session("work"))
        prepare(session, items[:2])
        asyncio.run(session.add_items(items))
    with foldline.open(tmp_path / "ledger.db") as ledger:
        session = FoldlineSession(ledger.session("work"))
        assert asyncio.run(session.get_items()) == items
        view = prepare(session, items)
        assert view is not None
        assert [message.text for message in view.messages] == [
            "You are a clerk.",
            "Answer in French.",
            "Be brief.",
            "hello",
        ]


def test_instructions_are_counted_if_the_items_begin_with_a_system_message() -> None:
    from foldline.integrations.openai_agents import FoldlineSession

    session = FoldlineSession(Session())
    items: list[Any] = [{"role": "system", "content": "Answer in French."}, {"role": "user", "content": "hello"}]
    asyncio.run(session.add_items(items))
    followed = session.history.followed
    before = followed.prepare(items).view
    after = followed.prepare(items, system=[foldline.message.system("word " * 500)]).view
    assert before is not None
    assert after is not None
    assert after.tokens - before.tokens > 450


def test_after_the_last_item_is_taken_away_nothing_is_left(tmp_path: Path) -> None:
    from foldline.integrations.openai_agents import FoldlineSession

    item: Any = {"role": "system", "content": "Answer in French."}
    with foldline.open(tmp_path / "ledger.db") as ledger:
        session = FoldlineSession(ledger.session("work", model="gpt-5.6"))
        asyncio.run(session.add_items([item]))
        assert asyncio.run(session.pop_item()) == item
    with foldline.open(tmp_path / "ledger.db") as ledger:
        assert asyncio.run(FoldlineSession(ledger.session("work", model="gpt-5.6")).get_items()) == []


@pytest.mark.parametrize(
    "odd",
    [{"note": "of a plugin"}, {"type": "message", "role": "user"}, {"role": "user", "content": 7}, {"id": "msg_1"}],
    ids=["no type", "no content", "a number", "a reference"],
)
def test_an_item_that_cannot_be_read_does_not_stop_the_recording(
    odd: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from foldline.integrations.openai_agents import FoldlineSession

    items: list[Any] = [{"role": "user", "content": "one"}, odd, {"role": "user", "content": "two"}]
    with foldline.open(tmp_path / "ledger.db") as ledger:
        session = FoldlineSession(ledger.session("work", model="gpt-5.6"))
        asyncio.run(session.add_items(items[:2]))
        asyncio.run(session.add_items(items[2:]))
        assert session.history.followed.prepare(items).items == items
    with foldline.open(tmp_path / "ledger.db") as ledger:
        assert asyncio.run(FoldlineSession(ledger.session("work", model="gpt-5.6")).get_items()) == items
    assert caplog.records == []
