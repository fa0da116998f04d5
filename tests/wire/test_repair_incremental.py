"""A history that grows: repairing it message by message gives what repairing it at once gives."""

from __future__ import annotations

import sys
from collections.abc import Callable
from operator import is_not
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foldline.message import Message, Meta, Opaque, Text, Thinking, ToolCall, Wire, assistant, tool, user
from foldline.wire.formats import REQUEST_FORMATS
from foldline.wire.repair import Repaired, RepairedHistory, repair
from strategies import broken, sound

each_format = pytest.mark.parametrize("format", REQUEST_FORMATS)
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def call(name: str, tool: str = "run") -> ToolCall:
    return ToolCall(id=name, name=tool)


def assert_same(one: Repaired, other: Repaired) -> None:
    """Equal in every respect: messages with their wire forms, notes, and which objects are the input's own."""
    assert one.notes == other.notes
    assert one.messages == other.messages
    assert [message.wire for message in one.messages] == [message.wire for message in other.messages]
    assert [[part.wire for part in message.parts] for message in one.messages] == [
        [part.wire for part in message.parts] for message in other.messages
    ]


def grow(messages: list[Message], format: str) -> RepairedHistory:
    """A history that got the messages one at a time, compared with `repair` after each."""
    history = RepairedHistory(format)
    for count in range(1, len(messages) + 1):
        assert_same(history.update(messages[:count]), repair(messages[:count], format))
    return history


@each_format
@quick
@given(first=broken(), second=broken())
def test_broken_histories_are_repaired_alike_after_every_message(
    format: str, first: list[Message], second: list[Message]
) -> None:
    grow(first + second, format)


@each_format
@quick
@given(messages=sound(turns=6))
def test_sound_histories_come_back_as_the_same_objects(format: str, messages: list[Message]) -> None:
    history = grow(messages, format)
    assert not any(map(is_not, history.update(messages).messages, messages))


@each_format
@quick
@given(messages=broken(), other=broken(), data=st.data())
def test_a_history_that_changed_is_repaired_from_its_start(
    format: str, messages: list[Message], other: list[Message], data: st.DataObject
) -> None:
    """A fold replaces earlier messages; the last ones may be exchanged too."""
    history = grow(messages, format)
    first, last = sorted(data.draw(st.tuples(st.integers(0, len(messages)), st.integers(0, len(messages)))))
    changed = messages[:first] + other + messages[last:]
    for _ in range(2):
        assert_same(history.update(changed), repair(changed, format))
    assert_same(history.update(messages), repair(messages, format))


def long_history() -> list[Message]:
    """Two hundred turns with a call each, the first of them without a result."""
    turns = [[user(f"q{n}"), assistant("", call(f"c{n}")), tool(f"c{n}", "r"), assistant("so")] for n in range(200)]
    del turns[0][2]
    return [message for turn in turns for message in turn]


def functions_of_repair(action: Callable[[], Any]) -> list[str]:
    """The calls of functions in `wire/repair/` that an action makes, by file."""
    files: list[str] = []

    def trace(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and "/wire/repair/" in frame.f_code.co_filename:
            files.append(Path(frame.f_code.co_filename).name)

    sys.setprofile(trace)
    try:
        action()
    finally:
        sys.setprofile(None)
    return files


@each_format
def test_a_text_message_is_added_without_reading_the_history_again(format: str) -> None:
    messages = [*long_history(), user("next")]
    history = RepairedHistory(format)
    history.update(messages)
    for new in (user("more"), assistant("done"), user("thanks")):
        messages.append(new)
        visited = functions_of_repair(lambda: history.update(messages))
        assert len(visited) <= 5
        assert len(set(visited)) <= 2
        assert_same(history.update(messages), repair(messages, format))


@each_format
def test_a_call_and_its_result_are_added_without_reading_the_history_again(format: str) -> None:
    messages = long_history()
    history = RepairedHistory(format)
    history.update(messages)
    for new in (
        user("next"),
        assistant("", call("new")),
        tool("new", "r"),
        assistant("", call("two")),
        tool("two", "r"),
    ):
        messages.append(new)
        assert len(functions_of_repair(lambda: history.update(messages))) < 150
        assert_same(history.update(messages), repair(messages, format))


@each_format
def test_a_late_result_leaves_the_settled_part_unchanged(format: str) -> None:
    messages = [*long_history(), tool("c0", "late"), user("next")]
    history = RepairedHistory(format)
    before = history.update(messages[:-2], ending=False)
    after = history.update(messages)
    assert [note.code for note in before.notes] == ["call-unanswered"]
    assert [note.code for note in after.notes] == ["call-unanswered", "result-late"]
    assert after.messages[: len(before.messages)] == before.messages
    assert_same(after, repair(messages, format))


@each_format
def test_a_result_before_the_next_reply_reaches_its_call_in_the_settled_part(format: str) -> None:
    messages = [user("go"), assistant("", call("c0")), user("wait"), user("please"), tool("c0", "at last"), user("x")]
    history = RepairedHistory(format)
    before = history.update(messages[:-2])
    after = history.update(messages)
    assert "call-unanswered" in {note.code for note in before.notes}
    assert "call-unanswered" not in {note.code for note in after.notes}
    assert_same(after, repair(messages, format))


def replies() -> st.SearchStrategy[Message]:
    """Messages of a few replies, so that replies follow each other, continue, and repeat each other."""
    search = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    signed = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    parts = st.sampled_from(
        [
            Text(text="so"),
            Thinking(text="hm", signature="c2ln", wire=Wire("anthropic", signed)),
            call("a"),
            call("b"),
            Opaque(kind="server_tool_use", value=search, wire=Wire("anthropic", search)),
            Opaque(kind="web_search_tool_result", value=found, wire=Wire("anthropic", found)),
        ]
    )
    meta = st.sampled_from(["", "r1", "r2", "reply-to-view-3"]).map(lambda name: Meta(reply=name))
    return st.builds(
        Message, role=st.just("assistant"), parts=st.lists(parts, min_size=1, max_size=3).map(tuple), meta=meta
    )


@each_format
@quick
@given(
    messages=st.lists(
        st.one_of(replies(), replies(), st.sampled_from([user("go"), tool("a", "r"), tool("b", "r")])), max_size=9
    )
)
def test_replies_in_a_row_are_repaired_alike_after_every_message(format: str, messages: list[Message]) -> None:
    grow([user("start"), *messages], format)
