"""Gemini contents: signatures stay where they stood, results find their calls, and nothing vanishes unsaid."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from google.genai import types
from hypothesis import given
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
    system,
    tool,
    user,
)
from foldline.session import Session
from foldline.wire import parse, render
from foldline.wire.formats import LossCollector
from foldline.wire.gemini import parse as gemini
from foldline.wire.gemini.render import render as render_content
from support.replies import JSON, NAMES, OBJECTS, TEXTS, gemini_replies

SIGNED = st.sampled_from([{}, {"thoughtSignature": "c2ln+/=="}, {"thought_signature": "c2lnLV8="}])
PARTS = st.one_of(
    st.builds(lambda text, extra: {"text": text, **extra}, st.text(max_size=20), SIGNED),
    st.builds(lambda text, extra: {"text": text, "thought": True, **extra}, TEXTS, SIGNED),
    st.builds(
        lambda name, args, extra: {"functionCall": {"name": name, "args": args}, **extra}, NAMES, OBJECTS, SIGNED
    ),
    st.builds(lambda name, args: {"function_call": {"id": "c1", "name": name, "args": args}}, NAMES, OBJECTS),
    st.builds(lambda name, said: {"functionResponse": {"name": name, "response": said}}, NAMES, OBJECTS),
    st.builds(lambda name: {"function_response": {"id": "c", "name": name, "response": {"error": "e"}}}, NAMES),
    st.just({"inlineData": {"mimeType": "image/png", "data": "AAAA"}, "videoMetadata": {"fps": 1}}),
    st.just({"fileData": {"fileUri": "gs://bucket/a.pdf", "mimeType": "application/pdf"}}),
    st.just({"executableCode": {"language": "PYTHON", "code": "print(1)"}}),
    st.just({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}),
    st.just({"toolCall": {"id": "t"}, "thoughtSignature": "x"}),
    OBJECTS,
    JSON,
)
CONTENTS = st.builds(
    lambda role, parts, extra: {**role, "parts": parts, **extra},
    st.sampled_from([{}, {"role": "user"}, {"role": "model"}, {"role": "function"}, {"role": "odd"}]),
    st.lists(PARTS, max_size=4),
    st.sampled_from([{}, {"unknown": [1]}]),
)


@given(CONTENTS)
def test_a_content_comes_back_as_it_was(value: dict[str, Any]) -> None:
    message = gemini.parse(value, "raw text")
    assert render_content(message, LossCollector()) == [value]
    assert message.wire is not None
    assert message.wire.raw == "raw text"


@given(CONTENTS)
def test_unedited_parts_of_an_edited_message_render_unchanged(value: dict[str, Any]) -> None:
    message = gemini.parse(value)
    loss = LossCollector()
    rebuilt = render_content(message.with_parts(*message.parts), loss)
    assert rebuilt == ([value] if value["parts"] else [])
    assert not loss.items


@given(JSON)
def test_any_value_is_a_message_or_a_wire_error(value: Any) -> None:
    with suppress(WireError):
        assert isinstance(gemini.parse(value), Message)
    with suppress(WireError):
        assert gemini.parse_system(value).role == "system"
    with suppress(WireError):
        assert isinstance(gemini.parse_reply(value), tuple)


@given(gemini_replies())
def test_a_reply_is_the_message_to_send_back(value: dict[str, Any]) -> None:
    (message,) = parse(value).messages
    assert message.role == "assistant"
    assert (message.meta.reply, message.meta.model, message.meta.stop) == ("r1", "gemini-3.5-flash", "STOP")
    assert render([message], "gemini").body["contents"] == [value["candidates"][0]["content"]]


PART_CASES: list[tuple[dict[str, Any], Part]] = [
    ({"text": "hi", "thought": None, "functionCall": None}, Text(text="hi")),
    ({"text": "hmm", "thought": True, "thoughtSignature": "s+"}, Thinking(text="hmm", signature="s+")),
    ({"text": "", "thoughtSignature": "s"}, Thinking(signature="s")),
    ({"thought_signature": "s"}, Thinking(signature="s")),
    ({"thought_signature": b"\xfb\xff"}, Thinking(signature="+/8=")),
    ({"functionCall": {"name": "ls", "args": {"a": [1]}}}, ToolCall(id="", name="ls", arguments='{"a":[1]}')),
    ({"function_call": {"id": "7", "name": "ls", "args": None}}, ToolCall(id="7", name="ls", arguments="{}")),
    (
        {"functionResponse": {"id": "7", "name": "ls", "response": {"output": "a.txt"}}},
        ToolResult(call_id="7", name="ls", parts=(Text(text="a.txt"),)),
    ),
    (
        {"functionResponse": {"name": "ls", "response": {"error": "denied"}}},
        ToolResult(call_id="", name="ls", parts=(Text(text="denied"),), is_error=True),
    ),
    (
        {"functionResponse": {"name": "ls", "response": {"files": 2, "error": ""}}},
        ToolResult(call_id="", name="ls", parts=(Text(text='{"files":2,"error":""}'),)),
    ),
    (
        {"function_response": {"name": "ls", "response": {"result": "soon"}, "will_continue": True}},
        ToolResult(call_id="", name="ls", parts=(Text(text="soon"),), interim=True),
    ),
    (
        {
            "functionResponse": {
                "name": "see",
                "response": {},
                "parts": [{"inlineData": {"data": "AA", "mimeType": "image/png"}}],
            }
        },
        ToolResult(call_id="", name="see", parts=(Text(text="{}"), Media(kind="image", mime="image/png", data="AA"))),
    ),
    ({"inline_data": {"mime_type": "image/png", "data": "_-8="}}, Media(kind="image", mime="image/png", data="/+8=")),
    (
        {"inlineData": {"mimeType": "application/pdf", "data": "AA"}},
        Media(kind="document", mime="application/pdf", data="AA"),
    ),
    (
        {"fileData": {"fileUri": "https://x/a.mp4", "mimeType": "video/mp4"}},
        Media(kind="video", mime="video/mp4", url="https://x/a.mp4"),
    ),
    ({"videoMetadata": {"fps": 2}}, Opaque(kind="videoMetadata", value={"videoMetadata": {"fps": 2}})),
    (
        {"executableCode": {"code": "1"}, "thought": True},
        Opaque(kind="executableCode", value={"executableCode": {"code": "1"}, "thought": True}),
    ),
]


@pytest.mark.parametrize(("value", "part"), PART_CASES)
def test_each_wire_part_becomes_its_kind_of_part(value: dict[str, Any], part: Part) -> None:
    assert gemini.parse({"role": "model", "parts": [value]}).parts == (part,)


FOREIGN = "skip_thought_signature_validator"
"""Stands in for the signature of a call that another model made, which Gemini 3 demands."""


def test_roles() -> None:
    roles = [gemini.parse({"role": role, "parts": []}).role for role in ("user", "model", "function", "odd")]
    assert roles == ["user", "assistant", "tool", "odd"]
    assert gemini.parse({"parts": [{"text": "no role is the user's"}]}).role == "user"


def test_a_signature_survives_an_edit_beside_it() -> None:
    """PR15: a functionCall that lost its signature is refused, so pruning a neighbour must not rebuild it."""
    call = {"functionCall": {"name": "cat", "args": {"f": "a"}}, "thoughtSignature": "c2lnbmF0dXJl"}
    message = gemini.parse({"role": "model", "parts": [{"text": "long " * 50}, call]})
    edited = message.with_parts(Text(text="[pruned]"), message.parts[1])
    assert render_content(edited, LossCollector()) == [{"role": "model", "parts": [{"text": "[pruned]"}, call]}]
    moved = message.with_parts(replace(message.calls[0], arguments='{"f":"b"}'))
    (content,) = render_content(moved, LossCollector())
    assert content["parts"] == [{**call, "functionCall": {"name": "cat", "args": {"f": "b"}}}]


def test_an_edited_result_keeps_its_id_name_and_spelling() -> None:
    value = {"function_response": {"id": "7", "name": "cat", "response": {"output": "x" * 100}, "scheduling": "SILENT"}}
    message = gemini.parse({"role": "user", "parts": [value]})
    stub = replace(message.results[0], parts=(Text(text="[stub]"),))
    (content,) = render_content(message.with_parts(stub), LossCollector())
    assert content["parts"] == [
        {"function_response": {"id": "7", "name": "cat", "response": {"output": "[stub]"}, "scheduling": "SILENT"}}
    ]


def test_results_of_one_turn_travel_in_one_content_and_are_named() -> None:
    calls = assistant("", ToolCall(id="1", name="ls"), ToolCall(id="2", name="rm", arguments='{"f":1}'))
    answers = [tool("2", "denied", is_error=True), tool("1", "a.txt")]
    body = render([user("go"), calls, *answers, user("thanks")], "gemini").body
    assert [content["role"] for content in body["contents"]] == ["user", "model", "user", "user"]
    assert body["contents"][1]["parts"] == [
        {"functionCall": {"id": "1", "name": "ls", "args": {}}, "thoughtSignature": FOREIGN},
        {"functionCall": {"id": "2", "name": "rm", "args": {"f": 1}}},
    ]
    assert body["contents"][2]["parts"] == [
        {"functionResponse": {"id": "2", "name": "rm", "response": {"error": "denied"}}},
        {"functionResponse": {"id": "1", "name": "ls", "response": {"output": "a.txt"}}},
    ]


def test_contents_that_came_so_are_never_joined() -> None:
    answers = [{"role": "user", "parts": [{"functionResponse": {"name": n, "response": {}}}]} for n in "ab"]
    assert render(parse(answers).messages, "gemini").body["contents"] == answers


def test_parts_that_gemini_cannot_hold_are_reported_as_lost() -> None:
    blocks: tuple[Part, ...] = (
        Thinking(text="private", signature="s"),
        Opaque(kind="server_tool_use", value={}),
        Media(kind="document", text="a plain text document"),
        Media(kind="image", mime="image/png", data="AA"),
        Media(kind="image", url="https://x/y.png"),
        Media(kind="image"),
        ToolCall(id="1", name="shell", arguments="ls -l", kind="custom_tool"),
        ToolCall(id="2", name="odd", arguments="[1]"),
        Text(text=""),
    )
    rendered = render([system("s"), Message(role="assistant", parts=blocks), system("later")], "gemini")
    assert rendered.body["systemInstruction"] == {"parts": [{"text": "s"}]}
    assert rendered.body["contents"] == [
        {
            "role": "model",
            "parts": [
                {"text": "a plain text document"},
                {"inlineData": {"mimeType": "image/png", "data": "AA"}},
                {"fileData": {"fileUri": "https://x/y.png"}},
                {"text": "[image left out]"},
                {
                    "functionCall": {"id": "1", "name": "shell", "args": {"input": "ls -l"}},
                    "thoughtSignature": FOREIGN,
                },
                {"functionCall": {"id": "2", "name": "odd", "args": {"input": "[1]"}}},
            ],
        },
        {"role": "user", "parts": [{"text": "later"}]},
    ]
    assert [(lost.message, lost.what) for lost in rendered.lost] == [
        (1, "thinking"),
        (1, "opaque server_tool_use"),
        (1, "media image"),
        (2, "system role"),
    ]
    assert render([Message(role="assistant", parts=(Thinking(text="t"),))], "gemini").body["contents"] == []


@pytest.mark.parametrize(
    "value",
    [
        {"role": "system", "parts": [{"text": "be "}, {"text": "brief"}]},
        {"parts": [{"text": "be brief"}]},
        "be brief",
        [{"text": "be brief"}],
        ["be ", "brief"],
        {"text": "be brief"},
    ],
)
def test_a_system_instruction_stays_one(value: Any) -> None:
    message = gemini.parse_system(value)
    assert (message.role, message.text) == ("system", "be brief")
    assert render([message, user("hi")], "gemini").body["systemInstruction"] == value


def test_the_sdk_reply_object_is_accepted_as_it_is() -> None:
    value = {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [
                        {"text": "Looking.", "thought": True},
                        {"functionCall": {"name": "ls", "args": {"dir": "/"}}, "thoughtSignature": "AQID_-8="},
                    ],
                },
                "finishReason": "STOP",
            }
        ],
        "usageMetadata": {"promptTokenCount": 100, "cachedContentTokenCount": 60, "candidatesTokenCount": 7},
        "modelVersion": "gemini-3-pro",
        "responseId": "r9",
    }
    transcript = parse(types.GenerateContentResponse.model_validate(value))
    (message,) = transcript.messages
    assert transcript.model == "gemini-3-pro"
    assert message.meta.usage == Usage(input=40, cache_read=60, output=7)
    assert message.calls == (ToolCall(id="", name="ls", arguments='{"dir":"/"}'),)
    assert json.dumps(render([message], "gemini").body["contents"][0]["parts"][1]).count("AQID_-8=") == 1


def test_sdk_contents_in_a_list_are_read_too() -> None:
    contents = [
        types.Content(
            role="user", parts=[types.Part(text="see"), types.Part.from_bytes(data=b"\xff", mime_type="image/png")]
        ),
        {"role": "model", "parts": [types.Part(text="a dot")]},
    ]
    first, second = parse(contents).messages
    assert first.parts == (Text(text="see"), Media(kind="image", mime="image/png", data="/w=="))
    assert second.text == "a dot"


def test_a_recorded_stream_is_one_message() -> None:
    chunks = [
        {"candidates": [{"content": {"parts": [{"text": "Hel"}], "role": "model"}}], "usageMetadata": {}},
        {"candidates": [{"content": {"parts": [{"text": "lo"}]}, "finishReason": "STOP"}]},
        {"candidates": [{"finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 5}, "modelVersion": "g"},
    ]
    (message,) = gemini.parse_reply(chunks)
    assert message.text == "Hello"
    assert (message.meta.usage, message.meta.model) == (Usage(input=5), "g")
    assert gemini.parse_reply({"promptFeedback": {"blockReason": "SAFETY"}}) == ()
    assert render_content(
        gemini.parse_reply({"candidates": [{"content": {"parts": [{"text": "x"}]}}]})[0], LossCollector()
    ) == [{"parts": [{"text": "x"}], "role": "model"}]


def test_a_recording_of_the_cli_is_read_as_contents() -> None:
    record = {
        "id": "2",
        "type": "gemini",
        "timestamp": "1970-01-01T00:00:02Z",
        "content": "done",
        "thoughts": [{"subject": "Plan", "description": "look first"}],
        "toolCalls": [
            {
                "id": "c1",
                "name": "ls",
                "args": {},
                "result": [{"functionResponse": {"id": "c1", "name": "ls", "response": {"output": "a"}}}],
            }
        ],
        "tokens": {"input": 10, "cached": 4, "output": 2, "thoughts": 1, "tool": 0},
        "model": "gemini-3",
    }
    session = {
        "sessionId": "s",
        "projectHash": "p",
        "messages": [{"id": "1", "type": "user", "content": "hi"}, record, {"type": "info"}],
    }
    transcript = parse(session)
    assert (transcript.format, transcript.model) == ("gemini-cli", "gemini-3")
    said, reply, result = transcript.messages
    assert said.text == "hi"
    assert reply.parts == (
        Thinking(text="Plan\nlook first"),
        Text(text="done"),
        ToolCall(id="c1", name="ls"),
    )
    assert reply.meta.usage == Usage(input=6, cache_read=4, output=3, reasoning=1)
    assert reply.meta.at == 2.0
    assert result.results[0].text == "a"
    assert [note.text for note in transcript.notes] == ["a record of type 'info' is no message"]
    lines = [{key: session[key] for key in ("sessionId", "projectHash")}, {"$set": {}}, *session["messages"]]
    assert parse("\n".join(map(json.dumps, lines))).messages == transcript.messages


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (7, ""),
        ({"role": 7}, "role"),
        ({"parts": {"text": "x"}}, "parts"),
        ({"parts": [{"functionCall": {"name": "f", "args": {"x": b"y"}}}]}, "parts[0].functionCall"),
    ],
)
def test_wrong_types_name_their_field(value: Any, field: str) -> None:
    with pytest.raises(WireError) as caught:
        gemini.parse(value)
    assert caught.value.field == field


def test_a_view_joins_consecutive_contents_of_one_role() -> None:
    session = Session(format="gemini", model="gemini-2.5-pro")
    for text in ("one", "two"):
        session.add({"role": "user", "parts": [{"text": text}]})
    assert session.view().render().body["contents"] == [{"role": "user", "parts": [{"text": "one"}, {"text": "two"}]}]


@pytest.mark.parametrize(
    "reply",
    [
        {"role": "model"},
        {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 5}},
        {"candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS"}]},
        {"candidates": [{"finishReason": "SAFETY"}]},
    ],
)
def test_a_reply_without_parts_and_a_blocked_reply_can_be_added(reply: dict[str, Any]) -> None:
    session = Session(model="gemini-3-pro", format="gemini")
    session.add({"role": "user", "parts": [{"text": "go"}]})
    session.add(reply)
    assert session.view().render().body["contents"] == [{"role": "user", "parts": [{"text": "go"}]}]
