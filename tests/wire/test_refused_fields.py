"""Fields that a provider refuses do not reach the wire: null fields of SDK dumps, fields of the agent, illegal ids."""

from __future__ import annotations

from typing import Any

import pytest

from foldline import Session
from foldline.message import Message, Text, ToolCall, assistant, tool, user
from foldline.testing import assert_sendable
from foldline.testing.provider import judge
from foldline.wire import parse

MODELS = {
    "anthropic": "claude-sonnet-4-5",
    "openai": "gpt-4o",
    "openai-responses": "gpt-5",
    "gemini": "gemini-3-pro",
}


def accepted(format: str, *messages: Any, model: str = "") -> list[Any]:
    """The elements of a request that the provider accepts."""
    model = model or MODELS[format]
    session = Session(model=model, format=format)
    session.add(*messages, format=format)
    rendered = session.view().render()
    assert_sendable(rendered)
    body = rendered.body if format == "gemini" else {**rendered.body, "model": model}
    body |= {"max_tokens": 100} if format == "anthropic" else {}
    refused = judge(format, body, model=model, needs_tools=False)
    assert refused is None, refused
    elements: list[Any] = body.get("messages") or body.get("input") or body["contents"]
    return elements


def test_null_fields_of_dumped_blocks_are_left_out() -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "run", "input": {"a": None}, "caller": None}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": None, "is_error": None}
    text = {"type": "text", "text": "hm", "citations": None}
    sent = accepted(
        "anthropic", user("go"), {"role": "assistant", "content": [text, call]}, {"role": "user", "content": [result]}
    )
    assert sent[1]["content"] == [text, {key: call[key] for key in ("type", "id", "name", "input")}]


def test_null_fields_of_a_chat_message_are_left_out() -> None:
    reply = {"role": "assistant", "content": "hi", "tool_calls": None, "refusal": None, "name": None}
    sent = accepted("openai", user("go"), reply, user("on"))
    assert sent[1] == {"role": "assistant", "content": "hi", "refusal": None}


def test_null_fields_of_items_are_left_out() -> None:
    call = {"type": "function_call", "id": None, "call_id": "c1", "name": "run", "arguments": "{}", "status": None}
    output = {"type": "function_call_output", "call_id": "c1", "output": "done", "id": None, "status": None}
    reasoning: Any = {"type": "reasoning", "id": "rs_1", "summary": [], "status": None, "content": None}
    sent = accepted("openai-responses", user("go"), reasoning, call, output)
    assert [item["type"] for item in sent[1:]] == ["reasoning", "function_call", "function_call_output"]


def test_fields_of_the_agent_are_not_sent_to_openai_and_anthropic() -> None:
    message = {"role": "user", "content": "go", "timestamp": 7, "valid": True}
    assert accepted("openai", message) == [{"role": "user", "content": "go"}]
    assert accepted("anthropic", message)[0].keys() == {"role", "content"}


def test_fields_of_the_agent_in_blocks_are_not_sent_to_anthropic() -> None:
    text = {"type": "text", "text": "a.txt", "tool_name": "Bash"}
    call = {"type": "tool_use", "id": "toolu_1", "name": "run", "input": {}, "index": 1, "partial_json": "{}"}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "text": "a.txt", "content": [text], "duration": 7}
    sent = accepted(
        "anthropic", user("go"), {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}
    )
    assert sent[1]["content"] == [{"type": "tool_use", "id": "toolu_1", "name": "run", "input": {}}]
    inner = {"type": "text", "text": "a.txt"}
    assert sent[2]["content"][0].keys() == {"type", "tool_use_id", "content", "cache_control"}
    assert sent[2]["content"][0]["content"] == [inner]


def test_fields_of_citations_that_only_replies_have_are_not_sent_to_anthropic() -> None:
    place = {"type": "char_location", "cited_text": "so", "document_index": 0, "document_title": None}
    place |= {"start_char_index": 0, "end_char_index": 2}
    text = {"type": "text", "text": "so it is", "citations": [{**place, "file_id": None}]}
    sent = accepted("anthropic", user("go"), {"role": "assistant", "content": [text]}, user("on"))
    assert sent[1]["content"][0]["citations"] == [place]


