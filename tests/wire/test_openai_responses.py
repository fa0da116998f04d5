"""Responses items: one message each, exact when untouched, of the call's own kind when written anew."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foldline import Session
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
from foldline.placeholders import TOOL_ERROR
from foldline.testing.provider import judge
from foldline.wire import rendering
from foldline.wire.formats import LossCollector, Lost
from foldline.wire.openai_chat import parse as openai_chat
from foldline.wire.openai_responses import FORMAT
from foldline.wire.openai_responses.parse import parse, parse_reply, parse_system
from foldline.wire.openai_responses.render import render
from support.openai_elements import CALL_ITEMS, CHAT_MESSAGES, INPUT_ITEMS, JSON, MESSAGES, RESULT_ITEMS

PNG = "data:image/png;base64,aGk="


def rendered(*messages: Message) -> tuple[list[Any], tuple[Lost, ...]]:
    made = rendering.render(messages, "openai-responses")
    return made.body["input"], made.lost


def inner(parts: tuple[Part, ...]) -> list[Part]:
    """All parts, those inside results included."""
    return [deep for part in parts for deep in (part, *(part.parts if isinstance(part, ToolResult) else ()))]


@given(INPUT_ITEMS)
@settings(max_examples=100)
def test_untouched_is_the_same_object(item: dict[str, Any]) -> None:
    before = json.dumps(item)
    loss = LossCollector()
    (made,) = render(parse(item, None), loss)
    assert made is item
    assert json.dumps(made) == before
    assert not loss.items


@given(INPUT_ITEMS)
@settings(max_examples=150)
def test_rebuilt_says_the_same_and_keeps_unknown_fields(item: dict[str, Any]) -> None:
    message = parse(item, None)
    loss = LossCollector()
    made = render(message.with_parts(*message.parts), loss)
    assert [parse(json.loads(json.dumps(element)), None) for element in made] == [message] or is_error_said(message)
    assert not loss.items or is_error_said(message)
    for element in made:
        assert {key: element.get(key) for key in item if key.startswith("x_")} == {
            key: value for key, value in item.items() if key.startswith("x_")
        }


def is_error_said(message: Message) -> bool:
    return any(result.is_error for result in message.results)


@given(RESULT_ITEMS)
def test_a_shortened_result_is_an_answer_of_the_same_kind(item: dict[str, Any]) -> None:
    message = parse(item, None)
    if not message.results:
        return
    stub = replace(message.results[0], parts=(Text(text="[cut]"),))
    (made,), lost = rendered(message.with_parts(stub))
    (again,) = parse(made, None).results
    assert made["type"] == item["type"]
    assert again.call_id == stub.call_id
    assert "[cut]" in again.text or lost


@given(CALL_ITEMS, st.dictionaries(st.text(max_size=4), JSON))
def test_edited_arguments_stay_json_and_the_item_loses_an_id_that_it_does_not_need(
    item: dict[str, Any], value: Any
) -> None:
    message = parse(item, None)
    if not message.calls:
        return
    edited = replace(message.calls[0], arguments=json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    (made,), lost = rendered(message.with_parts(edited))
    assert parse(made, None).calls == (edited,)
    assert made["type"] == item["type"]
    assert not lost
    needs_id = item["type"] in ("mcp_approval_request", "computer_call", "local_shell_call")
    assert edited == message.calls[0] or ("id" in made) == needs_id


@given(
    JSON
    | st.builds(
        lambda item, key, value: {**item, key: value},
        INPUT_ITEMS,
        st.sampled_from(
            ["type", "role", "content", "call_id", "name", "arguments", "input", "output", "summary", "id"]
        ),
        JSON,
    )
)
@settings(max_examples=150)
def test_any_json_is_a_message_or_an_error_that_names_the_field(value: Any) -> None:
    fault = None
    try:
        message = parse(value, None)
    except WireError as error:
        fault = error
    if fault is not None:
        assert fault.field
    elif not isinstance(value, str):
        assert render(message, LossCollector()) == [value]


@given(st.lists(MESSAGES, min_size=1, max_size=3))
@settings(max_examples=150)
def test_foreign_parts_are_carried_or_reported(messages: list[Message]) -> None:
    made = rendering.render(messages, "openai-responses")
    json.dumps(made.body)
    again = [part for item in made.body["input"] for part in inner(parse(item, None).parts)]
    said = "\0".join([made.body.get("instructions", ""), *(part.text for part in again if isinstance(part, Text))])
    reports = Counter(entry.what for entry in made.lost)
    for part in [part for message in messages for part in inner(message.parts)]:
        match part:
            case Text(text=text):
                assert text in said or reports["text"]
            case ToolCall():
                kept = [call for call in again if isinstance(call, ToolCall) and call.id == part.id]
                same = [call for call in kept if call.kind == part.kind and same_arguments(call, part)]
                assert same or (kept and reports[f"call {part.kind}"])
            case ToolResult():
                assert part.call_id in [result.call_id for result in again if isinstance(result, ToolResult)]
                assert not part.is_error or TOOL_ERROR in said or reports["text"] or "failed" in json.dumps(made.body)
            case Thinking():
                assert reports["thinking"]
            case Opaque(kind=kind):
                assert reports[f"opaque {kind}"]
            case Media(kind=kind, text=text):
                carried = any(isinstance(found, Media) and found.kind == kind for found in again)
                assert carried or reports[f"media {kind}"] or (text and text in said)


def same_arguments(one: ToolCall, other: ToolCall) -> bool:
    """The API's own calls hold an object, whose text may be spaced in another way."""
    free = one.kind in ("function", "custom_tool")
    return one.arguments == other.arguments if free else json.loads(one.arguments) == json.loads(other.arguments)


