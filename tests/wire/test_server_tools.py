"""Anthropic's own tools: a paused reply goes back as it is; a call without a result is sent only while it runs."""

from __future__ import annotations

from typing import Any

import pytest

from foldline import Session
from foldline.message import tool, user
from foldline.testing import assert_sendable
from foldline.testing.provider import judge

TOOLS = [{"type": "web_search_20250305", "name": "web_search"}, {"name": "run", "input_schema": {"type": "object"}}]
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
RUN = {"type": "tool_use", "id": "toolu_1", "name": "run", "input": {}}
TEXT = {"type": "text", "text": "I look it up."}


def reply(*blocks: dict[str, Any], stop: str = "pause_turn", number: int = 1) -> dict[str, Any]:
    usage = {"input_tokens": 10, "output_tokens": 5}
    fields = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "claude-opus-5", "usage": usage}
    return {**fields, "stop_reason": stop, "stop_sequence": None, "content": list(blocks)}


def sent(session: Session) -> list[Any]:
    rendered = session.view().render()
    assert_sendable(rendered)
    body = {**rendered.body, "model": "claude-opus-5", "max_tokens": 100, "tools": TOOLS}
    assert judge("anthropic", body) is None
    contents = [message["content"] for message in rendered.body["messages"]]
    return [["text"] if isinstance(each, str) else [block["type"] for block in each] for each in contents]


def asked() -> Session:
    session = Session(model="claude-opus-5", format="anthropic")
    session.add(user("find out"))
    return session


@pytest.mark.parametrize("blocks", [[TEXT, SEARCH], [SEARCH, FOUND], [TEXT, SEARCH, FOUND]])
def test_a_paused_reply_is_the_end_of_the_next_request(blocks: list[Any]) -> None:
    session = asked()
    session.add(reply(*blocks))
    assert sent(session) == [["text"], [block["type"] for block in blocks]]


def test_a_paused_reply_that_ends_with_text_goes_back_as_it_is() -> None:
    session = asked()
    session.add(reply(SEARCH, FOUND, TEXT))
    message = session.view().render().body["messages"][-1]
    assert [block["type"] for block in message["content"]] == ["server_tool_use", "web_search_tool_result", "text"]


def test_nothing_stands_between_a_paused_reply_and_the_reply_that_continues_it() -> None:
    session = asked()
    session.add(reply(SEARCH, FOUND), reply(TEXT, stop="end_turn", number=2), user("thanks"))
    roles = [message["role"] for message in session.view().render().body["messages"]]
    assert roles == ["user", "assistant", "assistant", "user"]


def test_a_call_without_its_result_is_left_out_when_the_user_goes_on() -> None:
    session = asked()
    session.add(reply(TEXT, SEARCH), user("never mind"))
    assert sent(session) == [["text"], ["text"], ["text"]]


def test_a_call_of_an_mcp_server_without_its_result_is_left_out_when_the_user_goes_on() -> None:
    session = asked()
    call = {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "x", "server_name": "s", "input": {}}
    session.add(reply(TEXT, call), user("never mind"))
    assert sent(session) == [["text"], ["text"], ["text"]]


def test_a_call_beside_a_call_of_the_client_runs_when_its_result_is_sent() -> None:
    session = asked()
    session.add(reply(TEXT, SEARCH, RUN, stop="tool_use"), tool("toolu_1", "done"))
    assert sent(session) == [["text"], ["text", "server_tool_use", "tool_use"], ["tool_result"]]
    session.add(reply(FOUND, TEXT, stop="end_turn", number=2), user("thanks"))
    assert sent(session)[1:] == [
        ["text", "server_tool_use", "tool_use"],
        ["tool_result"],
        ["web_search_tool_result", "text"],
        ["text"],
    ]


def test_a_call_beside_a_call_of_the_client_is_left_out_if_the_next_reply_has_no_result_for_it() -> None:
    session = asked()
    session.add(reply(TEXT, SEARCH, RUN, stop="tool_use"), tool("toolu_1", "done"))
    session.add(reply(TEXT, stop="end_turn", number=2), user("thanks"))
    assert sent(session)[1] == ["text", "tool_use"]


def test_a_call_stays_while_the_calls_that_it_made_are_answered() -> None:
    code = {"type": "server_tool_use", "id": "srvtoolu_2", "name": "code_execution", "input": {"code": "run()"}}
    caller = {"type": "code_execution_20250825", "tool_id": "srvtoolu_2"}
    session = asked()
    session.add(reply(code, {**RUN, "caller": caller}, stop="tool_use"), tool("toolu_1", "one"))
    session.add(reply({**RUN, "id": "toolu_2", "caller": caller}, stop="tool_use", number=2), tool("toolu_2", "two"))
    assert sent(session)[1:] == [["server_tool_use", "tool_use"], ["tool_result"], ["tool_use"], ["tool_result"]]
