"""Repair: a broken history becomes sendable in every format, and a sound one is not changed."""

from __future__ import annotations

import copy
import doctest
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import foldline
from foldline import testing
from foldline.message import Media, Message, Opaque, Text, Thinking, ToolCall, ToolResult, assistant, system, tool, user
from foldline.testing import violations
from foldline.wire.formats import REQUEST_FORMATS, format_of
from foldline.wire.rendering import render
from foldline.wire.repair import Repaired, repair
from foldline.wire.repair import history as repair_module
from foldline.wire.repair import single_messages as repair_parts
from strategies import arrived, broken, sound

quick = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
each_format = pytest.mark.parametrize("format", REQUEST_FORMATS)


def call(name: str, tool: str = "run", arguments: str = "{}") -> ToolCall:
    return ToolCall(id=name, name=tool, arguments=arguments)


def checked_repair(messages: list[Message], format: str = "anthropic") -> Repaired:
    """Repair, and check what must be true for any input: sendable, idempotent, the input unchanged."""
    before = copy.copy(messages)
    repaired = repair(messages, format)
    assert refusals(repaired.messages, format) == []
    again = repair(repaired.messages, format)
    assert again.notes == ()
    assert all(one is two for one, two in zip(again.messages, repaired.messages, strict=True))
    assert messages == before
    assert all(0 <= note.index < len(messages) and note.words for note in repaired.notes)
    return repaired


def refusals(messages: Sequence[Message], format: str) -> list[str]:
    """The rules that messages break, except those that no repair mends: no message at all, types from the future."""
    found = map(str, violations(messages, format))
    return [each for each in found if not each.startswith("[empty-request]") and "item_from_the_future" not in each]


def codes(repaired: Repaired) -> list[str]:
    return [note.code for note in repaired.notes]


def text_of(messages: tuple[Message, ...]) -> str:
    """All text that a model would read, in order."""
    parts = [part for message in messages for part in message.parts]
    return "\n".join(part.text for part in parts if isinstance(part, Text | ToolResult))


def shape(messages: tuple[Message, ...]) -> str:
    """The messages in one line: their role's first letter for texts, C and R with ids for calls and results."""
    marks = []
    for message in messages:
        inside = ["C" + part.id for part in message.calls] + ["R" + part.call_id for part in message.results]
        marks.append(" ".join(inside) or message.role[0])
    return " | ".join(marks)


# Properties ---------------------------------------------------------------------------------------------------------


@quick
@given(messages=broken())
def test_anything_becomes_sendable(messages: list[Message]) -> None:
    for format in REQUEST_FORMATS:
        repaired = checked_repair(messages, format)
        _assert_every_text_is_there(messages, repaired)
        told = "server-tool" in codes(repaired)  # unrepaired, the content of such a part would be missing
        if not (violations(messages, format) or told or any(map(_has_part_in_wrong_role, messages))):
            _assert_only_invisible_parts_changed(repaired)


def _assert_every_text_is_there(messages: list[Message], repaired: Repaired) -> None:
    """Only repetitions may be left out, and a note says so; a lone surrogate is replaced."""
    if {"result-interim", "call-duplicate", "item-duplicate"} & set(codes(repaired)):
        return
    kept = text_of(repaired.messages)
    for message in messages:
        for part in message.parts:
            inner = part.parts if isinstance(part, ToolResult) else (part,)
            texts = [text.text.replace("\ud83d", "\ufffd") for text in inner if isinstance(text, Text)]
            assert all(text in kept for text in texts if text.strip())


def _assert_only_invisible_parts_changed(repaired: Repaired) -> None:
    """A history that can be sent changes only in parts without visible content.

    If the first reply came before any prompt, its request began with a placeholder, which stays.
    """
    quiet = {"blank", "empty", "no-output", "thinking-unsigned", "no-user"}
    notes = set(codes(repaired))
    assert notes <= quiet or ("empty" in notes and notes <= quiet | {"start", "system-moved"})


@quick
@given(messages=sound())
def test_sound_messages_come_back_as_the_same_objects(messages: list[Message]) -> None:
    for format in REQUEST_FORMATS:
        repaired = repair(messages, format)
        assert repaired.notes == ()
        assert all(one is two for one, two in zip(repaired.messages, messages, strict=True))