@cache
def sdk_types() -> Any:
    from openai.types.responses import ResponseInputItemParam
    from pydantic import TypeAdapter

    return TypeAdapter(ResponseInputItemParam)


@given(st.lists(MESSAGES, min_size=1, max_size=2))
@settings(deadline=None)
def test_newly_rendered_elements_match_the_types_of_the_sdk(messages: list[Message]) -> None:
    """Shell, patch and computer calls are the API's own and come from it alone: their ids cannot be made up."""
    for item in rendered(*messages)[0]:
        if item["type"] in ("message", "function_call", "custom_tool_call") or item["type"].endswith("_output"):
            sdk_types().validate_python(item)


@given(st.lists(CHAT_MESSAGES, min_size=1, max_size=4))
@settings(max_examples=100)
def test_chat_to_items_and_back_keeps_the_content_or_reports_what_is_lost(elements: list[dict[str, Any]]) -> None:
    messages = [openai_chat.parse(element, None) for element in elements]
    made = rendering.render(messages, "openai-responses")
    back = [parse(item, None) for item in made.body["input"]]
    if "instructions" in made.body:
        back.insert(0, parse_system(made.body["instructions"]))
    if not made.lost:
        assert talk(back) == talk(messages)


def talk(messages: list[Message]) -> Any:
    """What is said, called and answered, whatever stands between: system texts are joined by blank lines."""
    parts = [part for message in messages for part in inner(message.parts)]
    return [
        "".join(part.text for part in parts if isinstance(part, Text)).replace("\n", ""),
        [(call.name, call.arguments, call.kind) for call in parts if isinstance(call, ToolCall)],
        Counter((media.kind, media.data, media.url) for media in parts if isinstance(media, Media)),
        sum(isinstance(part, ToolResult) for part in parts),
    ]


def test_an_input_of_plain_text_is_a_user_message() -> None:
    assert parse("hi", '"hi"') == user("hi")
    assert rendered(parse("hi", '"hi"'))[0] == [{"role": "user", "content": "hi"}]
    assert rendering.elements([parse("hi", '"hi"')], FORMAT, LossCollector()) == [
        ({"role": "user", "content": "hi"}, None)
    ]


def test_easy_and_full_messages_say_the_same() -> None:
    full = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    assert parse({"role": "user", "content": "hi"}, None) == parse(full, None) == user("hi")


def test_reasoning_is_thinking_sealed_by_its_encrypted_body() -> None:
    item = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "Look"}, {"type": "summary_text", "text": "again"}],
        "encrypted_content": "gAAA",
    }
    assert parse(item, None).parts == (Thinking(text="Look\nagain", signature="gAAA"),)


def test_foreign_thinking_does_not_travel() -> None:
    items, lost = rendered(Message(role="assistant", parts=(Thinking(text="hm", signature="s"), Text(text="Ulm"))))
    assert items == [{"type": "message", "role": "assistant", "content": "Ulm"}]
    assert lost == (Lost(0, "thinking", "the Responses API has no place for it"),)


def test_a_reply_of_another_provider_becomes_several_items_in_its_order() -> None:
    both = Message(role="assistant", parts=(Text(text="Look."), ToolCall(id="a", name="f"), Text(text="Well.")))
    assert rendered(both, tool("a", "1"))[0] == [
        {"type": "message", "role": "assistant", "content": "Look."},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "message", "role": "assistant", "content": "Well."},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
    ]


