"""Steps on Anthropic's wire: all results of a reply in one user message, and what was answered is never changed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foldline import Session
from foldline.message import Message, Meta, Text, ToolCall, ToolResult, assistant, tool, user
from foldline.placeholders import NO_RESULT
from foldline.wire.formats import REQUEST_FORMATS, format_of
from foldline.wire.reader import parse as read
from foldline.wire.rendering import render
from foldline.wire.repair import repair

quick = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
each_format = pytest.mark.parametrize("format", REQUEST_FORMATS)
parse = format_of("anthropic").parse


def result(name: str, text: str = "ok") -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": text}]}


def calls(*names: str, text: str = "") -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    blocks += [{"type": "tool_use", "id": name, "name": "run", "input": {}} for name in names]
    return {"role": "assistant", "content": blocks}


def says(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": text}


def sent(*things: dict[str, Any] | Message) -> list[dict[str, Any]]:
    """The messages of the request for a history of dicts and `Message` values."""
    session = Session(model="claude-sonnet-5", policy="balanced")
    session.add(*things)
    found: list[dict[str, Any]] = json.loads(json.dumps(session.view().render("anthropic").body["messages"]))
    for message in found:
        for block in blocks(message):
            block.pop("cache_control", None)
    return found


def blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def shape(messages: list[dict[str, Any]]) -> str:
    """One word for each message: its role's letter, then C, R (with ids) and t for its blocks; x for a closed call."""
    words = []
    for message in messages:
        word = message["role"][0] + ":"
        for block in blocks(message):
            closed = block.get("content") == NO_RESULT
            word += {
                "text": "t",
                "tool_use": f"C{block.get('id', '')}",
                "tool_result": f"{'x' if closed else 'R'}{block.get('tool_use_id', '')}",
            }.get(block["type"], "?")
        words.append(word)
    return " ".join(words)


# All results of a reply in one user message


def test_results_added_one_by_one_are_sent_in_one_message() -> None:
    assert (
        shape(sent(says("go"), calls("a", "b", "c"), result("a"), result("b"), result("c"))) == "u:t a:CaCbCc u:RaRbRc"
    )


def test_results_from_dicts_and_messages_are_sent_in_one_message() -> None:
    history = sent(says("go"), calls("a", "b", "c"), tool("a", "1"), result("b"), tool("c", "3"), says("next"))
    assert shape(history).startswith("u:t a:CaCbCc u:RaRbRc")


def test_the_text_of_a_split_result_message_follows_all_results() -> None:
    mixed = {"role": "user", "content": [*result("a")["content"], {"type": "text", "text": "and?"}]}
    found = shape(sent(says("go"), calls("a", "b"), mixed, result("b")))
    assert found in ("u:t a:CaCb u:RaRbt", "u:t a:CaCb u:RaRb u:t")


def test_a_closing_result_stands_in_the_same_message_as_its_siblings() -> None:
    assert shape(sent(says("go"), calls("a", "b"), result("a"), says("stop"))).startswith("u:t a:CaCb u:Raxb")
    assert shape(sent(says("go"), calls("a", "b"), result("b"))) == "u:t a:CaCb u:Rbxa"


def test_text_between_parallel_results_does_not_split_them() -> None:
    history = sent(says("go"), calls("a", "b"), result("a"), says("hurry"), result("b"))
    assert shape(history).startswith("u:t a:CaCb u:RaRb")


@quick
@given(data=st.data(), count=st.integers(1, 5))
def test_no_arrangement_of_results_splits_a_step(data: st.DataObject, count: int) -> None:
    names = [f"c{number}" for number in range(count)]
    order = data.draw(st.permutations(names))
    kept = order[: data.draw(st.integers(0, count))]
    things: list[Any] = [says("go"), calls(*names)]
    for name in kept:
        things.append(result(name) if data.draw(st.booleans()) else tool(name, "ok"))
        if data.draw(st.booleans()):
            things.append(user("a note", kind="note") if data.draw(st.booleans()) else says("a text"))
    found = sent(*things)
    holders = [message for message in found if any(block["type"] == "tool_result" for block in blocks(message))]
    assert len(holders) == 1
    kinds = [block["type"] for block in blocks(holders[0])]
    assert kinds == sorted(kinds, key=lambda kind: kind != "tool_result")
    assert kinds.count("tool_result") == count


def log_line(number: int, role: str, content: Any, **fields: Any) -> dict[str, Any]:
    message = {"role": role, "content": content, **fields}
    return {"type": role, "uuid": f"u{number}", "parentUuid": f"u{number - 1}", "sessionId": "s", "message": message}


