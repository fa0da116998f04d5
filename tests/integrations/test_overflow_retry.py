"""A provider whose window is smaller than foldline assumes refuses a request: the session is folded, and the request is
sent once more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx
import openai
import pytest
from google.genai.errors import APIError, ClientError

import foldline
from foldline import InputError, Policy, Session, is_overflow
from foldline.testing import SimulatedProvider
from foldline.testing.provider import SimulatedModel, fail
from support.framework_agents import CLAUDE, GEMINI, GPT, MODES, close_loop, run
from support.framework_agents.registry import agent_class
from support.proxies import chunked, raw_upstream

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the clients

CLIENTS = ("anthropic", "openai", "openai-responses", "gemini")
FRAMEWORKS = ("langchain-anthropic", "langchain-openai", "strands", "haystack", "smolagents")
"""Agents of frameworks whose adapters fold after a refusal, if they are installed."""
ASSUMED = Policy.preset("balanced").but(window_tokens=12_000)
"""A policy with a window that is larger than that of the provider."""


@pytest.fixture
def provider() -> Iterator[SimulatedProvider]:
    models = {name: SimulatedModel(window=6_000) for name in (CLAUDE, GPT, GEMINI)}
    with SimulatedProvider(models=models) as running:
        yield running
    close_loop()


def agent_of(name: str, provider: SimulatedProvider, session: Session, mode: str = "sync") -> Any:
    maker = agent_class(name)
    if maker is None:
        pytest.skip(f"the packages for {name} are not installed")
    return maker(provider, session, mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", [*CLIENTS, *FRAMEWORKS])
def test_a_refused_request_is_folded_and_sent_once_more(name: str, mode: str, provider: SimulatedProvider) -> None:
    session = Session(policy=ASSUMED)
    agent = agent_of(name, provider, session, mode)
    for turn in range(8):
        answer = agent.ask(f"Question {turn}: " + f"why is line {turn} so long? " * 150)
        assert answer.startswith(f"You said: Question {turn}")
    agent.close()
    refused = [request.error.rule for request in provider.requests if request.error is not None]
    assert set(refused) == {"window"}
    assert session.folds == len(refused) >= 1
    assert len(session) >= 16
    assert "Question 7" in str(provider.requests[-1].body)


@pytest.mark.parametrize("name", CLIENTS)
def test_a_request_that_cannot_be_folded_raises_the_error_of_the_client(name: str, provider: SimulatedProvider) -> None:
    agent = agent_of(name, provider, Session(policy=ASSUMED))
    with pytest.raises((anthropic.BadRequestError, openai.BadRequestError, ClientError)) as caught:
        agent.ask("one long prompt " * 4_000)
    agent.close()
    assert is_overflow(caught.value)
    assert len(provider.requests) == 1


def test_a_policy_that_never_folds_is_respected(provider: SimulatedProvider) -> None:
    session = Session(policy=Policy.preset("verbatim").but(window_tokens=200_000))
    agent = agent_of("anthropic", provider, session)
    agent.ask("a long question " * 900)
    with pytest.raises(anthropic.BadRequestError, match="too long"):
        agent.ask("a long question " * 900)
    agent.close()
    assert session.folds == 0


FAILED = {
    "type": "response.failed",
    "response": {"error": {"code": "context_length_exceeded", "message": "Your input exceeds the context window."}},
}


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_refusal_inside_a_stream_is_found(mode: str) -> None:
    """OpenAI's Responses API reports an overflow as an event of a stream with the status 200."""
    done = {"type": "response.completed", "response": {"id": "r", "object": "response", "status": "completed"}}
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]}
    done["response"] |= {"output": [item]}  # type: ignore[operator]
    session = Session(policy=ASSUMED)
    history: Any = [
        {"role": role, "content": text}
        for _ in range(4)
        for role, text in (("user", "why " * 1_500), ("assistant", "so"))
    ]
    request: Any = {"model": "gpt-5", "input": [*history, {"role": "user", "content": "And now?"}], "stream": True}
    with raw_upstream() as upstream:
        upstream.answer(*_stream(FAILED))
        upstream.answer(*_stream(done))
        if mode == "sync":
            client = foldline.wrap(openai.OpenAI(base_url=upstream.url, api_key="x"), session=session)
            kinds = [event.type for event in client.responses.create(**request)]
            client.close()
        else:
            aclient = foldline.wrap(openai.AsyncOpenAI(base_url=upstream.url, api_key="x"), session=session)
            kinds = run(_kinds(aclient, request))
        sizes = [len(body) for _, body in upstream.requests]
    assert kinds == ["response.completed"]
    assert sizes[1] < sizes[0]
    assert session.messages[-1].text == "Yes."


