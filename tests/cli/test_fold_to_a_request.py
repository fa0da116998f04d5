"""`foldline fold --to`: the written request is one that the provider accepts, and nothing is left out silently."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from foldline.testing.provider import judge
from foldline.wire import REQUEST_FORMATS
from foldline.wire.tool_definitions import convert_tools, tool_names
from support.command import foldline
from support.sessions import SESSIONS
from support.vendor_models import MODELS

WINDOW = ("--window", "12000")
GREP: dict[str, Any] = {
    "name": "grep",
    "description": "Search files.",
    "input_schema": {"type": "object", "properties": {"pattern": {"type": "string"}}},
}


def _source(name: str) -> str:
    """The session in a format, as a request with tools and a model if the format is one of a request."""
    text = SESSIONS[name]()
    if name not in REQUEST_FORMATS:
        return text
    value = json.loads(text)
    body = value if isinstance(value, dict) else {"messages": value}
    named = {} if name == "gemini" else {"model": body.get("model", MODELS[name])}
    return json.dumps({**body, **named, "tools": convert_tools([GREP], name)})


def _fold(tmp_path: Path, text: str, *flags: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The written request and the report."""
    file, out = tmp_path / "in.json", tmp_path / "out.json"
    file.write_text(text)
    done = foldline("fold", str(file), "-o", str(out), "--json", "--force", *flags)
    assert done.returncode == 0, done.stderr
    return json.loads(out.read_text()), json.loads(done.stdout)


@pytest.mark.parametrize("to", REQUEST_FORMATS)
@pytest.mark.parametrize("name", SESSIONS)
def test_every_written_request_is_one_that_the_provider_accepts(name: str, to: str, tmp_path: Path) -> None:
    has_tools = name in REQUEST_FORMATS
    body, report = _fold(tmp_path, _source(name), *WINDOW, "--to", to, "-m", MODELS[to])
    assert judge(to, body, model=MODELS[to], needs_tools=has_tools) is None
    assert report["after"] < report["before"]
    assert body.get("model") == (None if to == "gemini" else MODELS[to])
    found = [tool for definition in body.get("tools", []) for tool in tool_names(definition)]
    assert found == ["grep"] * has_tools
    assert ("tools" in {item["what"] for item in report["to_add"]}) == (to == "anthropic" and not has_tools)


@pytest.mark.parametrize("tool", ["grep", "recall", "mcp__foldline__recall"])
@pytest.mark.parametrize("to", [None, "openai"])
def test_recall_is_advised_only_if_the_request_has_the_recall_tool(tool: str, to: str | None, tmp_path: Path) -> None:
    source = json.loads(_source("anthropic"))
    tools = convert_tools([{**GREP, "name": tool}], "anthropic")
    flags = () if to is None else ("--to", to, "-m", MODELS[to])
    body, report = _fold(tmp_path, json.dumps({**source, "tools": tools}), *WINDOW, *flags)
    text = json.dumps(body)
    assert report["fold"]
    assert re.search(r"earlier messages were condensed:(?: of)? #\d", text)
    assert ("ask recall" in text) == tool.endswith("recall")


@pytest.mark.parametrize("name", SESSIONS)
def test_a_folded_session_file_does_not_advise_to_use_recall(name: str, tmp_path: Path) -> None:
    file, out = tmp_path / "in.json", tmp_path / "out.json"
    file.write_text(SESSIONS[name]())
    done = foldline("fold", str(file), "-o", str(out), *WINDOW)
    assert done.returncode == 0, done.stderr
    assert "condensed" in out.read_text()
    assert "ask recall" not in out.read_text()


@pytest.mark.parametrize("to", REQUEST_FORMATS)
@pytest.mark.parametrize("name", REQUEST_FORMATS)
def test_a_request_that_fits_is_converted_with_its_tools_model_and_length(name: str, to: str, tmp_path: Path) -> None:
    lengths: dict[str, dict[str, Any]] = {
        "anthropic": {"max_tokens": 700},
        "openai": {"max_completion_tokens": 700},
        "openai-responses": {"max_output_tokens": 700},
        "gemini": {"generationConfig": {"maxOutputTokens": 700}},
    }
    source = {key: value for key, value in json.loads(_source(name)).items() if key != "generationConfig"}
    model = source.get("model", "")
    body, report = _fold(tmp_path, json.dumps({**source, **lengths[name]}), "--to", to)
    assert report["fold"] is None
    expected = lengths[to] if to != "openai" or model.startswith("gpt") else {"max_tokens": 700}
    assert {key: body.get(key) for key in expected} == expected
    assert [tool for each in body["tools"] for tool in tool_names(each)] == ["grep"]
    if to == "gemini" or model:
        assert judge(to, body, model=MODELS[to]) is None
        assert report["to_add"] == []
    else:
        assert [item["what"] for item in report["to_add"]] == ["model"]


def test_what_cannot_be_converted_is_named_under_lost(tmp_path: Path) -> None:
    body = {
        "model": "gpt-5",
        "input": "hello",
        "temperature": 0.5,
        "tools": [{"type": "web_search"}, *convert_tools([GREP], "openai-responses")],
    }
    written, report = _fold(tmp_path, json.dumps(body), "--to", "anthropic")
    assert tool_names(written["tools"][0]) == ["grep"]
    assert {item["what"] for item in report["lost"]} == {"temperature", "tool web_search"}
    assert {item["message"] for item in report["lost"]} == {None}
    assert judge("anthropic", written) is None
    printed = foldline("fold", str(tmp_path / "in.json"), "-o", "-", "--to", "anthropic").stderr
    assert "not rendered: temperature: set it again" in printed


def test_a_reply_longer_than_the_reserve_is_lowered_and_named(tmp_path: Path) -> None:
    body = {"model": "gpt-5", "messages": [{"role": "user", "content": "hello"}], "max_completion_tokens": 100_000}
    written, report = _fold(tmp_path, json.dumps(body), *WINDOW, "--to", "anthropic")
    assert written["max_tokens"] == report["window"] - report["usable"]
    assert [item["what"] for item in report["lost"]] == ["reply of 100,000 tokens"]


def test_a_request_in_the_format_of_the_file_keeps_its_other_fields(tmp_path: Path) -> None:
    source = json.loads(_source("anthropic"))
    written, report = _fold(tmp_path, json.dumps({**source, "temperature": 0.5}), *WINDOW, "--to", "anthropic")
    assert (written["temperature"], written["max_tokens"], written["metadata"]) == (0.5, 500, {"user_id": "u-1"})
    assert report["lost"] == []


def test_a_written_request_of_plain_texts_is_imported_in_its_format(tmp_path: Path) -> None:
    lines = [
        {
            "type": role,
            "uuid": f"u-{place}",
            "parentUuid": f"u-{place - 1}" if place else None,
            "sessionId": "s",
            "message": {"role": role, "content": f"Line {place}.", "model": "claude-sonnet-4-5"},
        }
        for place, role in enumerate(("user", "assistant", "user"))
    ]
    body, _ = _fold(tmp_path, "".join(json.dumps(line) + "\n" for line in lines), "--to", "anthropic")
    assert judge("anthropic", body) is None
    out, url = tmp_path / "out.json", tmp_path / "agent.db"
    done = foldline("import", str(out), "--ledger", str(url), "--json")
    assert json.loads(done.stdout)["sessions"][0]["format"] == "anthropic"
