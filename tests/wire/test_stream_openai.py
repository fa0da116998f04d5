"""Named cases of streamed OpenAI replies, and of what the servers that imitate them really send."""

from __future__ import annotations

import json
from typing import Any

import pytest

from foldline.message import Text, Thinking, ToolCall, Usage
from foldline.wire.formats import Lost
from foldline.wire.streaming import Assembler, StreamedReply
from support.samples import CALLS, ITEM_CALLS, REASONING, TEXT, completion, response, said
from support.streams import DID_NOT_RUN, Events, by, chat_events, chunks, read, responses_events, sse


def calls(reply: StreamedReply) -> list[tuple[str, str, str]]:
    return [(call.id, call.name, call.arguments) for made in reply.messages for call in made.calls]


# Chat


def test_parallel_calls_may_be_interleaved_and_come_back_in_their_order() -> None:
    deltas = [
        {"tool_calls": [{"index": 1, "id": "b", "type": "function", "function": {"name": "two", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "one", "arguments": ""}}]},
        {"tool_calls": [{"index": 1, "function": {"arguments": '{"n"'}}, {"index": 0, "function": {"arguments": "{"}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "}"}}, {"index": 1, "function": {"arguments": ": 2}"}}]},
    ]
    assert calls(read("openai", chunks(*deltas))) == [("a", "one", "{}"), ("b", "two", '{"n": 2}')]


@pytest.mark.parametrize("number", [{"index": 0}, {}])
def test_complete_calls_with_the_same_number_or_none_stay_separate(number: dict[str, int]) -> None:
    made = [{**number, **call} for call in CALLS]
    expected = [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in CALLS]
    assert calls(read("openai", chunks({"tool_calls": made[:1]}, {"tool_calls": made[1:]}))) == expected
    assert calls(read("openai", chunks({"tool_calls": made}))) == expected


@pytest.mark.parametrize("no_id", [{}, {"id": ""}, {"id": None}])
def test_calls_without_number_and_id_stay_apart_and_grow(no_id: dict[str, Any]) -> None:
    deltas: list[dict[str, Any]] = [
        {"tool_calls": [{**no_id, "function": {"name": "one", "arguments": "{"}}]},
        {"tool_calls": [{**no_id, "function": {"arguments": "}"}}]},
        {"tool_calls": [{**no_id, "function": {"name": "two", "arguments": "{}"}}]},
    ]
    assert calls(read("openai", chunks(*deltas))) == [("", "one", "{}"), ("", "two", "{}")]


