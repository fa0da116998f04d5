"""The tools for a model: answers, refusals, definitions, and MCP."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
from foldline import AsyncSession, AsyncTools, Session
from foldline.errors import ConfigError
from foldline.measure.estimator import Estimator
from foldline.message import Message, ToolCall, assistant, tool, user
from foldline.recall.tools import TOOLS, Tools
from foldline.testing import assert_sendable
from support.recalls import LedgerSession

TALK = [
    user("Which port does the worker use?"),
    assistant("The worker listens on 8081."),
    user("Thanks. And the queue?"),
    assistant("The queue is called jobs-high."),
    user("Go on."),
    assistant("Done."),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | strategies.texts(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(strategies.texts(), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture
def session() -> Iterator[LedgerSession]:
    made = LedgerSession(":memory:")
    made.store.append(made.branch, TALK)
    yield made
    made.store.close()


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(id="c1", name=name, arguments=json.dumps(arguments))


def test_recall_works_by_query_and_by_handle(session: LedgerSession) -> None:
    tools = Tools(session)
    assert "8081" in str(tools.run_call(call("recall", query="worker port")))
    assert str(tools.run_call(call("recall", handle="#4"))) == "#4 assistant: The queue is called jobs-high."


@pytest.mark.parametrize(
    "form",
    [
        {"id": "c1", "type": "function", "function": {"name": "recall", "arguments": '{"query": "worker"}'}},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "recall", "arguments": '{"query": "worker"}'},
        {"type": "tool_use", "id": "c1", "name": "recall", "input": {"query": "worker"}},
        call("recall", query="worker"),
        call("recall", query="worker", handle=None, tokens=500, everywhere=True),
    ],
)
def test_a_call_is_accepted_in_every_wire_format(session: LedgerSession, form: Any) -> None:
    answered = Tools(session).answer(form)
    assert answered.results[0].call_id == "c1"
    assert answered.results[0].name == "recall"
    assert "8081" in answered.results[0].text
    assert not answered.results[0].is_error


def test_sdk_objects_are_accepted_as_calls(session: LedgerSession) -> None:
    from anthropic.types import ToolUseBlock
    from openai.types.chat import ChatCompletionMessageFunctionToolCall
    from openai.types.responses import ResponseFunctionToolCall

    forms = [
        ToolUseBlock(id="c1", name="recall", input={"query": "worker"}, type="tool_use"),
        ChatCompletionMessageFunctionToolCall.model_validate(
            {"id": "c1", "type": "function", "function": {"name": "recall", "arguments": '{"query": "worker"}'}}
        ),
        ResponseFunctionToolCall(call_id="c1", name="recall", arguments='{"query": "worker"}', type="function_call"),
    ]
    for form in forms:
        answered = Tools(session).answer(form)
        assert answered.results[0].call_id == "c1"
        assert "8081" in answered.results[0].text


@pytest.mark.promise("I8")
def test_pinned_text_stays_verbatim(session: LedgerSession) -> None:
    tools = Tools(session)
    for made in (call("pin", text="never push to main"), call("pin", handle="#2")):
        assert not tools.run_call(made).is_error
    text, said = session.store.state(session.branch).pins
    assert text.message == user("never push to main")
    assert said.position == 1
    tools.run_call(call("fold"))
    assert len(session.store.state(session.branch).pins) == 2


def test_recall_reaches_messages_that_were_folded(session: LedgerSession) -> None:
    tools = Tools(session)
    before = str(tools.run_call(call("context_left")))
    assert "of 1,000 tokens are used" in before
    assert "folded" in str(tools.run_call(call("fold")))
    assert str(tools.run_call(call("context_left"))) != before
    assert "8081" in str(tools.run_call(call("recall", query="worker port")))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (call("recall"), "give either query or handle"),
        (call("recall", query="x", handle="#1"), "exactly one"),
        (call("recall", query=" \n"), "give either query or handle"),
        (call("recall", handle="#99"), "unknown handle"),
        (call("recall", handle="1 OR 1=1"), "not a handle"),
        (call("recall", query=["x"]), 'query must be of type string, not ["x"]'),
        (call("recall", query="x", tokens=True), "tokens must be of type integer, not true"),
        (call("recall", query="x", tokens=1), "1 tokens are too few: ask for at least 50"),
        (call("recall", query="x", session="other"), "no argument 'session'"),
        (call("pin", text="x" * 5000), "too many to pin"),
        (call("pin", handle="#77"), "no message 76"),
        (call("fold", now=True), "no argument 'now'"),
        (call("rm -rf"), "unknown tool 'rm -rf'"),
        (ToolCall(id="c1", name="recall", arguments="{"), "not valid JSON"),
        (ToolCall(id="c1", name="recall", arguments="[1]"), "not a JSON object"),
        (ToolCall(id="c1", name="recall", arguments="[" * 100_000), "not valid JSON"),
        ("recall", "not a tool call"),
        ({}, "unknown tool ''"),
    ],
)
def test_an_invalid_call_is_answered_with_the_reason_and_a_hint(session: LedgerSession, given: Any, says: str) -> None:
    answered = Tools(session).run_call(given)
    assert answered.is_error
    assert says in answered.text
    assert session.store.head(session.branch).length == len(TALK)


@settings(max_examples=50)
@given(name=st.sampled_from([tool_.name for tool_ in TOOLS] + ["other"]), arguments=JSON)
def test_no_arguments_make_a_call_raise(name: str, arguments: Any) -> None:
    session = LedgerSession(":memory:")
    session.store.append(session.branch, TALK)
    for form in (
        {"type": "tool_use", "id": "c1", "name": name, "input": arguments},
        {"id": "c1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}},
    ):
        answered = Tools(session).run_call(form)
        assert answered.text
        assert answered.is_error or name != "other"
    assert [stored.message for stored in session.store.read(session.branch)] == TALK
    session.store.close()


def test_an_answer_keeps_the_token_limit(session: LedgerSession) -> None:
    session.store.append(session.branch, [tool("c", "word " * 50_000)])
    for made in (call("recall", handle="#1-7", tokens=10**9), call("recall", query="word", tokens=10**9)):
        assert Estimator().count(str(Tools(session).run_call(made))).upper <= 2000


@pytest.mark.parametrize("provider", ["openai", "openai-responses", "anthropic"])
def test_definitions_are_valid_in_each_wire_format(provider: str) -> None:
    made = Tools.definitions(provider)
    assert json.loads(json.dumps(made)) == made
    body = {"model": "m", "max_tokens": 10, "tools": made}
    talk = {"input" if provider == "openai-responses" else "messages": [{"role": "user", "content": "hello"}]}
    assert_sendable(body | talk, provider)
    names = [item.get("name") or item["function"]["name"] for item in made]
    assert names == ["recall", "pin", "fold", "context_left"]


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ConfigError, match="openai-responses"):
        Tools.definitions("carrier pigeon")


SERVER = (
    "import sys; from support.recalls import LedgerSession; "
    "from foldline.recall.mcp_server import serve; serve(LedgerSession(sys.argv[1]))"
)


def test_the_tools_work_over_mcp(tmp_path: Path) -> None:
    """The real client, over a real pipe, to a server in another process."""
    import anyio
    from mcp import Client, StdioServerParameters

    path = str(tmp_path / "agent.db")
    session = LedgerSession(path)
    session.store.append(session.branch, TALK)
    tests = Path(__file__).parent.parent
    environment = dict(os.environ) | {"PYTHONPATH": os.pathsep.join([str(tests), *sys.path])}
    program = StdioServerParameters(command=sys.executable, args=["-c", SERVER, path], env=environment)
    answers: list[tuple[str, bool]] = []

    async def talk() -> list[str]:
        async with Client(program) as client:
            listed = await client.list_tools()
            for name, arguments in CALLS:
                result = await client.call_tool(name, arguments)
                answers.append(("".join(getattr(part, "text", "") for part in result.content), bool(result.is_error)))
            return [offered.name for offered in listed.tools]

    assert anyio.run(talk) == [tool_.name for tool_ in TOOLS]
    texts = [text for text, _ in answers]
    assert "8081" in texts[0]
    assert texts[1] == "#4 assistant: The queue is called jobs-high."
    assert "folded" in texts[3]
    assert "tokens are used" in texts[4]
    assert [wrong for _, wrong in answers] == [False, False, False, False, False, True, True]
    assert session.store.state(session.branch).pins[0].message == user("never push to main")
    assert session.store.state(session.branch).fold is not None
    session.store.close()


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("recall", {"query": "worker port"}),
    ("recall", {"handle": "#4"}),
    ("pin", {"text": "never push to main"}),
    ("fold", {}),
    ("context_left", {}),
    ("recall", {"handle": "'; DROP TABLE messages"}),
    ("recall", {"owner": "somebody else", "query": "x"}),
]


def test_the_tools_of_an_async_session_are_awaited() -> None:
    """A call of Gemini, whose arguments are called `args`."""

    async def run() -> Message:
        session = AsyncSession(Session(model="gemini-2.5-pro"))
        await session.add(user("The worker listens on port 7091."))
        tools = AsyncTools(session)
        assert (await tools.run("pin", {"handle": "#1"})).text
        assert not (await tools.run_call({"name": "recall", "args": {"query": "which port"}})).is_error
        answer = await tools.answer({"name": "recall", "args": {"query": "which port"}})
        await session.add(answer)
        return answer

    answer = asyncio.run(run())
    assert "7091" in answer.results[0].text
    assert answer.results[0].name == "recall"