def test_results_with_pictures_are_lists() -> None:
    result = ToolResult(call_id="a", parts=(Text(text="see"), Media(kind="image", mime="image/png", data="aGk=")))
    (item,), lost = rendered(Message(role="tool", parts=(result,)))
    assert item["output"] == [
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "image_url": PNG, "detail": "auto"},
    ]
    assert not lost


def test_a_failed_result_says_so() -> None:
    (item,), lost = rendered(tool("a", "no such file", is_error=True))
    assert item["output"] == f"{TOOL_ERROR}no such file"
    assert [entry.what for entry in lost] == ["is_error"]


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (
            {"type": "custom_tool_call", "call_id": "a", "name": "exec", "input": "ls"},
            {"type": "custom_tool_call_output", "call_id": "a", "output": "none"},
        ),
        (
            {"type": "local_shell_call", "call_id": "a", "action": {"type": "exec", "command": ["ls"]}},
            {"type": "local_shell_call_output", "id": "a", "output": '"none"'},
        ),
        (
            {"type": "shell_call", "call_id": "a", "action": {"commands": ["ls"]}},
            {
                "type": "shell_call_output",
                "call_id": "a",
                "output": [{"stdout": "none", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
            },
        ),
        (
            {"type": "apply_patch_call", "call_id": "a", "operation": {"type": "delete_file", "path": "x"}},
            {"type": "apply_patch_call_output", "call_id": "a", "status": "completed", "output": "none"},
        ),
        (
            {"type": "mcp_approval_request", "id": "a", "name": "f", "arguments": "{}", "server_label": "s"},
            {"type": "mcp_approval_response", "approval_request_id": "a", "approve": False, "reason": "none"},
        ),
        (
            {"type": "tool_search_call", "call_id": "a", "arguments": {"query": "x"}},
            {"type": "tool_search_output", "call_id": "a", "tools": []},
        ),
    ],
)
def test_a_result_made_elsewhere_answers_in_the_kind_of_the_call(call: dict[str, Any], answer: dict[str, Any]) -> None:
    items, _ = rendered(parse(call, None), tool("a", "none"))
    assert items == [call, answer]


def test_a_computer_call_is_answered_with_a_picture() -> None:
    call = {"type": "computer_call", "call_id": "a", "actions": [{"type": "screenshot"}]}
    (_, answer), lost = rendered(parse(call, None), tool("a", "[cut]"))
    assert answer["output"]["image_url"].startswith("data:image/png;base64,")
    assert [entry.what for entry in lost] == ["text"]