@pytest.mark.parametrize("source", REQUEST_FORMATS)
@settings(quick, max_examples=60)
@given(data=st.data())
def test_a_sound_request_is_sent_as_it_came(source: str, data: st.DataObject) -> None:
    messages = data.draw(arrived(source))
    for format in REQUEST_FORMATS:
        checked_repair(messages, format)
    repaired = repair(messages, source)
    assert repaired.notes == ()
    assert all(one is two for one, two in zip(repaired.messages, messages, strict=True))


def _has_part_in_wrong_role(message: Message) -> bool:
    """True for parts in roles that cannot have them. No parser makes such a message."""
    calls = any(isinstance(part, ToolCall | Thinking) for part in message.parts)
    opaque = any(isinstance(part, Opaque) for part in message.parts) and message.wire is None
    return (
        opaque
        or (calls and (message.role != "assistant" or bool(message.kind)))
        or (bool(message.results) and message.role not in ("user", "tool"))
    )


@pytest.mark.parametrize("build", ["one id", "late", "mixed", "orphans", "systems", "silent", "one reply", "no ids"])
@each_format
def test_repair_takes_linear_time(format: str, build: str) -> None:
    """Histories on which a repeated search would take quadratic time."""
    repaired, seconds = _timed(_LONG[build](2000), format)
    assert seconds < 2
    assert not violations(repaired.messages, format)


def _timed(messages: list[Message], format: str) -> tuple[Repaired, float]:
    began = time.process_time()
    repaired = repair(messages, format)
    return repaired, time.process_time() - began


