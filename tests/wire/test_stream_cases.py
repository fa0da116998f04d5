"""Named cases of streamed replies: Anthropic, Gemini, errors after a status of 200, and bounds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from foldline.message import Opaque, Text, Thinking, Usage
from foldline.wire.formats import Lost
from foldline.wire.streaming import Assembler
from support.samples import THINKING, WEATHER, completion, generated, message, response, said
from support.streams import (
    DID_NOT_RUN,
    Events,
    anthropic_events,
    by,
    chat_events,
    gemini_events,
    read,
    responses_events,
    sse,
)

# Anthropic


@pytest.mark.parametrize("kind", ["tool_use", "server_tool_use", "mcp_tool_use", "tomorrows_use"])
def test_st02_any_block_with_input_deltas_is_rebuilt_and_nothing_private_stays(kind: str) -> None:
    block = {"type": kind, "id": "x_1", "name": "find", "server_name": "s", "input": {"q": "a", "n": [1]}}
    reply = read("anthropic", anthropic_events(message(block, stop="pause_turn"), by(3)))
    assert reply.value is not None
    assert reply.value["content"] == [block]


def test_the_usage_of_the_last_delta_replaces_only_the_figures_it_has() -> None:
    events = anthropic_events(message({"type": "text", "text": "Hi"}), by(9))
    running = {"type": "message_delta", "delta": {"stop_reason": None}, "usage": {"output_tokens": 30}}
    events.insert(-2, ("message_delta", running))
    reply = read("anthropic", events)
    assert reply.usage == Usage(input=12, cache_read=4000, cache_write=300, output=57, cache_write_1h=200)


def test_deltas_of_an_unknown_kind_grow_or_replace_the_field_they_name() -> None:
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "diagram", "source": ""}}
    deltas = [{"type": "d_delta", "source": "a->", "at": "1"}, {"type": "d_delta", "source": "b", "at": [2]}]
    events = anthropic_events(message(), by(9))
    events[2:2] = [("", start), *(("", {"type": "content_block_delta", "index": 0, "delta": d}) for d in deltas)]
    expected = {"type": "diagram", "source": "a->b", "at": [2]}
    assert read("anthropic", events).messages[0].parts == (Opaque(kind="diagram", value=expected),)


@pytest.mark.parametrize("index", [0, None])
def test_blocks_that_a_gateway_numbers_alike_stay_apart(index: int | None) -> None:
    value = message(THINKING, {"type": "text", "text": "Both."}, *WEATHER, stop="tool_use")
    alike: Events = [(name, {**event, "index": index}) for name, event in anthropic_events(value, by(9))]
    assert read("anthropic", alike).messages == read("anthropic", anthropic_events(value, by(9))).messages


def test_a_token_estimate_beside_thinking_does_not_leak_into_the_block() -> None:
    events = anthropic_events(message(THINKING, {"type": "text", "text": "Hi"}), by(9))
    for _, value in events:
        if value.get("delta", {}).get("type") == "thinking_delta":
            value["delta"]["estimated_tokens"] = 50
    reply = read("anthropic", events)
    assert reply.value is not None
    assert reply.value["content"][0] == THINKING


def test_the_model_of_a_fallback_block_is_the_model_of_the_reply() -> None:
    fallback = {"type": "fallback", "from": {"model": "a"}, "to": {"model": "claude-b"}}
    reply = read("anthropic", anthropic_events(message(fallback, {"type": "text", "text": "Hi"}), by(9)))
    assert reply.messages[0].meta.model == "claude-b"


def test_fields_of_the_last_event_are_kept() -> None:
    events = anthropic_events(message({"type": "text", "text": "Hi"}), by(9))
    events[0][1]["message"]["container"] = {"id": "c"}
    delta: dict[str, Any] = {"stop_reason": "refusal", "stop_details": {}, "container": None}
    events[-2][1].update(context_management={"applied_edits": []}, delta=delta)
    reply = read("anthropic", events)
    assert reply.value is not None
    assert (reply.value["context_management"], reply.value["stop_details"]) == ({"applied_edits": []}, {})
    assert reply.value["container"] == {"id": "c"}


@pytest.mark.parametrize("stop", ["max_tokens", "tool_use"])
def test_st06_a_call_stopped_inside_its_input_is_dropped_and_reported(stop: str) -> None:
    events = anthropic_events(message(THINKING, {"type": "text", "text": "Hi"}, *WEATHER, stop=stop), by(9))
    del events[-4]
    reply = read("anthropic", events)
    assert [(call.id, json.loads(call.arguments)) for call in reply.messages[0].calls] == [
        ("toolu_1", WEATHER[0]["input"])
    ]
    assert reply.lost == (Lost(0, "tool_use weather", DID_NOT_RUN),)
    assert (reply.stop, reply.complete) == (stop, True)


def test_a_call_stopped_inside_its_input_leaves_no_thinking_without_a_message() -> None:
    events = anthropic_events(message(THINKING, WEATHER[0], stop="max_tokens"), by(9))
    del events[-4]
    reply = read("anthropic", events)
    assert (reply.messages, reply.stop, reply.complete) == ((), "max_tokens", True)
    assert [lost.what for lost in reply.lost] == ["tool_use weather", "thinking"]


def test_st05_thinking_before_a_call_that_was_cut_leaves_nothing_behind() -> None:
    events = anthropic_events(message(THINKING, WEATHER[0], stop="tool_use"), by(9))
    reply = read("anthropic", events, cut=5)
    assert reply.messages == ()
    assert [lost.what for lost in reply.lost] == ["tool_use weather", "thinking"]
    assert not reply.complete


def test_thinking_that_was_cut_before_its_signature_is_not_kept() -> None:
    events = anthropic_events(message({"type": "text", "text": "Hm"}, THINKING), by(9))
    reply = read("anthropic", events, cut=4)
    assert reply.messages[0].parts == (Text(text="Hm"),)
    assert (reply.messages[0].meta.stop, reply.messages[0].meta.usage) == ("cut", None)
    assert reply.usage is not None
    assert reply.usage.prompt == 4312


def test_unsigned_thinking_is_kept_of_a_complete_reply_only() -> None:
    unsigned = {"type": "thinking", "thinking": "Hm", "signature": ""}
    events = anthropic_events(message(unsigned, {"type": "text", "text": "It rains"}), by(99))
    assert read("anthropic", events).messages[0].parts == (Thinking(text="Hm"), Text(text="It rains"))
    assert read("anthropic", events, cut=3).messages[0].parts == (Text(text="It rains"),)


def test_a_servers_call_without_its_result_is_not_kept_of_a_cut_reply_but_of_a_paused_one() -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    events = anthropic_events(message({"type": "text", "text": "I look."}, search, stop="pause_turn"), by(9))
    assert read("anthropic", events).messages[0].parts[1] == Opaque(kind="server_tool_use", value=search)
    assert read("anthropic", events, cut=2).messages[0].parts == (Text(text="I look."),)


# Errors after 200


@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize(
    ("provider", "frame", "expected"),
    [
        (
            "anthropic",
            'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}',
            {"type": "overloaded_error", "message": "Overloaded"},
        ),
        ("anthropic", "event: error\ndata: upstream timed out", {"message": "upstream timed out"}),
        ("anthropic", "event: error\ndata: {}", {"message": "the provider reported an error without a message"}),
        ("openai", 'data: {"error": {"code": "context_length_exceeded"}}', {"code": "context_length_exceeded"}),
        ("openai", 'data: {"error": "prompt too long"}', {"message": "prompt too long"}),
        ("openai", '{"error": {"message": "bare"}}', {"message": "bare"}),
        ("openai", 'error: {"code": 500, "message": "llama"}', {"code": 500, "message": "llama"}),
        ("openai", 'data: {"object": "error", "message": "vLLM"}', {"object": "error", "message": "vLLM"}),
        (
            "openai",
            'data: {"choices": [{"delta": {"content": ""}, "finish_reason": "error", "error": {"code": 502}}]}',
            {"code": 502},
        ),
        (
            "openai-responses",
            'data: {"type": "error", "code": "server_error", "message": "no", "sequence_number": 3}',
            {"type": "error", "code": "server_error", "message": "no", "sequence_number": 3},
        ),
        (
            "openai-responses",
            'data: {"type": "response.failed", "response": {"error": {"code": "context_length_exceeded"}}}',
            {"code": "context_length_exceeded"},
        ),
        (
            "gemini",
            'data: {"error": {"code": 400, "status": "INVALID_ARGUMENT"}}',
            {"code": 400, "status": "INVALID_ARGUMENT"},
        ),
    ],
)
def test_st03_an_error_after_200_is_reported_and_never_a_stop(
    provider: str, frame: str, expected: dict[str, Any], started: bool
) -> None:
    first = {
        "anthropic": anthropic_events(message({"type": "text", "text": "It rains"}), by(99))[:4],
        "openai": chat_events(completion(content="It rains"), by(99))[:2],
        "openai-responses": responses_events(response(said("It rains")), by(99))[:5],
        "gemini": gemini_events(generated({"text": "It rains"}), by(99))[:1],
    }[provider]
    reply = read(provider, (sse(first) if started else b"") + frame.encode() + b"\n\n")
    assert reply.error == expected
    assert (reply.stop, reply.complete) == ("error", False)
    assert [(said.text, said.meta.stop) for said in reply.messages] == ([("It rains", "error")] if started else [])


# Gemini


def test_a_signature_stays_on_its_own_part() -> None:
    value = generated({"text": "It rains"}, {"text": "", "thoughtSignature": "c2ln"})
    reply = read("gemini", gemini_events(value, by(3)))
    assert reply.value is not None
    assert reply.value["candidates"][0]["content"]["parts"] == value["candidates"][0]["content"]["parts"]


def test_parts_that_stood_side_by_side_in_one_chunk_stay_apart() -> None:
    value = generated({"text": "It "}, {"text": "rains"})
    reply = read("gemini", json.dumps(value).encode())
    assert reply.messages[0].parts == (Text(text="It "), Text(text="rains"))


def test_a_thought_alone_is_no_message_when_cut() -> None:
    reply = read("gemini", gemini_events(generated({"text": "Two cities.", "thought": True}), by(5))[:2])
    assert (reply.messages, reply.stop) == ((), "cut")
    assert reply.lost == (Lost(0, "thought", "nothing follows it"),)


def test_usage_that_comes_in_parts_is_put_together() -> None:
    events = gemini_events(generated({"text": "It rains"}), by(99))
    events[0][1]["usageMetadata"], events[-1][1]["usageMetadata"] = {"promptTokenCount": 9}, {"candidatesTokenCount": 2}
    assert read("gemini", events).usage == Usage(input=9, output=2)


def test_a_json_array_and_the_wrapped_form_are_streams_too() -> None:
    chunks = [value for _, value in gemini_events(generated({"text": "It rains"}), by(3))]
    for sent in (json.dumps(chunks, indent=2).encode(), sse([("", {"response": chunk}) for chunk in chunks])):
        reply = read("gemini", sent)
        assert (reply.messages[0].text, reply.stop) == ("It rains", "STOP")
        assert reply.usage == Usage(input=1200, output=57, reasoning=20)


def test_an_error_in_a_json_array_is_reported() -> None:
    reply = read("gemini", b'[{\n  "error": {\n    "code": 503\n  }\n}\n]\n')
    assert (reply.error, reply.stop, reply.complete) == ({"code": 503}, "error", False)


def test_a_refused_prompt_is_an_answer_without_a_message() -> None:
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 9}}
    reply = read("gemini", [("", blocked)])
    assert (reply.messages, reply.stop, reply.complete, reply.usage) == ((), "SAFETY", True, Usage(input=9))


def streamed_call(*pieces: dict[str, Any]) -> Events:
    parts = [{"functionCall": {"name": "weather", "willContinue": True}}, *({"functionCall": p} for p in pieces)]
    return [("", {"candidates": [{"content": {"role": "model", "parts": [part]}}]}) for part in parts]


def test_arguments_streamed_by_path_become_the_call() -> None:
    pieces = [
        {"partialArgs": [{"jsonPath": "$.city", "stringValue": "U", "willContinue": True}], "willContinue": True},
        {
            "partialArgs": [{"jsonPath": "$.city", "stringValue": "lm"}, {"jsonPath": "$.days[0]", "numberValue": 1}],
            "willContinue": True,
        },
        {
            "partialArgs": [
                {"jsonPath": "$['on'].now", "boolValue": True},
                {"jsonPath": "$.x", "nullValue": "NULL_VALUE"},
            ],
            "willContinue": True,
        },
        {},
    ]
    end: Events = [("", {"candidates": [{"finishReason": "STOP"}]})]
    made = read("gemini", [*streamed_call(*pieces), *end]).messages[0].calls[0]
    assert json.loads(made.arguments) == {"city": "Ulm", "days": [1], "on": {"now": True}, "x": None}
    reply = read("gemini", [*streamed_call(*pieces[:-1]), *end])
    assert reply.messages == ()
    assert reply.lost == (Lost(0, "functionCall weather", DID_NOT_RUN),)


def test_an_error_stays_the_reply_s_error_whatever_follows_it() -> None:
    events = chat_events(completion(content="It rains"), by(99))
    reply = read("openai", [*events[:2], ("", {"error": {"code": 1}}), ("", {"error": {"code": 2}}), *events[2:]])
    assert (reply.error, reply.stop, reply.complete) == ({"code": 1}, "error", False)


# Bounds


@pytest.mark.parametrize("ended", [False, True])
def test_an_event_beyond_the_bound_is_a_cut(ended: bool) -> None:
    events = chat_events(completion(content="It rains"), by(99), include_usage=False)
    assembler = Assembler("openai", event_bytes=2000)
    assembler.feed(sse(events if ended else events[:2]))
    assembler.feed(sse(chat_events(completion(content="x" * 3000), by(9999))))
    reply = assembler.finish()
    assert reply is not None
    assert (reply.messages[0].text, reply.stop, reply.complete) == ("It rains", "cut", False)
    assert [lost.what for lost in reply.lost] == ["event"]
