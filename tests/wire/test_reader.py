"""Anything a user may have becomes a transcript, or an error that says where and what to do."""

from __future__ import annotations

import gzip
import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from anthropic.types import Message as AnthropicMessage
from hypothesis import example, given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from foldline.errors import ConfigError, FormatUnknown, InputError, WireError
from foldline.message import ToolCall, Usage, user
from foldline.wire import FORMATS, REQUEST_FORMATS, Transcript, parse, read, read_all, render
from foldline.wire.detect import detect
from foldline.wire.formats import format_of
from support.jsontext import written
from support.replies import REPLIES

CALL = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
CLAUDE_LINE = {
    "type": "user",
    "uuid": "1",
    "parentUuid": None,
    "sessionId": "s",
    "message": {"role": "user", "content": "hi"},
}
LISTS: dict[str, list[list[Any]]] = {
    "openhands": [
        [
            {"id": 0, "timestamp": "t", "source": "user", "action": "message", "args": {"content": "hi"}},
            {"id": 1, "timestamp": "t", "source": "agent", "action": "message", "args": {"content": "ho"}},
        ],
    ],
    "openai": [
        [{"role": "user", "content": "hi"}],
        [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        [
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "x"},
        ],
        [{"role": "assistant", "content": "", "function_call": {"name": "f", "arguments": "{}"}}],
        [{"role": "function", "name": "f", "content": "x"}],
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/y.png"}}]}],
        [{"role": "user", "content": "x", "agent": "main", "message_type": "observation"}],
    ],
    "anthropic": [
        [{"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "n", "input": {}}]}],
        [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]}],
        [{"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "s"}]}],
        [
            {
                "role": "user",
                "content": [{"type": "image", "source": {"type": "base64", "media_type": "i", "data": "A"}}],
            }
        ],
    ],
    "openai-responses": [
        [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}],
        [{"role": "user", "content": "x"}, {"type": "reasoning", "id": "r", "summary": []}],
        [{"role": "user", "content": [{"type": "input_text", "text": "x"}]}],
        [{"type": "message", "role": "user", "content": "x"}],
    ],
    "gemini": [
        [{"role": "user", "parts": [{"text": "x"}]}],
        [{"parts": [{"functionCall": {"name": "f"}}]}],
    ],
    "claude-code": [[CLAUDE_LINE], [{"type": "summary", "summary": "x", "leafUuid": "u"}, CLAUDE_LINE]],
    "stream-json": [
        [
            {"type": "system", "subtype": "init", "session_id": "s"},
            {"type": "user", "message": {"role": "user", "content": "x"}, "session_id": "s"},
        ],
    ],
    "codex": [[{"type": "response_item", "payload": {"type": "message", "role": "user", "content": []}}]],
    "pi": [
        [
            {"type": "session", "id": "s", "timestamp": "t"},
            {"type": "message", "message": {"role": "user", "content": "x"}},
        ],
        [{"role": "toolResult", "toolCallId": "c", "content": "x"}],
        [{"role": "assistant", "content": [{"type": "toolCall", "id": "c", "name": "n", "arguments": {}}]}],
    ],
    "gemini-cli": [[{"type": "user", "content": "x"}, {"type": "gemini", "content": "y"}]],
}
CASES = [(form, items) for form, lists in LISTS.items() for items in lists]
UNCLEAR: list[Any] = [
    [],
    {},
    [1],
    ["hi"],
    None,
    7,
    "hi",
    [{"no": "role"}],
    [{"role": "user"}],
    {"model": "m"},
    [{"role": "assistant", "content": "", "tool_calls": []}, {"role": "user", "content": [{"type": "tool_result"}]}],
    [{"type": "system", "content": "x"}, {"type": "reasoning", "summary": []}],
    [{"role": "user", "message": {"content": []}}],
    {"uuid": "1", "parentUuid": None, "sessionId": "s", "type": "user", "message": {"role": "user", "parts": []}},
]


@pytest.mark.parametrize(("form", "items"), CASES)
def test_every_format_is_recognised_and_read_in_every_wrapping(form: str, items: list[Any], tmp_path: Path) -> None:
    detected = detect(items)
    assert detected is not None
    assert detected.format == form
    messages = parse(items).messages
    assert messages
    assert parse(items, form).messages == messages
    text = json.dumps(items, indent=1)
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, items)) + "\n")
    (tmp_path / "a.json").write_text(text)
    (tmp_path / "a.gz").write_bytes(gzip.compress(text.encode()))
    for source in (text, text.encode(), bytearray(text.encode()), {"history": items}, tuple(items)):
        transcript = parse(source)
        assert (transcript.format, transcript.messages) == (form, messages)
    for name in ("a.jsonl", "a.json", "a.gz"):
        assert read(tmp_path / name).messages == messages
        assert [t.messages for t in read_all(tmp_path / name)] == [messages]


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_has_a_case(form: str) -> None:
    assert LISTS[form]
    assert format_of(form).name == form