_LONG: dict[str, Callable[[int], list[Message]]] = {
    "one id": lambda n: [user("x"), *[assistant("", call("same")), tool("same", "r")] * n],
    "mixed": lambda n: [
        user("x"),
        assistant("", *(call(f"c{place}") for place in range(n))),
        user("wait"),
        Message(role="user", parts=(Text(text="so"), *(ToolResult(call_id=f"c{place}") for place in range(n)))),
    ],
    "late": lambda n: [
        user("x"),
        *(assistant("", call(f"c{place}")) for place in range(n)),
        *(tool(f"c{place}", "r") for place in reversed(range(n))),
    ],
    "orphans": lambda n: [user("x"), *(tool(f"c{place}", "r") for place in range(n))],
    "systems": lambda n: [user("x"), *[assistant("a"), *[_inline_system()] * 3] * (n // 3)],
    "silent": lambda n: [user("x"), *[Message(role="assistant", parts=(Opaque(kind="?", value=1),))] * n, user("y")],
    "one reply": lambda n: [user("x"), assistant("", *(call(f"c{place}") for place in range(n))), user("y")],
    "no ids": lambda n: [
        user("x"),
        assistant("", *(call("", "f") for _ in range(n))),
        *(tool("", "r", name="f") for _ in range(n)),
    ],
}


def _inline_system() -> Message:
    return format_of("anthropic").parse({"role": "system", "content": "now"}, None)


@each_format
def test_a_history_with_every_common_fault_repairs_renders_and_validates(format: str) -> None:
    """An unanswered call, an orphan result, a blank text and a duplicate id, as sessions of any vendor have them."""
    broken = [
        system("s"),
        user("go"),
        assistant("", call("open")),
        user(" "),
        tool("gone", "orphan"),
        assistant("", call("same")),
        tool("same", "first"),
        assistant("", call("same", arguments='{"a": 1}')),
        tool("same", "second"),
        assistant("done"),
        user("next"),
    ]
    repaired = checked_repair(broken, format)
    assert {"call-unanswered", "result-orphan"} <= set(codes(repaired))
    rendered = render(repaired.messages, format)
    assert violations(rendered) == ()
    assert all(text in str(rendered.body) for text in ("orphan", "first", "second", "done", "no result was recorded"))


# Pairs of calls and results -----------------------------------------------------------------------------------------


@each_format
def test_pa01_a_result_whose_call_was_folded_is_sent_as_text(format: str) -> None:
    repaired = checked_repair(
        [system("s"), user("go"), tool("1", "42 files"), user("next"), assistant("ok"), user("on")], format
    )
    assert codes(repaired) == ["result-orphan"]
    assert not any(message.results for message in repaired.messages)
    assert "42 files" in text_of(repaired.messages)
    assert "1]" in text_of(repaired.messages)


@each_format
def test_pa02_nothing_is_added_for_calls_that_are_not_in_the_view(format: str) -> None:
    view = [user("digest of what was"), assistant("", call("10")), tool("10", "r"), user("go on")]
    assert checked_repair(view, format).notes == ()
    assert "9" not in text_of(repair(view, format).messages)


@each_format
def test_pa05_of_two_results_in_a_row_the_one_without_a_call_is_sent_as_text(format: str) -> None:
    repaired = checked_repair([user("go"), assistant("", call("a")), tool("a", "A"), tool("z", "Z"), user("x")], format)
    assert [result.call_id for message in repaired.messages for result in message.results] == ["a"]
    assert codes(repaired) == ["result-orphan"]
    assert "Z" in text_of(repaired.messages)


@each_format
@pytest.mark.parametrize("start", range(9))
@pytest.mark.parametrize("end", range(9))
def test_pa06_any_slice_of_a_tool_transcript_becomes_sendable(format: str, start: int, end: int) -> None:
    steps = [(assistant("", call(f"{n}a"), call(f"{n}b")), tool(f"{n}a", "A"), tool(f"{n}b", "B")) for n in range(2)]
    messages = [user("go"), *steps[0], *steps[1], assistant("done"), user("more")]
    checked_repair(messages[start : len(messages) - end], format)


@pytest.mark.promise("S3.13")
@each_format
def test_pa09_an_unanswered_call_beside_an_answered_one_gets_a_closing_result(format: str) -> None:
    repaired = checked_repair([user("go"), assistant("", call("1"), call("2")), tool("1", "one"), user("x")], format)
    assert codes(repaired) == ["call-unanswered"]
    results = {result.call_id: result for message in repaired.messages for result in message.results}
    assert results["1"].text == "one"
    assert results["2"].is_error
    assert "no result was recorded" in results["2"].text


@each_format
def test_pa13_rejected_and_failed_calls_count_as_answered(format: str) -> None:
    answers = (
        tool("1", "the user text_of no", is_error=True),
        tool("2", "crashed", is_error=True),
        tool("3", "fine"),
    )
    assert (
        checked_repair([user("go"), assistant("", call("1"), call("2"), call("3")), *answers, user("x")], format).notes
        == ()
    )


@each_format
def test_pa15_results_that_were_written_twice_are_sent_once(format: str) -> None:
    pair = [assistant("", call("1"), call("2")), tool("1", "one"), tool("2", "two")]
    repaired = checked_repair([user("go"), *pair, *pair[1:], user("x")], format)
    assert [result.call_id for message in repaired.messages for result in message.results] == ["1", "2"]


@each_format
def test_a_second_result_of_a_call_is_sent_as_text_and_leaves_the_first_as_it_was(format: str) -> None:
    """The first result may have been sent already."""
    step = [user("go"), assistant("", call("1"), call("2")), tool("1", "one", is_error=True), tool("2", "two")]
    before = checked_repair(step, format)
    repaired = checked_repair([*step, tool("1", "other")], format)
    assert "[another result of the same call: 1]\nother" in text_of(repaired.messages)
    for index in (0, 1):
        assert repaired.messages[index] == before.messages[index]
    results = [result for message in repaired.messages for result in message.results]
    assert results == [result for message in before.messages for result in message.results]


@pytest.mark.parametrize("format", ["anthropic", "openai-responses"])
def test_pa15_a_step_that_was_written_twice_is_sent_once(format: str) -> None:
    pair = [assistant("", call("1")), tool("1", "one")]
    repaired = checked_repair([user("go"), *pair, *pair, user("x")], format)
    assert shape(repaired.messages) == "u | C1 | R1 | u"


@each_format
def test_pa17_a_result_that_comes_after_the_fold_of_its_call_is_sent_as_text(format: str) -> None:
    repaired = checked_repair(
        [user("[digest]", kind="digest"), user("go on"), tool("bg_1", "the background job is done")], format
    )
    assert "the background job is done" in text_of(repaired.messages)


def test_pa18_an_approval_without_its_request_is_sent_as_text() -> None:
    approval = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
    parse = format_of("openai-responses").parse
    repaired = checked_repair([user("go"), parse(approval, None), user("x")], "openai-responses")
    assert codes(repaired) == ["result-orphan"]
    assert "approved" in text_of(repaired.messages)


def test_pa19_a_pending_approval_request_stays() -> None:
    request = {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "t", "arguments": "{}"}
    messages = [user("go"), format_of("openai-responses").parse(request, None)]
    assert checked_repair(messages, "openai-responses").notes == ()


@each_format
def test_pa21_a_final_result_replaces_an_interim_one_until_the_next_reply(format: str) -> None:
    pending = ToolResult(call_id="1", parts=(Text(text="pending"),), interim=True)
    start = [user("go"), assistant("", call("1")), Message(role="tool", parts=(pending,))]
    repaired = checked_repair([*start, user("well?"), tool("1", "final")], format)
    results = [result for message in repaired.messages for result in message.results]
    assert [result.text for result in results] == ["final"]
    assert "result-interim" in codes(repaired)


@each_format
def test_pa21_after_the_next_reply_a_final_result_is_sent_as_text(format: str) -> None:
    """The request that the reply answers held the interim result, and what was sent must not change."""
    pending = ToolResult(call_id="1", parts=(Text(text="pending"),), interim=True)
    between = [message for n in range(30) for message in (assistant(f"turn {n}"), user(f"go on {n}"))]
    start = [user("go"), assistant("", call("1")), Message(role="tool", parts=(pending,))]
    repaired = checked_repair([*start, *between, tool("1", "final")], format)
    results = [result for message in repaired.messages for result in message.results]
    assert [result.text for result in results] == ["pending"]
    assert codes(repaired) == ["result-late"]
    assert repaired.messages[-1].text == "[result of an earlier call, which came late: 1]\nfinal"


@each_format
def test_pa21_an_interim_result_alone_is_sent(format: str) -> None:
    """No format knows interim results; only planning knows that the call is still open."""
    pending = Message(role="tool", parts=(ToolResult(call_id="1", parts=(Text(text="pending"),), interim=True),))
    assert checked_repair([user("go"), assistant("", call("1")), pending], format).notes == ()


@each_format
def test_pa22_a_call_that_was_never_answered_gets_a_closing_result(format: str) -> None:
    later = [message for n in range(200) for message in (user(f"q{n}"), assistant(f"a{n}"))]
    repaired = checked_repair([user("go"), assistant("", call("dead")), *later, user("end")], format)
    assert codes(repaired) == ["call-unanswered"]
    assert repaired.notes[0].index == 1
    assert repaired.messages[2].results[0].call_id == "dead"


@each_format
def test_pa23_a_call_that_an_abort_repeated_keeps_its_successful_result(format: str) -> None:
    answers = (tool("1", "worked"), tool("1", "aborted", is_error=True))
    repaired = checked_repair([user("go"), assistant("", call("1"), call("1")), *answers, user("x")], format)
    assert shape(repaired.messages) == "u | C1 | R1 | u"
    assert repaired.messages[2].results[0].text == "worked"


@each_format
def test_pa23_a_call_that_an_abort_repeated_without_a_result_is_sent_once(format: str) -> None:
    broken = [user("go"), assistant("", call("1")), assistant("", call("1")), tool("1", "worked"), user("x")]
    repaired = checked_repair(broken, format)
    if format == "gemini":  # ids mean nothing there: these are two calls, and the later one was answered
        assert shape(repaired.messages) == "u | C1 | R1 | C1 | R1 | u"
    else:
        assert shape(repaired.messages) == "u | C1 | R1 | u"


@pytest.mark.parametrize("format", ["anthropic", "openai-responses"])
def test_call_ids_that_start_from_zero_in_every_turn_become_unique(format: str) -> None:
    steps = [
        assistant("", call("call_0", "read")),
        tool("call_0", "A"),
        assistant("", call("call_0")),
        tool("call_0", "B"),
    ]
    repaired = checked_repair([user("go"), *steps, user("x")], format)
    assert shape(repaired.messages) == "u | Ccall_0 | Rcall_0 | Ccall_0_2 | Rcall_0_2 | u"
    assert [result.text for message in repaired.messages for result in message.results] == ["A", "B"]
    assert checked_repair([user("go"), *steps, user("x")], "openai").notes == ()


def test_pa25_gemini_gets_as_many_results_as_calls_in_every_turn() -> None:
    parse = format_of("gemini").parse
    three = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"n": n}}} for n in range(3)]}
    apart = [{"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"n": n}}}]} for n in range(2)]
    repaired = checked_repair(
        [user("go"), parse(three, None), *(parse(one, None) for one in apart), user("x")], "gemini"
    )
    body = render(repaired.messages, "gemini").body
    assert [len(content["parts"]) for content in body["contents"]] == [1, 3, 3, 1]
    assert set(codes(repaired)) == {"call-unanswered", "results-joined"}


@each_format
def test_pa29_repair_does_not_change_the_record(format: str) -> None:
    record = [user("go"), assistant("", call("open")), user("and?"), tool("gone", "late"), assistant("so"), user("x")]
    kept = copy.deepcopy(record)
    repaired = checked_repair(record, format)
    assert record == kept
    assert {(note.code, note.index) for note in repaired.notes} == {("call-unanswered", 1), ("result-orphan", 3)}


@each_format
def test_results_in_front_of_their_calls_move_behind_them(format: str) -> None:
    messages = [
        tool("2", "two"),
        user("go"),
        assistant("", call("1"), call("2")),
        assistant("wait"),
        tool("1", "one"),
        user("x"),
    ]
    repaired = checked_repair(messages, format)
    assert [result.call_id for message in repaired.messages for result in message.results][-2:] in (
        ["2", "1"],
        ["1", "2"],
    )
    assert "result-moved" in codes(repaired)


@pytest.mark.parametrize("format", ["anthropic", "openai", "gemini"])
def test_text_between_a_call_and_its_result_moves_behind_the_result(format: str) -> None:
    repaired = checked_repair(
        [user("go"), assistant("", call("1")), user("hurry"), tool("1", "one"), user("x")], format
    )
    assert shape(repaired.messages) == "u | C1 | R1 | u | u"
    assert [message.text for message in repaired.messages[-2:]] == ["hurry", "x"]
    assert codes(repaired) == ["result-moved"]


def test_openai_responses_accepts_text_between_a_call_and_its_result() -> None:
    assert (
        checked_repair(
            [user("go"), assistant("", call("1")), user("hurry"), tool("1", "one")], "openai-responses"
        ).notes
        == ()
    )


def test_results_come_first_in_a_message_with_text() -> None:
    mixed = Message(role="user", parts=(Text(text="and?"), ToolResult(call_id="1", parts=(Text(text="one"),))))
    repaired = checked_repair([user("go"), assistant("", call("1")), mixed])
    assert [type(part).__name__ for part in repaired.messages[-1].parts] == ["ToolResult", "Text"]
    assert codes(repaired) == ["result-order"]


@each_format
def test_calls_and_results_without_ids_pair_by_name_and_order(format: str) -> None:
    """As legacy functions and older Gemini models have them."""
    calls = assistant("", call("", "read"), call("", "run"))
    messages = [
        user("go"),
        calls,
        tool("", "R", name="run"),
        user("x"),
        assistant("", call("", "read")),
        tool("", "A", name="read"),
    ]
    repaired = checked_repair(messages, format)
    assert [note.index for note in repaired.notes if note.code == "call-unanswered"] == [1]


def test_legacy_function_calls_are_not_changed() -> None:
    parse = format_of("openai").parse
    asked = {"role": "assistant", "content": None, "function_call": {"name": "read", "arguments": "{}"}}
    result_with = {"role": "function", "name": "read", "content": "text"}
    messages = [user("go"), parse(asked, None), parse(result_with, None), user("x")]
    assert checked_repair(messages, "openai").notes == ()
    assert codes(checked_repair([messages[0], messages[1], messages[3]], "openai")) == ["call-unanswered"]


@each_format
def test_illegal_tool_names_and_call_ids_become_legal(format: str) -> None:
    odd = ToolCall(id="x" * 90, name="files.read")
    checked_repair([user("go"), assistant("", odd), tool("x" * 90, "r", name="files.read"), user("x")], format)
    checked_repair(
        [user("go"), assistant("", ToolCall(id="terminal:0", name="")), tool("terminal:0", "r"), user("x")], format
    )


# Roles, order, blanks -----------------------------------------------------------------------------------------------


@each_format
@pytest.mark.parametrize("head", ["user", "assistant"])
@pytest.mark.parametrize("tail", ["user", "assistant"])
def test_or01_or02_a_digest_may_stand_between_any_neighbours(format: str, head: str, tail: str) -> None:
    messages = [user("a"), Message(role=head, parts=(Text(text="h"),)), user("d", kind="digest")]
    checked_repair([*messages, Message(role=tail, parts=(Text(text="t"),)), user("x")], format)


@pytest.mark.parametrize("format", ["anthropic", "openai", "gemini"])
def test_or03_a_history_without_a_user_message_gets_one(format: str) -> None:
    repaired = checked_repair([system("s"), assistant("digest"), assistant("", call("1")), tool("1", "r")], format)
    assert any(message.role == "user" and message.text for message in repaired.messages)
    assert {"start", "no-user"} & set(codes(repaired))


@pytest.mark.parametrize("format", ["anthropic", "gemini"])
def test_or05_or06_a_request_never_ends_with_the_assistant(format: str) -> None:
    repaired = checked_repair([user("go"), assistant("I will continue")], format)
    assert codes(repaired) == ["end"]
    assert repaired.messages[-1].role == "user"
    assert checked_repair([user("go"), assistant("", call("1")), tool("1", "r")], format).notes == ()


def test_or07_roles_are_checked_as_they_are_rendered() -> None:
    """A last message that renders to nothing in Anthropic's format leaves the assistant last."""
    unseen = format_of("openai-responses").parse({"type": "item_from_the_future", "id": "i"}, None)
    repaired = checked_repair([user("go"), assistant("done"), unseen])
    assert codes(repaired) == ["end"]
    assert repaired.messages[2] is unseen
    between = checked_repair([user("go"), assistant("", call("1")), system("marker"), tool("1", "r")])
    assert shape(between.messages) == "u | C1 | R1 | s"


@each_format
@pytest.mark.parametrize("messages", [[], [system("s")], [system("s"), user("")], [user("")], [assistant()]])
def test_or09_an_empty_or_blank_history_is_no_error(format: str, messages: list[Message]) -> None:
    checked_repair(messages, format)


@pytest.mark.parametrize("format", ["anthropic", "gemini"])
def test_or10_a_history_that_starts_with_the_assistant_gets_a_user_message_in_front(format: str) -> None:
    repaired = checked_repair([system("s"), assistant("hello"), user("hi")], format)
    assert [message.role for message in repaired.messages] == ["system", "user", "assistant", "user"]
    assert codes(repaired) == ["start"]


@each_format
@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
def test_or11_or14_an_empty_result_gets_a_placeholder(format: str, blank: str) -> None:
    for error in (False, True):
        repaired = checked_repair(
            [user("go"), assistant("", call("1")), tool("1", blank, is_error=error), user("x")], format
        )
        assert repaired.messages[2].results[0].text == "(no output)"
        assert codes(repaired) == ["no-output"]


def test_or14_an_empty_text_block_in_a_result_gets_a_placeholder() -> None:
    """A tool server returned one block of empty text. An empty string instead of blocks is accepted and stays."""
    parse = format_of("anthropic").parse
    asked = [user("go"), assistant("", call("1"))]

    def result_with(content: Any, **more: Any) -> Message:
        block = {"type": "tool_result", "tool_use_id": "1", "content": content, **more}
        return parse({"role": "user", "content": [block]}, None)

    assert codes(checked_repair([*asked, result_with([{"type": "text", "text": ""}])])) == ["no-output"]
    assert codes(checked_repair([*asked, result_with("", is_error=True)])) == ["no-output"]
    assert codes(checked_repair([*asked, result_with("")])) == []


def test_or13_a_blank_text_beside_thinking_and_a_call_is_left_out() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "text", "text": ""},
        {"type": "tool_use", "id": "1", "name": "run", "input": {}},
    ]
    reply = format_of("anthropic").parse({"role": "assistant", "content": blocks}, None)
    repaired = checked_repair([user("go"), reply, tool("1", "r")])
    assert codes(repaired) == ["blank"]
    assert render(repaired.messages, "anthropic").body["messages"][1]["content"] == [blocks[0], blocks[2]]


