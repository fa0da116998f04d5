"""The page's API: each call answers what its OpenAPI document says, and acts as the commands do."""

from __future__ import annotations

from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it has no types of its own
import pytest
from starlette.testclient import TestClient

import foldline
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


def test_sessions_are_listed_with_their_counts(folded_page: TestClient) -> None:
    (row,) = get(folded_page, "sessions")["sessions"]
    assert (row["session"], row["messages"], row["source"]) == ("talk", 48, "ledger")
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
    assert results["files"][0]["name"].startswith("src/part_")


def test_messages_above_the_fold_line_are_marked(folded_page: TestClient) -> None:
    answer = get(folded_page, "messages", start=0, stop=48, **TALK)
    cut = answer["cut"]
    assert 0 < cut < 48
    assert [row["number"] for row in answer["messages"]] == list(range(1, 49))
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
    assert rows[3]["cause"] == "the beginning of the request changed"
    assert all(row["exact"] and row["tokens"] == 20_505 for row in rows)


def test_requests_without_usage_are_estimated_and_folds_save_tokens(folded_page: TestClient) -> None:
    answer = get(folded_page, "requests", **TALK)
    assert len(answer["requests"]) == 24
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


def test_a_fold_names_its_digest_loss_and_sources(folded_page: TestClient) -> None:
    fold = get(folded_page, "fold", number=1, **TALK)
    assert fold["before"] > fold["after"]
    assert fold["digest"]["by"] == "local"
    assert "#" in fold["digest"]["text"]
    assert fold["digest"]["facts"] >= fold["digest"]["kept"] > 0


def test_recall_finds_a_folded_message(folded_page: TestClient) -> None:
    found = get(folded_page, "recall", query="FL-1000", **TALK)
    assert any(line["message"] == 1 for passage in found["results"] for line in passage["lines"])


def test_a_previewed_fold_can_be_edited_approved_and_taken_back(folded_page: TestClient) -> None:
    before = get(folded_page, "session", **TALK)
    preview = post(folded_page, "preview", before="#45", **TALK)
    assert preview["cut"] > before["cut"]
    assert preview["before"] > preview["after"]
    done = post(folded_page, "approve", preview=preview["id"], digest="Ports 7000 to 7010 are in use.", **TALK)
    after = get(folded_page, "session", **TALK)
    assert (after["cut"], after["folds"]) == (done["cut"], before["folds"] + 1)
    assert "Ports 7000 to 7010" in get(folded_page, "fold", number=after["folds"], **TALK)["digest"]["text"]
    undone = post(folded_page, "unfold", **TALK)
    assert get(folded_page, "session", **TALK)["cut"] == before["cut"]
    post(folded_page, "approve", preview=undone["undo"], **TALK)
    assert get(folded_page, "session", **TALK)["cut"] == done["cut"]


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
    assert post(folded_page, "pin", handle="#45", name="port", **TALK)["pins"] == ["port"]
    assert [pin["message"] for pin in get(folded_page, "session", **TALK)["pins"]] == [45]
    assert post(folded_page, "unpin", name="port", **TALK)["pins"] == []
    assert folded_page.post("/api/unpin", json={"name": "no", **TALK}, headers=HEADERS).status_code == 400


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
    "recall": {"query": "port"},
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
    preview = post(folded_page, "preview", before="#45", **TALK)["id"]
    samples = {**SAMPLES, "approve": {"preview": preview}, "unpin": {"name": "kept"}, "unfold": {}}
    order = ["approve", "unfold", "pin", "unpin", "preview"]
    paths = sorted(document["paths"], key=lambda path: order.index(path[1:]) if path[1:] in order else -1)
    for path in paths:
        (method, operation), name = next(iter(document["paths"][path].items())), path[1:]
        known = {one["name"] for one in operation["parameters"]}
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        where = TALK if "session" in known | set(body.get("properties", {})) else {}
        call = post if method == "post" else get
        answer = call(folded_page, name, **where, **samples.get(name, {}))
        schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
        jsonschema.validate(answer, schema)