def test_fields_of_the_agent_in_calls_and_parts_are_not_sent_to_openai() -> None:
    function = {"name": "run", "arguments": "{}", "parsed_arguments": {}}
    call = {"id": "call_1", "call_id": "call_1", "response_item_id": "fc_1", "index": 0, "function": function}
    text = {"type": "text", "text": "go", "cache_control": {"type": "ephemeral"}}
    sent = accepted(
        "openai",
        {"role": "user", "content": [text]},
        {"role": "assistant", "content": None, "tool_calls": [call, {**call, "id": "call_2", "type": None}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "done", "tool_name": "run"},
        {"role": "tool", "tool_call_id": "call_2", "content": "done", "finish_reason": None},
    )
    assert sent[0]["content"] == [{"type": "text", "text": "go"}]
    expected = {"type": "function", "function": {"name": "run", "arguments": "{}"}}
    assert sent[1]["tool_calls"] == [{"id": "call_1", **expected}, {"id": "call_2", **expected}]


def test_fields_of_the_agent_in_calls_are_sent_to_another_server() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": "{}"}, "extra_content": {"a": 1}}
    session = Session(model="gemini-3-pro", format="openai")
    session.add(user("go"), {"role": "assistant", "content": None, "tool_calls": [call]}, tool("c1", "done"))
    assert session.view().render("openai").body["messages"][1]["tool_calls"] == [call]


@pytest.mark.parametrize("model", ["gpt-4o", "meta-llama/llama-4-maverick", "claude-sonnet-4-5"])
@pytest.mark.parametrize("is_edited", [False, True])
def test_the_position_of_a_call_in_a_streamed_reply_is_sent_to_no_server(model: str, is_edited: bool) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": "{}"}, "index": 1}
    reply: Any = {"role": "assistant", "content": "so", "tool_calls": [call]}
    if is_edited:
        (message,) = parse([reply], "openai").messages
        reply = message.with_parts(Text(text="edited"), *message.calls)
    sent = accepted("openai", user("go"), reply, tool("c1", "done"), model=model)
    assert sent[1]["tool_calls"] == [{"id": "c1", "type": "function", "function": call["function"]}]


def test_an_edited_message_has_no_fields_of_the_agent() -> None:
    session = Session(model="gpt-4o", format="openai")
    reply = Message(role="assistant", parts=())
    session.add(user("go"))
    found = parse([{"role": "user", "content": "first", "timestamp": 3}], "openai").messages[0]
    session.add(found.with_parts(Text(text="second")), reply, user("on"))
    assert {"role": "user", "content": "second"} in session.view().render().body["messages"]


def test_an_item_that_needs_an_id_gets_one() -> None:
    reasoning = {"type": "reasoning", "summary": [], "encrypted_content": "e"}
    action = {"type": "search", "query": "q", "url": None, "pattern": None}
    search = {"type": "web_search_call", "status": "done", "action": action}
    sent = accepted(
        "openai-responses", user("go"), reasoning, search, {"role": "assistant", "content": "so"}, user("on")
    )
    assert sent[1]["id"].startswith("rs_")
    assert sent[2]["id"].startswith("ws_")
    assert sent[2]["action"] == {"type": "search", "query": "q"}
    assert sent == accepted(
        "openai-responses", user("go"), reasoning, search, {"role": "assistant", "content": "so"}, user("on")
    )


def test_an_output_that_is_one_part_becomes_a_list() -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "run", "arguments": "{}", "created_by": "me"}
    part = {"type": "input_text", "text": "done", "image_url": None}
    output = {"type": "function_call_output", "call_id": "c1", "output": part, "status": "failed"}
    sent = accepted("openai-responses", user("go"), call, output)
    assert sent[2]["output"] == [{"type": "input_text", "text": "done"}]


def test_fields_of_another_server_are_sent_to_it() -> None:
    session = Session(model="deepseek-chat", format="openai")
    reply = {"role": "assistant", "content": "hi", "reasoning_content": "so"}
    session.add(user("go"), reply, user("on"))
    assert session.view().render().body["messages"][1] == reply


