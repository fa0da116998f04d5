"""Reports of the page: what to do now, money, receipts, replay, and the session files of agents."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import foldline
from foldline.cli.shared.usage_rows import UsageReader, with_misses
from foldline.ledger import for_owner
from foldline.ledger.receipts import CacheMiss, Receipt, add_receipt
from foldline.message import Usage, assistant, tool, user
from foldline.page.app import page_app
from foldline.page.money_report import holdout_comparison
from foldline.page.sources import LOGS
from foldline.session import Ledger
from support import sessions
from support.pages import HEADERS, add_session, conversation, page_client, small_policy, with_usage


def get(client: TestClient, path: str, **params: Any) -> Any:
    answer = client.get(f"/api/{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_advice_names_what_is_large_repeated_and_read_again() -> None:
    with foldline.open(":memory:") as ledger:
        session = ledger.session("talk", model="claude-sonnet-5", policy=small_policy(40_000))
        talk = conversation(6, lines=150)
        again = tool("call_again", talk[2].results[0].text)
        read = foldline.message.ToolCall(id="call_again", name="read_file", arguments='{"path": "src/part_0.py"}')
        session.add(*talk, assistant("Once more.", read), again, user("And now?"))
        with page_client(ledger) as client:
            rows = get(client, "advice", session="talk")["rows"]
    kinds = {row["message"]: row["kind"] for row in rows}
    assert kinds[3] == "superseded"
    assert "largest" in kinds.values()
    assert all(row["frees"] is None or row["frees"] > 0 for row in rows)
    foldable = [row for row in rows if row["leaves"]]
    assert foldable
    assert all(row["costs"] > 0 and row["saves"] > 0 for row in foldable)


def test_advice_begins_with_what_pays_back_soonest() -> None:
    with foldline.open(":memory:") as ledger:
        session = ledger.session("talk", model="claude-sonnet-5", policy=small_policy(60_000))
        session.add(conversation(30, lines=60))
        with page_client(ledger) as client:
            rows = client.get("/api/advice", params={"session": "talk"}).json()["rows"]
    paid = [row["pays_with"] for row in rows if row["pays_with"] is not None]
    assert len(paid) > 1
    assert paid == sorted(paid)
    assert all(row["pays_with"] is None for row in rows[len(paid) :])


def test_what_advice_offers_is_what_its_preview_does() -> None:
    with foldline.open(":memory:") as ledger:
        add_session(ledger, "talk", 12, policy=small_policy(20_000))
        with page_client(ledger) as client:
            row = next(row for row in get(client, "advice", session="talk")["rows"] if row["leaves"])
            body = {"session": "talk", "through": f"#{row['message']}"}
            preview = client.post("/api/preview", json=body, headers=HEADERS).json()
    assert preview["id"]
    assert preview["cut"] >= row["message"]
    assert preview["leaves"] == row["leaves"]


@pytest.mark.parametrize(("age_s", "is_free"), [(60, False), (3_600, True)])
def test_a_fold_costs_nothing_once_the_cache_has_expired(age_s: float, is_free: bool) -> None:
    with foldline.open(":memory:") as ledger:
        session = ledger.session("talk", model="claude-sonnet-5", policy=small_policy(20_000))
        at = time.time() - age_s
        session.add(*(replace(one, meta=replace(one.meta, at=at)) for one in conversation(12)))
        with page_client(ledger) as client:
            row = next(row for row in get(client, "advice", session="talk")["rows"] if row["leaves"])
            body = {"session": "talk", "through": f"#{row['message']}"}
            preview = client.post("/api/preview", json=body, headers=HEADERS).json()
        own = session.preview(force=True)
    assert own is not None
    assert [row["costs"] == 0, preview["money_once"] == 0, own.money_once == 0] == [is_free] * 3
    assert (preview["pays_with"] == 1) == is_free


@pytest.mark.parametrize("age_s", [60, 3_600])
def test_without_reported_cache_tokens_a_fold_costs_nothing_and_no_cache_expires(age_s: float) -> None:
    with foldline.open(":memory:") as ledger:
        session = ledger.session("talk", model="claude-sonnet-5", policy=small_policy(20_000))
        at = time.time() - age_s
        for number, one in enumerate(conversation(12)):
            told = with_usage(one, input=2_000 + 300 * number, output=20) if one.role == "assistant" else one
            session.add(replace(told, meta=replace(told.meta, at=at)))
        with page_client(ledger) as client:
            states, advice = get(client, "summary", session="talk")["states"], get(client, "advice", session="talk")
            row = next(row for row in advice["rows"] if row["leaves"])
            body = {"session": "talk", "through": f"#{row['message']}"}
            preview = client.post("/api/preview", json=body, headers=HEADERS).json()
        own = session.preview(force=True)
    assert own is not None
    assert session.model.prices is not None
    assert "cold cache" not in states
    assert [advice["cache"], preview["cache"], own.cache] == ["none"] * 3
    assert [row["costs"], preview["money_once"], own.money_once] == [0] * 3
    assert preview["money_before"] == pytest.approx(preview["before"] * session.model.prices.input / 1e6)
    assert row["saves"] == pytest.approx(row["frees"] * session.model.prices.input / 1e6)
    assert preview["pays_with"] == 1


def test_money_names_the_model_of_each_session_and_counts_a_shared_reply_once() -> None:
    with foldline.open(":memory:") as ledger:
        for name, model in (("one", "claude-sonnet-5"), ("one/agent-1", "gpt-5.1"), ("fork", "claude-sonnet-5")):
            session = ledger.session(name, model=model, policy=small_policy(200_000))
            first = user("Search." if name == "one/agent-1" else "Begin.")
            reply = with_usage(assistant("Done."), input=1_000, output=10)
            session.add(first, replace(reply, meta=replace(reply.meta, model=model)))
        with page_client(ledger) as client:
            by_model = {row["name"]: row["requests"] for row in get(client, "money", by="model")["groups"]}
            by_session = {row["name"]: row for row in get(client, "money", by="session")["groups"]}
            tree = get(client, "tree", session="one/agent-1")
            paid = {row["session"]: get(client, "totals", session=row["session"]) for row in tree["sessions"]}
    assert by_model == {"claude-sonnet-5": 1, "gpt-5.1": 1}
    assert by_session["one/agent-1"]["requests"] == 1
    assert [row["session"] for row in tree["sessions"]] == ["one", "one/agent-1"]
    assert tree["usd"] == sum(one["cost"]["usd"] for one in paid.values())


def test_money_says_what_folds_saved_in_each_session_and_in_total() -> None:
    with foldline.open(":memory:") as ledger:
        for name, talk in (("long", conversation(30)), ("short", conversation(31)[-4:])):
            session = ledger.session(name, model="claude-sonnet-5", policy=small_policy())
            for message in talk:
                if message.role == "assistant":
                    tokens = session.view().tokens
                    session.add(with_usage(message, input=tokens, output=20 + len(session)))
                else:
                    session.add(message)
        with page_client(ledger) as client:
            report = get(client, "money", by="session")
            by_day = get(client, "money", by="day")
            saving = get(client, "totals", session="long")["saving"]
    rows = {row["name"]: row["saved"] for row in report["groups"]}
    assert saving["money"]
    assert rows == {"long": {"usd": saving["money"], "from_receipts": False}, "short": None}
    assert report["saved"] == by_day["saved"] == rows["long"]


def _paid_ledger(ledger: Any) -> Any:
    session = ledger.session("paid", model="claude-sonnet-5", policy=small_policy(200_000))
    for number, message in enumerate(conversation(3)):
        if message.role == "assistant":
            session.view()
            session.add(
                with_usage(message, cache_read=10_000 * bool(number > 1), cache_write=10_000, output=20 + number)
            )
        else:
            session.add(message)
    return session


@pytest.mark.parametrize("by", ["day", "month", "model", "project", "session"])
def test_money_is_the_same_in_every_grouping(by: str) -> None:
    with foldline.open(":memory:") as ledger:
        _paid_ledger(ledger)
        with page_client(ledger) as client:
            report = get(client, "money", by=by)
    assert report["total"]["requests"] == 6
    assert sum(row["cost"] for row in report["groups"]) == pytest.approx(report["total"]["cost"])
    assert report["savings"] is None


def test_receipts_of_the_proxy_give_causes_and_savings() -> None:
    with foldline.open(":memory:") as ledger:
        session = _paid_ledger(ledger)
        branch = session.record.search_target()[1]
        usages = [message.meta.usage for message in session.messages if message.meta.usage]
        for place, usage in enumerate(usages):
            miss = CacheMiss(cause="tools", tokens=9_000, usd=0.02, path="tools[3]") if place == 3 else None
            untouched = usage._replace(cache_read=usage.cache_read + 50_000)
            receipt = Receipt(usage=usage, untouched=untouched, usd=0.01, untouched_usd=0.03, miss=miss, is_folded=True)
            add_receipt(ledger.store, branch, receipt)
        with page_client(ledger) as client:
            answer = get(client, "requests", session="paid")
            money = get(client, "money")
    rows = answer["requests"]
    assert [row["number"] for row in rows if row["missed"]] == [4]
    assert rows[3]["cause"] == "the client changed its tools (tools[3])"
    assert all(row["whole"] - row["tokens"] == 50_000 for row in rows)
    assert answer["saving"]["money"] == pytest.approx(0.12)
    assert money["savings"]["untouched_usd"] - money["savings"]["usd"] == pytest.approx(0.12)
    assert money["savings"]["misses"] == [{"cause": "tools", "tokens": 9_000, "usd": 0.02, "requests": 1}]


def test_the_holdout_comparison_gives_its_uncertainty() -> None:
    def session(price: float, *, held: bool) -> list[Receipt]:
        return [Receipt(usage=Usage(), untouched=Usage(), usd=price, is_held_out=held)] * 3

    folded = [session(price, held=False) for price in (0.010, 0.012, 0.011, 0.009)]
    held = [session(price, held=True) for price in (0.030, 0.034, 0.029)]
    found = holdout_comparison([*folded, *held])
    assert found is not None
    assert found["difference"] == pytest.approx(0.0205)
    assert found["low"] < found["difference"] < found["high"]
    few = holdout_comparison([folded[0], held[0]])
    assert few is not None
    assert (few["low"], few["high"]) == (None, None)
    assert holdout_comparison(folded) is None


def test_held_out_sessions_are_marked() -> None:
    with foldline.open(":memory:") as ledger, page_client(ledger) as client:
        for name, held in (("folded", False), ("observed", True)):
            usage = Usage(input=2_000, output=10)
            session = ledger.session(name, model="claude-sonnet-5")
            session.add(user(f"Which port is {name}?"), with_usage(assistant("7091."), input=2_000, output=10))
            receipt = Receipt(usage=usage, untouched=usage, usd=0.01, untouched_usd=0.01, is_held_out=held)
            add_receipt(ledger.store, ledger.store.session(name), receipt)
        states = {name: get(client, "summary", owner="", session=name)["states"] for name in ("folded", "observed")}
        groups = get(client, "money", by="session")["groups"]
    assert "held out" not in states["folded"]
    assert "held out" in states["observed"]
    assert {row["name"]: row["is_held_out"] for row in groups} == {"folded": False, "observed": True}


def test_a_dropped_transcript_is_replayed_and_not_stored(tmp_path: Path) -> None:
    body = {"name": "session.jsonl", "text": sessions.claude_code(), "window": 8_000, "policies": "balanced,verbatim"}
    with foldline.open(tmp_path / "agent.db") as ledger, page_client(ledger) as client:
        answer = client.post("/api/replay", json=body, headers=HEADERS).json()
        assert get(client, "sessions")["sessions"] == []
    balanced, verbatim = answer["policies"]
    assert (balanced["policy"], verbatim["policy"]) == ("balanced", "verbatim")
    assert balanced["folds"] > 0
    assert max(balanced["sizes"]) <= 8_000


@pytest.mark.parametrize("text", ["", "nothing", "{}", "[1, 2]", '{"role": 7}', "\ud800"])
def test_a_dropped_file_that_is_no_transcript_is_refused(text: str) -> None:
    with foldline.open(":memory:") as ledger, page_client(ledger) as client:
        body = json.dumps({"name": "notes.txt", "text": text})
        headers = {**HEADERS, "Content-Type": "application/json"}
        answer = client.post("/api/replay", content=body, headers=headers)
    assert answer.status_code == 400
    assert "/tmp" not in answer.text
    assert "notes.txt" in answer.json()["error"]


@pytest.fixture
def log_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "projects"
    folder.mkdir()
    (folder / "3f0c.jsonl").write_text(sessions.claude_code())
    return folder


def test_session_files_are_shown_and_cannot_be_changed(log_folder: Path) -> None:
    with foldline.open(":memory:") as ledger, page_client(ledger, logs=[str(log_folder)]) as client:
        (row,) = get(client, "sessions")["sessions"]
        assert (row["owner"], row["source"], row["messages"]) == (LOGS, "file", None)
        where = {"owner": LOGS, "session": row["session"]}
        report = get(client, "session", **where)
        assert report["messages"] > 50
        assert not report["can_change"]
        assert get(client, "recall", query="port 7091", **where)["results"]
        refused = client.post("/api/pin", json={**where, "handle": "#1"}, headers=HEADERS)
        assert refused.status_code == 400
        assert "read-only" in refused.json()["error"]
        assert ledger.sessions() == ()


def test_a_session_file_that_grows_is_read_on(log_folder: Path) -> None:
    file = log_folder / "3f0c.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:40]))
    with foldline.open(":memory:") as ledger, page_client(ledger, logs=[str(log_folder)]) as client:
        where = {"owner": LOGS, "session": str(file)}
        before = get(client, "session", **where)["messages"]
        file.write_text("".join(lines))
        assert get(client, "session", **where)["messages"] > before


def test_only_listed_files_can_be_opened(log_folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "other.jsonl"
    outside.write_text(sessions.claude_code())
    with foldline.open(":memory:") as ledger, page_client(ledger, logs=[str(log_folder)]) as client:
        for name in (str(outside), str(log_folder / ".." / "other.jsonl"), "/etc/passwd"):
            answer = client.get("/api/session", params={"owner": LOGS, "session": name})
            assert answer.status_code == 400


def test_money_of_session_files_is_read_from_the_files(log_folder: Path) -> None:
    with foldline.open(":memory:") as ledger, page_client(ledger, logs=[str(log_folder)]) as client:
        assert get(client, "money", source="files")["total"]["requests"] > 0
        assert get(client, "money", source="ledger")["total"]["requests"] == 0


def test_all_owners_are_listed_apart(tmp_path: Path) -> None:
    path = tmp_path / "shared.db"
    for owner in ("ann", "bob"):
        with foldline.open(path, owner=owner) as ledger:
            add_session(ledger, "talk", 1 if owner == "ann" else 2)
    with foldline.open(path, owner="ann") as ledger:
        with page_client(ledger, all_owners=True) as client:
            rows = {row["owner"]: row["messages"] for row in get(client, "sessions")["sessions"]}
            assert rows == {"ann": 4, "bob": 8}
            assert get(client, "session", owner="bob", session="talk")["messages"] == 8
        with page_client(ledger) as client:
            assert [row["owner"] for row in get(client, "sessions")["sessions"]] == ["ann"]
            assert client.get("/api/session", params={"owner": "bob", "session": "talk"}).status_code == 400


def test_the_turns_that_are_left_follow_from_the_requests_that_are_left() -> None:
    """A turn has at least one request, so there cannot be more turns than requests."""
    with foldline.open(":memory:") as ledger:
        add_session(ledger, "talk", 8, policy=small_policy(40_000))
        with page_client(ledger) as client:
            found = get(client, "requests", session="talk")
    assert found["requests_per_turn"] == 2.0
    assert found["growth_requests"] == 16
    assert found["turns_left"] == found["requests_left"] // 2 > 0


def test_after_a_fold_by_hand_more_requests_are_left_than_before() -> None:
    with foldline.open(":memory:") as ledger:
        session = ledger.session("talk", model="claude-sonnet-5", policy=small_policy(40_000))
        size = 0
        for one in conversation(40):
            size += session.size(one)
            session.add(with_usage(one, input=size + 500) if one.role == "assistant" else one)
        with page_client(ledger) as client:
            before = get(client, "requests", session="talk")
            preview = session.preview(before="#81")
            assert preview is not None
            session.approve(preview)
            after, report = get(client, "requests", session="talk"), get(client, "session", session="talk")
    assert after["requests_left"] > before["requests_left"]
    (mark,) = [one for one in report["marks"] if one["name"] == "fold"]
    assert mark["tokens"] < mark["measured"]
    assert report["reports_usage"]


def test_the_difference_between_two_requests_names_the_messages() -> None:
    with foldline.open(":memory:") as ledger:
        add_session(ledger, "talk", 13)
        with page_client(ledger) as client:
            rows = get(client, "requests", session="talk")["requests"]
            number = next(row["number"] for row in rows if row["fold"])
            found = get(client, "window", session="talk", number=number)
            first = get(client, "window", session="talk", number=1)
    assert first["came"] == "#1"
    assert found["went"].startswith("#2")
    assert found["came"]


def _fold_with_usage(ledger: foldline.Ledger) -> Any:
    """A session with two requests and a fold between them. The figures of the provider follow foldline's sizes."""
    session = ledger.session("paid", model="claude-sonnet-5", policy=small_policy(200_000))
    for message in conversation(40):
        if message.role == "assistant":
            size = session.view().tokens
            session.add(with_usage(message, cache_read=0, cache_write=size, output=20))
            continue
        session.add(message)
    preview = session.preview(before="#121")
    assert preview is not None
    session.approve(preview)
    session.add(user("One more: " + "word " * 2_000))
    after = session.view().tokens
    session.add(with_usage(assistant("I see."), cache_read=0, cache_write=after, output=20))
    return session, after