@pytest.mark.parametrize("value", UNCLEAR)
def test_an_unclear_format_is_not_guessed(value: Any) -> None:
    assert detect(value) is None
    with pytest.raises(InputError):
        parse(value)


def test_an_unclear_format_is_asked_for_by_name() -> None:
    mixed = [{"role": "assistant", "content": "", "tool_calls": []}, LISTS["anthropic"][1][0]]
    with pytest.raises(FormatUnknown) as caught:
        parse(mixed)
    assert "anthropic (blocks like tool_use and tool_result)" in str(caught.value)
    assert caught.value.hint == "name the format with format=…, one of openai, anthropic"
    assert parse(mixed, "anthropic").format == "anthropic"
    with pytest.raises(ConfigError, match="use one of"):
        parse(mixed, "no-such-format")


@settings(max_examples=100, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from(CASES))
def test_messages_keep_the_text_they_had(random: Any, case: tuple[str, list[Any]]) -> None:
    form, items = case
    text = written(items, random)
    for message in parse(text, form).messages:
        if message.wire is not None and message.wire.raw is not None:
            assert message.wire.raw in text
            assert form not in REQUEST_FORMATS or json.loads(message.wire.raw) == message.wire.value


KEYS = st.text(max_size=4) | st.sampled_from(
    [
        *(
            "role",
            "content",
            "type",
            "parts",
            "messages",
            "contents",
            "input",
            "history",
            "system",
            "tools",
            "tool_calls",
        ),
        *("function_call", "payload", "message", "candidates", "choices", "output", "response", "sessionId", "text"),
        *("functionCall", "functionResponse", "toolCallId", "id", "call_id", "traj", "parentUuid", "session_id"),
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=25,
)
WORDS = st.sampled_from(
    [
        *(
            "user",
            "assistant",
            "system",
            "tool",
            "model",
            "toolResult",
            "session",
            "message",
            "response_item",
            "gemini",
        ),
        *("function_call", "function_call_output", "reasoning", "tool_use", "tool_result", "thinking", "text", "image"),
    ]
)
ITEMS = st.dictionaries(KEYS, JSON | WORDS, max_size=6)


@settings(max_examples=100, deadline=None)
@given(st.lists(ITEMS, max_size=4) | ITEMS | JSON)
def test_any_value_is_a_transcript_or_an_input_error(value: Any) -> None:
    detected = detect(value)
    assert detected is None or detected.format in FORMATS
    for form in (None, *FORMATS):
        with suppress(InputError):
            assert isinstance(parse(value, form), Transcript)
        with suppress(InputError):
            assert isinstance(parse(json.dumps(value), form), Transcript)
        if isinstance(value, list):
            with suppress(InputError):
                assert isinstance(parse("\n".join(map(json.dumps, value)), form), Transcript)


@given(st.binary(max_size=80) | st.text(max_size=80))
@example(b"\xef\xbb\xbf[]")
@example("\ufeff")
@example("\n\n")
def test_any_bytes_are_a_transcript_or_an_input_error(data: bytes | str) -> None:
    with suppress(InputError):
        assert isinstance(parse(data), Transcript)


@given(st.sampled_from(CASES), st.data())
def test_a_cut_file_never_breaks_the_reader(case: tuple[str, list[Any]], data: st.DataObject) -> None:
    """Cut anywhere, a JSONL file gives its whole lines, or says that there is nothing to read."""
    _, items = case
    text = "".join(json.dumps(item) + "\n" for item in items * 3)
    end = data.draw(st.integers(0, len(text)))
    with suppress(InputError):
        whole = parse(text[:end])
        assert len(whole.messages) <= len(parse(text).messages)


@given(st.sampled_from(REQUEST_FORMATS), st.data())
def test_replies_of_every_provider_are_messages(provider: str, data: st.DataObject) -> None:
    reply = data.draw(REPLIES[provider])
    transcript = parse(reply)
    assert transcript.format == provider
    assert transcript.model
    assert all(message.role == "assistant" for message in transcript.messages)


def test_reply_objects_of_the_sdks_are_read_as_they_are() -> None:
    chat = ChatCompletion.model_validate(
        {
            "id": "x",
            "object": "chat.completion",
            "created": 1,
            "model": "gpt-5.6",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "tool_calls",
                    "message": {"role": "assistant", "content": None, "tool_calls": [CALL]},
                }
            ],
            "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
        }
    )
    transcript = parse(chat)
    assert (transcript.format, transcript.model) == ("openai", "gpt-5.6")
    assert transcript.messages[0].calls == (ToolCall(id="c1", name="ls"),)
    assert transcript.messages[0].meta.usage == Usage(input=10, output=2)
    block = {"type": "tool_use", "id": "t", "name": "n", "input": {"a": 1}}
    claude = AnthropicMessage.model_validate(
        {
            "id": "msg",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-5",
            "content": [{"type": "text", "text": "hi"}, block],
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 3, "output_tokens": 4},
        }
    )
    (message,) = parse(claude).messages
    assert (message.text, message.calls[0].arguments, message.meta.model) == ("hi", '{"a":1}', "claude-sonnet-5")
    item = {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "{}", "status": "completed"}
    response = Response.model_construct(id="r", object="response", model="gpt-5.6", output=[item], status="completed")
    assert parse(response).messages[0].calls == (ToolCall(id="c", name="f"),)
    history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": claude.content}]
    assert parse(history).format == "anthropic"
    assert parse([{"role": "user", "content": "x"}, chat.choices[0].message]).messages[1].calls[0].name == "ls"


