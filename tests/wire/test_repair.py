"""Repair: whatever happened to a history, what is sent is sendable, and what was sound is left alone."""

from __future__ import annotations

import copy
import doctest
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import foldline
from foldline import testing
from foldline.message import Media, Message, Opaque, Text, Thinking, ToolCall, ToolResult, assistant, system, tool, user
from foldline.testing import assert_sendable, violations
from foldline.wire.formats import PROVIDERS, codec, render
from foldline.wire.repair import Repaired, repair
from foldline.wire.repair import history as repair_module
from foldline.wire.repair import single_messages as repair_parts
from strategies import arrived, broken, sound

quick = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
each_provider = pytest.mark.parametrize("provider", PROVIDERS)


def call(name: str, tool: str = "run", arguments: str = "{}") -> ToolCall:
    return ToolCall(id=name, name=tool, arguments=arguments)


def mended(messages: list[Message], provider: str = "anthropic") -> Repaired:
    """Repair, and hold every promise that holds for any input."""
    before = copy.copy(messages)
    repaired = repair(messages, provider)
    assert_sendable(repaired.messages, provider)
    again = repair(repaired.messages, provider)
    assert again.notes == ()
    assert all(one is two for one, two in zip(again.messages, repaired.messages, strict=True))
    assert messages == before
    assert all(0 <= note.index < len(messages) and note.words for note in repaired.notes)
    return repaired


def codes(repaired: Repaired) -> list[str]:
    return [note.code for note in repaired.notes]


def said(messages: tuple[Message, ...]) -> str:
    """Everything a model would read, in order."""
    parts = [part for message in messages for part in message.parts]
    return "\n".join(part.text for part in parts if isinstance(part, Text | ToolResult))


def shape(messages: tuple[Message, ...]) -> str:
    """The order of things in one line: u a for texts, C and R with their ids for calls and results."""
    marks = []
    for message in messages:
        inside = ["C" + part.id for part in message.calls] + ["R" + part.call_id for part in message.results]
        marks.append(" ".join(inside) or message.role[0])
    return " | ".join(marks)


# Properties ---------------------------------------------------------------------------------------------------------


@quick
@given(messages=broken())
def test_anything_becomes_sendable(messages: list[Message]) -> None:
    for provider in PROVIDERS:
        repaired = mended(messages, provider)
        _holds_every_text(messages, repaired)
        if not violations(messages, provider) and not any(_is_misfit(message) for message in messages):
            _changes_only_what_says_nothing(repaired)


def _holds_every_text(messages: list[Message], repaired: Repaired) -> None:
    """Conservation: only copies of what is there anyway may go, and a note says so."""
    if {"result-duplicate", "result-interim", "call-duplicate", "item-duplicate"} & set(codes(repaired)):
        return
    kept = said(repaired.messages)
    for message in messages:
        for part in message.parts:
            inner = part.parts if isinstance(part, ToolResult) else (part,)
            assert all(text.text in kept for text in inner if isinstance(text, Text) and text.text.strip())


def _changes_only_what_says_nothing(repaired: Repaired) -> None:
    """What could be sent is not touched, apart from parts that nobody would see."""
    quiet = {"blank", "empty", "no-output", "thinking-unsigned"}
    notes = set(codes(repaired))
    assert notes <= quiet or ("empty" in notes and notes <= quiet | {"start", "system-moved"})


@quick
@given(messages=sound())
def test_sound_messages_are_the_very_same(messages: list[Message]) -> None:
    for provider in PROVIDERS:
        repaired = repair(messages, provider)
        assert repaired.notes == ()
        assert all(one is two for one, two in zip(repaired.messages, messages, strict=True))


@pytest.mark.parametrize("source", PROVIDERS)
@settings(quick, max_examples=60)
@given(data=st.data())
def test_what_arrived_whole_is_sent_as_it_came(source: str, data: st.DataObject) -> None:
    messages = data.draw(arrived(source))
    for provider in PROVIDERS:
        mended(messages, provider)
    repaired = repair(messages, source)
    assert repaired.notes == ()
    assert all(one is two for one, two in zip(repaired.messages, messages, strict=True))