def test_after_a_fold_only_repeated_messages_count_as_paid_again() -> None:
    with foldline.open(":memory:") as ledger:
        session, after = _fold_with_usage(ledger)
        fold = session.timeline.fold
        kept = session.timeline.prefix[160] - session.timeline.prefix[fold.cut]
        with page_client(ledger) as client:
            row = get(client, "requests", session="paid")["requests"][-1]
            total = get(client, "money")["total"]
        usage = UsageReader()
        usage.read_ledger(ledger.store)
        (*_, (_, counted, _)) = with_misses(usage.rows)
    assert row["cause"] == "fold 1 replaced messages by a digest"
    assert after - row["missed"] > fold.digest_tokens + 2_000, "the digest and the new prompt were never in a cache"
    assert row["missed"] == pytest.approx(kept, rel=0.15)
    assert counted == row["missed"]
    assert total["missed"] >= counted


def test_sessions_of_other_owners_are_counted_and_named() -> None:
    with foldline.open(":memory:") as ledger:
        own = ledger.store
        _paid_ledger(Ledger(for_owner(own, "key-none")))
        with TestClient(page_app(own), base_url="http://127.0.0.1", client=("127.0.0.1", 50_000)) as client:
            assert get(client, "sessions")["of_other_owners"] == get(client, "money")["of_other_owners"] == 1
        with TestClient(page_app(own, all_owners=True), base_url="http://127.0.0.1", client=("127.0.0.1", 1)) as client:
            assert get(client, "sessions")["of_other_owners"] == get(client, "money")["of_other_owners"] == 0


def test_requests_without_usage_are_counted_in_the_session_and_in_money() -> None:
    with foldline.open(":memory:") as ledger:
        session = _paid_ledger(ledger)
        session.add(user("And now?"), assistant("It was interrupted."), user("Go on."))
        with page_client(ledger) as client:
            answer, money = get(client, "requests", session="paid"), get(client, "money")
    assert (len(answer["requests"]), answer["unreported"]) == (7, 1)
    assert (money["total"]["requests"], money["unreported"]) == (6, 1)