def test_our_own_messages_pass_as_they_are() -> None:
    messages = [user("hi"), user("ho")]
    assert all(one is other for one, other in zip(parse(messages).messages, messages, strict=True))
    assert parse(parse(LISTS["anthropic"][0]).messages).format == "anthropic"


def test_wrappings_of_other_tools(tmp_path: Path) -> None:
    plain = LISTS["openai"][0]
    request_log = {
        "messages": LISTS["openai"][2],
        "tools": [{"type": "function", "function": {"name": "ls"}}],
        "response": {
            "object": "chat.completion",
            "model": "m",
            "choices": [{"message": {"role": "assistant", "content": "ok"}}],
        },
    }
    logged = parse(request_log)
    assert [m.role for m in logged.messages] == ["assistant", "tool", "assistant"]
    assert (logged.model, len(logged.tools)) == ("m", 1)
    swe_agent = {"trajectory": [{"action": "ls", "observation": "x"}], "history": plain, "info": {}}
    assert len(parse(swe_agent).messages) == 1
    tau = [{"task_id": n, "traj": plain, "info": {"messages": "none"}} for n in range(3)]
    (tmp_path / "tau.json").write_text(json.dumps(tau))
    assert [len(t.messages) for t in read_all(tmp_path / "tau.json")] == [1, 1, 1]
    with pytest.raises(WireError, match=r"tau.json: more than one conversation found: use foldline.read_all\(path\)"):
        read(tmp_path / "tau.json")
    haystack = [{"question": "q", "sessions": [plain, LISTS["openai"][2]]}]
    (tmp_path / "hay.jsonl").write_text("\n".join([json.dumps({"metadata": {}}), *map(json.dumps, haystack * 2)]))
    assert [len(t.messages) for t in read_all(tmp_path / "hay.jsonl")] == [1, 2, 1, 2]
    (tmp_path / "traces.jsonl").write_text(
        '{"metadata": 1}\n' + json.dumps(plain) + "\n" + json.dumps({"messages": plain})
    )
    assert len(read_all(tmp_path / "traces.jsonl", "anthropic")) == 2
    assert {t.format for t in read_all(tmp_path / "traces.jsonl", "anthropic")} == {"anthropic"}
    stream = [{"candidates": [{"content": {"role": "model", "parts": [{"text": t}]}}]} for t in "ab"]
    (tmp_path / "responses.jsonl").write_text((json.dumps({"method": "m", "response": stream}) + "\n") * 2)
    assert [t.messages[0].text for t in read_all(tmp_path / "responses.jsonl")] == ["ab", "ab"]


