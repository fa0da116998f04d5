"""What a user of a session can rely on: both kinds of session have the same members, and every event is documented."""

from __future__ import annotations

import ast
from pathlib import Path

import foldline
from foldline import AsyncSession, Session
from foldline.events import KINDS
from scripts.api_reference import _FOR_WORKERS

SOURCE = Path(foldline.__file__).parent
ATTRIBUTES = {"name", "skip_reason"}
"""Attributes of a session that the documentation uses."""


def members(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")}


def test_an_async_session_has_the_members_of_a_session() -> None:
    assert members(AsyncSession) == members(Session) - _FOR_WORKERS | ATTRIBUTES


def test_members_of_an_async_session_without_await() -> None:
    session = Session(model="claude-sonnet-5")
    session.add({"role": "user", "content": "Hello"})
    session.fold()
    view = AsyncSession(session)
    for name in ("name", "model", "policy", "format", "window", "usable", "folds", "refusal", "skip_reason"):
        assert getattr(view, name) == getattr(session, name)
    assert view.skip_reason
    assert view.size(session.messages[0]) == session.size(session.messages[0])


def test_the_table_of_events_is_complete() -> None:
    emitted: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr="emit"), args=[ast.Constant(value=str(kind)), *_], keywords=facts
                ):
                    emitted.setdefault(kind, set()).update(fact.arg or "" for fact in facts)
    emitted["truncated"] = {"sent", "read"}  # by the proxy, from a dict
    assert emitted == {kind: set(facts) for kind, (facts, _) in KINDS.items()}
