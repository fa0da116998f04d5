"""Codex rollouts: every line of talk is a message, counts find their reply, and nothing private is sent."""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.errors import WireError
from foldline.message import Message, Opaque, Text, ToolCall, Usage
from foldline.wire import rendering
from foldline.wire.formats import REQUEST_FORMATS, JsonLine, Transcript
from foldline.wire.openai_responses.parse import KNOWN
from foldline.wire.session_logs.codex import parse, read
from support.openai_elements import INPUT_ITEMS, JSON
from support.talk import said, talk

STAMP = "2026-04-10T20:11:34.639Z"


def line(kind: str, payload: Any) -> dict[str, Any]:
    return {"timestamp": STAMP, "type": kind, "payload": payload}


def item(kind: str, **fields: Any) -> dict[str, Any]:
    return line("response_item", {"type": kind, **fields})


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return line("event_msg", {"type": kind, **fields})


def says(role: str, text: str, **fields: Any) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": text}], **fields)


def count(total: int, last: int, *, cached: int = 0, output: int = 5) -> dict[str, Any]:
    usage = {
        "input_tokens": last,
        "cached_input_tokens": cached,
        "output_tokens": output,
        "total_tokens": last + output,
    }
    return event("token_count", info={"total_token_usage": {"total_tokens": total}, "last_token_usage": usage})


def call(key: str) -> dict[str, Any]:
    return item("function_call", name="exec", arguments="{}", call_id=key)


def output(key: str) -> dict[str, Any]:
    return item("function_call_output", call_id=key, output="ok")


def transcript(*values: Any) -> Transcript:
    return read(JsonLine(number, value, json.dumps(value)) for number, value in enumerate(values, start=1))


def usages(found: Transcript) -> list[tuple[str, int]]:
    """Where a usage stands, by line, and the prompt it measured."""
    return [(message.meta.source, message.meta.usage.prompt) for message in found.messages if message.meta.usage]


def request(messages: Iterable[Message]) -> list[Any]:
    items: list[Any] = rendering.render(messages, "openai-responses").body["input"]
    return items


@given(st.lists(INPUT_ITEMS.map(lambda value: line("response_item", value)) | INPUT_ITEMS, max_size=5))
def test_every_item_is_a_message_with_its_line(values: list[Any]) -> None:
    found = transcript(*values)
    assert [message.wire.raw for message in found.messages if message.wire] == [json.dumps(value) for value in values]
    assert [message.meta.source for message in found.messages] == [str(place + 1) for place in range(len(values))]


@given(
    st.lists(
        JSON
        | st.builds(
            line,
            st.sampled_from(["session_meta", "turn_context", "response_item", "compacted", "event_msg", "x"]),
            JSON,
        )
        | INPUT_ITEMS,
        max_size=4,
    )
)
def test_any_lines_can_be_read_and_sent(values: list[Any]) -> None:
    found = transcript(*values)
    for provider in ("openai-responses", "openai"):
        json.dumps(rendering.render(found.messages, provider).body)


@given(JSON | INPUT_ITEMS)
def test_a_line_is_a_message_or_an_error_that_names_the_field(value: Any) -> None:
    fault = None
    try:
        parse(value, None)
    except WireError as error:
        fault = error
    assert fault is None or fault.field


@given(st.lists(st.builds(line, st.just("response_item"), JSON | INPUT_ITEMS), max_size=4))
def test_items_of_codex_itself_are_never_sent(values: list[Any]) -> None:
    for sent in request(transcript(*values).messages):
        assert sent.get("type", "message") in KNOWN
        assert not {"encrypted_content_len", "internal_chat_message_metadata_passthrough"} & set(sent)


def test_a_session() -> None:
    found = transcript(
        line("session_meta", {"id": "s", "base_instructions": {"text": "You are Codex."}}),
        says("developer", "sandboxed"),
        line("turn_context", {"model": "gpt-5.4"}),
        says("user", "fill it in"),
        event("user_message", message="fill it in"),
        event("token_count", info=None),
        item("reasoning", summary=[], encrypted_content="gAAA"),
        says("assistant", "Reading.", phase="commentary"),
        call("a"),
        count(20, 100, cached=60),
        output("a"),
        event("turn_aborted", reason="interrupted"),
    )
    assert [message.role for message in found.messages] == [
        *["system", "system", "user", "assistant", "assistant", "assistant", "tool"]
    ]
    assert found.model == "gpt-5.4"
    assert found.messages[5].meta.usage == Usage(input=40, cache_read=60, output=5)
    assert {message.meta.reply for message in found.messages[3:6]} == {"codex-7"}
    assert {message.meta.model for message in found.messages[3:6]} == {"gpt-5.4"}
    assert found.messages[2].meta.at == pytest.approx(1775851894.639)
    assert [note.line for note in found.notes] == [12]
    body = rendering.render(found.messages, "openai-responses").body
    assert body["instructions"] == "You are Codex."
    assert body["input"][0]["role"] == "developer"
    assert body["input"][3]["phase"] == "commentary"


