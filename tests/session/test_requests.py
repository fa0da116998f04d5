"""`view.request(...)`: the whole request, sent with the real SDKs to the strict simulated provider."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline import InputError, Policy, Session
from foldline.recall.tools import Tools
from foldline.testing import SimulatedProvider
from foldline.testing.provider import call
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
    with pytest.raises(InputError, match=r"max_tokens 8,192 is more than the 5,000 .*Policy\(reply_tokens=8192\)"):
        session.view().request(max_tokens=8_192)
    assert session.view().request()["max_tokens"] == 5_000


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
    with pytest.raises(InputError, match="the tool 'web_search' has no form in the format 'openai'"):
        session.view().request("openai")


@given(order=st.lists(st.sampled_from(sorted(TOOLS)), min_size=1, max_size=4), target=st.sampled_from(sorted(TOOLS)))
def test_definitions_of_any_format_become_the_same_definition(order: list[str], target: str) -> None:
    session = Session(model="gpt-5", tools=[TOOLS[name] for name in order])
    session.add({"role": "user", "content": "hi"})
    request = session.view().request(target)
    found = request["config"]["tools"] if target == "gemini" else request["tools"]
    if target == "gemini":
        declared = [declaration for tool in found for declaration in tool["functionDeclarations"]]
        assert declared == TOOLS["gemini"]["functionDeclarations"] * len(order)
    else:
        assert found == [TOOLS[target]] * len(order)


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
