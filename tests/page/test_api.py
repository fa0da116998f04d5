"""The page's API: each call answers what its OpenAPI document says, and acts as the commands do."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it has no types of its own
import pytest
from starlette.testclient import TestClient

import foldline
from foldline.message import Message, Meta, Text, Thinking, ToolCall, assistant, user
from foldline.page.session_reader import SessionReader
from support.pages import HEADERS, add_session, conversation, folded_page, page_client, small_policy, with_usage

__all__ = ["folded_page"]
TALK = {"session": "talk"}


def get(client: TestClient, path: str, **params: Any) -> Any:
    answer = client.get(f"/api/{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def post(client: TestClient, path: str, **body: Any) -> Any:
    answer = client.post(f"/api/{path}", json=body, headers=HEADERS)
    assert answer.status_code == 200, answer.text
    return answer.json()


def newest_fold(client: TestClient) -> str:
    """The id of the fold that applies."""
    return next(str(row["id"]) for row in get(client, "outline", **TALK)["fold_list"] if row["applies"])


def undone_fold(client: TestClient) -> str:
    """The id of the fold that was taken back last."""
    return next(str(row["id"]) for row in get(client, "outline", **TALK)["fold_list"] if row["can_refold"])


def test_sessions_are_listed_with_their_counts(folded_page: TestClient) -> None:
    (row,) = get(folded_page, "sessions")["sessions"]
    assert (row["session"], row["messages"], row["source"]) == ("talk", 52, "ledger")
    assert row["folds"] >= 1


def test_a_further_conversation_of_a_client_names_its_parent() -> None:
    with foldline.open(":memory:") as ledger:
        add_session(ledger, "agent", 1)
        add_session(ledger, "agent.2", 1)
        with page_client(ledger) as client:
            rows = {row["session"]: row["parent"] for row in get(client, "sessions")["sessions"]}
    assert rows == {"agent": "", "agent.2": "agent"}


def test_the_blocks_of_a_session_add_up_to_its_size(folded_page: TestClient) -> None:
    report = get(folded_page, "session", **TALK)
    assert sum(block["tokens"] for block in report["blocks"]) == report["tokens"] <= report["usable"]
    assert [mark["name"] for mark in report["marks"]] == ["warn", "fold", "hard"]
    contents = get(folded_page, "contents", **TALK)["contents"]
    results = next(row for row in contents if row["name"] == "tool results")
    assert results["tools"][0]["name"] == "read_file"
    file = results["files"][0]
    assert file["name"].startswith("src/part_")
    assert file["name"] in get(folded_page, "message", number=file["message"], **TALK)["parts"][0]["text"]


def test_messages_above_the_fold_line_are_marked(folded_page: TestClient) -> None:
    answer = get(folded_page, "messages", start=0, stop=52, **TALK)
    cut = answer["cut"]
    assert 0 < cut < 52
    assert [row["number"] for row in answer["messages"]] == list(range(1, 53))
    assert not any(row["folded"] for row in answer["messages"][cut:])
    assert sum(row["folded"] for row in answer["messages"][:cut]) >= cut - 3  # the first prompt stays


def test_a_message_has_all_its_parts(folded_page: TestClient) -> None:
    call = get(folded_page, "message", number=2, **TALK)["parts"][1]
    assert (call["type"], call["name"]) == ("call", "read_file")
    (result,) = get(folded_page, "message", number=3, **TALK)["parts"]
    assert result["type"] == "result"
    assert "worker.listen(port_0)" in result["text"]


def test_a_long_part_is_cut_until_the_whole_is_asked_for() -> None:
    with foldline.open(":memory:") as ledger:
        ledger.session("long", policy="verbatim").add({"role": "user", "content": "x" * 300_000})
        with page_client(ledger) as client:
            short = get(client, "message", session="long", number=1)["parts"][0]
            whole = get(client, "message", session="long", number=1, whole=True)["parts"][0]
    assert (short["is_whole"], short["chars"], len(short["text"]) < 300_000) == (False, 300_000, True)
    assert len(whole["text"]) == 300_000


def test_secrets_do_not_reach_the_page() -> None:
    key = "sk-ant-api03-" + "Ab3dE6gH9jK2mN5pQ8sT1vW4yZ7" * 3
    with foldline.open(":memory:") as ledger:
        ledger.session("secret").add({"role": "user", "content": f"export ANTHROPIC_API_KEY={key}"})
        with page_client(ledger) as client:
            texts = [
                client.get("/api/message", params={"session": "secret", "number": 1}).text,
                client.get("/api/messages", params={"session": "secret"}).text,
                client.get("/api/recall", params={"session": "secret", "query": "export key"}).text,
            ]
    assert not any(key[:40] in text for text in texts)


def test_requests_show_cache_misses_with_their_cause() -> None:
    with foldline.open(":memory:") as ledger:
        session = ledger.session("paid", model="claude-sonnet-5", policy=small_policy(200_000))
        for place, message in enumerate(conversation(3)):
            if message.role != "assistant":
                session.add(message)
                continue
            session.view()
            read = 0 if place == 7 else 20_000 if place else 0
            session.add(with_usage(message, cache_read=read, cache_write=20_500 - read, input=5, output=20))
        with page_client(ledger) as client:
            rows = get(client, "requests", session="paid")["requests"]
    assert len(rows) == 6
    assert [row["missed"] > 0 for row in rows] == [False, False, False, True, False, False]
    assert rows[3]["cause"] == "the client changed the beginning of its request; the record does not show which part"
    assert all(row["exact"] and row["tokens"] == 20_505 for row in rows)
    assert all(row["usd"] > 0 for row in rows)
    assert [row["missed_usd"] > 0 for row in rows] == [row["missed"] > 0 for row in rows]


def test_requests_without_usage_are_estimated_and_folds_save_tokens(folded_page: TestClient) -> None:
    answer = get(folded_page, "requests", **TALK)
    assert len(answer["requests"]) == 26
    assert not any(row["exact"] for row in answer["requests"])
    last = answer["requests"][-1]
    assert last["whole"] > last["tokens"]
    assert last["fold"] >= 1
    assert answer["saving"]["tokens"] > 0


def test_the_window_at_a_request_shows_what_changed(folded_page: TestClient) -> None:
    rows = get(folded_page, "requests", **TALK)["requests"]
    first = get(folded_page, "window", number=1, **TALK)
    assert {kind["name"] for kind in first["kinds"]} == {"user"}
    folded = next(row["number"] for row in rows if row["fold"])
    kinds = {kind["name"]: kind for kind in get(folded_page, "window", number=folded, **TALK)["kinds"]}
    assert kinds["digest"]["change"] > 0
    assert kinds["tool results"]["change"] < 0


def test_two_requests_are_compared_and_their_parts_add_up(folded_page: TestClient) -> None:
    rows = get(folded_page, "requests", **TALK)["requests"]
    found = get(folded_page, "window", number=20, against=5, **TALK)
    for name, number in (("tokens", 20), ("before", 5)):
        assert sum(kind[name] for kind in found["kinds"]) == rows[number - 1]["tokens"]
    assert all(kind["change"] == kind["tokens"] - kind["before"] for kind in found["kinds"])
    order = [kind["name"] for kind in get(folded_page, "window", number=24, **TALK)["kinds"]]
    assert [name for name in order if name in [kind["name"] for kind in found["kinds"]]] == [
        kind["name"] for kind in found["kinds"]
    ]


def test_the_parts_add_up_to_what_the_provider_counted() -> None:
    with foldline.open(":memory:") as ledger:
        session = ledger.session("paid", model="claude-sonnet-5", policy=small_policy(200_000))
        for message in conversation(3):
            is_reply = message.role == "assistant"
            session.add(with_usage(message, input=30 if message.calls else 9_000, output=2) if is_reply else message)
        with page_client(ledger) as client:
            found = [get(client, "window", session="paid", number=number) for number in range(1, 7)]
    assert [sum(kind["tokens"] for kind in one["kinds"]) for one in found] == [30, 9_000] * 3
    assert [kind["name"] for kind in found[1]["kinds"]][-1] == "not in any message"


def test_every_place_names_the_same_folded_messages(folded_page: TestClient) -> None:
    folds = get(folded_page, "outline", **TALK)["fold_list"]
    newest = get(folded_page, "fold", number=len(folds), **TALK)
    report = get(folded_page, "session", **TALK)
    rows: list[dict[str, Any]] = []
    while len(rows) < report["messages"]:
        rows += get(folded_page, "messages", start=len(rows), stop=len(rows) + 500, **TALK)["messages"]
    folded = [row["number"] for row in rows if row["folded"]]
    assert report["folded"] == newest["folded"] == folds[-1]["folded"]
    assert report["left"] == newest["left"] == len(folded)
    assert report["folds"] == len(folds) == get(folded_page, "sessions")["sessions"][0]["folds"]
    stays = {one["message"]: one["why"] for one in newest["stays"]}
    assert stays[1] == "first prompt"
    assert not set(stays) & set(folded)
    unfolded = post(folded_page, "unfold", fold=newest_fold(folded_page), **TALK)
    assert unfolded["back"] == newest["first"]
    assert get(folded_page, "sessions")["sessions"][0]["folds"] == unfolded["folds"] == len(folds) - 1


def test_a_rewind_leaves_out_the_folds_of_messages_that_are_gone() -> None:
    with foldline.open(":memory:") as ledger:
        session = add_session(ledger, "talk", 20)
        with page_client(ledger) as client:
            rows = get(client, "session", **TALK)["fold_list"]
            session.rewind(rows[-1]["cut"] - 1)
            report, requests = get(client, "session", **TALK), get(client, "requests", **TALK)
    kept = [row["number"] for row in rows if row["cut"] < rows[-1]["cut"]]
    assert kept
    assert [row["number"] for row in report["fold_list"]] == kept
    assert [row["number"] for row in report["fold_list"] if row["applies"]] == kept[-1:]
    assert all(
        mark["fold"] in kept and mark["requests_before"] <= len(requests["requests"]) for mark in requests["folds"]
    )


def test_a_fold_up_to_a_message_removes_this_message_and_its_step(folded_page: TestClient) -> None:
    rows = get(folded_page, "messages", start=0, stop=500, **TALK)["messages"]
    cut = get(folded_page, "outline", **TALK)["cut"]
    call = next(row["number"] for row in rows if row["number"] > cut and row["tools"])
    for number in (call, call + 1):
        assert post(folded_page, "preview", through=f"#{number}", **TALK)["cut"] == call + 1


def test_a_fold_names_its_digest_loss_and_sources(folded_page: TestClient) -> None:
    fold = get(folded_page, "fold", number=1, **TALK)
    assert fold["before"] > fold["after"]
    assert fold["digest"]["by"] == "local"
    assert "#" in fold["digest"]["text"]
    assert fold["digest"]["facts"] >= fold["digest"]["kept"] > 0


def test_recall_finds_a_folded_message(folded_page: TestClient) -> None:
    found = get(folded_page, "recall", query="FL-1000", **TALK)
    assert any(line["message"] == 1 for passage in found["results"] for line in passage["lines"])


def test_recall_and_transcript_have_the_same_word_for_an_author() -> None:
    with foldline.open(":memory:") as ledger:
        summary = user("The harbour crane is broken.", kind="digest")
        ledger.session("talk", policy="verbatim").add([summary, *conversation(1)])
        with page_client(ledger) as client:
            (row, *_) = get(client, "messages", **TALK)["messages"]
            lines = [
                line
                for path, where in (("recall", TALK), ("search", {}))
                for passage in get(client, path, query="harbour crane", **where)["results"]
                for line in passage["lines"]
                if line["message"] == 1
            ]
    assert [row["author"], *(line["author"] for line in lines)] == ["digest"] * 3


def test_every_place_of_a_text_is_counted(folded_page: TestClient) -> None:
    found = get(folded_page, "find", query="PART_3.py", **TALK)
    assert found["messages"] == [[14, 1], [15, 30]]
    assert found["places"] == 31
    assert get(folded_page, "find", query="worker 3 listens", **TALK)["messages"] == [[16, 1]]
    assert get(folded_page, "find", query="worker\n3", **TALK)["messages"] == [[13, 1], [16, 1]]
    assert get(folded_page, "find", query="no such text", **TALK) == {
        "query": "no such text",
        "places": 0,
        "messages": [],
    }


def test_a_text_is_found_in_the_arguments_of_a_call_as_the_page_shows_them() -> None:
    with foldline.open(":memory:") as ledger:
        call = ToolCall(id="one", name="write", arguments='{"text": "first\\nsaid \\"yes\\"", "lines": [1]}')
        ledger.session("talk", policy="verbatim").add([user("Write it."), assistant("", call)])
        with page_client(ledger) as client:
            (part,) = get(client, "message", number=2, **TALK)["parts"]
            found = get(client, "find", query='said "yes"', **TALK)
    assert part["text"] == 'text: first\nsaid "yes"\nlines: [\n 1\n]'
    assert found["messages"] == [[2, 1]]


def test_a_secret_cannot_be_found() -> None:
    key = "sk-ant-api03-" + "Ab3dE6gH9jK2mN5pQ8sT1vW4yZ7" * 3
    with foldline.open(":memory:") as ledger:
        ledger.session("talk", policy="verbatim").add(user(f"The key is {key}."))
        with page_client(ledger) as client:
            assert get(client, "find", query=key[:20], **TALK)["places"] == 0


def test_a_previewed_fold_can_be_edited_approved_and_taken_back(folded_page: TestClient) -> None:
    before = get(folded_page, "session", **TALK)
    preview = post(folded_page, "preview", before="#49", **TALK)
    assert preview["cut"] > before["cut"]
    assert preview["before"] > preview["after"]
    done = post(folded_page, "approve", preview=preview["id"], digest="Ports 7000 to 7010 are in use.", **TALK)
    after = get(folded_page, "session", **TALK)
    assert (after["cut"], after["folds"]) == (done["cut"], before["folds"] + 1)
    assert "Ports 7000 to 7010" in get(folded_page, "fold", number=after["folds"], **TALK)["digest"]["text"]
    undone = post(folded_page, "unfold", fold=newest_fold(folded_page), **TALK)
    assert get(folded_page, "session", **TALK)["cut"] == before["cut"]
    assert undone["folds"] == before["folds"]
    post(folded_page, "refold", fold=undone_fold(folded_page), **TALK)
    assert get(folded_page, "session", **TALK)["cut"] == done["cut"]


def test_a_fold_that_was_taken_back_stays_in_the_list_and_is_restored_as_it_was(folded_page: TestClient) -> None:
    before = get(folded_page, "session", **TALK)
    number = before["folds"]
    fold = get(folded_page, "fold", number=number, **TALK)
    assert (fold["applies"], fold["taken_back_at"], fold["can_refold"]) == (True, None, False)
    post(folded_page, "unfold", fold=newest_fold(folded_page), **TALK)
    after = get(folded_page, "session", **TALK)
    assert after["folds"] == number - 1
    assert [row["number"] for row in after["fold_list"]] == [row["number"] for row in before["fold_list"]]
    undone = get(folded_page, "fold", number=number, **TALK)
    assert undone["taken_back_at"]
    assert undone["can_refold"]
    assert undone["digest"] == fold["digest"]
    assert [row["applies"] for row in after["fold_list"]][-2:] == [True, False]
    post(folded_page, "refold", fold=undone_fold(folded_page), **TALK)
    assert get(folded_page, "fold", number=number, **TALK) == fold
    assert get(folded_page, "session", **TALK)["tokens"] == before["tokens"]


def test_only_the_fold_that_was_taken_back_last_can_be_restored(folded_page: TestClient) -> None:
    count = get(folded_page, "session", **TALK)["folds"]
    for _ in range(2):
        post(folded_page, "unfold", fold=newest_fold(folded_page), **TALK)
    rows = get(folded_page, "session", **TALK)["fold_list"]
    assert [row["number"] for row in rows if row["can_refold"]] == [count - 1]
    preview = post(folded_page, "preview", force=True, **TALK)
    post(folded_page, "approve", preview=preview["id"], **TALK)
    rows = get(folded_page, "session", **TALK)["fold_list"]
    assert [row["number"] for row in rows if row["can_refold"]] == []
    assert [row["number"] for row in rows if row["taken_back_at"]] == [count - 1, count]
    assert [row["number"] for row in rows if row["applies"]] == [count + 1]
    refused = folded_page.post("/api/refold", json={**TALK, "fold": rows[-2]["id"]}, headers=HEADERS)
    assert refused.status_code == 409
    assert "another fold was made" in refused.json()["error"]


def test_an_action_for_a_fold_that_is_not_the_newest_any_more_is_refused(folded_page: TestClient) -> None:
    shown = newest_fold(folded_page)
    preview = post(folded_page, "preview", before="#49", **TALK)
    made = post(folded_page, "approve", preview=preview["id"], **TALK)
    assert made["fold"] == newest_fold(folded_page) != shown
    before = get(folded_page, "outline", **TALK)
    for action in ("unfold_preview", "unfold", "refold"):
        refused = folded_page.post(f"/api/{action}", json={**TALK, "fold": shown}, headers=HEADERS)
        assert refused.status_code == 409, action
    assert get(folded_page, "outline", **TALK) == before
    assert post(folded_page, "unfold", fold=made["fold"], **TALK)["folds"] == before["folds"] - 1
    error = folded_page.post("/api/unfold", json={**TALK, "fold": made["fold"]}, headers=HEADERS).json()["error"]
    assert re.fullmatch(r"fold (\d+) cannot be taken back: fold (\d+) is the newest fold now", error)


def test_an_unfold_changes_nothing_about_earlier_requests(folded_page: TestClient) -> None:
    before = get(folded_page, "requests", **TALK)
    requests, folds = before["requests"], get(folded_page, "session", **TALK)["folds"]
    marks = [(mark["kind"], mark["fold"]) for mark in before["folds"]]
    assert marks == [("fold", number) for number in range(1, folds + 1)]
    post(folded_page, "unfold", fold=newest_fold(folded_page), **TALK)
    unfolded = get(folded_page, "requests", **TALK)
    assert (unfolded["requests"], unfolded["saving"]) == (requests, before["saving"])
    assert unfolded["folds"][:-1] == before["folds"]
    newest = unfolded["folds"][-1]
    assert (newest["kind"], newest["fold"], newest["requests_before"]) == ("unfold", folds, len(requests))
    post(folded_page, "refold", fold=undone_fold(folded_page), **TALK)
    restored = get(folded_page, "requests", **TALK)
    assert (restored["requests"], restored["saving"]) == (requests, before["saving"])
    assert [mark["kind"] for mark in restored["folds"]][-2:] == ["unfold", "refold"]


def test_a_preview_changes_nothing_and_an_old_one_is_refused(folded_page: TestClient) -> None:
    before = get(folded_page, "session", **TALK)
    preview = post(folded_page, "preview", force=True, **TALK)
    assert get(folded_page, "session", **TALK) == before
    post(folded_page, "pin", handle="#1", **TALK)
    refused = folded_page.post("/api/approve", json={"preview": preview["id"], **TALK}, headers=HEADERS)
    assert refused.status_code == 409
    assert refused.json()["hint"]


def test_a_message_before_the_fold_cannot_be_folded_again(folded_page: TestClient) -> None:
    answer = post(folded_page, "preview", before="#2", **TALK)
    assert answer == {"id": "", "skip_reason": "nothing before #2 can be folded"}


def test_pins_are_added_and_removed(folded_page: TestClient) -> None:
    assert post(folded_page, "pin", handle="#46", name="port", **TALK)["pins"] == ["port"]
    rows = get(folded_page, "session", **TALK)["pins"]
    assert [(row["message"], row["by"], row["block"]) for row in rows] == [
        (1, "policy", "pins"),
        (46, "pin", "pins"),
    ]
    assert all(row["tokens"] > 0 for row in rows)
    assert post(folded_page, "unpin", name="port", **TALK)["pins"] == []
    assert folded_page.post("/api/unpin", json={"name": "no", **TALK}, headers=HEADERS).status_code == 400


def test_a_pin_in_the_history_is_counted_where_the_blocks_count_it() -> None:
    with foldline.open(":memory:") as ledger:
        add_session(ledger, "talk", 13)
        with page_client(ledger) as client:
            before = get(client, "session", **TALK)
            post(client, "pin", handle="#47", **TALK)
            after = get(client, "session", **TALK)
    blocks = {block["name"]: block["tokens"] for block in before["blocks"]}
    pins = {block["name"]: block["tokens"] for block in after["blocks"]}["pins"] - blocks["pins"]
    (row,) = [row for row in after["pins"] if row["message"] == 47]
    assert row["block"] == "pins"
    assert row["tokens"] == pytest.approx(pins, rel=0.1)


def test_a_folded_message_is_brought_back_as_a_copy(folded_page: TestClient) -> None:
    done = post(folded_page, "pin", handle="#6", **TALK)
    assert (done["pins"], done["messages"], done["without_thinking"]) == (["#6"], [53], False)
    row = get(folded_page, "message", number=6, **TALK)
    assert (row["folded"], row["pin"], row["copy"], row["copy_of"]) == (True, "#6", 53, None)
    copy = get(folded_page, "message", number=53, **TALK)
    assert (copy["kind"], copy["pin"], copy["copy"], copy["copy_of"]) == ("note", "#6", None, 6)
    (kept,) = [one for one in get(folded_page, "session", **TALK)["pins"] if one["name"] == "#6"]
    assert (kept["message"], kept["copy_of"]) == (53, 6)
    gone = post(folded_page, "unpin", name="#6", **TALK)
    assert (gone["message"], gone["copy_of"]) == (53, 6)
    assert get(folded_page, "message", number=6, **TALK)["copy"] is None
    again = post(folded_page, "pin", handle="#6", **TALK)
    assert again["messages"] == [53]  # the copy is still in the request, so no second one is added


def test_a_copy_of_a_message_with_thinking_leaves_the_thinking_out() -> None:
    with foldline.open(":memory:") as ledger:
        session = ledger.session("talk", model="claude-sonnet-5", policy=small_policy())
        thoughts = Thinking(text="I should look at the port.")
        reply = Message(role="assistant", parts=(thoughts, Text(text="The port is 7000.")))
        session.add([user("Which port?"), reply, *conversation(12)])
        session.view()
        with page_client(ledger) as client:
            done = post(client, "pin", handle="#2", **TALK)
            copy = get(client, "message", number=done["messages"][0], **TALK)
    assert done["without_thinking"]
    assert [part["text"] for part in copy["parts"]] == ["The port is 7000."]


def test_an_unknown_session_is_an_error_and_is_not_created(folded_page: TestClient) -> None:
    for path in ("session", "summary", "messages", "requests"):
        assert folded_page.get(f"/api/{path}", params={"session": "nobody"}).status_code == 400
    assert folded_page.post("/api/pin", json={"session": "nobody", "text": "x"}, headers=HEADERS).status_code == 400
    assert len(get(folded_page, "sessions")["sessions"]) == 1


@pytest.mark.parametrize(
    ("path", "params"),
    [
        ("messages", {"start": "-1"}),
        ("messages", {"start": "x"}),
        ("messages", {"surprise": "1"}),
        ("message", {"number": "0"}),
        ("message", {}),
        ("message", {"number": "999999"}),
        ("fold", {"number": "99"}),
        ("window", {"number": "99999"}),
        ("recall", {"query": " "}),
        ("message", {"number": "1", "whole": "perhaps"}),
    ],
)
def test_wrong_parameters_are_named(folded_page: TestClient, path: str, params: dict[str, str]) -> None:
    answer = folded_page.get(f"/api/{path}", params={**TALK, **params})
    assert answer.status_code == 400
    assert set(answer.json()) == {"error", "hint"}


def test_an_unchanged_session_is_not_sent_again(folded_page: TestClient) -> None:
    first = folded_page.get("/api/session", params=TALK)
    again = folded_page.get("/api/session", params=TALK, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    post(folded_page, "pin", handle="#45", **TALK)
    changed = folded_page.get("/api/session", params=TALK, headers={"If-None-Match": first.headers["etag"]})
    assert changed.status_code == 200


def test_a_read_only_page_refuses_changes() -> None:
    with foldline.open(":memory:") as ledger:
        add_session(ledger, "talk", 2)
        with page_client(ledger, read_only=True) as client:
            assert not get(client, "session", **TALK)["can_change"]
            refused = client.post("/api/pin", json={**TALK, "handle": "#1"}, headers=HEADERS)
    assert refused.status_code == 400
    assert "read-only" in refused.json()["error"]


SAMPLES: dict[str, dict[str, Any]] = {
    "window": {"number": 1},
    "message": {"number": 1},
    "fold": {"number": 1},
    "lost_facts": {"number": 1},
    "recall": {"query": "port"},
    "search": {"query": "port"},
    "find": {"query": "port"},
    "preview": {},
    "replay": {
        "name": "chat.json",
        "text": '[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}]',
    },
    "pin": {"handle": "#45"},
}


def test_every_answer_has_the_form_that_openapi_names(folded_page: TestClient) -> None:
    document = get(folded_page, "openapi.json")
    assert document["openapi"].startswith("3.1")
    post(folded_page, "pin", handle="#44", name="kept", **TALK)
    preview = post(folded_page, "preview", before="#49", **TALK)["id"]
    edited = {"preview": preview, "digest": "Only this line."}
    samples = {**SAMPLES, "approve": {"preview": preview}, "revise": edited, "unpin": {"name": "kept"}}
    order = ["revise", "approve", "unfold", "refold", "pin", "unpin", "preview"]
    paths = sorted(document["paths"], key=lambda path: order.index(path[1:]) if path[1:] in order else -1)
    for path in paths:
        (method, operation), name = next(iter(document["paths"][path].items())), path[1:]
        known = {one["name"] for one in operation["parameters"]}
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        where = TALK if "session" in known | set(body.get("properties", {})) else {}
        call = post if method == "post" else get
        if name in ("unfold_preview", "unfold", "refold"):
            where = {**where, "fold": (undone_fold if name == "refold" else newest_fold)(folded_page)}
        answer = call(folded_page, name, **where, **samples.get(name, {}))
        schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
        jsonschema.validate(answer, schema)


def test_a_pin_does_not_warm_the_cache(tmp_path: Path) -> None:
    with foldline.open(tmp_path / "agent.db") as ledger:
        session = ledger.session("old", model="claude-sonnet-5")
        old = Meta(at=time.time() - 3_600)
        session.add(Message(role="user", parts=(Text(text="hi"),), meta=old))
        session.add(Message(role="assistant", parts=(Text(text="hello"),), meta=old))
        reader = SessionReader(ledger.store, ledger.store.session("old"))
        assert reader.cache_state() == "expired"
        session.pin(handle="#1")
        assert reader.cache_state() == "expired"
        session.pin("a text that is added as a note")
        assert reader.cache_state() == "expired"


def test_the_preview_of_a_message_begins_with_its_first_word() -> None:
    with foldline.open(":memory:") as ledger:
        ledger.session("talk", policy="verbatim").add(user("\n" * 3_000 + "end"))
        with page_client(ledger) as client:
            assert get(client, "message", number=1, **TALK)["starts"] == "end"
