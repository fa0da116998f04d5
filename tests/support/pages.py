"""Ledgers and clients for tests of the page."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

import foldline
from foldline.message import Message, ToolCall, Usage, assistant, tool, user
from foldline.page.app import page_app
from foldline.session import Ledger

HEADERS = {"X-Foldline": "1"}
"""What the page's own script sends with every change."""


def small_policy(window: int = 4_000) -> foldline.Policy:
    """A policy that folds a short conversation."""
    return foldline.Policy.preset("balanced").but(window_tokens=window, reply_tokens=500, min_gain_tokens=100)


def conversation(turns: int, lines: int = 30) -> list[Message]:
    """Prompts, calls, results and replies about a numbered port in a numbered file."""
    made: list[Message] = []
    for turn in range(turns):
        text = "\n".join(f"src/part_{turn}.py:{line}: worker.listen(port_{turn})" for line in range(lines))
        call = ToolCall(id=f"call_{turn}", name="read_file", arguments=f'{{"path": "src/part_{turn}.py"}}')
        made += [
            user(f"Which port does worker {turn} use? Ticket FL-{1000 + turn}."),
            assistant("I look it up.", call),
            tool(f"call_{turn}", text),
            assistant(f"Worker {turn} listens on port {7000 + turn}."),
        ]
    return made


def with_usage(message: Message, **figures: int) -> Message:
    """The message with usage."""
    from dataclasses import replace

    return replace(message, meta=replace(message.meta, usage=Usage(**figures)))


def add_session(ledger: Ledger, name: str, turns: int, **given: Any) -> Any:
    """A session to which a conversation was added as an agent does it, with a view before each reply."""
    session = ledger.session(name, model="claude-sonnet-5", policy=given.get("policy") or small_policy())
    for message in conversation(turns):
        if message.role == "assistant":
            session.view()
        session.add(message)
    return session


def page_client(ledger: Ledger, **given: Any) -> TestClient:
    """A client of the page on loopback."""
    return TestClient(page_app(ledger.store, **given), base_url="http://127.0.0.1", client=("127.0.0.1", 50_000))


@pytest.fixture
def folded_page() -> Any:
    """A client of a page with one session, `talk`, that was folded."""
    with foldline.open(":memory:") as ledger:
        add_session(ledger, "talk", 13)
        with page_client(ledger, label="agent.db") as client:
            yield client