def test_a_system_message_inside_the_list_moves_to_the_end_of_a_user_turn() -> None:
    note = _inline_system()
    assert checked_repair([user("a"), note, assistant("b"), user("c"), note]).notes == ()
    moved = checked_repair(
        [user("a"), assistant("", call("1")), note, tool("1", "r"), user("c"), assistant("d"), user("e")]
    )
    assert codes(moved) == ["system-moved"]
    assert [message.role for message in moved.messages] == [
        "user",
        "assistant",
        "tool",
        "user",
        "system",
        "assistant",
        "user",
    ]
    first = checked_repair([note, user("a")])
    assert render(first.messages, "anthropic").body == {"system": "now", "messages": [{"role": "user", "content": "a"}]}


@each_format
def test_messages_of_unknown_roles_and_kinds_are_sent_as_the_users(format: str) -> None:
    messages = [Message(role="narrator", parts=(Text(text="once"),), kind="legend"), assistant("hm"), user("x")]
    assert checked_repair(messages, format).notes == ()
    strange = format_of("openai").parse({"role": "narrator", "content": "once"}, None)
    checked_repair([strange, assistant("hm"), user("x")], format)


# Thinking, media, what only one format has ------------------------------------------------------------------------


@each_format
def test_st05_thinking_that_a_broken_stream_left_is_not_sent(format: str) -> None:
    empty = format_of("anthropic").parse(
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": ""}]}, None
    )
    repaired = checked_repair([user("go"), empty, user("and?")], format)
    assert "thinking" not in str(render(repaired.messages, format).body)


