"""`view.request(...)`: the whole request, sent with the real SDKs to the strict simulated provider."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline import InputError, Policy, Session
from foldline.recall.tools import Tools
from foldline.testing import SimulatedProvider
from foldline.testing.provider import call, judge
from support.vendor_models import MODELS

anthropic = pytest.importorskip("anthropic")
openai = pytest.importorskip("openai")
genai = pytest.importorskip("google.genai")

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS: dict[str, dict[str, Any]] = {
    "anthropic": {"name": "read", "description": "Read a file.", "input_schema": SCHEMA},
    "openai": {"type": "function", "function": {"name": "read", "description": "Read a file.", "parameters": SCHEMA}},
    "openai-responses": {"type": "function", "name": "read", "description": "Read a file.", "parameters": SCHEMA}
    | {"strict": False},
    "gemini": {
        "functionDeclarations": [{"name": "read", "description": "Read a file.", "parametersJsonSchema": SCHEMA}]
    },
}


def ask(provider: SimulatedProvider, format: str, request: dict[str, Any]) -> Any:
    """Send a request with the vendor's own SDK."""
    if format == "anthropic":
        with anthropic.Anthropic(base_url=provider.url, api_key="any") as client:
            return client.messages.create(**request)
    if format == "gemini":
        client = genai.Client(api_key="any", http_options={"base_url": provider.url})
        return client.models.generate_content(**request)
    with openai.OpenAI(base_url=provider.openai_url, api_key="any") as client:
        create = client.chat.completions.create if format == "openai" else client.responses.create
        return create(**request)


@pytest.mark.parametrize("written_for", TOOLS)
@pytest.mark.parametrize("format", TOOLS)
def test_an_agent_sends_the_request_as_it_is(provider: SimulatedProvider, format: str, written_for: str) -> None:
    """Tools of any format are given once; the call and its result go through, and no request is refused."""
    provider.script(call("read", path="a.py"), "It is empty.")
    session = Session(model=MODELS[format], format=format, tools=[TOOLS[written_for]])
    session.add(*({"role": "system", "content": "Be brief."},), format="openai")
    session.add({"role": "user", "content": "What is in a.py?"}, format="openai")
    reply = ask(provider, format, session.view().request(format, max_tokens=500))
    session.add(reply)
    (asked,) = session.messages[-1].calls
    assert (asked.name, asked.arguments) in {("read", '{"path": "a.py"}'), ("read", '{"path":"a.py"}')}
    session.add({"role": "tool", "tool_call_id": asked.id, "name": "read", "content": "(empty)"}, format="openai")
    session.add(ask(provider, format, session.view().request(format, max_tokens=500)))
    assert session.messages[-1].text == "It is empty."
    assert not provider.refused
    assert all("read" in str(sent.body["tools"]) for sent in provider.requests)


@pytest.mark.parametrize("format", TOOLS)
def test_tools_are_counted_because_the_session_sends_them(format: str) -> None:
    bare = Session(model=MODELS[format])
    session = Session(model=MODELS[format], tools=[TOOLS[format]])
    for each in (bare, session):
        each.add({"role": "user", "content": "hi"})
    assert session.view().blocks["tools"] > 20
    assert session.view().tokens > bare.view().tokens
    assert session.view().request(format)["model"] == MODELS[format]


def test_tools_given_to_a_request_are_refused() -> None:
    session = Session(model="gpt-5")
    session.add({"role": "user", "content": "hi"})
    with pytest.raises(InputError, match=r"tools are given to the session.*Session\(tools=…\)"):
        session.view().request("openai", tools=[TOOLS["openai"]])
    with pytest.raises(InputError, match="'messages' comes from the session"):
        session.view().request("openai", messages=[])
    session.use(tools=[TOOLS["openai"]])
    assert session.view().request("openai", temperature=0)["tools"] == [TOOLS["openai"]]


def test_fields_of_the_caller_are_added() -> None:
    session = Session(model="claude-sonnet-5")
    session.add({"role": "user", "content": "hi"})
    request = session.view().request("anthropic", max_tokens=10, temperature=0.5, model="claude-haiku-4-5")
    assert (request["temperature"], request["model"], request["max_tokens"]) == (0.5, "claude-haiku-4-5", 10)
    chat = session.view().request("openai", max_tokens=10)
    assert chat["max_tokens"] == 10
    config = session.view().request("gemini", max_tokens=10, temperature=0.5, config={"top_k": 3})["config"]
    assert config == {"max_output_tokens": 10, "temperature": 0.5, "top_k": 3}