def test_a_count_belongs_to_the_reply_before_it() -> None:
    found = transcript(
        says("user", "go"),
        *(call("a"), call("b"), count(100, 100), output("a"), output("b")),
        *(says("assistant", "done"), count(220, 110)),
        *(event("task_complete"), says("user", "more"), count(220, 110)),
        *(call("c"), count(340, 120), output("c")),
    )
    assert usages(found) == [("3", 100), ("7", 110), ("12", 120)]


def test_a_count_after_quick_results_still_belongs_to_the_calls() -> None:
    assert usages(transcript(says("user", "go"), call("a"), output("a"), count(100, 100))) == [("2", 100)]


def test_counts_of_older_versions_stand_before_their_reply() -> None:
    found = transcript(
        says("user", "go"),
        *(count(100, 100), call("a"), call("b"), output("a"), output("b")),
        *(count(220, 110), says("assistant", "done")),
    )
    assert usages(found) == [("4", 100), ("8", 110)]


def test_a_count_without_a_reply_shifts_no_other() -> None:
    found = transcript(
        says("user", "go"),
        *(call("a"), count(100, 100), output("a"), count(150, 50)),
        *(call("b"), count(260, 110), output("b")),
        *(call("c"), count(380, 120)),
    )
    assert usages(found) == [("2", 100), ("6", 110), ("9", 120)]


def test_after_a_compaction_the_digest_replaces_the_messages_before_it() -> None:
    history: list[dict[str, Any]] = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}], "id": "msg_1"},
        {"type": "ghost_snapshot", "ghost_commit": {}},
        {"type": "compaction", "encrypted_content": "gAAA"},
    ]
    found = transcript(
        says("user", "go"),
        call("a"),
        output("a"),
        line("compacted", {"message": "", "replacement_history": history}),
        event("context_compacted"),
        says("assistant", "on we go"),
    )
    digest = found.messages[3]
    assert (digest.role, digest.kind) == ("user", "digest")
    assert digest.parts == (
        Text(text="go"),
        Opaque(kind="ghost_snapshot", value=history[1]),
        Opaque(kind="compaction", value=history[2]),
    )
    sent = rendering.render(found.messages[3:], "openai-responses")
    assert sent.body["input"][:2] == [{key: history[0][key] for key in ("type", "role", "content")}, history[2]]
    assert [entry.what for entry in sent.lost] == ["opaque ghost_snapshot"]


def test_a_compaction_of_older_versions_is_its_summary() -> None:
    (digest,) = transcript(line("compacted", {"message": "so far: nothing"})).messages
    assert (digest.text, digest.kind) == ("so far: nothing", "digest")
    assert request([digest]) == [{"type": "message", "role": "user", "content": "so far: nothing"}]


def test_turns_taken_back_are_gone() -> None:
    found = transcript(
        *(says("user", "one"), event("user_message", message="one"), says("assistant", "1"), count(10, 10)),
        *(says("user", "two"), event("user_message", message="two"), says("assistant", "2"), count(30, 20)),
        event("thread_rolled_back", num_turns=1),
        *(says("user", "three"), event("user_message", message="three"), says("assistant", "3"), count(60, 21)),
    )
    assert [message.text for message in found.messages] == ["one", "1", "three", "3"]
    assert usages(found) == [("3", 10), ("12", 21)]
    assert "rolled back" in found.notes[0].text


def test_an_item_is_sent_without_the_fields_of_the_log() -> None:
    logged = says("assistant", "hi", id="msg_1", metadata={"turn_id": "t"}, phase="final_answer")
    assert request(transcript(logged).messages) == [
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "hi"}],
            "phase": "final_answer",
        }
    ]
    plain = says("assistant", "hi")
    assert request(transcript(plain).messages)[0] is plain["payload"]


def test_reasoning_without_its_body_cannot_be_sent() -> None:
    found = transcript(item("reasoning", summary=[], content=None, encrypted_content_len=0))
    made = rendering.render(found.messages, "openai-responses")
    assert made.body["input"] == []
    assert [entry.what for entry in made.lost] == ["thinking"]


def test_a_message_of_another_agent_is_a_note() -> None:
    content = [{"type": "input_text", "text": "look here"}, {"type": "encrypted_content", "encrypted_content": "x"}]
    (message,) = transcript(item("agent_message", author="b", content=content)).messages
    assert (message.role, message.kind, message.text) == ("user", "note", "look here")
    assert request([message]) == [{"type": "message", "role": "user", "content": "look here"}]


def test_codex_keeps_its_snapshots_to_itself() -> None:
    assert transcript(item("ghost_snapshot", ghost_commit={})).messages == ()