def test_pr05_thinking_without_its_signature_is_left_out() -> None:
    unsigned = Message(role="assistant", parts=(Thinking(text="hm"), Text(text="yes")))
    repaired = checked_repair([user("go"), unsigned, user("x")])
    assert codes(repaired) == ["thinking-unsigned"]
    assert repaired.messages[1].parts == (Text(text="yes"),)


def test_thinking_that_nothing_follows_is_left_out() -> None:
    signed = {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}]}
    alone = format_of("anthropic").parse(signed, None)
    assert codes(checked_repair([user("go"), alone, user("x")])) == ["thinking-alone"]
    split = checked_repair([user("go"), alone, assistant("so"), user("x")])
    assert codes(split) == ["reply-joined"]
    assert split.messages[1].parts == (*alone.parts, Text(text="so"))


def reasoning(name: str = "rs_1") -> Message:
    item = {"type": "reasoning", "id": name, "summary": [], "encrypted_content": "sealed"}
    return format_of("openai-responses").parse(item, None)


def test_pr09_a_built_in_call_keeps_its_reasoning() -> None:
    item = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}}
    search = format_of("openai-responses").parse(item, None)
    messages = [user("go"), reasoning(), search, assistant("found"), user("x")]
    assert checked_repair(messages, "openai-responses").notes == ()


