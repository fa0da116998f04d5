"""Compactions that foldline did not make: the page counts them separately, and never as a saving of foldline."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from starlette.testclient import TestClient

import foldline
from foldline.message import Message, assistant, user
from foldline.session.record import BranchRecord
from foldline.session.transcript_session import session_of
from foldline.wire import parse
from support.browsers import served_ledger, visit
from support.compacted_session import claude_code_session
from support.pages import conversation, page_client, small_policy, with_usage


def _get(client: TestClient, path: str, **params: Any) -> Any:
    answer = client.get(f"/api/{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def _imported(ledger: foldline.Ledger, name: str, window: int = 200_000, later: list[Message] | None = None) -> Any:
    """A session from a file with a compaction by the agent. Then a view is made before each later reply."""
    record = BranchRecord(ledger.store, ledger.store.session(name, "main"))
    transcript = parse(claude_code_session(old=40, new=9, words=50))
    session_of(transcript, model="claude-opus-5", policy=small_policy(window), record=record, name=name)
    session = ledger.session(name)
    for message in later or []:
        if message.role == "assistant":
            session.view()
        session.add(message)
    return session


@pytest.mark.parametrize("is_unfolded", [False, True])
def test_a_compaction_by_the_agent_is_no_saving(is_unfolded: bool) -> None:
    with foldline.open(":memory:") as ledger:
        session = _imported(ledger, "imported")
        if is_unfolded:
            session.unfold()
        with page_client(ledger) as client:
            answer = _get(client, "requests", session="imported")
            totals = _get(client, "totals", session="imported")
            money = _get(client, "money", by="session")
    assert answer["requests"]
    assert all(row["whole"] == row["tokens"] for row in answer["requests"])
    assert answer["saving"] == totals["saving"]
    assert (totals["saving"]["tokens"], totals["saving"]["money"]) == (0, 0)
    assert money["saved"] is None
    assert [row["saved"] for row in money["groups"]] == [None]


def test_a_compaction_by_the_agent_is_named_and_counted_apart_from_folds() -> None:
    with foldline.open(":memory:") as ledger:
        _imported(ledger, "imported")
        with page_client(ledger) as client:
            report = _get(client, "session", session="imported")
            summary = _get(client, "summary", session="imported")
    assert report["compactions"] == [{"by": "agent", "folds": 1, "messages": 40}]
    assert (report["folds"], report["last_fold_at"]) == (1, None)
    assert summary["compactions"] == report["compactions"]
    assert [row["compacted_by"] for row in report["fold_list"]] == ["agent"]
    assert report["fold_list"][0]["reason"] == "compacted by the agent itself"


def test_a_fold_after_a_compaction_is_compared_with_the_compacted_conversation() -> None:
    with foldline.open(":memory:") as ledger:
        _imported(ledger, "unfolded", later=conversation(30))
        _imported(ledger, "folded", 16_000, later=conversation(30))
        with page_client(ledger) as client:
            unfolded = _get(client, "requests", session="unfolded")
            folded = _get(client, "requests", session="folded")
            report = _get(client, "session", session="folded")
    assert report["folds"] > sum(row["folds"] for row in report["compactions"]) == 1
    assert [row["whole"] for row in folded["requests"]] == [row["tokens"] for row in unfolded["requests"]]
    assert folded["saving"]["tokens"] > 0
    assert folded["saving"]["money"] != unfolded["saving"]["money"] == 0


def test_the_views_name_a_compaction_by_the_agent_and_show_no_saving(chromium: Browser) -> None:
    with foldline.open(":memory:") as ledger:
        _imported(ledger, "imported")
        with served_ledger(ledger) as address, visit(chromium, address) as tab:
            row = tab.open("#/").get_by_role("listitem").filter(has_text="imported")
            expect(row).to_contain_text("50 messages · 40 compacted by the agent")
            expect(row).not_to_contain_text("saved")
            page = tab.open("#/session?session=imported&tab=window")
            card = page.get_by_role("region", name="The window now")
            expect(card).to_contain_text("Compacted by the agent40 messages")
            expect(card).to_contain_text("Folds0")
            expect(page.get_by_text("thanks to folds")).to_have_count(0)
            expect(page.get_by_text("without folding")).to_have_count(0)
            page = tab.open("#/session?session=imported&tab=folds")
            expect(page.get_by_role("link", name="Fold 1")).to_contain_text("compacted by the agent itself")


def test_the_parts_of_a_session_have_the_same_size_everywhere() -> None:
    with foldline.open(":memory:") as ledger:
        record = BranchRecord(ledger.store, ledger.store.session("imported", "main"))
        transcript = parse(claude_code_session(old=40, new=9, words=400, digest="This was done. " * 300))
        session_of(transcript, model="claude-opus-5", policy=small_policy(60_000), record=record, name="imported")
        with page_client(ledger) as client:
            where = {"session": "imported"}
            report = _get(client, "session", **where)
            contents = _get(client, "contents", **where)["contents"]
            requests = _get(client, "requests", **where)["requests"]
            window = _get(client, "window", number=len(requests), **where)
            rows = _get(client, "messages", start=0, stop=500, **where)["messages"]
    blocks = {one["name"]: one["tokens"] for one in report["blocks"]}
    kinds = {one["name"]: one["tokens"] for one in window["kinds"]}
    assert blocks["digest"] > 500
    assert "digest" not in {one["name"] for one in contents}, "the summary is in the block digest"
    assert sum(one["tokens"] for one in contents) == pytest.approx(blocks["history"], abs=len(contents))
    assert kinds["digest"] == pytest.approx(blocks["digest"], abs=2)
    assert sum(kinds.values()) == window["tokens"] == requests[-1]["tokens"]
    summary = next(row for row in rows if row["kind"] == "digest")
    assert summary["tokens"] == pytest.approx(blocks["digest"], abs=2)
    in_request = sum(row["tokens"] for row in rows if not row["folded"])
    assert in_request == pytest.approx(blocks["history"] + blocks["digest"], abs=len(rows))
    assert report["pins"] == [], "the compaction removed the first prompt, so nothing stays in every request"


def test_a_request_whose_usage_is_in_a_later_message_of_its_reply_adds_up() -> None:
    with foldline.open(":memory:") as ledger:
        session = ledger.session("talk", model="gpt-5.1", policy=small_policy(200_000))
        session.add(user("Hello"), assistant("I think."), with_usage(assistant("Hi."), input=9_000), user("Go on."))
        with page_client(ledger) as client:
            row = _get(client, "requests", session="talk")["requests"][0]
            window = _get(client, "window", number=1, session="talk")
    assert row["tokens"] == window["tokens"] == sum(one["tokens"] for one in window["kinds"]) == 9_000
    assert "not in any message" in {one["name"] for one in window["kinds"]}
