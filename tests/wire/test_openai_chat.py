"""Chat Completions: untouched is identical, edited keeps the rest, foreign is mapped or reported."""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foldline.errors import WireError
from foldline.message import (
    Media,
    Message,
    Opaque,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    assistant,
    tool,
    user,
)
from foldline.placeholders import TOOL_ERROR
from foldline.wire import rendering
from foldline.wire.formats import LossCollector, Lost
from foldline.wire.openai_chat.parse import parse, parse_reply
from foldline.wire.openai_chat.render import render
from support.openai_elements import CHAT_CALLS, CHAT_MESSAGES, JSON, MESSAGES
from support.talk import said, talk

PNG = "data:image/png;base64,aGk="


def rendered(*messages: Message) -> tuple[list[Any], tuple[Lost, ...]]:
    made = rendering.render(messages, "openai")
    return made.body["messages"], made.lost


def inner(parts: tuple[Part, ...]) -> list[Part]:
    """All parts, those inside results included."""
    return [deep for part in parts for deep in (part, *(part.parts if isinstance(part, ToolResult) else ()))]


@given(CHAT_MESSAGES)
def test_untouched_is_the_same_object(element: dict[str, Any]) -> None:
    message = parse(element, None)
    loss = LossCollector()
    made = render(message, loss)
    assert len(made) == 1
    assert made[0] is element
    assert not loss.items


@given(CHAT_MESSAGES)
def test_parsing_changes_nothing(element: dict[str, Any]) -> None:
    before = json.dumps(element)
    parse(element, before)
    assert json.dumps(element) == before


@given(CHAT_MESSAGES)
def test_rebuilt_says_the_same_and_keeps_unknown_fields_in_place(element: dict[str, Any]) -> None:
    message = parse(element, None)
    loss = LossCollector()
    (made,) = render(message.with_parts(*message.parts), loss)
    assert parse(json.loads(json.dumps(made)), None) == message
    assert not loss.items
    assert made["role"] == element["role"]
    assert {key: made[key] for key in element if key.startswith("x_")} == {
        key: value for key, value in element.items() if key.startswith("x_")
    }
    common = [key for key in element if key in made]
    assert common == [key for key in made if key in element]


@given(CHAT_CALLS.filter(lambda call: call["type"] != "telepathy"), st.dictionaries(st.text(max_size=5), JSON))
def test_edited_arguments_stay_json_and_the_call_keeps_its_other_fields(call: dict[str, Any], value: Any) -> None:
    message = parse({"role": "assistant", "content": None, "tool_calls": [call]}, None)
    shrunk = replace(message.calls[0], arguments=json.dumps(value))
    (made,) = render(message.with_parts(shrunk), LossCollector())
    (again,) = parse(made, None).calls
    assert again == shrunk
    assert json.loads(again.arguments) == value
    assert {**made["tool_calls"][0], call["type"]: 0} == {**call, call["type"]: 0}


@given(
    JSON
    | st.builds(
        lambda element, key, value: {**element, key: value},
        CHAT_MESSAGES,
        st.sampled_from(
            [
                "role",
                "content",
                "tool_calls",
                "function_call",
                "tool_call_id",
                "name",
                "audio",
                "refusal",
                "reasoning_details",
            ]
        ),
        JSON,
    )
)
def test_any_json_is_a_message_or_an_error_that_names_the_field(value: Any) -> None:
    fault = None
    try:
        message = parse(value, None)
    except WireError as error:
        fault = error
    if fault is None:
        assert render(message, LossCollector()) == [value]
    else:
        assert fault.field


