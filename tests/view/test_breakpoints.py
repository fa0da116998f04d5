"""Cache marks: at most four on the wire, where the provider's look-back finds them."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline import Session
from foldline.testing.provider import judge
from foldline.view.breakpoints import count, place
from foldline.wire.rendering import Rendered

LOOK_BACK = 20


def request(turns: int, calls: int = 1, system: Any = "Be careful.") -> Rendered:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for turn in range(turns):
        ids = [f"t{turn}_{number}" for number in range(calls)]
        uses = [{"type": "tool_use", "id": name, "name": "run", "input": {}} for name in ids]
        results = [{"type": "tool_result", "tool_use_id": name, "content": "ok"} for name in ids]
        messages += [{"role": "assistant", "content": uses}, {"role": "user", "content": results}]
    return Rendered(format="anthropic", body={"system": system, "messages": messages})


def marks(rendered: Rendered) -> list[int]:
    """The block positions of all marks in the messages."""
    found, position = [], 0
    for message in rendered.body["messages"]:
        content = message["content"]
        for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            if "cache_control" in block:
                found.append(position)
            position += 1
    return found


@pytest.mark.promise("I12")
@given(turns=st.integers(0, 12), calls=st.integers(1, 30), most=st.integers(0, 4))
def test_never_more_marks_than_allowed(turns: int, calls: int, most: int) -> None:
    """CA09: a message with many parallel results gets one mark, not one for each."""
    placed = place(request(turns, calls), most)
    assert count(placed.body) <= most


@given(turns=st.integers(1, 8), calls=st.integers(1, 60))
def test_the_mark_of_the_previous_request_is_always_found(turns: int, calls: int) -> None:
    """CA11: however many blocks a turn adds, a mark of this request stands where the last one of the previous stood."""
    before, now = marks(place(request(turns, calls))), marks(place(request(turns + 1, calls)))
    written = before[-1]
    assert any(0 <= mark - written < LOOK_BACK for mark in now)


def test_the_end_of_system_is_marked_for_the_request_after_a_fold() -> None:
    assert place(request(2)).body["system"][-1]["cache_control"]
    blocks = [{"type": "text", "text": "first"}, {"type": "text", "text": "second"}]
    placed = place(request(2, system=blocks)).body["system"]
    assert ["cache_control" in block for block in placed] == [False, True]


@pytest.mark.promise("I12")
@given(own=st.integers(0, 5), most=st.integers(0, 4))
def test_the_callers_marks_count_and_ours_give_way(own: int, most: int) -> None:
    """CA10: four marks of the caller leave no room for ours."""
    rendered = request(6)
    for message in rendered.body["messages"][1 : own + 1]:
        message["content"][-1]["cache_control"] = {"type": "ephemeral"}
    placed = place(rendered, most)
    assert count(placed.body) <= min(4, max(own, most))


def test_of_more_than_four_marks_of_the_caller_the_newest_stay() -> None:
    rendered = request(6, system=[{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}])
    for message in rendered.body["messages"][1:7]:
        message["content"][-1]["cache_control"] = {"type": "ephemeral"}
    for most in (0, 4):
        placed = place(rendered, most)
        assert "cache_control" not in placed.body["system"][0]
        assert marks(placed) == marks(rendered)[-4:]


def lifetimes(body: dict[str, Any]) -> list[str]:
    """The lifetimes of all marks in the order of the request."""
    contents = [body.get("tools", []), body["system"], *(message["content"] for message in body["messages"])]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    return [block["cache_control"].get("ttl", "5m") for block in blocks if "cache_control" in block]


@given(
    own=st.lists(st.tuples(st.integers(0, 13), st.sampled_from(("5m", "1h", ""))), max_size=7),
    most=st.integers(0, 4),
)
def test_no_mark_of_an_hour_stands_behind_one_of_five_minutes(own: list[tuple[int, str]], most: int) -> None:
    rendered = request(6, system=[{"type": "text", "text": "s"}])
    rendered.body["messages"][0]["content"] = [{"type": "text", "text": "go"}]
    holders = [rendered.body["system"], *(message["content"] for message in rendered.body["messages"])]
    for index, lifetime in own:
        holders[index][-1]["cache_control"] = {"type": "ephemeral", **({"ttl": lifetime} if lifetime else {})}
    before = copy.deepcopy(rendered.body)
    placed = place(rendered, most)
    found = lifetimes(placed.body)
    assert found == sorted(found)
    assert len(found) == count(placed.body) <= 4
    assert rendered.body == before


def test_a_mark_of_an_hour_of_the_caller_stays_one() -> None:
    rendered = request(2)
    rendered.body["messages"][-1]["content"][-1]["cache_control"] = {"type": "ephemeral", "ttl": "1h"}
    assert set(lifetimes(place(rendered).body)) == {"1h"}


def test_the_request_itself_is_not_changed() -> None:
    rendered = request(3)
    before = copy.deepcopy(rendered.body)
    placed = place(rendered)
    assert rendered.body == before
    bare = json.loads(json.dumps(placed.body), object_hook=_without)
    assert bare["messages"][1:] == before["messages"][1:]


def _without(item: dict[str, Any]) -> dict[str, Any]:
    item.pop("cache_control", None)
    return item


@pytest.mark.parametrize("provider", ["openai", "openai-responses", "gemini"])
def test_other_providers_have_no_marks(provider: str) -> None:
    rendered = Rendered(format=provider, body={"messages": [{"role": "user", "content": "go"}]})
    assert place(rendered) is rendered


def test_thinking_and_empty_messages_bear_no_mark() -> None:
    thinking = [{"type": "thinking", "thinking": "hm", "signature": "s"}]
    body = {"messages": [{"role": "user", "content": ""}, {"role": "assistant", "content": thinking}]}
    assert count(place(Rendered(format="anthropic", body=body)).body) == 0
    assert place(Rendered(format="anthropic", body={"messages": []})).body == {"messages": []}


def test_marks_on_the_tools_of_the_session_count_towards_the_limit() -> None:
    mark = {"type": "ephemeral"}
    tools = [{"name": f"t{number}", "input_schema": {"type": "object"}, "cache_control": mark} for number in range(3)]
    session = Session(model="claude-opus-5", format="anthropic", tools=tools)
    blocks = [{"type": "text", "text": str(n), "cache_control": {**mark, "ttl": "1h"}} for n in range(3)]
    session.add({"role": "user", "content": blocks})
    request = session.view().request(max_tokens=100)
    assert count(request) == 4
    assert judge("anthropic", request) is None


def test_marks_on_thinking_are_removed() -> None:
    thinking = {"type": "thinking", "thinking": "so", "signature": "s", "cache_control": {"type": "ephemeral"}}
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [thinking, {"type": "text", "text": "x"}]},
    ]
    placed = place(Rendered(format="anthropic", body={"messages": [*messages, {"role": "user", "content": "on"}]}))
    assert "cache_control" not in placed.body["messages"][1]["content"][0]


@pytest.mark.parametrize("own", [None, "5m", "1h"])
@pytest.mark.parametrize("automatic", ["5m", "1h"])
def test_marks_have_a_lifetime_that_automatic_caching_allows(own: str | None, automatic: str) -> None:
    session = Session(model="claude-opus-5-5")
    last: dict[str, Any] = {"type": "text", "text": "next"}
    if own:
        last["cache_control"] = {"type": "ephemeral", "ttl": own}
    session.add({"role": "system", "content": "Be careful."}, {"role": "user", "content": "go"})
    session.add({"role": "assistant", "content": "done"}, {"role": "user", "content": [last]})
    caching = {"type": "ephemeral", "ttl": automatic}
    body = session.view().request("anthropic", max_tokens=10, cache_control=caching)
    assert body["cache_control"] == caching
    assert judge("anthropic", body) is None
