"""A view advises to use recall only if the model has the recall tool, and every process sends the same text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import foldline
from foldline import Policy, Session
from foldline.message import user
from foldline.recall.tools import Tools
from support.small_sessions import FULL, session, step, talk

POLICY = Policy.preset("balanced").but(window_tokens=3_000, reply_tokens=0)
READ = {"name": "read_file", "description": "Read a file.", "input_schema": {"type": "object"}}
ADVICE = "ask recall for"


def fill(made: Session, turns: int = 30) -> str:
    """Add more than fits the window. Returns the text of the view."""
    made.add(*talk(turns, 600), user("On."))
    view = made.view()
    assert made.folds
    return "\n".join(message.text for message in view.messages)


def renamed(name: str) -> dict[str, Any]:
    return {**READ, "name": name}


@pytest.mark.parametrize("tools", [None, [], [READ]], ids=["unknown", "none", "another"])
def test_without_the_recall_tool_a_digest_has_its_handles_but_not_the_advice(tools: Any) -> None:
    text = fill(Session(policy=POLICY, tools=tools))
    assert re.search(r"earlier messages were condensed: of #\d+-\d+\.", text)
    assert "recall" not in text


@pytest.mark.parametrize("format", ["anthropic", "openai", "openai-responses", "gemini"])
def test_with_the_recall_tool_in_any_format_a_digest_advises_to_use_it(format: str) -> None:
    assert ADVICE in fill(Session(policy=POLICY, tools=Tools.definitions(format)))


@pytest.mark.parametrize("name", ["mcp__foldline__recall", "foldline_recall"])
def test_the_recall_tool_of_an_mcp_server_is_known_by_its_name(name: str) -> None:
    assert ADVICE in fill(Session(policy=POLICY, tools=[READ, renamed(name)]))
    assert ADVICE not in fill(Session(policy=POLICY, tools=[READ, renamed("product_recall")]))


@pytest.mark.parametrize("has_recall", [False, True])
def test_stubs_markers_and_their_sizes_follow_the_same_rule(has_recall: bool) -> None:
    made = session(600, FULL, prune_arrival_tokens=100, preview_chars=40)
    made.use(tools=[renamed("recall" if has_recall else "read_file")])
    made.add(*talk(3, 900), user("go"))
    assert made.view().cut
    made.add(*step("a", 4_000))
    view = made.view()
    text = str(view.messages)
    assert "earlier messages not shown here" in text
    assert "[pruned, " in text
    assert text.count(ADVICE) == (2 if has_recall else 0)
    assert view.tokens == made.state.tools + sum(map(made.size, view.messages))


def test_a_process_that_does_not_give_the_tools_sends_the_same_bytes(tmp_path: Path) -> None:
    with foldline.open(tmp_path / "ledger.db") as ledger:
        first = ledger.session("work", policy=POLICY, tools=Tools.definitions("openai"))
        assert ADVICE in fill(first)
        with foldline.open(tmp_path / "ledger.db") as other:
            second = other.session("work")
            assert second.view().render("openai").body == first.view().render("openai").body
            assert ADVICE in fill(second)
            assert second.folds > 1
            assert first.view().render("openai").body == second.view().render("openai").body


def test_two_processes_see_a_change_of_the_tools(tmp_path: Path) -> None:
    with foldline.open(tmp_path / "ledger.db") as ledger, foldline.open(tmp_path / "ledger.db") as other:
        first = ledger.session("work", policy=POLICY, tools=[READ])
        second = other.session("work", tools=[READ])
        first.use(tools=[READ, renamed("recall")])
        assert ADVICE in fill(second)
        assert first.view().render("openai").body == second.view().render("openai").body


def test_between_folds_a_new_tool_does_not_change_the_digest() -> None:
    made = Session(policy=POLICY, tools=[READ])
    fill(made)
    before = made.view().messages
    made.use(tools=[READ, renamed("recall")])
    assert made.view().messages == before
    made.add(*talk(30, 600), user("On."))
    assert ADVICE in str(made.view().messages)