def test_a_request_body_gives_system_tools_and_model() -> None:
    body = {
        "model": "claude-sonnet-5",
        "system": "be brief",
        "tools": [{"name": "t", "input_schema": {}}],
        "messages": LISTS["openai"][0],
    }
    transcript = parse(body)
    assert (transcript.format, transcript.model, len(transcript.tools)) == ("anthropic", "claude-sonnet-5", 1)
    assert [m.role for m in transcript.messages] == ["system", "user"]
    assert render(transcript.messages, "anthropic").body["system"] == "be brief"


def test_a_half_written_last_line_is_left_out_and_told() -> None:
    line = json.dumps(CLAUDE_LINE)
    half = parse(f"{line}\n{line}\n{line[:40]}")
    assert half.messages == parse(f"{line}\n{line}\n").messages
    assert half.notes[-1] == (3, "half-written last line left out")
    with pytest.raises(WireError) as caught:
        parse(f"{line}\n{line[:40]}\n{line}\n", file="log.jsonl")
    assert (caught.value.file, caught.value.line) == ("log.jsonl", 2)
    assert str(caught.value).startswith("log.jsonl:2: not JSON")
    conversation = json.dumps(LISTS["openai"][0])
    assert parse(f"{{}}\n{conversation}\n{conversation[:9]}").notes == ((3, "half-written last line left out"),)