def _is_misfit(message: Message) -> bool:
    """Parts in roles that cannot have them, which no parser makes; OpenAI's elements may hide it."""
    calls = any(isinstance(part, ToolCall | Thinking) for part in message.parts)
    opaque = any(isinstance(part, Opaque) for part in message.parts) and message.wire is None
    return (
        opaque
        or (calls and (message.role != "assistant" or bool(message.kind)))
        or (bool(message.results) and message.role not in ("user", "tool"))
    )


@pytest.mark.parametrize("build", ["one id", "late", "mixed", "orphans", "systems", "silent", "one reply", "no ids"])
@each_provider
def test_time_is_linear(provider: str, build: str) -> None:
    """Shapes that a careless search would go through again and again."""
    repaired, seconds = _timed(_LONG[build](2000), provider)
    assert seconds < 2
    assert not violations(repaired.messages, provider)


def _timed(messages: list[Message], provider: str) -> tuple[Repaired, float]:
    began = time.process_time()
    repaired = repair(messages, provider)
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
    return codec("anthropic").parse({"role": "system", "content": "now"}, None)


# Pairs of calls and results -----------------------------------------------------------------------------------------


@each_provider
def test_pa01_result_whose_call_was_folded_away_is_told_in_words(provider: str) -> None:
    repaired = mended(
        [system("s"), user("go"), tool("1", "42 files"), user("next"), assistant("ok"), user("on")], provider
    )
    assert codes(repaired) == ["result-orphan"]
    assert not any(message.results for message in repaired.messages)
    assert "42 files" in said(repaired.messages)
    assert "1]" in said(repaired.messages)


@each_provider
def test_pa02_nothing_is_added_for_calls_that_are_not_in_the_view(provider: str) -> None:
    view = [user("digest of what was"), assistant("", call("10")), tool("10", "r"), user("go on")]
    assert mended(view, provider).notes == ()
    assert "9" not in said(repair(view, provider).messages)


@each_provider
def test_pa05_a_run_of_results_of_two_replies(provider: str) -> None:
    repaired = mended([user("go"), assistant("", call("a")), tool("a", "A"), tool("z", "Z"), user("x")], provider)
    assert [result.call_id for message in repaired.messages for result in message.results] == ["a"]
    assert codes(repaired) == ["result-orphan"]
    assert "Z" in said(repaired.messages)


@each_provider
@pytest.mark.parametrize("start", range(9))
@pytest.mark.parametrize("end", range(9))
def test_pa06_any_window_over_a_tool_transcript(provider: str, start: int, end: int) -> None:
    steps = [(assistant("", call(f"{n}a"), call(f"{n}b")), tool(f"{n}a", "A"), tool(f"{n}b", "B")) for n in range(2)]
    messages = [user("go"), *steps[0], *steps[1], assistant("done"), user("more")]
    mended(messages[start : len(messages) - end], provider)


@pytest.mark.promise("S3.13")
@each_provider
def test_pa09_one_of_two_results_is_missing(provider: str) -> None:
    repaired = mended([user("go"), assistant("", call("1"), call("2")), tool("1", "one"), user("x")], provider)
    assert codes(repaired) == ["call-unanswered"]
    results = {result.call_id: result for message in repaired.messages for result in message.results}
    assert results["1"].text == "one"
    assert results["2"].is_error
    assert "no result was recorded" in results["2"].text


@each_provider
def test_pa13_rejected_and_failed_calls_are_answered(provider: str) -> None:
    answers = (
        tool("1", "the user said no", is_error=True),
        tool("2", "crashed", is_error=True),
        tool("3", "fine"),
    )
    assert (
        mended([user("go"), assistant("", call("1"), call("2"), call("3")), *answers, user("x")], provider).notes == ()
    )


