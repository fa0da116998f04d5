"""pi sessions and bare messages: seven roles, none dropped, whatever they are made of."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from foldline.errors import WireError
from foldline.message import Media, Message, Text, Thinking, ToolCall, Usage, assistant, tool, user
from foldline.wire import REQUEST_FORMATS, parse, render
from foldline.wire.formats import JsonLine, LossCollector
from foldline.wire.session_logs.pi import parse as parse_object
from foldline.wire.session_logs.pi import parse as parse_pi
from foldline.wire.session_logs.pi import read
from foldline.wire.session_logs.pi import render as render_pi
from support.replies import JSON, NAMES, OBJECTS, TEXTS

USAGE = {"input": 10, "output": 5, "cacheRead": 90, "cacheWrite": 7, "cost": {"total": 0.1}}
SEVEN: dict[str, dict[str, Any]] = {
    "user": {"role": "user", "content": "said by the user", "timestamp": 1000},
    "assistant": {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "private", "thinkingSignature": "sig"},
            {"type": "text", "text": "said by the model"},
            {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "ls"}},
        ],
        "usage": USAGE,
        "model": "claude-sonnet-5",
        "stopReason": "toolUse",
        "responseId": "msg_1",
    },
    "toolResult": {
        "role": "toolResult",
        "toolCallId": "c1",
        "toolName": "bash",
        "content": [
            {"type": "text", "text": "said by the tool"},
            {"type": "image", "data": "AA", "mimeType": "image/png"},
        ],
        "isError": True,
    },
    "bashExecution": {"role": "bashExecution", "command": "make", "output": "said by the shell\n", "exitCode": 2},
    "custom": {"role": "custom", "customType": "memo", "content": "said by an extension", "display": True},
    "branchSummary": {"role": "branchSummary", "summary": "said of a branch", "fromId": "x"},
    "compactionSummary": {"role": "compactionSummary", "summary": "said of the past", "tokensBefore": 9},
}
KINDS = {
    "user": ("user", ""),
    "assistant": ("assistant", ""),
    "toolResult": ("tool", ""),
    "bashExecution": ("user", "shell"),
    "custom": ("user", "note"),
    "branchSummary": ("user", "branch_digest"),
    "compactionSummary": ("user", "digest"),
}


def entry(number: int, message: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    made = {"type": "message", "id": f"e{number}", "parentId": f"e{number - 1}" if number else None, "message": message}
    return {key: value for key, value in {**made, **fields}.items() if key != "message" or value is not None}


def lines(*values: Any) -> list[JsonLine]:
    return [JsonLine(number, value, json.dumps(value)) for number, value in enumerate(values, start=1)]


@pytest.mark.promise("S0.12")
@pytest.mark.parametrize("role", SEVEN)
def test_all_seven_roles_are_messages_that_every_provider_gets_to_see(role: str) -> None:
    message = parse_pi(SEVEN[role])
    assert (message.role, message.kind) == KINDS[role]
    said = next(str(text) for text in json.dumps(SEVEN[role]).split('"') if text.startswith("said "))
    for provider in REQUEST_FORMATS:
        call = [parse_pi(SEVEN["assistant"])] if role == "toolResult" else []
        assert said.replace("\\n", "") in json.dumps(render([*call, message], provider).body)


@pytest.mark.promise("S0.12")
@given(st.permutations(list(SEVEN)), OBJECTS, NAMES)
@example(order=list(SEVEN), extra={"traj": []}, odd="A")
def test_no_role_is_dropped_silently(order: list[str], extra: dict[str, Any], odd: str) -> None:
    values = [SEVEN[role] for role in order]
    values.append({**extra, "role": f"x-{odd}"})
    messages = parse(values, "pi").messages
    assert len(messages) == len(values)
    assert messages[-1].role == f"x-{odd}"
    assert [render_pi(message, LossCollector()) for message in messages] == [[value] for value in values]


def test_an_assistant_message_has_reply_id_model_stop_and_usage() -> None:
    message = parse_pi(SEVEN["assistant"])
    assert message.parts == (
        Thinking(text="private", signature="sig"),
        Text(text="said by the model"),
        ToolCall(id="c1", name="bash", arguments='{"command":"ls"}'),
    )
    assert message.meta.usage == Usage(input=10, output=5, cache_read=90, cache_write=7)
    assert (message.meta.model, message.meta.stop, message.meta.reply) == ("claude-sonnet-5", "toolUse", "msg_1")


def test_a_result_and_a_shell_run_become_text() -> None:
    (result,) = parse_pi(SEVEN["toolResult"]).results
    assert (result.call_id, result.name, result.is_error, result.text) == ("c1", "bash", True, "said by the tool")
    assert result.parts[1] == Media(kind="image", mime="image/png", data="AA")
    assert parse_pi(SEVEN["bashExecution"]).text == "$ make\nsaid by the shell\n[exit status 2]"
    hidden = parse_pi({**SEVEN["bashExecution"], "excludeFromContext": True, "cancelled": True, "truncated": True})
    assert hidden.meta.hidden
    assert hidden.text == "$ make\nsaid by the shell\n[output cut]\n[cancelled]"


@dataclass(frozen=True)
class Block:
    type: str
    text: str = ""
    id: str = ""
    name: str = ""
    arguments: Any = None


@dataclass(frozen=True)
class Used:
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0


@dataclass(frozen=True, slots=True)
class Frozen:
    role: str
    content: Any = None
    tool_call_id: str = ""
    tool_name: str = ""
    is_error: bool = False
    usage: Used | None = None
    command: str = ""
    output: str = ""
    summary: str = ""
    custom_type: str = ""


class Said(NamedTuple):
    role: str
    content: str


OBJECTS_BY_ROLE: dict[str, Frozen] = {
    "user": Frozen("user", "said by the user"),
    "assistant": Frozen(
        "assistant",
        (Block("text", "said"), Block("toolCall", id="c1", name="bash", arguments={"command": Used(input=1)})),
        usage=Used(input=1, cache_read=2),
    ),
    "toolResult": Frozen("toolResult", [Block("text", "said")], tool_call_id="c1", tool_name="bash", is_error=True),
    "bashExecution": Frozen("bashExecution", command="ls", output="said"),
    "custom": Frozen("custom", "said", custom_type="memo"),
    "branchSummary": Frozen("branchSummary", summary="said"),
    "compactionSummary": Frozen("compactionSummary", summary="said"),
}


@pytest.mark.promise("S0.12", "S0.13")
@pytest.mark.parametrize("role", OBJECTS_BY_ROLE)
def test_immutable_objects_are_read_by_their_attributes_and_come_back_as_themselves(role: str) -> None:
    given_object = OBJECTS_BY_ROLE[role]
    message = parse_object(given_object)
    assert (message.role, message.kind) == KINDS[role]
    (back,) = render_pi(message, LossCollector())
    assert back is given_object
    assert parse([given_object, message]).messages == (message, message)


@pytest.mark.promise("S0.13")
def test_object_fields_are_found_under_either_spelling() -> None:
    assistant_message = parse_object(OBJECTS_BY_ROLE["assistant"])
    assert assistant_message.calls[0].arguments == '{"command":{"input":1,"output":0,"cache_read":0,"cache_write":0}}'
    assert assistant_message.meta.usage == Usage(input=1, cache_read=2)
    (result,) = parse_object(OBJECTS_BY_ROLE["toolResult"]).results
    assert (result.call_id, result.name, result.is_error) == ("c1", "bash", True)
    camel = SimpleNamespace(role="toolResult", toolCallId="c2", toolName="rm", isError=False, content="x")
    assert parse_object(camel).results[0].call_id == "c2"
    assert parse_object(Said("user", "hi")) == user("hi")


@given(JSON)
def test_any_value_is_a_message_or_a_wire_error(value: Any) -> None:
    with suppress(WireError):
        assert isinstance(parse_pi(value), Message)
    with suppress(WireError):
        assert isinstance(
            parse_pi({"role": "assistant", "content": value, "usage": value, "timestamp": value}), Message
        )
    transcript = read(lines(*[value, value]))
    assert transcript.format == "pi"


@given(st.lists(st.tuples(st.sampled_from(list(SEVEN)), TEXTS), min_size=1, max_size=8))
def test_a_session_keeps_the_text_of_each_line(roles: list[tuple[str, str]]) -> None:
    values = [entry(n, {**SEVEN[role], "extra": text}) for n, (role, text) in enumerate(roles)]
    header = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/"}
    text = "\n".join(json.dumps(value, ensure_ascii=False) for value in [header, *values]) + "\n"
    transcript = parse(text)
    assert transcript.format == "pi"
    assert [m.wire.raw for m in transcript.messages if m.wire] == text.split("\n")[1:-1]
    assert [element for m in transcript.messages for element in render_pi(m, LossCollector())] == values


def test_the_path_to_the_last_entry_is_the_conversation() -> None:
    tree = lines(
        {"type": "session", "id": "root", "timestamp": "2026-01-01T00:00:00Z"},
        {"type": "model_change", "id": "e0", "parentId": None, "modelId": "m-1"},
        entry(1, SEVEN["user"]),
        entry(2, SEVEN["assistant"], id="dead"),
        entry(3, SEVEN["custom"], parentId="dead"),
        {"type": "branch_summary", "id": "e2", "parentId": "e1", "summary": "said of a branch", "fromId": "dead"},
        {
            "type": "custom_message",
            "id": "e3",
            "parentId": "e2",
            "customType": "memo",
            "content": "note",
            "display": True,
        },
        {"type": "compaction", "id": "e4", "parentId": "e3", "summary": "all so far", "firstKeptEntryId": "e1"},
        {"type": "label", "id": "e5", "parentId": "e4", "targetId": "e1", "label": "x"},
        {"type": "new_thing", "id": "e6", "parentId": "e5"},
        entry(7, SEVEN["assistant"], timestamp="1970-01-01T00:00:03Z"),
    )
    transcript = read(tree)
    assert [(m.kind, m.meta.source) for m in transcript.messages] == [
        ("", "3"),
        ("branch_digest", "6"),
        ("note", "7"),
        ("digest", "8"),
        ("", "11"),
    ]
    assert transcript.messages[0].meta.at == 1.0
    assert transcript.messages[-1].meta.at == 3.0
    assert transcript.model == "claude-sonnet-5"
    assert [note.line for note in transcript.notes] == [4, 10]
    assert "2 entries on other branches" in transcript.notes[0].text
    assert "new_thing" in transcript.notes[1].text


@given(st.lists(st.integers(-2, 8), min_size=1, max_size=9))
def test_a_tangled_tree_always_ends(parents: list[int]) -> None:
    entries = [entry(n, SEVEN["user"], parentId=f"e{parent}") for n, parent in enumerate(parents)]
    transcript = read(lines(*entries))
    assert 1 <= len(transcript.messages) <= len(parents)
    assert transcript.messages[-1].meta.source == str(len(parents))


def test_an_edited_message_keeps_its_other_fields() -> None:
    line = entry(1, SEVEN["toolResult"], timestamp="t")
    message = parse_pi(line)
    stub = replace(message.results[0], parts=(Text(text="[stub]"),))
    (edited,) = render_pi(message.with_parts(stub), LossCollector())
    assert edited == {**line, "message": {**SEVEN["toolResult"], "content": [{"type": "text", "text": "[stub]"}]}}
    compaction = {"type": "compaction", "id": "e", "parentId": None, "summary": "old", "tokensBefore": 9}
    assert render_pi(parse_pi(compaction).with_parts(Text(text="new")), LossCollector()) == [
        {**compaction, "summary": "new"}
    ]
    frozen = parse_object(OBJECTS_BY_ROLE["toolResult"])
    (made,) = render_pi(frozen.with_parts(replace(frozen.results[0], parts=())), LossCollector())
    assert (made["tool_call_id"], made["content"]) == ("c1", [])
    assert "toolCallId" not in made


def test_foreign_messages_become_pi_messages() -> None:
    loss = LossCollector()
    loss.names["c1"] = "ls"
    asked = assistant("go", ToolCall(id="c1", name="ls", arguments='{"a":1}'))
    assert render_pi(asked, loss) == [
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "go"},
                {"type": "toolCall", "id": "c1", "name": "ls", "arguments": {"a": 1}},
            ],
        }
    ]
    both = Message(role="user", parts=(*tool("c1", "x").parts, Text(text="and then")))
    assert [element["role"] for element in render_pi(both, loss)] == ["toolResult", "user"]
    assert render_pi(user("sum", kind="digest"), loss) == [{"role": "compactionSummary", "summary": "sum"}]
    assert not loss.items
    render_pi(user("x").with_parts(Media(kind="document", url="u"), Media(kind="image", mime="i", data="AA")), loss)
    assert [item.what for item in loss.items] == ["media document"]


def test_errors_name_line_and_field() -> None:
    (broken,) = read(lines({"type": "session", "id": "s"}, entry(0, {"role": "user", "content": 7}))).broken_lines
    assert broken.line == 2
    assert "message.content" in broken.text
    with pytest.raises(WireError, match="role"):
        parse_pi({"content": "x"})
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(WireError, match="nested too deeply"):
        parse_pi({"role": "assistant", "content": [{"type": "toolCall", "arguments": deep}]})