def test_openai_gets_its_own_name_for_the_limit() -> None:
    session = Session(model="gpt-5")
    session.add({"role": "user", "content": "hi"})
    assert session.view().request("openai", max_tokens=10)["max_completion_tokens"] == 10
    assert session.view().request("openai-responses", max_tokens=10)["max_output_tokens"] == 10


def test_a_reply_longer_than_what_is_reserved_is_refused() -> None:
    """Otherwise request and reply together could be larger than the window, which only shows when it is full."""
    session = Session(model="claude-sonnet-5", policy=Policy.preset("balanced").but(window_tokens=20_000))
    session.add({"role": "user", "content": "hi"})
    with pytest.raises(InputError, match=r"max_tokens 8,192 is more than the 5,000 .*but\(reply_tokens=8192\)"):
        session.view().request(max_tokens=8_192)
    assert session.view().request()["max_tokens"] == 5_000


@pytest.mark.parametrize("asked", [60_000, 100_000, 5_000_000])
def test_the_hint_for_a_reply_that_is_too_long_names_a_policy_that_works(asked: int) -> None:
    session = Session(model="claude-haiku-4-5")
    session.add({"role": "user", "content": "hi"})
    with pytest.raises(InputError, match="reserved for the reply") as caught:
        session.view().request("anthropic", max_tokens=asked)
    (change,) = re.findall(r"session\.use\(policy=session\.policy\.but\(reply_tokens=(\d+)\)\)", caught.value.hint)
    rules = session.policy.rules
    session.use(policy=session.policy.but(reply_tokens=int(change)))
    assert session.view().request("anthropic", max_tokens=min(asked, int(change)))["max_tokens"] == min(asked, 64_000)
    assert session.policy.rules == rules, "it folds as before"
    assert judge("anthropic", session.view().request(max_tokens=int(change))) is None


def test_a_session_without_a_model_says_so() -> None:
    session = Session(format="openai")
    session.add({"role": "user", "content": "hi"})
    with pytest.raises(InputError, match=r"the request has no model"):
        session.view().request()


def test_a_reopened_session_needs_its_tools_again(tmp_path: Any) -> None:
    import foldline

    with foldline.open(tmp_path / "a.db") as ledger:
        session = ledger.session("s", model="claude-sonnet-5", tools=[TOOLS["anthropic"]])
        session.add({"role": "user", "content": "hi"})
        assert session.branch("other").view().request()["tools"] == [TOOLS["anthropic"]]
    with foldline.open(tmp_path / "a.db") as ledger:
        session = ledger.session("s")
        with pytest.raises(InputError, match=r"given in another process.*tools=…"):
            session.view().request()
        assert ledger.session("s", tools=[TOOLS["anthropic"]]).view().request()["tools"] == [TOOLS["anthropic"]]
        assert "tools" not in ledger.session("s", tools=[]).view().request()


def test_a_python_function_is_no_definition() -> None:
    with pytest.raises(InputError, match="a tool definition must be a dict, not test_a_python_function"):
        Session(tools=[test_a_python_function_is_no_definition])


def test_a_tool_of_one_provider_cannot_be_sent_to_another() -> None:
    search = {"type": "web_search_20250305", "name": "web_search"}
    session = Session(model="claude-sonnet-5", tools=[search, TOOLS["openai"]])
    session.add({"role": "user", "content": "hi"})
    assert session.view().request("anthropic")["tools"] == [search, TOOLS["anthropic"]]
    with pytest.raises(InputError, match="the tool 'web_search' cannot be written in the format 'openai'"):
        session.view().request("openai")


def _renamed(definition: Any, name: str) -> Any:
    return json.loads(json.dumps(definition).replace('"read"', f'"{name}"'))