@each_provider
def test_pa15_a_pair_that_was_written_twice(provider: str) -> None:
    pair = [assistant("", call("1"), call("2")), tool("1", "one"), tool("2", "two")]
    repaired = mended([user("go"), *pair, *pair[1:], user("x")], provider)
    assert [result.call_id for message in repaired.messages for result in message.results] == ["1", "2"]


@pytest.mark.parametrize("provider", ["anthropic", "openai-responses"])
def test_pa15_a_whole_step_twice_is_there_once(provider: str) -> None:
    pair = [assistant("", call("1")), tool("1", "one")]
    repaired = mended([user("go"), *pair, *pair, user("x")], provider)
    assert shape(repaired.messages) == "u | C1 | R1 | u"


@each_provider
def test_pa17_a_result_that_came_after_the_fold(provider: str) -> None:
    repaired = mended(
        [user("[digest]", kind="digest"), user("go on"), tool("bg_1", "the background job is done")], provider
    )
    assert "the background job is done" in said(repaired.messages)


def test_pa18_approval_response_without_its_request() -> None:
    approval = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
    parse = codec("openai-responses").parse
    repaired = mended([user("go"), parse(approval, None), user("x")], "openai-responses")
    assert codes(repaired) == ["result-orphan"]
    assert "approved" in said(repaired.messages)


def test_pa19_a_pending_approval_stays() -> None:
    request = {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "t", "arguments": "{}"}
    messages = [user("go"), codec("openai-responses").parse(request, None)]
    assert mended(messages, "openai-responses").notes == ()


@each_provider
def test_pa21_an_interim_result_gives_way_to_the_final_one(provider: str) -> None:
    pending = ToolResult(call_id="1", parts=(Text(text="pending"),), interim=True)
    between = [message for n in range(30) for message in (assistant(f"turn {n}"), user(f"go on {n}"))]
    start = [user("go"), assistant("", call("1")), Message(role="tool", parts=(pending,))]
    repaired = mended([*start, *between, tool("1", "final")], provider)
    results = [result for message in repaired.messages for result in message.results]
    assert [result.text for result in results] == ["final"]
    assert "result-interim" in codes(repaired)


@each_provider
def test_pa21_an_interim_result_alone_is_sent(provider: str) -> None:
    """The provider knows no interim results; that the call is still open is known to planning."""
    pending = Message(role="tool", parts=(ToolResult(call_id="1", parts=(Text(text="pending"),), interim=True),))
    assert mended([user("go"), assistant("", call("1")), pending], provider).notes == ()


@each_provider
def test_pa22_a_dead_call_is_closed_and_said(provider: str) -> None:
    later = [message for n in range(200) for message in (user(f"q{n}"), assistant(f"a{n}"))]
    repaired = mended([user("go"), assistant("", call("dead")), *later, user("end")], provider)
    assert codes(repaired) == ["call-unanswered"]
    assert repaired.notes[0].index == 1
    assert repaired.messages[2].results[0].call_id == "dead"


@each_provider
def test_pa23_an_abort_wrote_the_call_again(provider: str) -> None:
    answers = (tool("1", "worked"), tool("1", "aborted", is_error=True))
    repaired = mended([user("go"), assistant("", call("1"), call("1")), *answers, user("x")], provider)
    assert shape(repaired.messages) == "u | C1 | R1 | u"
    assert repaired.messages[2].results[0].text == "worked"


@each_provider
def test_pa23_an_abort_wrote_the_call_again_without_a_result(provider: str) -> None:
    broken = [user("go"), assistant("", call("1")), assistant("", call("1")), tool("1", "worked"), user("x")]
    repaired = mended(broken, provider)
    if provider == "gemini":  # ids mean nothing there: these are two calls, and the later one was answered
        assert shape(repaired.messages) == "u | C1 | R1 | C1 | R1 | u"
    else:
        assert shape(repaired.messages) == "u | C1 | R1 | u"