def test_a_claude_code_log_with_results_between_its_calls_is_rendered_as_one_step() -> None:
    reply = {"id": "msg_1", "type": "message", "model": "claude-opus-4-6", "stop_reason": "tool_use"}
    lines = [
        log_line(1, "user", "go"),
        log_line(2, "assistant", [calls("a")["content"][0]], **reply),
        log_line(3, "user", result("a")["content"]),
        log_line(4, "assistant", [calls("b")["content"][0]], **reply),
        log_line(5, "user", result("b")["content"]),
    ]
    text = "\n".join(json.dumps(line) for line in lines)
    body = render(repair(read(text).messages).messages, "anthropic").body
    assert shape(body["messages"]) == "u:t a:CaCb u:RaRb"
    one_by_one = [format_of("claude-code").parse(line, None) for line in lines]
    body = render(repair(one_by_one).messages, "anthropic").body
    assert shape(body["messages"]) == "u:t a:CaCb u:RbRa"


# An unanswered call is closed in place


def test_a_call_that_another_reply_follows_is_closed_in_front_of_it() -> None:
    assert shape(sent(says("go"), calls("a"), says("never mind", "assistant"), says("ok"))) == "u:t a:Ca u:xa a:t u:t"
    assert shape(sent(says("go"), calls("a"), calls("b"), result("b"))) == "u:t a:Ca u:xa a:Cb u:Rb"


def test_calls_of_one_reply_in_two_messages_are_answered_together() -> None:
    found = shape(sent(says("go"), calls("a"), calls("b"), result("a"), result("b")))
    assert found == "u:t a:CaCb u:RaRb"


# What was answered is never changed


def wire_prefix(messages: list[Message], format: str) -> list[str]:
    """The request's messages for a history that ends with a user's, before the newest reply."""
    target = format_of(format)
    return [json.dumps(element) for element in render(repair(messages, format).messages, format).body[target.list_key]]


@each_format
def test_a_result_that_comes_after_the_next_reply_is_sent_as_text_at_its_place(format: str) -> None:
    history = [
        user("go"),
        assistant("", ToolCall(id="a", name="run")),
        user("wait"),
        assistant("so"),
        tool("a", "late"),
    ]
    before = wire_prefix(history[:3], format)
    after = wire_prefix(history, format)
    assert after[: len(before)] == before
    assert "late" in after[-1]
    notes = repair(history, format).notes
    assert {"call-unanswered", "result-late"} <= {note.code for note in notes}


@each_format
def test_a_final_result_after_the_next_reply_leaves_the_interim_one(format: str) -> None:
    pending = Message(role="tool", parts=(ToolResult(call_id="a", parts=(Text(text="pending"),), interim=True),))
    history = [user("go"), assistant("", ToolCall(id="a", name="run")), pending, assistant("so"), tool("a", "final")]
    before, after = wire_prefix(history[:3], format), wire_prefix(history, format)
    assert after[: len(before)] == before
    assert "final" in after[-1]


@st.composite
def live_histories(draw: st.DrawFn) -> list[Message]:
    """What an agent's loop adds: replies with up to three calls, results in any order, late, repeated or missing."""
    made = [user("go")]
    missing: list[str] = []
    for turn in range(draw(st.integers(1, 6))):
        names = [f"c{turn}_{number}" for number in range(draw(st.integers(0, 3)))]
        if names and draw(st.integers(0, 6)) == 0:
            names[0] = "c0_0"
        made.append(assistant(f"turn {turn}", *(ToolCall(id=name, name="run") for name in names)))
        for name in draw(st.permutations([*names, *missing])):
            if draw(st.integers(0, 3)):
                bad = draw(st.booleans())
                made.append(tool(name, draw(st.sampled_from(("one", "two"))), is_error=bad))
        missing = names
        if made[-1].role == "assistant" or draw(st.booleans()):
            made.append(user(f"text {turn}"))
    return made


@each_format
@quick
@given(messages=live_histories())
def test_what_was_sent_before_a_reply_is_sent_unchanged_ever_after(format: str, messages: list[Message]) -> None:
    before: list[str] = []
    for end, message in enumerate(messages):
        if message.role == "assistant" or end == len(messages) - 1:
            now = wire_prefix(messages[: end if message.role == "assistant" else end + 1], format)
            assert now[: len(before)] == before
            before = now


@pytest.mark.parametrize("format", ["anthropic", "gemini"])
def test_two_replies_in_a_row_keep_the_placeholder_that_was_sent_between_them(format: str) -> None:
    first = Message(role="assistant", parts=(Text(text="Done."),), meta=Meta(reply="a"))
    call = ToolCall(id="c", name="read", arguments="{}")
    second = Message(role="assistant", parts=(call,), meta=Meta(reply="b"))
    sent = repair([user("go"), first], format).messages
    assert len(sent) == 3
    later = repair([user("go"), first, second, tool("c", "text")], format).messages
    assert later[:3] == sent
    assert later[3].calls == (call,)