async def _kinds(client: openai.AsyncOpenAI, request: Any) -> list[str]:
    kinds = [event.type async for event in await client.responses.create(**request)]
    await client.close()
    return kinds


def _stream(event: Any) -> tuple[bytes, ...]:
    text = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
    return tuple(chunked(text))


@pytest.mark.parametrize("name", CLIENTS)
def test_exceptions_of_the_clients_are_classified(name: str, provider: SimulatedProvider) -> None:
    agent = agent_of(name, provider, Session(policy=ASSUMED))
    for status in (400, 429, 500):
        provider.script(fail(status))
        with pytest.raises((anthropic.APIError, openai.APIError, APIError)) as caught:
            agent.ask("Hello?")
        assert not is_overflow(caught.value)
    agent.close()


def test_an_exception_of_a_framework_is_classified_by_its_cause() -> None:
    error = RuntimeError("the agent failed")
    error.__cause__ = ValueError("This model's maximum context length is 8192 tokens.")
    assert is_overflow(error)
    assert not is_overflow(RuntimeError("rate limit reached, maximum context length is 5"))
    answer = httpx.Response(
        400, json={"error": {"message": "prompt is too long"}}, request=httpx.Request("GET", "http://a")
    )
    with pytest.raises(httpx.HTTPStatusError) as raised:
        answer.raise_for_status()
    assert is_overflow(raised.value)
    with pytest.raises(InputError, match="takes an exception, not str: except Exception as error"):
        is_overflow("prompt is too long")  # type: ignore[arg-type]


def test_the_documented_way_without_wrap(provider: SimulatedProvider) -> None:
    session = Session(model=CLAUDE, policy=ASSUMED)
    client = anthropic.Anthropic(base_url=provider.url, api_key="x", max_retries=0)
    for turn in range(8):
        session.add({"role": "user", "content": f"Question {turn}: " + f"why is line {turn} so long? " * 150})
        try:
            reply = client.messages.create(**session.view().request("anthropic", max_tokens=100))
        except anthropic.BadRequestError as error:
            if not foldline.is_overflow(error) or session.fold(refused=True) is None:
                raise
            reply = client.messages.create(**session.view().request("anthropic", max_tokens=100))
        session.add(reply)
    client.close()
    assert session.folds >= 1
    assert len(session) == 16


def test_one_long_turn_is_folded_although_the_floors_protect_all_of_it() -> None:
    session = Session(policy=Policy.preset("balanced").but(window_tokens=200_000, keep_tokens=100_000))
    session.add({"role": "user", "content": "Read all files."})
    for number in range(20):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        session.add({"role": "assistant", "content": None, "tool_calls": [call]})
        session.add({"role": "tool", "tool_call_id": f"c{number}", "content": f"line {number} of the file\n" * 100})
    assert session.fold() is None
    before = session.view().tokens
    sizes = [before]
    while session.fold(refused=True) is not None:
        sizes.append(session.view().tokens)
        assert "Read all files." in str(session.view().render("openai").body)
    assert sizes[1] <= 0.7 * before
    assert len(sizes) <= 8
    assert "the newest step" in session.skip_reason