@pytest.mark.parametrize("provider", ["anthropic", "openai-responses"])
def test_servers_that_count_from_zero_in_every_turn(provider: str) -> None:
    steps = [
        assistant("", call("call_0", "read")),
        tool("call_0", "A"),
        assistant("", call("call_0")),
        tool("call_0", "B"),
    ]
    repaired = mended([user("go"), *steps, user("x")], provider)
    assert shape(repaired.messages) == "u | Ccall_0 | Rcall_0 | Ccall_0_2 | Rcall_0_2 | u"
    assert [result.text for message in repaired.messages for result in message.results] == ["A", "B"]
    assert mended([user("go"), *steps, user("x")], "openai").notes == ()


def test_pa25_counts_are_equal_in_every_turn_of_gemini() -> None:
    parse = codec("gemini").parse
    three = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"n": n}}} for n in range(3)]}
    apart = [{"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"n": n}}}]} for n in range(2)]
    repaired = mended([user("go"), parse(three, None), *(parse(one, None) for one in apart), user("x")], "gemini")
    body = render(repaired.messages, "gemini").body
    assert [len(content["parts"]) for content in body["contents"]] == [1, 3, 3, 1]
    assert set(codes(repaired)) == {"call-unanswered", "results-joined"}


@each_provider
def test_pa29_a_poisoned_record_heals_in_the_view_only(provider: str) -> None:
    record = [user("go"), assistant("", call("open")), user("and?"), tool("gone", "late"), assistant("so"), user("x")]
    kept = copy.deepcopy(record)
    repaired = mended(record, provider)
    assert record == kept
    assert {(note.code, note.index) for note in repaired.notes} == {("call-unanswered", 1), ("result-orphan", 3)}


@each_provider
def test_results_before_their_calls_and_in_the_wrong_message(provider: str) -> None:
    messages = [
        tool("2", "two"),
        user("go"),
        assistant("", call("1"), call("2")),
        assistant("wait"),
        tool("1", "one"),
        user("x"),
    ]
    repaired = mended(messages, provider)
    assert [result.call_id for message in repaired.messages for result in message.results][-2:] in (
        ["2", "1"],
        ["1", "2"],
    )
    assert "result-moved" in codes(repaired)


@pytest.mark.parametrize("provider", ["anthropic", "openai", "gemini"])
def test_text_between_a_call_and_its_result_moves_behind(provider: str) -> None:
    repaired = mended([user("go"), assistant("", call("1")), user("hurry"), tool("1", "one"), user("x")], provider)
    assert shape(repaired.messages) == "u | C1 | R1 | u | u"
    assert [message.text for message in repaired.messages[-2:]] == ["hurry", "x"]
    assert codes(repaired) == ["result-moved"]


def test_responses_do_not_mind_text_between_a_call_and_its_result() -> None:
    assert (
        mended([user("go"), assistant("", call("1")), user("hurry"), tool("1", "one")], "openai-responses").notes == ()
    )


def test_mixed_message_has_its_results_first() -> None:
    mixed = Message(role="user", parts=(Text(text="and?"), ToolResult(call_id="1", parts=(Text(text="one"),))))
    repaired = mended([user("go"), assistant("", call("1")), mixed])
    assert [type(part).__name__ for part in repaired.messages[-1].parts] == ["ToolResult", "Text"]
    assert codes(repaired) == ["result-order"]


@each_provider
def test_calls_and_results_without_ids(provider: str) -> None:
    """Legacy functions and older Gemini tie by name and order."""
    calls = assistant("", call("", "read"), call("", "run"))
    messages = [
        user("go"),
        calls,
        tool("", "R", name="run"),
        user("x"),
        assistant("", call("", "read")),
        tool("", "A", name="read"),
    ]
    repaired = mended(messages, provider)
    assert [note.index for note in repaired.notes if note.code == "call-unanswered"] == [1]


def test_legacy_function_calls_pass_untouched() -> None:
    parse = codec("openai").parse
    asked = {"role": "assistant", "content": None, "function_call": {"name": "read", "arguments": "{}"}}
    told = {"role": "function", "name": "read", "content": "text"}
    messages = [user("go"), parse(asked, None), parse(told, None), user("x")]
    assert mended(messages, "openai").notes == ()
    assert codes(mended([messages[0], messages[1], messages[3]], "openai")) == ["call-unanswered"]


@each_provider
def test_names_and_ids_in_letters_the_provider_takes(provider: str) -> None:
    odd = ToolCall(id="x" * 90, name="files.read")
    mended([user("go"), assistant("", odd), tool("x" * 90, "r", name="files.read"), user("x")], provider)
    mended(
        [user("go"), assistant("", ToolCall(id="terminal:0", name="")), tool("terminal:0", "r"), user("x")], provider
    )


# Roles, order, blanks -----------------------------------------------------------------------------------------------


@each_provider
@pytest.mark.parametrize("head", ["user", "assistant"])
@pytest.mark.parametrize("tail", ["user", "assistant"])
def test_or01_or02_a_digest_between_any_neighbours(provider: str, head: str, tail: str) -> None:
    messages = [user("a"), Message(role=head, parts=(Text(text="h"),)), user("d", kind="digest")]
    mended([*messages, Message(role=tail, parts=(Text(text="t"),)), user("x")], provider)


@pytest.mark.parametrize("provider", ["anthropic", "openai", "gemini"])
def test_or03_no_user_message_at_all(provider: str) -> None:
    repaired = mended([system("s"), assistant("digest"), assistant("", call("1")), tool("1", "r")], provider)
    assert any(message.role == "user" and message.text for message in repaired.messages)
    assert {"start", "no-user"} & set(codes(repaired))


@pytest.mark.parametrize("provider", ["anthropic", "gemini"])
def test_or05_or06_a_request_never_ends_with_the_assistant(provider: str) -> None:
    repaired = mended([user("go"), assistant("I will continue")], provider)
    assert codes(repaired) == ["end"]
    assert repaired.messages[-1].role == "user"
    assert mended([user("go"), assistant("", call("1")), tool("1", "r")], provider).notes == ()


def test_or07_rules_hold_after_the_adapter_has_mapped_the_roles() -> None:
    """A trailing message of which Anthropic sees nothing leaves the assistant last."""
    unseen = codec("openai-responses").parse({"type": "item_from_the_future", "id": "i"}, None)
    repaired = mended([user("go"), assistant("done"), unseen])
    assert codes(repaired) == ["end"]
    assert repaired.messages[2] is unseen
    between = mended([user("go"), assistant("", call("1")), system("marker"), tool("1", "r")])
    assert shape(between.messages) == "u | C1 | R1 | s"


@each_provider
@pytest.mark.parametrize("messages", [[], [system("s")], [system("s"), user("")], [user("")], [assistant()]])
def test_or09_next_to_nothing_is_no_error(provider: str, messages: list[Message]) -> None:
    mended(messages, provider)


@pytest.mark.parametrize("provider", ["anthropic", "gemini"])
def test_or10_a_history_that_starts_with_the_assistant(provider: str) -> None:
    repaired = mended([system("s"), assistant("hello"), user("hi")], provider)
    assert [message.role for message in repaired.messages] == ["system", "user", "assistant", "user"]
    assert codes(repaired) == ["start"]


@each_provider
@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
def test_or11_or14_a_result_that_says_nothing_says_so(provider: str, blank: str) -> None:
    for error in (False, True):
        repaired = mended([user("go"), assistant("", call("1")), tool("1", blank, is_error=error), user("x")], provider)
        assert repaired.messages[2].results[0].text == "(no output)"
        assert codes(repaired) == ["no-output"]


def test_or14_a_stored_empty_block_heals() -> None:
    """As a tool server answered: one block of empty text. An empty string instead is accepted and stays."""
    parse = codec("anthropic").parse
    asked = [user("go"), assistant("", call("1"))]

    def told(content: Any, **more: Any) -> Message:
        block = {"type": "tool_result", "tool_use_id": "1", "content": content, **more}
        return parse({"role": "user", "content": [block]}, None)

    assert codes(mended([*asked, told([{"type": "text", "text": ""}])])) == ["no-output"]
    assert codes(mended([*asked, told("", is_error=True)])) == ["no-output"]
    assert codes(mended([*asked, told("")])) == []


def test_or13_a_blank_beside_thinking_and_a_call() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "text", "text": ""},
        {"type": "tool_use", "id": "1", "name": "run", "input": {}},
    ]
    reply = codec("anthropic").parse({"role": "assistant", "content": blocks}, None)
    repaired = mended([user("go"), reply, tool("1", "r")])
    assert codes(repaired) == ["blank"]
    assert render(repaired.messages, "anthropic").body["messages"][1]["content"] == [blocks[0], blocks[2]]