def test_pr10_reasoning_stays_in_front_of_parallel_calls() -> None:
    messages = [
        user("go"),
        reasoning(),
        assistant("", call("1")),
        assistant("", call("2")),
        tool("1", "one"),
        user("x"),
    ]
    repaired = checked_repair(messages, "openai-responses")
    assert codes(repaired) == ["call-unanswered"]
    assert repaired.messages[1] is messages[1]
    assert sorted(result.call_id for message in repaired.messages for result in message.results) == ["1", "2"]


@pytest.mark.parametrize("after", [[], [user("x")], [tool("1", "r"), user("x")]])
def test_pr11_reasoning_at_the_end_is_left_out(after: list[Message]) -> None:
    messages = [user("go"), assistant("", call("1")), tool("1", "r"), reasoning(), *after[-1:]]
    repaired = checked_repair(messages, "openai-responses")
    assert codes(repaired) == ["thinking-alone"]
    assert not any(isinstance(part, Thinking) for message in repaired.messages for part in message.parts)


def test_pr13_an_item_that_occurs_twice_loses_its_id() -> None:
    parse = format_of("openai-responses").parse
    said_twice = parse({"type": "message", "id": "msg_1", "role": "assistant", "content": "hi"}, None)
    messages = [user("go"), reasoning(), said_twice, reasoning(), said_twice, user("x")]
    repaired = checked_repair(messages, "openai-responses")
    assert [note.index for note in repaired.notes if note.code == "item-duplicate"] == [3, 4]
    assert text_of(repaired.messages).count("hi") == 2