def test_calls_and_answers_pair() -> None:
    pairs: list[tuple[dict[str, Any], str]] = [
        ({"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}, "function_call_output"),
        ({"type": "computer_call", "call_id": "a", "action": {"type": "wait"}}, "computer_call_output"),
        ({"type": "shell_call", "call_id": "a", "action": {"commands": ["ls"]}}, "shell_call_output"),
    ]
    for call, answer in pairs:
        (asked,) = parse(call, None).calls
        (given_back,) = parse({"type": answer, "call_id": "a", "output": ""}, None).results
        assert asked.id == given_back.call_id
        assert f"{asked.kind}_call" == call["type"]


def test_shell_output_tells_how_it_ended() -> None:
    output = [{"stdout": "a", "stderr": "b", "outcome": {"type": "exit", "exit_code": 2}}]
    (result,) = parse({"type": "shell_call_output", "call_id": "a", "output": output}, None).results
    assert result.text == "ab\n[exit code 2]"


def test_the_failure_output_of_old_codex_versions_is_an_error() -> None:
    item = {"type": "function_call_output", "call_id": "a", "output": {"content": "boom", "success": False}}
    (result,) = parse(item, None).results
    assert (result.text, result.is_error) == ("boom", True)


def test_a_tool_search_of_the_server_is_not_the_clients_to_answer() -> None:
    message = parse({"type": "tool_search_call", "call_id": None, "execution": "server", "arguments": {}}, None)
    assert not message.calls


@pytest.mark.parametrize(
    ("item", "role"),
    [
        ({"type": "web_search_call", "id": "ws_1"}, "assistant"),
        ({"id": "msg_1"}, "assistant"),
        ({"type": "compaction", "encrypted_content": "x"}, "assistant"),
        ({"type": "compaction_trigger"}, "user"),
        ({"type": "additional_tools", "role": "developer", "tools": []}, "system"),
        ({"type": "dream_call_output"}, "tool"),
    ],
)
def test_items_without_a_reader_are_opaque_in_their_role(item: dict[str, Any], role: str) -> None:
    message = parse(item, None)
    assert message.role == role
    assert isinstance(message.parts[0], Opaque)
    elements, lost = rendering.render([message], "openai").body["messages"], rendering.render([message], "openai").lost
    assert elements == []
    assert lost


def test_instructions_are_the_system() -> None:
    message = parse_system("be brief")
    assert message == system("be brief")
    assert rendering.render([message, user("hi")], "openai-responses").body == {
        "instructions": "be brief",
        "input": [{"type": "message", "role": "user", "content": "hi"}],
    }
    joined = rendering.render([message, system("and kind")], "openai-responses").body["instructions"]
    assert joined == "be brief\n\nand kind"
    with pytest.raises(WireError, match="instructions"):
        parse_system(["x"])


def test_developer_items_stay_items() -> None:
    item = {"role": "developer", "content": "be brief"}
    assert rendering.render([parse(item, None)], "openai-responses").body == {"input": [item]}
    assert rendering.render([parse(item, None)], "openai").body == {
        "messages": [{"role": "system", "content": "be brief"}]
    }


def test_edited_text_keeps_no_pointers_into_the_old_one() -> None:
    content = [{"type": "output_text", "text": "Ulm [1]", "annotations": [{"type": "url_citation", "start_index": 4}]}]
    item = {"type": "message", "id": "msg_1", "role": "assistant", "content": content, "phase": "final_answer"}
    message = parse(item, None)
    said = message.parts[0]
    assert isinstance(said, Text)
    (made,), _ = rendered(message.with_parts(replace(said, text="Ulm")))
    assert made == {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Ulm", "annotations": []}],
        "phase": "final_answer",
    }


RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1757015025.0,
    "model": "gpt-x",
    "status": "completed",
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f", "arguments": "{}", "status": "completed"},
    ],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
        "output_tokens": 9,
        "output_tokens_details": {"reasoning_tokens": 4},
        "total_tokens": 109,
    },
}


def test_the_items_of_a_reply_share_its_id_and_the_last_has_the_usage() -> None:
    first, last = parse_reply(RESPONSE)
    assert first.meta.reply == last.meta.reply == "resp_1"
    assert first.meta.usage is None
    assert last.meta.usage == Usage(input=30, cache_read=60, cache_write=10, output=9, reasoning=4)
    assert last.meta.stop == "completed"
    assert rendered(first, last)[0] == RESPONSE["output"]


def test_an_incomplete_reply_says_why() -> None:
    value = {**RESPONSE, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    assert parse_reply(value)[-1].meta.stop == "max_output_tokens"


def test_sdk_objects_are_accepted_as_they_are() -> None:
    from openai.types.responses import Response

    response = Response.model_validate(RESPONSE)
    assert parse_reply(response) == parse_reply(RESPONSE)
    assert [parse(item) for item in response.output] == list(parse_reply(RESPONSE))


def test_a_broken_reply_names_the_field() -> None:
    with pytest.raises(WireError) as caught:
        parse_reply({"output": [{"type": "function_call", "name": 1}]})
    assert caught.value.field == "output[0].name"
    with pytest.raises(WireError) as caught:
        parse_reply([])
    assert caught.value.field == "output"


def test_nothing_new_carries_an_item_id() -> None:
    """An item id names what a server holds; replayed elsewhere it is an error (bug museum, PR13)."""
    messages = [assistant("Look.", ToolCall(id="a", name="f")), tool("a", "1"), user("and?")]
    assert not [item for item in rendered(*messages)[0] if "id" in item]


def test_a_renamed_local_shell_call_has_an_id_of_its_own() -> None:
    action = {"type": "exec", "command": ["ls"], "env": {}}
    session = Session(model="gpt-5", format="openai-responses")
    for number in (1, 2):
        call = {
            "type": "local_shell_call",
            "id": f"lsh_{number}",
            "call_id": "a",
            "action": action,
            "status": "completed",
        }
        output = {"type": "local_shell_call_output", "id": "a", "output": f"{number}.py"}
        session.add({"role": "user", "content": f"look {number}"}, call, output)
    body = {"model": "gpt-5", **session.view().render().body}
    assert judge("openai-responses", body) is None
    ids = [item["id"] for item in body["input"] if item.get("type", "").startswith("local_shell")]
    assert len(set(ids)) == 4