def test_system_messages_inside_the_list_close_a_users_turn() -> None:
    note = _inline_system()
    assert mended([user("a"), note, assistant("b"), user("c"), note]).notes == ()
    moved = mended([user("a"), assistant("", call("1")), note, tool("1", "r"), user("c"), assistant("d"), user("e")])
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
    first = mended([note, user("a")])
    assert render(first.messages, "anthropic").body == {"system": "now", "messages": [{"role": "user", "content": "a"}]}


@each_provider
def test_unknown_roles_and_kinds(provider: str) -> None:
    messages = [Message(role="narrator", parts=(Text(text="once"),), kind="legend"), assistant("hm"), user("x")]
    assert mended(messages, provider).notes == ()
    strange = codec("openai").parse({"role": "narrator", "content": "once"}, None)
    mended([strange, assistant("hm"), user("x")], provider)


# Thinking, media, what only one provider has ------------------------------------------------------------------------


@each_provider
def test_st05_a_stream_that_ended_inside_thinking(provider: str) -> None:
    empty = codec("anthropic").parse(
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": ""}]}, None
    )
    repaired = mended([user("go"), empty, user("and?")], provider)
    assert "thinking" not in str(render(repaired.messages, provider).body)


def test_pr05_thinking_without_its_signature_is_dropped_whole() -> None:
    unsigned = Message(role="assistant", parts=(Thinking(text="hm"), Text(text="yes")))
    repaired = mended([user("go"), unsigned, user("x")])
    assert codes(repaired) == ["thinking-unsigned"]
    assert repaired.messages[1].parts == (Text(text="yes"),)


