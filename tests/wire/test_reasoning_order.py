"""In the Responses API, no message between a reply's items costs a call its reasoning item."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foldline import Policy, Session
from foldline.message import user
from foldline.testing import assert_sendable
from foldline.wire.formats import format_of
from foldline.wire.repair import RepairedHistory, repair

ASKED = {"role": "user", "content": "go"}


def reasoning(number: int) -> dict[str, Any]:
    return {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": f"e{number}"}


def call(number: int) -> dict[str, Any]:
    name = f"fc_{number}"
    return {"type": "function_call", "id": name, "call_id": f"c{number}", "name": "run", "arguments": "{}"}


def output(number: int) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": f"c{number}", "output": f"line {number}\n" * 40}


BETWEEN: dict[str, Any] = {
    "user message": {"role": "user", "content": "wait"},
    "note": user("a note", kind="note"),
    "developer message": {"role": "developer", "content": "be brief"},
}


def sent(session: Session) -> list[str]:
    """The items of the request: ids of reasoning and calls, call ids of outputs, roles of messages."""
    rendered = session.view().render()
    assert_sendable(rendered)
    items = rendered.body["input"]
    return [item.get("id") or item.get("call_id") or item["role"] for item in items]


@pytest.mark.parametrize("between", BETWEEN.values(), ids=BETWEEN)
def test_a_message_between_reasoning_and_its_call_comes_before_both(between: Any) -> None:
    session = Session(format="openai-responses")
    for item in (ASKED, reasoning(1), between, call(1), output(1)):
        session.add(item)
        session.view().render()
    assert sent(session)[2:] == ["rs_1", "fc_1", "c1"]


@pytest.mark.parametrize("between", BETWEEN.values(), ids=BETWEEN)
def test_a_message_between_a_call_and_its_output_leaves_the_next_call_its_reasoning(between: Any) -> None:
    session = Session(format="openai-responses")
    session.add(ASKED, reasoning(1), call(1), between, output(1), reasoning(2), call(2), output(2))
    assert sent(session)[1:3] == ["rs_1", "fc_1"]
    assert sent(session)[-4:] == ["c1", "rs_2", "fc_2", "c2"]


def test_a_pin_between_a_call_and_its_output_leaves_the_next_call_its_reasoning() -> None:
    session = Session(format="openai-responses")
    session.add(ASKED, reasoning(1), call(1))
    session.pin("remember the port 8080")
    session.add(output(1), reasoning(2), call(2))
    session.pin("and the host")
    session.add(output(2))
    items = sent(session)
    assert [items[items.index(f"fc_{number}") - 1] for number in (1, 2)] == ["rs_1", "rs_2"]


def test_reasoning_that_was_interrupted_is_left_out() -> None:
    session = Session(format="openai-responses")
    session.add(ASKED, reasoning(1), {"role": "user", "content": "stop"}, reasoning(2), call(2), output(2))
    assert sent(session) == ["user", "user", "rs_2", "fc_2", "c2"]


@st.composite
def talks(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Replies of reasoning and one or two calls, with messages anywhere inside them."""
    items: list[dict[str, Any]] = [ASKED]
    for number in range(draw(st.integers(2, 5))):
        numbers = [2 * number, 2 * number + 1][: draw(st.integers(1, 2))]
        for item in (reasoning(2 * number), *map(call, numbers), *map(output, numbers)):
            items.append(item)
            if draw(st.integers(0, 3)) == 0:
                items.append({"role": "user", "content": "between " * draw(st.integers(1, 40))})
    return items


@settings(max_examples=60, deadline=None)
@given(items=talks(), keep=st.sampled_from([1, 100, 300]), data=st.data())
def test_after_any_fold_each_call_still_follows_the_reasoning_of_its_reply(
    items: list[dict[str, Any]], keep: int, data: st.DataObject
) -> None:
    session = Session(format="openai-responses", policy=Policy(keep_tokens=keep))
    for item in items:
        session.add(item)
        if data.draw(st.integers(0, 5)) == 0:
            session.fold()
        shown = [name for name in sent(session) if name[:3] in ("rs_", "fc_")]
        for place, name in enumerate(shown):
            number = int(name[3:])
            if name.startswith("fc_"):
                before = f"fc_{number - 1}" if number % 2 else f"rs_{number}"
                assert shown[max(0, place - 1)] == before


@settings(max_examples=60, deadline=None)
@given(items=talks())
def test_a_growing_history_is_repaired_like_a_whole_one(items: list[dict[str, Any]]) -> None:
    parse = format_of("openai-responses").parse
    messages = [parse(item, None) for item in items]
    history = RepairedHistory("openai-responses")
    for count in range(1, len(messages) + 1):
        assert history.update(messages[:count]).messages == repair(messages[:count], "openai-responses").messages
