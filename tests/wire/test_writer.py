"""A file written again with other messages: what is read from it is what was meant, and the rest is as it was."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.errors import InputError
from foldline.message import Message, Text, ToolResult, user
from foldline.wire import FORMATS, REQUEST_FORMATS, parse, read
from foldline.wire.formats import format_of
from foldline.wire.writer import rewrite
from support.sessions import SESSIONS

DIGEST = user("[digest] 7091 is the worker's port.", kind="digest")


def said(messages: Iterable[Message]) -> list[Any]:
    return [(message.role, message.kind == "digest", message.parts) for message in messages]


def cut(text: str, start: int, *, pin: bool) -> tuple[Message, ...]:
    """What a fold leaves: system messages, the digest, the first prompt when it is pinned, and the newest steps."""
    messages = parse(text).messages
    lead = sum(message.role == "system" for message in messages)
    legal = [place for place in range(lead, len(messages)) if messages[place].role == "assistant"]
    pinned = messages[lead : lead + 1] if pin else ()
    return (*messages[:lead], DIGEST, *pinned, *messages[legal[start % len(legal)] :])


@pytest.mark.parametrize("name", SESSIONS)
@given(steps=st.integers(1, 6), start=st.integers(0, 6), pin=st.booleans())
def test_a_rewritten_file_reads_back_as_the_messages_given(name: str, steps: int, start: int, pin: bool) -> None:
    text = SESSIONS[name](steps)
    messages = cut(text, start, pin=pin)
    back = parse(rewrite(text, messages).data)
    assert back.format == parse(text).format
    if back.format in REQUEST_FORMATS:
        assert [message.parts for message in back.messages] == [message.parts for message in messages]
    else:
        lead = [message for message in messages if message.role == "system"]
        rest = [message for message in messages if message.role != "system" and message is not DIGEST]
        assert said(back.messages) == said((*lead, DIGEST, *rest))


@pytest.mark.parametrize("name", SESSIONS)
def test_the_same_fold_gives_the_same_file(name: str) -> None:
    text = SESSIONS[name](5)
    messages = cut(text, 3, pin=True)
    assert rewrite(text, messages) == rewrite(text, messages)


@pytest.mark.parametrize("name", SESSIONS)
def test_a_message_that_stays_keeps_its_text(name: str) -> None:
    """Every result that is kept stands in the new file as it stood in the old one."""
    text = SESSIONS[name](5)
    data = rewrite(text, cut(text, 3, pin=True)).data.decode()
    assert json.dumps("src/part_4.py:39: queue.put(job_4_39)")[1:-1] in data
    assert "part_1.py" not in data


def test_every_writable_format_is_tried() -> None:
    assert {parse(make(2)).format for make in SESSIONS.values()} == {
        *REQUEST_FORMATS,
        *(name for name in FORMATS if format_of(name).writer),
    }


def test_a_request_keeps_its_other_fields_byte_for_byte() -> None:
    text = SESSIONS["anthropic"](3)
    data = rewrite(text, cut(text, 2, pin=False)).data.decode()
    before, _, _ = text.partition('"messages"')
    assert data.startswith(before)
    assert json.loads(data)["metadata"] == {"user_id": "u-1"}


def test_claude_code_lines_hang_on_lines_that_are_there() -> None:
    text = SESSIONS["claude-code"](6)
    lines = [json.loads(line) for line in rewrite(text, cut(text, 3, pin=True)).data.splitlines()]
    seen: set[str | None] = {None}
    for line in lines:
        assert line["parentUuid"] in seen
        assert line["uuid"] not in seen
        seen.add(line["uuid"])
    assert [line["parentUuid"] for line in lines].count(None) == 1
    assert lines[0]["subtype"] == "compact_boundary"
    assert lines[1]["isCompactSummary"] is True
    assert {line["sessionId"] for line in lines} == {"s-1"}
    parents = [line["parentUuid"] for line in lines[1:]]
    assert parents == [line["uuid"] for line in lines[:-1]], "the path from the last line passes every line"


def test_pi_entries_hang_on_entries_that_are_there() -> None:
    text = SESSIONS["pi"](6)
    lines = [json.loads(line) for line in rewrite(text, cut(text, 3, pin=True)).data.splitlines()]
    assert lines[0] == json.loads(text.splitlines()[0])
    assert [line["parentId"] for line in lines[2:]] == [line["id"] for line in lines[1:-1]]


@pytest.mark.parametrize("name", ["claude-code", "stream-json", "pi"])
def test_usage_of_requests_that_held_more_is_gone(name: str) -> None:
    text = SESSIONS[name](6)
    assert any(message.meta.usage for message in parse(text).messages)
    back = parse(rewrite(text, cut(text, 3, pin=True)).data)
    assert not any(message.meta.usage for message in back.messages)


@pytest.mark.parametrize("name", ["claude-code", "codex", "pi", "anthropic", "openai"])
def test_an_edited_result_is_written_as_edited(name: str) -> None:
    text = SESSIONS[name](3)
    messages = list(parse(text).messages)
    place = max(index for index, message in enumerate(messages) if message.results)
    result = messages[place].results[0]
    short = ToolResult(call_id=result.call_id, name=result.name, parts=(Text(text="[cut]"),))
    messages[place] = messages[place].with_parts(short)
    data = rewrite(text, messages).data
    back = parse(data).messages[place]
    assert [part.text for part in back.parts if isinstance(part, ToolResult)] == ["[cut]"]
    assert b"part_2.py" not in data, "no copy of the long result is left beside it"


def test_a_file_that_cannot_be_written_raises_an_error_with_its_format() -> None:
    recording = {"sessionId": "s", "messages": [{"id": "1", "type": "gemini", "content": "Hello.", "tokens": {}}]}
    with pytest.raises(InputError, match=r"gemini-cli file can be read but not written.*--to.*anthropic"):
        rewrite(json.dumps(recording), ())
    with pytest.raises(InputError, match="this kind of document"):
        rewrite(json.dumps({"runs": [[{"role": "user", "content": "a"}], [{"role": "user", "content": "b"}]]}), ())


def test_a_half_written_last_line_is_left_out() -> None:
    text = SESSIONS["claude-code"](3) + '{"type": "user", "mess'
    assert parse(rewrite(text, cut(text, 1, pin=False)).data).format == "claude-code"


def test_a_first_line_that_names_no_parent_stays() -> None:
    """Some versions leave the field out of the first line; the prompt must not pass for one that was replaced."""
    first, *rest = [line for line in SESSIONS["claude-code"](6).splitlines() if '"parentUuid": ' in line]
    bare = {key: value for key, value in json.loads(first).items() if key != "parentUuid"}
    text = "\n".join([json.dumps(bare), *rest]) + "\n"
    messages = cut(text, 3, pin=True)
    assert len(parse(rewrite(text, messages).data).messages) == len(messages)


def test_the_newest_settings_and_the_first_description_of_a_session_are_kept() -> None:
    lines = SESSIONS["codex"](5).splitlines()
    metas = [line for line in lines if json.loads(line)["type"] == "session_meta"]
    of_parent = json.dumps({**json.loads(metas[0]), "payload": {"id": "parent"}})
    settings = [json.dumps({"type": "turn_context", "payload": {"model": model}}) for model in ("gpt-5", "gpt-5.6")]
    text = "\n".join([metas[0], of_parent, settings[0], *lines[1:], settings[1]]) + "\n"
    data = rewrite(text, cut(text, 2, pin=False)).data
    back = [json.loads(line) for line in data.decode().splitlines()]
    assert [line["payload"]["model"] for line in back if line["type"] == "turn_context"] == ["gpt-5.6"]
    assert [line for line in back if line["type"] == "session_meta"] == [json.loads(metas[0])]


@pytest.mark.parametrize("name", ["claude-code", "stream-json", "codex", "openai lines", "pi"])
def test_a_broken_line_is_left_out_of_the_new_file(name: str, tmp_path: Path) -> None:
    lines = SESSIONS[name](6).split("\n")
    lines[5] = lines[5][: len(lines[5]) // 2]
    broken = "\n".join(lines)
    (tmp_path / "broken.jsonl").write_text(broken)
    messages = read(tmp_path / "broken.jsonl").messages
    assert said(parse(rewrite(broken, messages).data).messages) == said(messages)