def test_thinking_that_led_to_nothing_leaves_with_its_message() -> None:
    signed = {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}]}
    alone = codec("anthropic").parse(signed, None)
    assert codes(mended([user("go"), alone, user("x")])) == ["thinking-alone"]
    split = [user("go"), alone, assistant("so"), user("x")]
    assert mended(split).notes == ()


def reasoning(name: str = "rs_1") -> Message:
    item = {"type": "reasoning", "id": name, "summary": [], "encrypted_content": "sealed"}
    return codec("openai-responses").parse(item, None)


def test_pr09_a_built_in_call_keeps_its_reasoning() -> None:
    search = codec("openai-responses").parse({"type": "web_search_call", "id": "ws_1", "status": "completed"}, None)
    messages = [user("go"), reasoning(), search, assistant("found"), user("x")]
    assert mended(messages, "openai-responses").notes == ()


def test_pr10_reasoning_heads_a_parallel_group() -> None:
    messages = [
        user("go"),
        reasoning(),
        assistant("", call("1")),
        assistant("", call("2")),
        tool("1", "one"),
        user("x"),
    ]
    repaired = mended(messages, "openai-responses")
    assert codes(repaired) == ["call-unanswered"]
    assert repaired.messages[1] is messages[1]
    assert sorted(result.call_id for message in repaired.messages for result in message.results) == ["1", "2"]