@given(order=st.lists(st.sampled_from(sorted(TOOLS)), min_size=1, max_size=4), target=st.sampled_from(sorted(TOOLS)))
def test_definitions_of_any_format_become_the_same_definition(order: list[str], target: str) -> None:
    tools = [_renamed(TOOLS[format], f"read_{number}") for number, format in enumerate(order)]
    session = Session(model="gpt-5", tools=tools)
    session.add({"role": "user", "content": "hi"})
    request = session.view().request(target)
    found = request["config"]["tools"] if target == "gemini" else request["tools"]
    expected = [_renamed(TOOLS[target], f"read_{number}") for number in range(len(order))]
    if target == "gemini":
        declared = [declaration for tool in found for declaration in tool["functionDeclarations"]]
        in_order = sorted(declared, key=lambda declaration: declaration["name"])
        assert in_order == [declaration for tool in expected for declaration in tool["functionDeclarations"]]
    else:
        assert found == expected


@pytest.mark.parametrize("format", TOOLS)
def test_two_tools_with_one_name_are_refused(format: str) -> None:
    session = Session(model=MODELS[format], format=format, tools=[TOOLS[format], TOOLS["openai"]])
    session.add({"role": "user", "content": "hi"}, format="openai")
    with pytest.raises(InputError, match="2 tools are named 'read': give each tool its own name"):
        session.view().request()


@pytest.mark.parametrize("name", ["read file", "x" * 200, "größe"])
@pytest.mark.parametrize("format", ["anthropic", "openai", "openai-responses"])
def test_a_tool_name_that_the_provider_refuses_is_named(format: str, name: str) -> None:
    session = Session(model=MODELS[format], format=format, tools=[_renamed(TOOLS[format], name)])
    session.add({"role": "user", "content": "hi"}, format="openai")
    with pytest.raises(InputError, match="letters, digits, _ and -"):
        session.view().request()


def test_tool_calls_without_tools_are_refused_where_the_provider_refuses_them() -> None:
    session = Session(model="claude-sonnet-5")
    session.add({"role": "user", "content": "hi"})
    session.add({"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "read", "input": {}}]})
    session.add({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "42"}]})
    with pytest.raises(InputError, match="the messages have tool calls, but the session has no tools"):
        session.view().request(max_tokens=100)
    session.use(tools=[TOOLS["anthropic"]])
    assert session.view().request(max_tokens=100)["tools"]


@pytest.mark.parametrize("format", TOOLS)
def test_the_tools_of_the_session_have_definitions_in_every_format(provider: SimulatedProvider, format: str) -> None:
    session = Session(model=MODELS[format], format=format, tools=Tools.definitions(format))
    session.add({"role": "user", "content": "The port is 7091."}, format="openai")
    provider.script(call("recall", query="port"), "7091")
    session.add(ask(provider, format, session.view().request(max_tokens=200)))
    session.add(Tools(session).answer(session.messages[-1].calls[0]))
    session.add(ask(provider, format, session.view().request(max_tokens=200)))
    assert session.messages[-1].text == "7091"
    assert not provider.refused


@pytest.mark.parametrize("shape", [None, {"type": "text"}, {"syntax": "regex", "definition": "a+"}])
def test_a_custom_tool_is_written_in_both_formats_of_openai(shape: dict[str, str] | None) -> None:
    is_grammar = shape is not None and "syntax" in shape
    there = {"format": {"type": "grammar", **shape} if is_grammar else shape} if shape else {}
    here = {"format": {"type": "grammar", "grammar": shape} if is_grammar else shape} if shape else {}
    chat = {"type": "custom", "custom": {"name": "patch", "description": "Patches.", **here}}
    responses = {"type": "custom", "name": "patch", "description": "Patches.", **there}
    for tool in (chat, responses):
        session = Session(model="gpt-5", tools=[tool])
        session.add({"role": "user", "content": "go"})
        assert session.view().request("openai")["tools"] == [chat]
        assert session.view().request("openai-responses")["tools"] == [responses]
    session = Session(model="gpt-5", tools=[chat])
    session.add({"role": "user", "content": "go"})
    with pytest.raises(InputError, match="'patch' cannot be written in the format 'anthropic'"):
        session.view().request("anthropic", max_tokens=9)


def test_the_source_of_an_exact_size_is_its_counter() -> None:
    pytest.importorskip("splintr")
    session = Session(model="gpt-5")
    session.add({"role": "user", "content": "hello " * 50})
    view = session.view()
    assert view.exact
    assert view.source == session.state.setup.counter.name
    assert "estimated" not in str(view)
