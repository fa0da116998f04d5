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