def test_the_oldest_rollouts_are_bare_items() -> None:
    found = transcript(
        {"id": "s", "timestamp": STAMP, "instructions": None},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "ls"}]},
        {"record_type": "state"},
        {"type": "local_shell_call", "id": "lsh", "call_id": None, "action": {"type": "exec", "command": ["ls"]}},
        {"type": "function_call_output", "call_id": "lsh", "output": "a.txt"},
    )
    assert [message.role for message in found.messages] == ["user", "assistant", "tool"]
    assert found.messages[1].calls == (
        ToolCall(id="lsh", name="local_shell", arguments='{"type":"exec","command":["ls"]}', kind="local_shell"),
    )


def test_a_line_that_cannot_be_read_is_kept_and_noted_but_not_sent() -> None:
    found = transcript(item("function_call", arguments={}), says("user", "hi"))
    assert [note.line for note in found.notes] == [1]
    assert "field name" in found.notes[0].text
    assert len(found.messages) == 2
    assert [sent["type"] for sent in request(found.messages)] == ["message"]


def test_events_stand_in_where_there_are_no_items() -> None:
    found = transcript(event("user_message", message="hi"), event("agent_message", message="ho"))
    assert [(message.role, message.text) for message in found.messages] == [("user", "hi"), ("assistant", "ho")]
    assert [sent["content"] for sent in request(found.messages)] == ["hi", "ho"]
    assert found.notes


def test_lines_of_other_kinds_are_noted_once() -> None:
    found = transcript(line("world_state", {}), line("world_state", {}), 5)
    assert [note.line for note in found.notes] == [1, 3]


DATA = Path(os.environ.get("FOLDLINE_DATA", "/nowhere"))
ROLLOUTS = [
    *["entire-codex/codex-*", "formats/agent-sessions/codex__*.jsonl", "formats/claude-code-log/codex/*/*.json"]
]


def _lines(path: Path) -> list[JsonLine]:
    """The lines of a rollout; a sample in JSON holds one line or a list of them."""
    data = path.read_bytes()
    if path.suffix == ".json":
        value = json.loads(data)
        raws = [json.dumps(entry) for entry in (value if isinstance(value, list) else [value])]
    else:
        raws = (gzip.decompress(data) if path.suffix == ".gz" else data).decode().split("\n")
    found = []
    for number, raw in enumerate(raws, start=1):
        with suppress(ValueError):
            found.append(JsonLine(number, json.loads(raw), raw))
    return found


@pytest.mark.skipif(not DATA.is_dir(), reason="FOLDLINE_DATA names no folder")
def test_real_rollouts() -> None:
    files = sorted(path for pattern in ROLLOUTS for path in DATA.glob(pattern))
    messages = differences = 0
    for path in files:
        lines = _lines(path)
        found = read(lines)
        raws = {str(entry.number): entry.raw for entry in lines}
        messages += len(found.messages)
        differences += sum(
            message.wire is None or message.wire.raw != raws[message.meta.source] for message in found.messages
        )
        items = [
            entry for entry in lines if isinstance(entry.value, dict) and entry.value.get("type") == "response_item"
        ]
        read_items = {message.meta.source for message in found.messages}
        unread = [entry for entry in items if str(entry.number) not in read_items]
        assert {entry.value["payload"]["type"] for entry in unread} <= {"ghost_snapshot"}
        for provider in REQUEST_FORMATS:
            json.dumps(rendering.render(found.messages, provider).body)
        assert {sent.get("type", "message") for sent in request(found.messages)} <= KNOWN
    sys.stdout.write(f"codex: {len(files)} files, {messages} messages, {differences} differences\n")
    assert len(files) > 10
    assert messages
    assert not differences


@pytest.mark.skipif(not DATA.is_dir(), reason="FOLDLINE_DATA names no folder")
@pytest.mark.parametrize("provider", REQUEST_FORMATS)
def test_real_sessions_cross_over_without_their_thinking(provider: str) -> None:
    for path in sorted(DATA.glob("entire-codex/codex-*")):
        messages = read(_lines(path)).messages
        made = rendering.render(messages, provider)
        assert said(provider, made.body) == talk(messages)
        assert {entry.what for entry in made.lost} <= {"thinking", "system role"}


@pytest.mark.skipif(not DATA.is_dir(), reason="FOLDLINE_DATA names no folder")
def test_counts_of_real_sessions_grow_with_the_talk() -> None:
    """A prompt holds what the one before it held; only a new turn may shrink it, by the reasoning of the last one."""
    for path in sorted(DATA.glob("entire-codex/codex-*")):
        measured: list[tuple[int, int]] = []
        turn = 0
        for message in read(_lines(path)).messages:
            turn += message.role == "user"
            if message.meta.usage:
                measured.append((turn, message.meta.usage.prompt))
        assert measured
        for (turn, prompt), (later_turn, later) in pairwise(measured):
            assert later > prompt or later_turn > turn