def test_a_call_of_the_providers_own_tool_is_sent_with_its_result_or_not_at_all() -> None:
    parse = format_of("anthropic").parse
    asked = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
    result_with = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}
    text = {"type": "text", "text": "so"}

    def reply(*blocks: dict[str, Any]) -> Message:
        return parse({"role": "assistant", "content": list(blocks)}, None)

    assert checked_repair([user("a"), reply(asked, result_with, text), user("b")]).notes == ()
    assert (
        checked_repair([user("a"), reply(text, asked)]).notes == ()
    )  # paused inside the tool: sent back to be continued
    lost_result = checked_repair([user("a"), reply(asked, text), user("b"), assistant("c"), user("d")])
    assert codes(lost_result) == ["server-call"]
    assert codes(checked_repair([user("a"), reply(result_with, text), user("b")])) == ["server-result"]


@each_format
def test_media_are_sent_only_where_the_format_takes_them(format: str) -> None:
    image = Media(kind="image", mime="image/png", data="iVBORw0KGgo=")
    spoken = Message(role="assistant", parts=(image, Text(text="here")))
    failed = ToolResult(call_id="1", parts=(image,), is_error=True)
    checked_repair(
        [user("draw"), spoken, assistant("", call("1")), Message(role="tool", parts=(failed,)), user("x")], format
    )