def test_a_call_id_of_more_than_40_characters_is_shortened_for_chat_completions() -> None:
    name = "call_" + "x" * 60
    call = {"id": name, "type": "function", "function": {"name": "run", "arguments": "{}"}}
    sent = accepted(
        "openai",
        user("go"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": name, "content": "done"},
    )
    assert sent[1]["tool_calls"][0]["id"] == sent[2]["tool_call_id"] != name


@pytest.mark.parametrize("name", ["x" * 70, "chatcmpl-1", "fc_" + "y" * 70])
def test_an_item_id_that_openai_refuses_is_left_out(name: str) -> None:
    call = {"type": "function_call", "id": name, "call_id": "c1", "name": "run", "arguments": "{}"}
    reasoning = {"type": "reasoning", "id": name + "r", "summary": [], "encrypted_content": "e"}
    message = {"type": "message", "id": name + "m", "role": "assistant", "status": "completed", "content": []}
    text = {"type": "output_text", "text": "hi", "annotations": []}
    sent = accepted("openai-responses", user("go"), reasoning, {**message, "content": [text]}, call, tool("c1", "done"))
    assert [item["type"] for item in sent] == [
        *("message", "reasoning", "message", "function_call", "function_call_output")
    ]


@pytest.mark.parametrize("model", ["claude-sonnet-5", "claude-sonnet-4-5", "claude-haiku-4-5"])
def test_a_system_message_in_the_list_is_sent_as_the_users_to_a_model_that_refuses_it(model: str) -> None:
    reminder = {"role": "system", "content": "be brief"}
    sent = accepted("anthropic", user("go"), reminder, model=model)
    assert [message["role"] for message in sent] == ["user"] * len(sent)
    assert "be brief" in str(sent)


def test_a_system_message_in_the_list_stays_for_a_model_that_accepts_it() -> None:
    sent = accepted("anthropic", user("go"), {"role": "system", "content": "be brief"}, model="claude-opus-5")
    assert [message["role"] for message in sent] == ["user", "system"]


def test_calls_of_an_older_gemini_get_the_value_that_stands_for_a_signature() -> None:
    call = {"functionCall": {"name": "run", "args": {}}}
    answer = {"functionResponse": {"name": "run", "response": {"output": "done"}}}
    history = ({"role": "model", "parts": [call, call]}, {"role": "user", "parts": [answer, answer]})
    sent = accepted("gemini", user("go"), *history)
    assert [part.get("thoughtSignature") for part in sent[1]["parts"]] == ["skip_thought_signature_validator", None]
    older = accepted("gemini", user("go"), *history, model="gemini-2.5-pro")
    assert "thoughtSignature" not in str(older)


def test_bytes_of_a_gemini_signature_are_sent_as_base64() -> None:
    call = {"function_call": {"name": "run", "args": {}}, "thought_signature": b"\x01\x02\xff"}
    answer = {"function_response": {"name": "run", "response": {"output": "done"}}}
    sent = accepted("gemini", user("go"), {"role": "model", "parts": [call]}, {"role": "user", "parts": [answer]})
    assert "AQL/" in str(sent[1])


def test_an_image_that_cannot_be_read_is_replaced_by_a_placeholder() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "[removed]", "data_len": 7}
    sent = accepted("anthropic", {"role": "user", "content": [{"type": "image", "source": source}]}, user("see?"))
    assert "[removed]" not in str(sent)
    part = {"type": "image_url", "image_url": {"url": "[removed]"}}
    assert "[removed]" not in str(accepted("openai", {"role": "user", "content": [part]}))


def test_messages_without_such_fields_are_sent_as_they_came() -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "go", "cache_control": None}]}
    session = Session(model="claude-sonnet-4-5", format="anthropic")
    session.add(message)
    assert isinstance(session.messages[0], Message)
    assert session.view().render().body["messages"][0]["content"][0]["text"] == "go"


@pytest.mark.parametrize("name", ["Bob Smith", "<x>", "", "a/b"])
@pytest.mark.parametrize("role", ["user", "assistant", "system"])
def test_a_name_that_openai_refuses_is_changed(role: str, name: str) -> None:
    sent = accepted("openai", user("go"), {"role": role, "content": "x", "name": name}, user("on"))
    assert all(" " not in message.get("name", "") for message in sent)


def test_a_content_part_of_the_responses_api_becomes_a_text_in_chat_completions() -> None:
    parts = [{"type": "input_text", "text": "hi"}, {"type": "image_url", "image_url": "https://a.example/b.png"}]
    sent = accepted("openai", {"role": "user", "content": parts})
    assert sent[0]["content"][0] == {"type": "text", "text": "hi"}
    assert sent[0]["content"][1]["image_url"] == {"url": "https://a.example/b.png"}


@pytest.mark.parametrize("format", MODELS)
@pytest.mark.parametrize("name", ["7zip", "-a", "a.b", "x" * 100, "über", ""])
def test_any_tool_name_becomes_one_that_the_provider_accepts(format: str, name: str) -> None:
    accepted(format, user("go"), assistant("", ToolCall(id="t1", name=name)), tool("t1", "done", name=name))


@pytest.mark.parametrize("format", MODELS)
def test_an_escaped_surrogate_in_arguments_does_not_reach_the_wire(format: str) -> None:
    call = ToolCall(id="t1", name="run", arguments='{"a": "\\ud800"}')
    accepted(format, user("go"), assistant("", call), tool("t1", "done", name="run"))


@pytest.mark.parametrize(
    ("format", "message", "sent"),
    [
        (
            "openai-responses",
            {"role": "assistant", "content": [{"type": "input_text", "text": "x"}]},
            [{"type": "output_text", "text": "x"}],
        ),
        (
            "openai-responses",
            {"role": "user", "content": [{"type": "output_text", "text": "x"}]},
            [{"type": "input_text", "text": "x"}],
        ),
        (
            "anthropic",
            {"role": "assistant", "content": [{"type": "text", "text": "x", "parsed": None}]},
            [{"type": "text", "text": "x"}],
        ),
        ("gemini", {"role": "model", "parts": [{"text": "x", "type": "text"}]}, [{"text": "x"}]),
    ],
)
def test_a_message_is_cleaned_after_an_earlier_view_too(format: str, message: Any, sent: list[Any]) -> None:
    session = Session(model=MODELS[format], format=format)
    session.add(user("go"))
    session.view().render()
    session.add(message, format=format)
    body = session.view().render().body
    elements = body.get("messages") or body.get("input") or body["contents"]
    assert elements[1].get("content", elements[1].get("parts")) == sent
    assert_sendable(session.view().render())