@given(MESSAGES)
@settings(max_examples=150)
def test_foreign_parts_are_carried_or_reported(message: Message) -> None:
    elements, lost = rendered(message)
    json.dumps(elements)
    again = [part for element in elements for part in inner(parse(element, None).parts)]
    said = "\0".join(part.text for part in again if isinstance(part, Text))
    reports = Counter(entry.what for entry in lost)
    for part in inner(message.parts):
        match part:
            case Text(text=text):
                assert text in said
            case ToolCall():
                kept = [call for call in again if isinstance(call, ToolCall) and call.id == part.id]
                assert kept
                assert part in kept or reports[f"call {part.kind}"]
            case ToolResult():
                kept_results = [result for result in again if isinstance(result, ToolResult)]
                assert part.call_id in [result.call_id for result in kept_results]
                assert not part.is_error or TOOL_ERROR in said
            case Thinking():
                assert reports["thinking"]
            case Opaque(kind=kind):
                assert reports[f"opaque {kind}"]
            case Media(kind=kind, text=text):
                carried = any(isinstance(found, Media) and found.kind == kind for found in again)
                assert carried or reports[f"media {kind}"] or (text and text in said)


@cache
def sdk_types() -> Any:
    from openai.types.chat import ChatCompletionMessageParam
    from pydantic import TypeAdapter

    return TypeAdapter(ChatCompletionMessageParam)


@given(MESSAGES)
@settings(deadline=None)
def test_newly_rendered_elements_match_the_types_of_the_sdk(message: Message) -> None:
    for element in rendered(message)[0]:
        sdk_types().validate_python(element)


def test_roles() -> None:
    assert parse({"role": "developer", "content": "be brief"}, None) == parse(
        {"role": "system", "content": "be brief"}, None
    )
    assert parse({"role": "critic", "content": "no"}, None).role == "critic"
    assert rendered(parse({"role": "developer", "content": "x"}, None).with_parts(Text(text="y")))[0] == [
        {"role": "developer", "content": "y"}
    ]


def test_content_as_text_and_as_list_say_the_same() -> None:
    listed = parse({"role": "user", "content": [{"type": "text", "text": "hi"}]}, None)
    assert listed == parse({"role": "user", "content": "hi"}, None) == user("hi")
    assert rendered(listed.with_parts(Text(text="ho")))[0] == [
        {"role": "user", "content": [{"type": "text", "text": "ho"}]}
    ]


def test_empty_and_null_content_of_a_caller_say_the_same() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    assert parse({"role": "assistant", "content": "", "tool_calls": [call]}, None) == parse(
        {"role": "assistant", "content": None, "tool_calls": [call]}, None
    )


def test_legacy_calls_have_no_id_and_come_back_as_legacy() -> None:
    call = parse({"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{"}}, None)
    result = parse({"role": "function", "name": "f", "content": "42"}, None)
    assert call.calls == (ToolCall(id="", name="f", arguments="{"),)
    assert result.results == (ToolResult(call_id="", name="f", parts=(Text(text="42"),)),)
    edited = call.with_parts(replace(call.calls[0], arguments="{}"))
    cut = result.with_parts(replace(result.results[0], parts=(Text(text="[cut]"),)))
    assert rendered(edited, cut)[0] == [
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "[cut]"},
    ]


def test_arguments_that_are_no_json_are_kept_as_text_and_objects_become_text() -> None:
    def arguments(value: Any) -> str:
        body = {"name": "f", "arguments": value}
        return parse({"role": "assistant", "tool_calls": [{"id": "a", "function": body}]}, None).calls[0].arguments

    assert arguments('{"a": ') == '{"a": '
    assert arguments({"a": 1}) == '{"a":1}'


def test_reasoning_of_other_servers_is_thinking_and_leaves_with_it() -> None:
    element = {
        "role": "assistant",
        "content": "Ulm.",
        "reasoning": "Where?",
        "reasoning_details": [{"type": "reasoning.text", "text": "Where?", "signature": "sig"}],
        "x": 1,
    }
    message = parse(element, None)
    assert message.parts[0] == Thinking(text="Where?", signature="sig")
    assert rendered(message.with_parts(*message.parts[1:]))[0] == [{"role": "assistant", "content": "Ulm.", "x": 1}]
    assert rendered(message.with_parts(message.parts[0], Text(text="Bonn.")))[0] == [{**element, "content": "Bonn."}]


