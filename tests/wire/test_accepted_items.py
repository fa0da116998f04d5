"""`Session.add` takes every block and item that a provider's API has, one at a time, and sends it back unchanged."""

from __future__ import annotations

from typing import Any

import pytest

from foldline import Policy, Session
from foldline.testing import assert_sendable

ASKED = {"role": "user", "content": "hi"}


def server(name: str, result: str, content: Any, key: str = "srvtoolu_1") -> list[dict[str, Any]]:
    """An assistant message with a call that Anthropic runs itself, its result and a text."""
    call = {"type": "server_tool_use", "id": key, "name": name, "input": {"code": "1"}}
    found = {"type": result, "tool_use_id": key, "content": content}
    return [{"role": "assistant", "content": [call, found, {"type": "text", "text": "done"}]}]


RUN = {"type": "code_execution_result", "stdout": "1", "stderr": "", "return_code": 0, "content": []}
BASH = {**RUN, "type": "bash_code_execution_result"}
EDIT = {"type": "text_editor_code_execution_create_result", "is_file_update": False}
APPROVAL = {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "x", "name": "t", "arguments": "{}"}
APPROVED = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
LISTED = {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "x", "tools": []}
SHELL = {"type": "shell_call", "call_id": "sh_1", "action": {"commands": ["ls"]}, "status": "completed"}
OUTPUT = {"stdout": "a.py", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
SHELL_OUTPUT = {"type": "shell_call_output", "call_id": "sh_1", "output": [OUTPUT]}
SEARCHED: list[dict[str, Any]] = [
    {"type": "tool_search_call", "call_id": "ts_1", "execution": "client", "arguments": {"query": "x"}},
    {"type": "tool_search_output", "call_id": "ts_1", "execution": "client", "tools": []},
]

ITEMS: list[tuple[str, str, list[dict[str, Any]]]] = [
    ("anthropic", "code execution", server("code_execution", "code_execution_tool_result", RUN)),
    ("anthropic", "bash code execution", server("bash_code_execution", "bash_code_execution_tool_result", BASH)),
    (
        "anthropic",
        "text editor",
        server("text_editor_code_execution", "text_editor_code_execution_tool_result", EDIT),
    ),
    ("anthropic", "web fetch", server("web_fetch", "web_fetch_tool_result", {"type": "web_fetch_result"})),
    ("anthropic", "tool search", server("tool_search", "tool_search_tool_result", {"type": "tool_search_result"})),
    ("openai-responses", "list of an MCP server's tools", [LISTED]),
    ("openai-responses", "approval that is pending", [APPROVAL]),
    ("openai-responses", "approval and its answer", [APPROVAL, APPROVED]),
    ("openai-responses", "shell", [SHELL, SHELL_OUTPUT]),
    ("openai-responses", "tool search by the client", SEARCHED),
    ("openai-responses", "compaction trigger", [{"type": "compaction_trigger"}]),
]
CASES = [pytest.param(format, items, id=f"{format}: {name}") for format, name, items in ITEMS]


@pytest.mark.parametrize("named", [True, False], ids=["format given", "format detected"])
@pytest.mark.parametrize(("format", "items"), CASES)
def test_every_item_goes_in_alone_and_comes_back_unchanged(
    format: str, items: list[dict[str, Any]], named: bool
) -> None:
    session = Session(policy=Policy(breakpoints=0), format=format if named else None)
    for item in (ASKED, *items):
        session.add(item)
    assert session.format == format
    asked = [] if items[-1].get("type") == "compaction_trigger" else [ASKED]
    session.add(*asked)
    rendered = session.view().render()
    sent = rendered.body["input" if format == "openai-responses" else "messages"]
    assert sent[1:] == [*items, *asked]
    assert rendered.lost == ()
    assert_sendable(rendered)


@pytest.mark.parametrize(
    "block", ["code_execution_tool_result", "bash_code_execution_tool_result", "text_editor_code_execution_tool_result"]
)
def test_a_block_of_a_server_side_tool_shows_that_a_message_is_anthropics(block: str) -> None:
    session = Session()
    session.add(ASKED, {"role": "assistant", "content": [{"type": block, "tool_use_id": "srvtoolu_1", "content": RUN}]})
    assert session.format == "anthropic"


def test_an_approval_without_its_request_is_read_as_an_item_of_the_responses_api() -> None:
    session = Session()
    session.add(ASKED, APPROVED)
    assert session.format == "openai-responses"
    assert_sendable(session.view().render())


@pytest.mark.parametrize("format", ["anthropic", "openai", "openai-responses"])
@pytest.mark.parametrize("content", ["", []])
def test_an_assistant_message_with_empty_content_is_accepted(format: str, content: Any) -> None:
    session = Session(format=format)
    session.add(ASKED, {"role": "assistant", "content": content}, {"role": "user", "content": "go on"})
    assert len(session.timeline) == 3
    assert_sendable(session.view().render())


def call_part(**more: Any) -> dict[str, Any]:
    return {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "run", "arguments": "{}", **more}


def test_a_function_call_in_the_content_beside_no_tool_calls_is_a_call_that_can_be_answered() -> None:
    session = Session(format="openai")
    session.add(ASKED, {"role": "assistant", "content": [call_part()], "tool_calls": []})
    session.add({"role": "tool", "tool_call_id": "call_1", "content": "ran"})
    rendered = session.view().render()
    assert_sendable(rendered)
    call = {"id": "call_1", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    assert rendered.body["messages"][1] == {"role": "assistant", "content": None, "tool_calls": [call]}
    assert rendered.body["messages"][2] == {"role": "tool", "tool_call_id": "call_1", "content": "ran"}
    assert_sendable(session.view().render("anthropic"))


def test_a_function_call_in_the_content_keeps_the_text_before_it() -> None:
    session = Session(format="openai")
    said = {"type": "text", "text": "I will run it."}
    session.add(ASKED, {"role": "assistant", "content": [said, call_part()], "tool_calls": []})
    session.add({"role": "tool", "tool_call_id": "call_1", "content": "ran"})
    rendered = session.view().render()
    assert_sendable(rendered)
    assert rendered.body["messages"][1]["content"] == [said]


def test_a_function_call_in_the_content_of_a_responses_message_becomes_an_item() -> None:
    session = Session(format="openai-responses")
    session.add(ASKED, {"role": "assistant", "content": [call_part()]})
    session.add({"type": "function_call_output", "call_id": "call_1", "output": "ran"})
    rendered = session.view().render()
    assert_sendable(rendered)
    assert [item.get("type", "message") for item in rendered.body["input"]] == [
        "message",
        "function_call",
        "function_call_output",
    ]


def test_a_list_with_an_item_of_an_unknown_type_is_read_in_the_format_of_the_session() -> None:
    items = [ASKED, SHELL, SHELL_OUTPUT, {"type": "item_of_next_year", "id": "x_1"}]
    session = Session(model="gpt-5", format="openai-responses")
    session.add(items)
    assert session.view().render().body["input"] == items


def test_a_reply_without_a_content_field_is_accepted() -> None:
    session = Session(model="gpt-5", format="openai")
    session.add(ASKED, {"role": "assistant"}, ASKED)
    assert len(session.messages) == 3
    assert session.view().render().body["messages"] == [ASKED, ASKED]