def test_malformed_elements_of_the_same_format_are_rewritten() -> None:
    """Elements that the parser accepts although the provider would refuse them."""
    parse = format_of("openai").parse
    spoilt: tuple[dict[str, Any], ...] = (
        {"role": "user", "content": None},
        {"role": "user", "content": []},
        {"role": "assistant", "content": None},
        {"role": "assistant", "content": "x", "tool_calls": []},
    )
    for value in spoilt:
        assert checked_repair([user("go"), parse(value, None), user("x")], "openai").notes
    called = parse({"role": "assistant", "content": [], "tool_calls": [_chat_call({"a": 1})]}, None)
    checked_repair([user("go"), called, parse({"role": "tool", "tool_call_id": "1", "content": []}, None)], "openai")
    scalar = {"type": "tool_use", "id": "1", "name": "run", "input": "text"}
    untyped = {"type": "text"}
    reply = format_of("anthropic").parse({"role": "assistant", "content": [scalar, untyped]}, None)
    assert {"input", "shape"} <= set(codes(checked_repair([user("go"), reply, tool("1", "r")])))


def _chat_call(arguments: object) -> dict[str, Any]:
    return {"id": "1", "type": "function", "function": {"name": "run", "arguments": arguments}}


@pytest.mark.skipif("FOLDLINE_DATA" not in os.environ, reason="needs FOLDLINE_DATA, a folder of real sessions")
@each_format
def test_real_sessions_become_sendable(format: str) -> None:
    files = sorted(Path(os.environ["FOLDLINE_DATA"]).glob("entire-*/*.jsonl*"))[::12]
    assert files
    for file in files:
        checked_repair(list(foldline.read(file).messages), format)


def test_examples_in_the_docstrings() -> None:
    for module in (repair_module, repair_parts, testing):
        assert doctest.testmod(module).failed == 0
        assert doctest.testmod(module).attempted > 0


@each_format
def test_a_result_without_a_call_is_not_given_to_a_call_of_a_later_turn(format: str) -> None:
    messages = [tool("call_0", "old"), assistant("done"), user("again"), assistant("", call("call_0")), user("stop")]
    repaired = checked_repair(messages, format)
    results = [result.text for message in repaired.messages for result in message.results]
    assert results == ["[no result was recorded for this call]"]
    assert "result-orphan" in codes(repaired)
    assert repaired.messages[:2] == checked_repair(messages[:3], format).messages[:2]