def test_swe_agent_writes_a_list_of_one_id() -> None:
    assert parse({"role": "tool", "content": "x", "tool_call_ids": ["a"]}, None).results[0].call_id == "a"


def test_results_are_rendered_before_the_text_of_the_user() -> None:
    mixed = Message(role="user", parts=(Text(text="and?"), *tool("a", "1").parts, *tool("b", "2").parts))
    assert rendered(mixed)[0] == [
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": "user", "content": "and?"},
    ]


def test_all_calls_of_a_reply_stand_in_one_message() -> None:
    parts = [Message(role="assistant", parts=(ToolCall(id=key, name="f"),)) for key in "ab"]
    (first, *results), lost = rendered(assistant("Look."), *parts, tool("a", "1"), tool("b", "2"))
    assert first["content"] == "Look."
    assert [call["id"] for call in first["tool_calls"]] == ["a", "b"]
    assert [result["tool_call_id"] for result in results] == ["a", "b"]
    assert not lost


def test_text_after_a_call_moves_before_it_and_that_is_said() -> None:
    message = Message(role="assistant", parts=(ToolCall(id="a", name="f"), Text(text="done")))
    (element,), lost = rendered(message)
    assert element["content"] == "done"
    assert [entry.what for entry in lost] == ["order"]


def test_media_in_a_result_leaves_a_mark() -> None:
    image = Media(kind="image", mime="image/png", data="aGk=")
    result = ToolResult(call_id="a", parts=(Text(text="see"), image))
    (element,), lost = rendered(Message(role="tool", parts=(result,)))
    assert element["content"] == [
        {"type": "text", "text": "see"},
        {"type": "text", "text": "[image image/png left out]"},
    ]
    assert [entry.what for entry in lost] == ["media image"]


def test_media_of_the_user() -> None:
    parts = (
        Media(kind="image", mime="image/png", data="aGk="),
        Media(kind="image", url="https://example.org/a.png"),
        Media(kind="document", mime="application/pdf", data="aGk="),
        Media(kind="document", text="a letter"),
        Media(kind="audio", mime="audio/wav", data="aGk="),
        Media(kind="video", mime="video/mp4", data="aGk="),
    )
    (element,), lost = rendered(Message(role="user", parts=parts))
    assert element["content"] == [
        {"type": "image_url", "image_url": {"url": PNG}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "file", "file": {"filename": "document.pdf", "file_data": "data:application/pdf;base64,aGk="}},
        {"type": "text", "text": "a letter"},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
        {"type": "text", "text": "[video video/mp4 left out]"},
    ]
    assert [entry.what for entry in lost] == ["media video"]


def test_a_failed_result_says_so() -> None:
    (element,), lost = rendered(tool("a", "no such file", is_error=True))
    assert element == {"role": "tool", "tool_call_id": "a", "content": f"{TOOL_ERROR}no such file"}
    assert [entry.what for entry in lost] == ["is_error"]


@pytest.mark.parametrize("kind", ["shell", "note", "digest", "branch_digest"])
def test_messages_with_a_kind_are_sent_in_the_role_of_the_user(kind: str) -> None:
    assert rendered(user("so far", kind=kind))[0] == [{"role": "user", "content": "so far"}]


def test_nothing_to_carry_is_no_element() -> None:
    assert rendered(Message(role="assistant", parts=(Thinking(text="hm"),)))[0] == []


REPLY: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1757015025,
    "model": "gpt-x",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": None,
                "refusal": None,
                "annotations": [],
                "audio": {"id": "audio_1", "data": "UklGRg==", "expires_at": 1, "transcript": "hi"},
                "function_call": None,
                "tool_calls": [
                    {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
                ],
            },
        }
    ],
    "usage": {
        "prompt_tokens": 100,
        "completion_tokens": 7,
        "total_tokens": 107,
        "prompt_tokens_details": {"cached_tokens": 64},
        "completion_tokens_details": {"reasoning_tokens": 3},
    },
}


