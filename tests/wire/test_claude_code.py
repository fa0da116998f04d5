"""Claude Code sessions are read as the API saw them, whatever stands between and whatever is missing."""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.errors import WireError
from foldline.message import Message, Opaque, Text, Thinking, ToolCall, ToolResult, Usage
from foldline.wire.anthropic.parse import parse as parse_anthropic
from foldline.wire.anthropic.render import render
from foldline.wire.formats import JsonLine, LossCollector, Transcript
from foldline.wire.rendering import render as render_all
from foldline.wire.session_logs import claude_code, claude_code_stream
from foldline.wire.session_logs.claude_code import read, segments


def lines_of(message: Message) -> list[Any]:
    """The lines that an untouched message was read from."""
    wire = message.wire
    return list(wire.value) if wire is not None and wire.exact else []


def numbered(values: list[Any]) -> list[JsonLine]:
    return [JsonLine(number, value, json.dumps(value)) for number, value in enumerate(values, 1)]


def said(message: Message) -> tuple[str, list[Any]]:
    """A message as a short value to compare: its role and what its parts hold."""
    held = {Text: "text", Thinking: "text", ToolCall: "id", ToolResult: "call_id", Opaque: "kind"}
    return message.role, [getattr(part, held[type(part)]) for part in message.parts]