@pytest.mark.parametrize("after", [[], [user("x")], [tool("1", "r"), user("x")]])
def test_pr11_trailing_reasoning_is_removed(after: list[Message]) -> None:
    messages = [user("go"), assistant("", call("1")), tool("1", "r"), reasoning(), *after[-1:]]
    repaired = mended(messages, "openai-responses")
    assert codes(repaired) == ["thinking-alone"]
    assert not any(isinstance(part, Thinking) for message in repaired.messages for part in message.parts)


def test_pr13_the_same_item_twice() -> None:
    parse = codec("openai-responses").parse
    said_twice = parse({"type": "message", "id": "msg_1", "role": "assistant", "content": "hi"}, None)
    messages = [user("go"), reasoning(), said_twice, reasoning(), said_twice, user("x")]
    repaired = mended(messages, "openai-responses")
    assert [note.index for note in repaired.notes if note.code == "item-duplicate"] == [3, 4]
    assert said(repaired.messages).count("hi") == 2


def test_server_calls_travel_with_their_result_or_not_at_all() -> None:
    parse = codec("anthropic").parse
    asked = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
    told = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}
    text = {"type": "text", "text": "so"}

    def reply(*blocks: dict[str, Any]) -> Message:
        return parse({"role": "assistant", "content": list(blocks)}, None)

    assert mended([user("a"), reply(asked, told, text), user("b")]).notes == ()
    assert mended([user("a"), reply(text, asked)]).notes == ()  # paused inside the tool: sent back to be continued
    lost_result = mended([user("a"), reply(asked, text), user("b"), assistant("c"), user("d")])
    assert codes(lost_result) == ["server-call"]
    assert codes(mended([user("a"), reply(told, text), user("b")])) == ["server-result"]


@each_provider
def test_media_only_where_the_provider_takes_it(provider: str) -> None:
    image = Media(kind="image", mime="image/png", data="iVBORw0KGgo=")
    spoken = Message(role="assistant", parts=(image, Text(text="here")))
    failed = ToolResult(call_id="1", parts=(image,), is_error=True)
    mended([user("draw"), spoken, assistant("", call("1")), Message(role="tool", parts=(failed,)), user("x")], provider)


def test_malformed_elements_of_their_own_provider() -> None:
    """What parsing keeps although the provider would refuse it."""
    parse = codec("openai").parse
    spoilt: tuple[dict[str, Any], ...] = (
        {"role": "user", "content": None},
        {"role": "user", "content": []},
        {"role": "assistant", "content": None},
        {"role": "assistant", "content": "x", "tool_calls": []},
    )
    for value in spoilt:
        assert mended([user("go"), parse(value, None), user("x")], "openai").notes
    called = parse({"role": "assistant", "content": [], "tool_calls": [_chat_call({"a": 1})]}, None)
    mended([user("go"), called, parse({"role": "tool", "tool_call_id": "1", "content": []}, None)], "openai")
    scalar = {"type": "tool_use", "id": "1", "name": "run", "input": "text"}
    untyped = {"type": "text"}
    reply = codec("anthropic").parse({"role": "assistant", "content": [scalar, untyped]}, None)
    assert {"input", "shape"} <= set(codes(mended([user("go"), reply, tool("1", "r")])))


def _chat_call(arguments: object) -> dict[str, Any]:
    return {"id": "1", "type": "function", "function": {"name": "run", "arguments": arguments}}


@pytest.mark.skipif("FOLDLINE_DATA" not in os.environ, reason="needs FOLDLINE_DATA, a folder of real sessions")
@each_provider
def test_real_sessions_become_sendable(provider: str) -> None:
    files = sorted(Path(os.environ["FOLDLINE_DATA"]).glob("entire-*/*.jsonl*"))[::12]
    assert files
    for file in files:
        mended(list(foldline.read(file).messages), provider)


def test_examples_in_the_docstrings() -> None:
    for module in (repair_module, repair_parts, testing):
        assert doctest.testmod(module).failed == 0
        assert doctest.testmod(module).attempted > 0