def test_a_reply_becomes_a_message_that_may_be_sent_back() -> None:
    (message,) = parse_reply(REPLY)
    assert message.meta.reply == "chatcmpl-1"
    assert message.meta.model == "gpt-x"
    assert message.meta.stop == "tool_calls"
    assert message.meta.usage == Usage(input=36, cache_read=64, output=7, reasoning=3)
    assert rendered(message)[0] == [
        {
            "role": "assistant",
            "content": None,
            "audio": {"id": "audio_1"},
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        }
    ]


def test_sdk_objects_are_accepted_as_they_are() -> None:
    from openai.types.chat import ChatCompletion

    completion = ChatCompletion.model_validate(REPLY)
    answer = completion.choices[0].message
    by_hand = {"role": "assistant", "content": None, "audio": {"id": "audio_1"}, "tool_calls": answer.tool_calls}
    assert parse_reply(completion) == parse_reply(REPLY) == (parse(answer),) == (parse(by_hand),)
    json.dumps(rendered(parse(by_hand), parse(answer))[0])


@pytest.mark.parametrize(
    ("value", "field"),
    [([], "choices"), ({"choices": 1}, "choices"), ({"choices": [1]}, "choices[0].message")],
)
def test_a_broken_reply_names_the_field(value: Any, field: str) -> None:
    with pytest.raises(WireError) as caught:
        parse_reply(value)
    assert caught.value.field == field


def test_a_reply_without_choices_is_no_message() -> None:
    assert parse_reply({"choices": []}) == ()


DATA = Path(os.environ.get("FOLDLINE_DATA", "/nowhere"))


def _load(path: Path) -> Any:
    return json.loads(gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes())


def _lists(value: Any) -> list[list[dict[str, Any]]]:
    """Every list of chat messages inside a value."""
    if isinstance(value, dict):
        return [found for inner in value.values() for found in _lists(inner)]
    if not isinstance(value, list):
        return []
    if value and all(isinstance(item, dict) and "role" in item and "content" in item for item in value):
        return [value]
    return [found for inner in value for found in _lists(inner)]


SOURCES = {
    "tau-bench": "tau-bench/gpt-4o-airline.json.gz",
    "openhands": "openhands/llm-logs/*.gz",
    "toolbench": "toolbench/*.gz",
    "swe-agent": "swe-agent/*.traj*",
}


@pytest.mark.skipif(not DATA.is_dir(), reason="FOLDLINE_DATA names no folder")
@pytest.mark.parametrize("source", SOURCES)
def test_real_messages_come_back_and_cross_over(source: str) -> None:
    """The same object to the same provider; to the others, what is said, called and answered, or a report."""
    files = sorted(DATA.glob(SOURCES[source]))
    tally: Counter[str] = Counter(files=len(files))
    for path in files:
        for elements in _lists(_load(path)):
            messages = [parse(element, None) for element in elements]
            back = rendering.render(messages, "openai").body["messages"]
            tally["messages"] += len(messages)
            tally["differences"] += sum(new is not old for new, old in zip(back, elements, strict=True))
            for provider in ("openai-responses", "anthropic", "gemini"):
                made = rendering.render(messages, provider)
                tally[f"lost to {provider}"] += len(made.lost)
                tally[f"unsaid to {provider}"] += not made.lost and said(provider, made.body) != talk(messages)
    sys.stdout.write(f"{source}: {dict(tally)}\n")
    assert tally["files"]
    assert tally["messages"]
    assert not tally["differences"]
    assert not [key for key in tally if key.startswith("unsaid") and tally[key]]


@pytest.mark.skipif(not DATA.is_dir(), reason="FOLDLINE_DATA names no folder")
def test_real_replies_have_usage_and_a_reason_to_stop() -> None:
    found = [_load(path) for path in sorted(DATA.glob(SOURCES["openhands"]))]
    replies = [parse_reply(log["response"]) for log in found if isinstance(log, dict)]
    assert replies
    for (message,) in replies:
        assert message.meta.usage
        assert message.meta.usage.output
        assert message.meta.stop in ("stop", "tool_calls")
        assert message.calls