class Session:
    """Writes a session file the way Claude Code does, and remembers what a reader should find."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.expected: list[tuple[str, list[Any]]] = []
        self.tip: str | None = None
        self._ids = count(1)

    def line(self, kind: str, **fields: Any) -> str:
        uuid = f"u{next(self._ids)}"
        self.lines.append({"parentUuid": self.tip, "type": kind, "uuid": uuid, "sessionId": "s", **fields})
        self.tip = uuid
        return uuid

    def prompt(self, *, kept: bool = True) -> None:
        text = f"prompt {next(self._ids)}"
        self.line("user", message={"role": "user", "content": text})
        if kept:
            self.expected.append(("user", [text]))

    def noise(self, kind: str) -> None:
        if kind == "hook":
            self.line("attachment", attachment={"type": "hook_success"}, may_be_lost=True)
        elif kind == "progress":
            self.line("progress", data={}, may_be_lost=True)
        elif kind == "agent":
            tip, self.tip = self.tip, None
            self.line("user", isSidechain=True, message={"role": "user", "content": "of a sub-agent"})
            self.line("assistant", isSidechain=True, message={"role": "assistant", "id": "x", "content": []})
            self.tip = tip
        elif kind == "snapshot":
            self.lines.append({"type": "file-history-snapshot", "messageId": "m", "snapshot": {}})

    def step(self, blocks: list[str], early: int, *, kept: bool = True) -> None:
        """One reply, a line for each block; the results of its first `early` calls come before its next lines."""
        reply, held, late = f"msg_{next(self._ids)}", [], []
        at_once: list[tuple[str, list[Any]]] = []
        for kind in blocks:
            name = f"{kind}_{next(self._ids)}"
            fields = {"tool_use": {"id": name, "name": "Bash", "input": {}}}.get(kind, {kind: name})
            usage = {"input_tokens": 7, "cache_read_input_tokens": 100, "output_tokens": 1}
            message = {"id": reply, "role": "assistant", "model": "claude-opus-5", "usage": usage}
            above = self.line("assistant", message={**message, "content": [{"type": kind, **fields}]})
            held.append(name)
            if kind == "tool_use" and len(at_once) < early:
                at_once.append(self.result(above, name))
                self.tip = above
            elif kind == "tool_use":
                late.append((above, name))
        if kept:
            self.expected.append(("assistant", held))
            self.expected.extend(at_once)
        for above, name in late:
            found = self.result(above, name)
            if kept:
                self.expected.append(found)

    def result(self, above: str, call: str) -> tuple[str, list[Any]]:
        block = {"type": "tool_result", "tool_use_id": call, "content": "ok"}
        self.line("user", parentUuid=above, message={"role": "user", "content": [block]})
        return ("tool", [call])


BLOCKS = st.lists(st.sampled_from(["thinking", "text", "tool_use"]), min_size=1, max_size=4)
NOISE = st.sampled_from(["hook", "progress", "agent", "snapshot", ""])


@st.composite
def sessions(draw: st.DrawFn) -> Session:
    session = Session()
    for turn in range(draw(st.integers(1, 3))):
        fork = session.tip
        if turn and draw(st.booleans()):
            session.prompt(kept=False)
            session.noise(draw(NOISE))
            session.step(draw(BLOCKS), 0, kept=False)
            session.tip = fork
        session.prompt()
        for _ in range(draw(st.integers(1, 3))):
            session.noise(draw(NOISE))
            session.step(draw(BLOCKS), draw(st.integers(0, 2)))
    lost = draw(st.booleans())
    session.lines = [line for line in session.lines if not (lost and line.pop("may_be_lost", False))]
    return session


@given(sessions())
def test_a_session_is_read_as_the_api_saw_it(session: Session) -> None:
    numbered_lines = numbered(session.lines)
    found = read(numbered_lines)
    assert [said(message) for message in found.messages] == session.expected
    raw = {line.number: line.raw for line in numbered_lines}
    for message in found.messages:
        numbers = [int(number) for number in message.meta.source.split(",")]
        assert message.wire is not None
        assert message.wire.raw == "\n".join(raw[number] or "" for number in numbers)
        assert lines_of(message) == [session.lines[number - 1] for number in numbers]


@given(sessions())
def test_a_session_renders_to_the_request_that_was_sent(session: Session) -> None:
    found = read(numbered(session.lines))
    made = render_all(found.messages, "anthropic")
    assert not made.lost
    for message, element in zip(found.messages, made.body["messages"], strict=True):
        assert element.keys() == {"role", "content"}
        assert parse_anthropic(element, None) == message


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=4)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=4), inner, max_size=2)),
    max_leaves=4,
)
FIELDS = ["parentUuid", "uuid", "message", "isSidechain", "isMeta", "isCompactSummary", "timestamp", "attachment"]
MESSAGES = st.fixed_dictionaries({}, optional=dict.fromkeys(("role", "content", "id", "model", "usage"), JSON))
ANY_LINE = st.fixed_dictionaries(
    {"type": st.one_of(st.sampled_from(["user", "assistant", "system", "summary", "attachment"]), JSON)},
    optional={**dict.fromkeys(FIELDS, JSON), "message": st.one_of(MESSAGES, JSON), "uuid": st.sampled_from("abc")},
)


@pytest.mark.parametrize("reader", [claude_code.read, claude_code_stream.read])
@given(values=st.lists(st.one_of(ANY_LINE, JSON), max_size=5))
def test_no_line_stops_the_reading(reader: Any, values: list[Any]) -> None:
    found: Transcript = reader(numbered(values))
    for message in found.messages:
        render(message, LossCollector())
    assert sum(map(len, segments(found))) == len(found.messages)


def test_facts_of_a_reply_come_from_its_lines() -> None:
    def fragment(block: dict[str, Any], output: int, stop: str | None) -> dict[str, Any]:
        usage = {"input_tokens": 3, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 20}
        return {
            "type": "assistant",
            "timestamp": "2026-02-03T02:55:20.500Z",
            "message": {
                "id": "msg_1",
                "role": "assistant",
                "model": "claude-opus-4-6",
                "content": [block],
                "stop_reason": stop,
                "usage": {**usage, "output_tokens": output},
            },
        }

    values = [
        fragment({"type": "thinking", "thinking": "hm", "signature": "s"}, 1, None),
        fragment({"type": "text", "text": "hi"}, 250, "end_turn"),
    ]
    found = read(numbered(values))
    [message] = found.messages
    meta = message.meta
    assert meta.usage == Usage(input=3, cache_read=20, cache_write=10, output=250)
    assert (meta.reply, meta.model, meta.stop, meta.source) == ("msg_1", "claude-opus-4-6", "end_turn", "1,2")
    assert meta.at == 1770087320.5
    assert found.model == "claude-opus-4-6"
    [made] = render(message, LossCollector())
    assert made["content"] == [value["message"]["content"][0] for value in values]


def test_the_same_id_later_is_another_reply() -> None:
    def reply(name: str) -> dict[str, Any]:
        return {"type": "assistant", "message": {"id": name, "content": [{"type": "text", "text": name}]}}

    assert len(read(numbered([reply("a"), reply("b"), reply("a")])).messages) == 3


def test_a_compaction_is_noted_and_its_digest_marked() -> None:
    values = [
        {"type": "user", "uuid": "1", "message": {"role": "user", "content": "old"}},
        {"type": "assistant", "uuid": "2", "parentUuid": "1", "message": {"content": [{"type": "text", "text": "a"}]}},
        {
            "type": "system",
            "subtype": "compact_boundary",
            "uuid": "3",
            "parentUuid": None,
            "logicalParentUuid": "2",
            "compactMetadata": {"trigger": "auto", "preTokens": 155377},
        },
        {
            "type": "user",
            "uuid": "4",
            "parentUuid": "3",
            "isCompactSummary": True,
            "isVisibleInTranscriptOnly": True,
            "message": {"role": "user", "content": "so far"},
        },
        {"type": "user", "uuid": "5", "parentUuid": "2", "message": {"role": "user", "content": "new"}},
    ]
    found = read(numbered(values))
    assert [(message.text, message.kind) for message in found.messages] == [
        ("old", ""),
        ("a", ""),
        ("so far", "digest"),
        ("new", ""),
    ]
    assert [len(run) for run in segments(found)] == [2, 2]
    assert found.notes == ((3, "compacted (auto, 155,377 tokens before)"),)
    assert not found.messages[2].is_prompt


def test_prompts_of_a_person_and_texts_of_the_host_get_different_kinds() -> None:
    texts = {
        "fix it": "",
        "<bash-input>ls</bash-input>": "shell",
        "<bash-stdout>a</bash-stdout>": "shell",
        "<local-command-stdout>bye</local-command-stdout>": "note",
        "[Request interrupted by user]": "note",
        "<command-name>/review</command-name>": "",
    }
    values: list[Any] = [{"type": "user", "message": {"role": "user", "content": text}} for text in texts]
    values.append(
        {"type": "user", "isMeta": True, "message": {"role": "user", "content": [{"type": "text", "text": "x"}]}}
    )
    messages = read(numbered(values)).messages
    assert [message.kind for message in messages] == [*texts.values(), "note"]
    assert [message.meta.hidden for message in messages] == [False] * len(texts) + [True]
    [made] = render(messages[1], LossCollector())
    assert made == {"role": "user", "content": "<bash-input>ls</bash-input>"}


def test_a_file_of_one_sub_agent_is_its_conversation() -> None:
    def line(text: str, *, aside: bool) -> dict[str, Any]:
        return {"type": "user", "isSidechain": aside, "message": {"role": "user", "content": text}}

    alone = read(numbered([line("a", aside=True), line("b", aside=True)]))
    assert [message.text for message in alone.messages] == ["a", "b"]
    mixed = read(numbered([line("a", aside=True), line("b", aside=False)]))
    assert [message.text for message in mixed.messages] == ["b"]
    assert mixed.notes == ((1, "1 lines of sub-agents left out"),)


def test_replies_no_model_wrote_have_no_usage() -> None:
    usage = {"input_tokens": 5, "output_tokens": 5}
    content = [{"type": "text", "text": "API Error"}]
    made_up = [
        {"type": "assistant", "message": {"id": "1", "model": "<synthetic>", "content": content, "usage": usage}},
        {
            "type": "assistant",
            "isApiErrorMessage": True,
            "message": {"id": "2", "model": "m", "content": content, "usage": usage},
        },
    ]
    found = read(numbered(made_up))
    assert [(message.text, message.meta.usage, message.meta.model) for message in found.messages] == (
        [("API Error", None, "")] * 2
    )
    assert found.model == ""


def test_old_and_broken_lines() -> None:
    values = [
        {"type": "user", "message": None},
        {"type": "user", "message": {"role": "user", "content": None}},
        {"type": "user", "message": {"role": "user", "content": 5}},
        {"type": "assistant", "message": {"content": "plain", "usage": None}, "timestamp": "yesterday"},
        ["not", "an", "object"],
        {"type": "user", "uuid": "a", "message": {"role": "user", "content": "twice"}},
        {"type": "user", "uuid": "a", "message": {"role": "user", "content": "twice"}},
    ]
    found = read(numbered(values))
    assert [message.text for message in found.messages] == ["", "plain", "twice"]
    assert [note.line for note in found.notes] == [1, 3, 5, 7]
    assert found.messages[1].meta.at is None


def test_a_prompt_typed_while_the_agent_worked_is_a_message() -> None:
    value = {"type": "attachment", "uuid": "a", "attachment": {"type": "queued_command", "prompt": "also this"}}
    [message] = read(numbered([value])).messages
    assert (message.role, message.text, message.is_prompt) == ("user", "also this", True)
    assert lines_of(message) == [value]


def test_one_line_alone() -> None:
    message = claude_code.FORMAT.parse({"type": "user", "message": {"role": "user", "content": "x"}}, "raw")
    assert message.text == "x"
    assert message.wire is not None
    assert message.wire.raw == "raw"
    assert lines_of(message.with_parts()) == []
    for value in ({"type": "summary"}, 5, {"type": "user"}):
        with pytest.raises(WireError, match="field type"):
            claude_code.FORMAT.parse(value, None)


def test_events_of_a_stream() -> None:
    calls = [{"type": "tool_use", "id": f"t{n}", "name": "Task", "input": {}} for n in range(2)]

    def reply(block: dict[str, Any], parent: str | None = None) -> dict[str, Any]:
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": "m1", "type": "message", "role": "assistant", "content": [block], "usage": usage}
        return {"type": "assistant", "message": message, "parent_tool_use_id": parent, "session_id": "s"}

    results = [{"type": "tool_result", "tool_use_id": f"t{n}", "content": "ok"} for n in range(2)]
    values = [
        {"type": "system", "subtype": "init", "session_id": "s", "tools": ["Task"], "model": "claude-opus-5"},
        {"type": "stream_event", "event": {"type": "message_start"}},
        reply(calls[0]),
        reply({"type": "text", "text": "inside"}, parent="t0"),
        reply(calls[1]),
        {"type": "user", "message": {"content": [results[0]]}},
        {"type": "user", "message": {"content": [results[1]]}},
        {
            "type": "system",
            "subtype": "compact_boundary",
            "compact_metadata": {"trigger": "manual", "pre_tokens": 9000},
        },
        {"type": "user", "message": {"role": "user", "content": "summary of it all"}},
        {"type": "user", "message": {"role": "user", "content": "next"}},
        {"type": "result", "subtype": "success", "total_cost_usd": 0.1},
    ]
    found = claude_code_stream.read(numbered(values))
    assert [said(message) for message in found.messages] == [
        ("assistant", ["t0", "t1"]),
        ("tool", ["t0"]),
        ("tool", ["t1"]),
        ("user", ["summary of it all"]),
        ("user", ["next"]),
    ]
    assert [message.kind for message in found.messages] == ["", "", "", "digest", ""]
    assert found.messages[0].meta.source == "3,5"
    assert (8, "compacted (manual, 9,000 tokens before)") in found.notes
    body = render_all(found.messages[:2], "anthropic").body
    assert body["messages"][1] == {"role": "user", "content": [results[0]]}
    assert claude_code_stream.FORMAT.parse(values[5], None).results[0].call_id == "t0"


DATA = os.environ.get("FOLDLINE_DATA", "")
SOURCES = {
    "entire-claude-code": "entire-claude-code/*.jsonl.gz",
    "entire-codex": "entire-codex/claude-*.jsonl.gz",
    "claude-code-log": "formats/claude-code-log/claude-code/**/*.jsonl",
    "agent-sessions": "formats/agent-sessions/claude__*.jsonl",
}


def lines_in(path: Path) -> list[JsonLine]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    texts = data.decode("utf-8", "surrogateescape").split("\n")
    return [JsonLine(number, json.loads(text), text) for number, text in enumerate(texts, 1) if text.strip()]


@pytest.mark.skipif(not DATA, reason="FOLDLINE_DATA names no folder")
@pytest.mark.parametrize("source", SOURCES)
def test_every_real_session_is_read_and_comes_back(source: str, record_property: Any) -> None:
    files = sorted(Path(DATA).glob(SOURCES[source]))
    tally: Counter[str] = Counter(files=len(files))
    for path in files:
        given_lines = lines_in(path)
        raw = {line.number: line.raw for line in given_lines}
        used: set[int] = set()
        for message in read(given_lines).messages:
            numbers = [int(number) for number in message.meta.source.split(",")]
            used.update(numbers)
            tally["messages"] += 1
            tally["differences"] += message.wire is None or message.wire.raw != "\n".join(raw[n] or "" for n in numbers)
            made = render(message, LossCollector())
            back = [parse_anthropic(element, None) for element in made]
            same = [(each.role, each.parts) for each in back] == [(message.role, message.parts)]
            tally["differences"] += bool(message.parts) and not same
        tally["lines"] += len(given_lines)
        tally["lines in messages"] += len(used)
    for key, value in tally.items():
        record_property(key, value)
    sys.stdout.write(f"{source}: {dict(tally)}\n")
    assert tally["files"]
    assert tally["messages"]
    assert tally["differences"] == 0


@pytest.mark.skipif(not DATA, reason="FOLDLINE_DATA names no folder")
def test_a_real_stream_is_read() -> None:
    values = json.loads((Path(DATA) / "formats/claude-code-action/sample-turns.json").read_text())
    found = claude_code_stream.read(numbered(values))
    assert [message.role for message in found.messages] == ["assistant", "tool"] * 3 + ["assistant"]
    assert found.model == "claude-test-model"
