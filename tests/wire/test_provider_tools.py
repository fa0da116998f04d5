"""Calls that a provider ran itself: recall, digests and other providers get what they said, as text."""

from __future__ import annotations

from typing import Any

import pytest

from foldline import Policy, Session
from foldline.testing import assert_sendable
from foldline.wire.formats import REQUEST_FORMATS
from foldline.wire.repair import repair

MODELS = {"anthropic": "claude-opus-4-5", "openai": "gpt-5", "openai-responses": "gpt-5", "gemini": "gemini-2.5-pro"}
LONG = "The log was read and nothing else was found in it. " * 40


def anthropic(name: str, arguments: Any, result: str, content: Any, call: str = "server_tool_use") -> list[Any]:
    key = "mcptoolu_1" if call == "mcp_tool_use" else "srvtoolu_1"
    server = {"server_name": "files"} if call == "mcp_tool_use" else {}
    blocks = [
        {"type": call, "id": key, "name": name, "input": arguments, **server},
        {"type": result, "tool_use_id": key, "content": content},
    ]
    return [{"role": "assistant", "content": blocks}]


FOUND = {"type": "web_search_result", "url": "https://a.example", "title": "port 8443", "encrypted_content": "Zm9v"}
BASH = {"type": "bash_code_execution_result", "stdout": "port 8443", "stderr": "", "return_code": 0, "content": []}
PAGE = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "port 8443"}, "title": "t"}
FETCHED = {"type": "web_fetch_result", "url": "https://a.example", "content": PAGE, "retrieved_at": None}
SAID = {"type": "text", "text": "port 8443"}
CODE = {"language": "PYTHON", "code": "print('deploy.cfg')"}
RAN = {"outcome": "OUTCOME_OK", "output": "port 8443"}

RUNS: list[tuple[str, str, list[Any]]] = [
    ("anthropic", "web search", anthropic("web_search", {"query": "deploy.cfg"}, "web_search_tool_result", [FOUND])),
    ("anthropic", "web fetch", anthropic("web_fetch", {"url": "deploy.cfg"}, "web_fetch_tool_result", FETCHED)),
    (
        "anthropic",
        "code execution",
        anthropic("bash_code_execution", {"command": "cat deploy.cfg"}, "bash_code_execution_tool_result", BASH),
    ),
    ("anthropic", "MCP", anthropic("read", {"path": "deploy.cfg"}, "mcp_tool_result", [SAID], "mcp_tool_use")),
    (
        "openai-responses",
        "file search",
        [{"type": "file_search_call", "id": "fs_1", "queries": ["deploy.cfg"], "results": [{"text": "port 8443"}]}],
    ),
    (
        "openai-responses",
        "code interpreter",
        [
            {
                "type": "code_interpreter_call",
                "id": "ci_1",
                "code": "cat('deploy.cfg')",
                "container_id": "c",
                "outputs": [{"type": "logs", "logs": "port 8443"}],
            }
        ],
    ),
    (
        "openai-responses",
        "MCP",
        [
            {
                "type": "mcp_call",
                "id": "mcp_1",
                "server_label": "files",
                "name": "read",
                "arguments": '{"path":"deploy.cfg"}',
                "output": "port 8443",
            }
        ],
    ),
    (
        "gemini",
        "code execution",
        [{"role": "model", "parts": [{"executableCode": CODE}, {"codeExecutionResult": RAN}]}],
    ),
]
each_run = pytest.mark.parametrize(
    ("format", "messages"), [(run[0], run[2]) for run in RUNS], ids=[f"{run[0]} {run[1]}" for run in RUNS]
)


def prompt(format: str, text: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": text}]} if format == "gemini" else {"role": "user", "content": text}


def session_with(format: str, messages: list[Any]) -> Session:
    session = Session(model=MODELS[format], format=format)
    session.add(prompt(format, "which port?"))
    session.add(*messages, format=format)
    session.add(prompt(format, "go on"))
    return session


@each_run
def test_another_provider_is_told_what_was_run_and_what_it_returned(format: str, messages: list[Any]) -> None:
    for other in REQUEST_FORMATS:
        session = session_with(format, messages)
        session.use(model=MODELS[other], format=other)
        rendered = session.view().render()
        assert_sendable(rendered)
        assert "deploy.cfg" in str(rendered.body), other
        assert "port 8443" in str(rendered.body), other


@each_run
def test_recall_finds_what_was_run_and_what_it_returned(format: str, messages: list[Any]) -> None:
    session = session_with(format, messages)
    shown = str(session.recall(handle=f"#2-{len(session.messages) - 1}"))
    assert "deploy.cfg" in shown
    assert "port 8443" in shown
    assert "port 8443" in str(session.recall("port 8443"))


@each_run
def test_a_local_digest_names_the_file_that_was_read(format: str, messages: list[Any]) -> None:
    session = Session(model=MODELS[format], format=format, policy=Policy.preset("balanced").but(background=False))
    session.add(prompt(format, "which port?"))
    session.add(*messages, format=format)
    for number in range(6):
        said = {"role": "model", "parts": [{"text": LONG}]} if format == "gemini" else None
        session.add(said or {"role": "assistant", "content": LONG}, prompt(format, f"and {number}?"))
    fold = session.fold(force=True)
    assert fold is not None
    assert fold.digest is not None
    assert "deploy.cfg" in fold.digest.message.text
    assert "no result yet" not in fold.digest.message.text


def test_a_result_without_its_call_is_sent_as_text() -> None:
    lost = {
        "role": "assistant",
        "content": anthropic("read", {}, "mcp_tool_result", [SAID], "mcp_tool_use")[0]["content"][1:],
    }
    session = Session(model="claude-opus-4-5", format="anthropic")
    session.add(prompt("anthropic", "which port?"), lost, prompt("anthropic", "go on"), format="anthropic")
    rendered = session.view().render()
    assert_sendable(rendered)
    assert "port 8443" in str(rendered.body["messages"][1])
    assert [note.code for note in repair(session.messages).notes] == ["server-result"]