LOGS = {
    "claude-code": CLAUDE_LINE,
    "messages": {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://e.org/a.png"}}]},
}


@pytest.mark.parametrize("line", LOGS.values(), ids=LOGS)
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("broken", ['{"type": "user", "mess', "{}{}", "half a line of something"])
def test_a_file_with_a_broken_line_is_read_without_it(
    tmp_path: Path, line: dict[str, Any], place: int, broken: str
) -> None:
    links = [{"uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None} for number in range(3)]
    lines = [json.dumps({**line, **link} if "uuid" in line else line) for link in links]
    lines.insert(place, broken)
    file = tmp_path / "log.jsonl"
    file.write_text("\n".join(lines) + "\n")
    found = read(file)
    assert len(found.messages) == 3
    assert [note.line for note in found.broken_lines] == [place + 1]
    assert found.broken_lines[0].text.startswith("not JSON")


UNREADABLE = {
    "{}": "an empty object",
    "[1,2]": "not a JSON object",
    '{"role":"user","content":{"a":1}}': "field content",
    '{"role":5,"content":"x"}': "field role",
}
IMAGE = {"type": "image", "source": {"type": "url", "url": "https://e.org/a.png"}}
MESSAGES = {"openai": "m", "anthropic": [IMAGE]}


@pytest.mark.parametrize("place", [0, 2, 5])
@pytest.mark.parametrize("is_named", [False, True])
@pytest.mark.parametrize("form", MESSAGES)
@pytest.mark.parametrize("broken", UNREADABLE)
def test_a_line_that_is_no_message_is_left_out_and_named(
    tmp_path: Path, broken: str, form: str, is_named: bool, place: int
) -> None:
    lines = [json.dumps({"role": "user", "content": MESSAGES[form]})] * 5
    lines.insert(place, broken)
    file = tmp_path / "log.jsonl"
    file.write_text("\n".join(lines) + "\n")
    found = read(file, form if is_named else None)
    assert (found.format, len(found.messages)) == (form, 5)
    [note] = found.broken_lines
    assert note.line == place + 1
    assert UNREADABLE[broken] in note.text
    assert note.line in [each.line for each in found.notes]
    with pytest.raises(WireError, match=rf"log.jsonl:{place + 1}\b"):
        parse("\n".join(lines) + "\n", form if is_named else None, file="log.jsonl")


@pytest.mark.parametrize(
    "broken", ["{}", "[1,2]", '{"type": "user", "message": 5}', '{"type": "user", "message": null}']
)
@pytest.mark.parametrize("place", [0, 1, 3])
def test_a_line_without_a_message_in_a_session_file_is_named_as_broken(tmp_path: Path, broken: str, place: int) -> None:
    links = [{"uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None} for number in range(3)]
    lines = [json.dumps({**CLAUDE_LINE, **link}) for link in links]
    lines.insert(place, broken)
    file = tmp_path / "log.jsonl"
    file.write_text("\n".join(lines) + "\n")
    found = read(file)
    assert (found.format, len(found.messages)) == ("claude-code", 3)
    assert [note.line for note in found.broken_lines] == [place + 1]


@pytest.mark.parametrize("line", [*UNREADABLE, '{"type": "user", "parentUuid": null, "message": 5}'])
@pytest.mark.parametrize("form", [None, "openai"])
def test_a_file_in_which_no_line_is_readable_is_an_error(tmp_path: Path, line: str, form: str | None) -> None:
    file = tmp_path / "log.jsonl"
    file.write_text(f"{line}\n" * 3)
    with pytest.raises(InputError):
        read(file, form)


def test_a_file_of_nothing_but_broken_lines_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_text('{"type": "user\n{"type": "user\n')
    with pytest.raises(WireError, match="not JSON"):
        read(file)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", ""])
def test_line_ends_and_other_breaks_inside_text(end: str) -> None:
    odd = {"role": "user", "content": "a\u2028b\x85c\x0b\x0cd"}
    text = "\ufeff\n" + end.join([json.dumps(odd, ensure_ascii=False)] * (3 if end else 1)) + end
    messages = parse(text).messages
    assert {m.text for m in messages} == {odd["content"]}
    assert all(m.wire is not None and m.wire.raw == json.dumps(odd, ensure_ascii=False) for m in messages)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty: there is nothing to read"),
        (b" \n\t\n", "empty: there is nothing to read"),
        (b'{"messages": [{"role": "user", "con', "not JSON"),
        (b"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\n", "a binary file"),
        (b"\xff\xd8\xff\xe0 JFIF", "not JSON"),
        (b"\x1f\x8b not really", "cannot be read"),
        (gzip.compress(os.urandom(2000).hex().encode())[:300], "cannot be read"),
        (b"plain words\nin lines\n", "a.dat:1: not JSON"),
        (b"[" * 200_000, "nested too deeply"),
        (b'[{"role": "user", "content": ' + b"[" * 100_000 + b"]" * 100_000 + b"}]", "nested too deeply"),
        (b'[{"role": "tool", "content": "x"},\n {"role": 3, "content": "y"}]', r"a.dat:2, field \[1\].role"),
        (b'{"history": [{"role": "tool", "content": "x"},\n\n\n {"role": {}}]}', r"a.dat:4, field history\[1\].role"),
        (b'{"role": 5, "content": "x"}\n{"role": "tool", "content": {}}\n', "a.dat:1, field role"),
        (b"1" * 5000, "not JSON"),
        (b"[1, 2", "not JSON"),
        (b"7", "format of this input is not clear"),
    ],
)
def test_broken_files_are_typed_errors_that_name_the_place(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.dat"
    path.write_bytes(content)
    for reader in (read, read_all):
        with pytest.raises(InputError, match=message) as caught:
            reader(path)
        assert "a.dat" in str(caught.value)


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(WireError, match="Is a directory"):
        read(tmp_path)
    with pytest.raises(WireError, match="there is no such file: check the path"):
        read(tmp_path / "none.json")
    with pytest.raises(WireError, match="null byte"):
        read("a\0b")
    locked = tmp_path / "locked.json"
    locked.write_text("[]")
    locked.chmod(0)
    if not os.access(locked, os.R_OK):
        with pytest.raises(WireError, match="Permission denied"):
            read(locked)


def test_a_text_is_never_taken_for_a_path(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(LISTS["openai"][0]))
    with pytest.raises(WireError, match="not JSON"):
        parse(str(path))


def test_a_message_of_50_mb_passes(tmp_path: Path) -> None:
    path = tmp_path / "big.jsonl"
    big = "x" * 50_000_000
    with path.open("w") as out:
        for content in ("small", big, "small"):
            out.write(json.dumps({"role": "user", "content": content}) + "\n")
    assert [len(m.text) for m in read(path).messages] == [5, 50_000_000, 5]


@pytest.mark.skipif(sys.platform == "win32", reason="needs resource")
def test_a_long_log_is_read_line_by_line(tmp_path: Path) -> None:
    """What no message needs is gone before the next line comes: memory follows the messages, not the file."""
    import tracemalloc

    path = tmp_path / "log.jsonl.gz"
    filler = json.dumps({"type": "progress", "parentUuid": None, "sessionId": "s", "data": "y" * 100_000}) + "\n"
    with gzip.open(path, "wt", compresslevel=1) as out:
        out.write(json.dumps(CLAUDE_LINE) + "\n")
        for _ in range(300):
            out.write(filler)
    tracemalloc.start()
    assert len(read(path).messages) == 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 25_000_000


@pytest.mark.parametrize(
    "broken", [b"\0\0\0\0", b'{"role": "user", "con\0tent": "x"}', b"42", b'"text"', b"null", b"true"]
)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_line_of_nul_bytes_or_of_a_scalar_is_left_out_and_named(broken: bytes, at: int, tmp_path: Path) -> None:
    lines = [b'{"role": "user", "content": "one"}', b'{"role": "assistant", "content": "two"}']
    lines.insert(at, broken)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    found = read(path)
    assert [message.text for message in found.messages] == ["one", "two"]
    assert [note.line for note in found.broken_lines] == [at + 1]


@pytest.mark.parametrize(
    ("body", "format"),
    [
        ({"model": "claude-sonnet-4-5", "max_tokens": 100}, "anthropic"),
        ({"model": "gpt-5"}, "openai"),
        ({"model": "nosuch"}, "openai"),
        ({}, "openai"),
        ({"model": 5}, "openai"),
        ({"model": "anthropic/claude-sonnet-4-5"}, "openai"),
        ({"model": "claude-sonnet-4-5", "frequency_penalty": 1}, "openai"),
        ({"model": "gpt-5", "system": "Be brief."}, "anthropic"),
    ],
)
def test_plain_messages_are_read_in_the_usual_format_of_their_model(body: dict[str, Any], format: str) -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    assert parse({**body, "messages": messages}).format == format
    with_system = {**body, "messages": [{"role": "system", "content": "Be brief."}, *messages]}
    assert parse(with_system).format == ("anthropic" if "system" in body else "openai")
