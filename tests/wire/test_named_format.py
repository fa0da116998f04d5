"""A format that the caller names: another format is refused, valid input of the named format never is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from foldline.errors import InputError
from foldline.wire import FORMATS, parse, read
from support.command import foldline, one_sentence
from support.sessions import SESSIONS

ALIKE = {("claude-code", "stream-json"), ("stream-json", "claude-code")}
"""Session files with the same messages, in lines that both readers know."""


@pytest.mark.parametrize("named", FORMATS)
@pytest.mark.parametrize("name", SESSIONS)
def test_input_in_another_format_is_refused_by_its_name(name: str, named: str) -> None:
    text = SESSIONS[name]()
    own = parse(text)
    if named == own.format or (own.format, named) in ALIKE:
        read_again = parse(text, named)
        assert [message.parts for message in read_again.messages] == [message.parts for message in own.messages]
        return
    with pytest.raises(InputError, match=f"not in the format {named}: it looks like {own.format}"):
        parse(text, named)


@pytest.mark.parametrize("command", ["fold", "inspect"])
def test_a_wrong_format_flag_writes_no_file_and_names_the_right_format(command: str, tmp_path: Path) -> None:
    file, out = tmp_path / "a.json", tmp_path / "out.json"
    file.write_text(SESSIONS["anthropic"]())
    for named in ("openai", "openai-responses", "gemini"):
        flags = ["-o", str(out)] if command == "fold" else []
        printed = one_sentence(foldline(command, str(file), "--format", named, *flags))
        assert "it looks like anthropic" in printed
        assert not out.exists()
    assert read(file, "anthropic").messages


def test_a_system_text_that_the_named_format_would_lose_is_refused() -> None:
    body = {"system": "Be brief.", "messages": [{"role": "user", "content": "hi"}]}
    with pytest.raises(InputError, match="it looks like anthropic"):
        parse(body, "openai")


def test_plain_messages_are_no_gemini_contents() -> None:
    with pytest.raises(InputError, match="not in the format gemini"):
        parse([{"role": "user", "content": "hi"}], "gemini")


VALID: dict[str, list[Any]] = {
    "openai": [
        {"role": "user", "content": [{"type": "newest_block", "data": "x"}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "document", "id": "d"}]},
        {"role": "user", "content": "hi"},
    ],
    "anthropic": [
        {"role": "user", "content": [{"type": "newest_block", "data": "x"}]},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "file", "id": "f"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "no"}]},
        {"role": "user", "content": "hi"},
    ],
    "openai-responses": [
        {"type": "newest_item", "id": "n"},
        {"type": "newest_call", "id": "n"},
        {"role": "user", "content": [{"type": "newest_part"}]},
        {"role": "user", "content": "hi"},
    ],
    "gemini": [
        {"role": "user", "parts": [{"newestPart": {}}]},
        {"parts": [{"text": "hi"}]},
        {"role": "model"},
    ],
}


@pytest.mark.parametrize("named", VALID)
def test_unknown_blocks_of_the_named_format_are_read(named: str) -> None:
    for element in VALID[named]:
        (message,) = parse([element], named).messages
        assert message.wire is not None
        assert message.wire.value == element
    text = json.dumps(VALID[named])
    assert len(parse(text, named).messages) == len(VALID[named])