@pytest.mark.parametrize("again", ["a", "random", "", None])
def test_an_id_and_a_name_repeated_in_every_chunk_stay_one(again: str | None) -> None:
    name = {"name": "one"} if again == "a" else {}
    deltas: list[dict[str, Any]] = [
        {"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "one", "arguments": "{"}}]},
        {"tool_calls": [{"index": 0, "id": again, "type": "function", "function": {**name, "arguments": "}"}}]},
    ]
    assert calls(read("openai", chunks(*deltas))) == [("a", "one", "{}")]


def test_a_call_without_number_goes_on_by_its_id() -> None:
    deltas = [
        {"tool_calls": [{"id": "a", "function": {"name": "one", "arguments": "{"}}]},
        {"tool_calls": [{"id": "b", "function": {"name": "two", "arguments": "{"}}]},
        {"tool_calls": [{"id": "a", "function": {"arguments": "}"}}]},
        {"tool_calls": [{"id": "b", "function": {"arguments": "}"}}]},
    ]
    assert calls(read("openai", chunks(*deltas))) == [("a", "one", "{}"), ("b", "two", "{}")]


def test_fields_of_a_call_that_others_add_are_kept() -> None:
    signed = {"google": {"thought_signature": "c2ln"}}
    reply = read("openai", chunks({"tool_calls": [{"index": 0, **CALLS[0], "extra_content": signed}]}))
    assert reply.value is not None
    assert reply.value["choices"][0]["message"]["tool_calls"] == [{**CALLS[0], "extra_content": signed}]


def test_a_custom_call_and_a_legacy_call_grow_too() -> None:
    custom = [
        {"tool_calls": [{"index": 0, "id": "a", "type": "custom", "custom": {"name": "patch", "input": ""}}]},
        {"tool_calls": [{"index": 0, "custom": {"input": "*** Begin"}}]},
    ]
    made = read("openai", chunks(*custom)).messages[0].calls[0]
    assert (made.id, made.name, made.arguments) == ("a", "patch", "*** Begin")
    assert made.kind != "function"
    legacy = [{"function_call": {"name": "one", "arguments": "{"}}, {"function_call": {"arguments": "}"}}]
    assert calls(read("openai", chunks(*legacy, finish="function_call"))) == [("", "one", "{}")]


@pytest.mark.parametrize(
    ("events", "prompt"),
    [
        ([{"usage": {"prompt_tokens": 5, "completion_tokens": n}} for n in (1, 2, 3)], 5),
        ([{"usage": None}, {"x_groq": {"usage": {"prompt_tokens": 6, "completion_tokens": 3}}}], 6),
        ([{"usage": {"prompt_tokens": 7, "completion_tokens": 3}}, {"usage": None}], 7),
    ],
)
def test_usage_is_found_where_servers_put_it(events: list[dict[str, Any]], prompt: int) -> None:
    head: Events = [("", {"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]})]
    reply = read("openai", [*head, *(("", {"choices": [], **event}) for event in events)])
    assert reply.usage == Usage(input=prompt, output=3)
    assert reply.messages[0].meta.usage == reply.usage


def test_usage_inside_a_choice_counts() -> None:
    events = chunks({"content": "Hi"}, finish=None)
    events[-1][1]["choices"][0] |= {"finish_reason": "stop", "usage": {"prompt_tokens": 8, "completion_tokens": 1}}
    assert read("openai", events).usage == Usage(input=8, output=1)


def test_of_several_choices_the_first_is_taken_with_the_usage_of_all() -> None:
    events = chunks({"content": "one"}, finish="stop", usage={"prompt_tokens": 9, "completion_tokens": 4})
    events.insert(1, ("", {"choices": [{"index": 1, "delta": {"content": "two"}, "finish_reason": "length"}]}))
    reply = read("openai", events)
    assert (reply.messages[0].text, reply.stop, reply.usage) == ("one", "stop", Usage(input=9, output=4))


def test_a_null_after_text_takes_nothing_back() -> None:
    nulls = {"role": None, "content": None, "tool_calls": None, "refusal": None}
    reply = read("openai", chunks({"content": "It "}, nulls, {"content": "rains"}, nulls, finish="stop"))
    assert (reply.messages[0].role, reply.messages[0].text) == ("assistant", "It rains")


def test_done_without_a_finish_reason_is_no_normal_stop() -> None:
    reply = read("openai", [*chunks({"content": "It ra"}, finish=None), ("", "[DONE]")])
    assert (reply.messages[0].text, reply.stop, reply.complete) == ("It ra", "cut", False)


def test_st10_a_call_cut_in_its_arguments_is_reported_as_not_run() -> None:
    events = chat_events(completion("tool_calls", content="Both.", tool_calls=CALLS), by(8))
    reply = read("openai", events, cut=6)
    assert calls(reply) == []
    assert reply.messages[0].text == "Both."
    assert reply.lost == (Lost(0, "tool call weather", DID_NOT_RUN),) * 2


def test_st06_length_inside_arguments_keeps_only_what_parses() -> None:
    broken = [CALLS[0], {"id": "call_2", "type": "function", "function": {"name": "weather", "arguments": '{"ci'}}]
    value = completion("length", content=None, tool_calls=broken)
    for sent in (sse(chat_events(value, by(8))), json.dumps(value).encode()):
        reply = read("openai", sent)
        assert [made[0] for made in calls(reply)] == ["call_1"]
        assert reply.lost == (Lost(0, "tool call weather", DID_NOT_RUN),)
        assert (reply.stop, reply.complete) == ("length", True)


def test_arguments_the_model_itself_ended_stay_as_they_are() -> None:
    odd = [{"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{oops"}}]
    assert calls(read("openai", chat_events(completion("tool_calls", tool_calls=odd), by(8)))) == [
        ("call_1", "weather", "{oops")
    ]


def test_reasoning_alone_is_no_message_when_cut() -> None:
    reply = read(
        "openai",
        chunks({"reasoning_content": "Hm, "}, {"reasoning_content": "well"}, finish=None, usage={"prompt_tokens": 3}),
    )
    assert reply.messages == ()
    assert reply.usage == Usage(input=3)


def test_streamed_audio_is_kept_only_when_complete() -> None:
    deltas = [{"audio": {"id": "audio_1", "data": piece, "transcript": piece}} for piece in ("QU", "JD")]
    reply = read("openai", chunks(*deltas, finish="stop"))
    assert reply.value is not None
    assert reply.value["choices"][0]["message"]["audio"] == {"id": "audio_1", "data": "QUJD", "transcript": "QUJD"}
    reply = read("openai", chunks({"content": "Hi"}, *deltas, finish=None))
    assert reply.value is not None
    assert "audio" not in reply.value["choices"][0]["message"]


def test_reasoning_details_are_put_together_by_number() -> None:
    def entry(number: int, **more: Any) -> dict[str, Any]:
        return {"reasoning_details": [{"type": "reasoning.text", "index": number, "format": "f", **more}]}

    deltas = [entry(0, text="a", signature=None), entry(0, text="b"), entry(1, text="c"), entry(0, signature="s")]
    reply = read("openai", chunks(*deltas, {"content": "Hi"}, finish="stop"))
    assert reply.value is not None
    assert reply.value["choices"][0]["message"]["reasoning_details"] == [
        {"type": "reasoning.text", "index": 0, "format": "f", "text": "ab", "signature": "s"},
        {"type": "reasoning.text", "index": 1, "format": "f", "text": "c"},
    ]


def test_content_in_parts_is_put_together() -> None:
    thought = [{"type": "thinking", "thinking": [{"type": "text", "text": piece}]} for piece in ("H", "m")]
    reply = read(
        "openai",
        chunks(*({"content": [part]} for part in thought), {"content": "Yes"}, {"content": "."}, finish="stop"),
    )
    assert reply.messages[0].text == "Yes."
    assert reply.value is not None
    assert reply.value["choices"][0]["message"]["content"] == [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]},
        {"type": "text", "text": "Yes."},
    ]


# Responses


def test_a_final_response_without_output_is_filled_from_its_items() -> None:
    value = response(REASONING, said(TEXT), *ITEM_CALLS)
    empties: list[list[Any] | None] = [[], None]
    for empty in empties:
        events = responses_events(value, by(9))
        events[-1] = (events[-1][0], {**events[-1][1], "response": {**value, "output": empty}})
        reply = read("openai-responses", events)
        assert reply == read("openai-responses", responses_events(value, by(9)))
        assert reply.complete


def test_a_response_cut_before_its_last_event_is_built_from_its_items() -> None:
    reply = read("openai-responses", responses_events(response(REASONING, said(TEXT), *ITEM_CALLS), by(9)), cut=1)
    assert [type(part) for message in reply.messages for part in message.parts] == [Thinking, Text, ToolCall, ToolCall]
    assert (reply.stop, reply.complete, reply.usage) == ("cut", False, None)


def test_the_output_of_a_response_in_progress_is_ignored() -> None:
    events = responses_events(response(said("It rains in Ulm")), by(5))
    running = {"id": "resp_1", "status": "in_progress", "output": [said("stale")]}
    events.insert(-2, ("", {"type": "response.in_progress", "response": running}))
    assert read("openai-responses", events, cut=1).messages[0].text == "It rains in Ulm"


def test_a_text_item_cut_in_its_middle_is_marked_incomplete() -> None:
    events = responses_events(response(REASONING, said("It rains in Ulm")), by(5))
    reply = read("openai-responses", events, cut=5)
    assert reply.value is not None
    assert [item.get("status") for item in reply.value["output"]] == [None, "incomplete"]
    assert reply.messages[-1].text == "It rains i"


def test_reasoning_without_a_following_item_is_dropped() -> None:
    events = responses_events(response(REASONING, ITEM_CALLS[0]), by(9))
    reply = read("openai-responses", events, cut=3)
    assert reply.messages == ()
    assert reply.lost == (Lost(0, "function_call weather", DID_NOT_RUN), Lost(0, "reasoning", "nothing follows it"))


def test_an_incomplete_response_says_why_and_drops_the_call_it_broke() -> None:
    broken = {**ITEM_CALLS[1], "arguments": '{"ci', "status": "incomplete"}
    value = response(REASONING, ITEM_CALLS[0], broken, status="incomplete", reason="max_output_tokens")
    for sent in (sse(responses_events(value, by(9))), json.dumps(value).encode()):
        reply = read("openai-responses", sent)
        assert [call.id for message in reply.messages for call in message.calls] == [ITEM_CALLS[0]["call_id"]]
        assert reply.lost == (Lost(0, "function_call weather", DID_NOT_RUN),)
        assert (reply.stop, reply.complete) == ("max_output_tokens", True)


@pytest.mark.parametrize("ids", [True, False])
def test_items_without_numbers_are_matched_by_id_or_order(ids: bool) -> None:
    """llama.cpp numbers neither its items nor their parts."""
    value = response(REASONING, said("It rains in Ulm"), *ITEM_CALLS)
    numbered = responses_events(value, by(5))
    events: Events = []
    for name, event in numbered:
        kept = {key: field for key, field in event.items() if key not in ("output_index", "content_index")}
        if not ids:
            kept.pop("item_id", None)
            kept |= {"item": {**kept["item"], "id": None}} if "item" in kept else {}
        events.append((name, kept))
    for cut in range(1, len(events) - 2):
        expected = read("openai-responses", numbered, cut=cut)
        reply = read("openai-responses", events, cut=cut)
        assert [(said.text, said.calls) for said in reply.messages] == [(s.text, s.calls) for s in expected.messages]
        assert reply.lost == expected.lost


@pytest.mark.parametrize(
    "broken",
    [
        {**ITEM_CALLS[1], "arguments": '{"ci'},
        {"type": "custom_tool_call", "call_id": "call_9", "name": "weather", "input": "*** Be", "status": "incomplete"},
    ],
)
def test_a_broken_call_takes_the_reasoning_that_led_to_it_along(broken: dict[str, Any]) -> None:
    value = response(REASONING, broken, status="incomplete", reason="max_output_tokens")
    reply = read("openai-responses", responses_events(value, by(9)))
    assert (reply.messages, reply.stop, reply.complete) == ((), "max_output_tokens", True)
    assert [lost.what for lost in reply.lost] == [f"{broken['type']} weather", "reasoning"]


def test_an_item_that_says_nothing_yet_is_no_message() -> None:
    events = responses_events(response(said("It rains")), by(99))
    assert read("openai-responses", [*events[:4], ("", {"error": "gone"})]).messages == ()


def test_a_response_that_still_runs_in_the_background_is_no_reply() -> None:
    assembler = Assembler("openai-responses")
    assembler.feed(json.dumps({**response(status="queued"), "usage": None}).encode())
    assert assembler.finish() is None


def test_annotations_that_came_before_the_cut_are_kept() -> None:
    events = responses_events(response(said("It rains")), by(99))
    note = {"type": "url_citation", "url": "https://a.test", "title": "A", "start_index": 0, "end_index": 2}
    added = {"type": "response.output_text.annotation.added", "output_index": 0, "content_index": 0, "annotation": note}
    reply = read("openai-responses", [*events[:5], ("", added)])
    assert reply.value is not None
    assert reply.value["output"][0]["content"][0]["annotations"] == [note]
