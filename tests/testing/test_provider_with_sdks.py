"""The vendors' own SDKs talk to the simulated provider: replies, streams, tool calls, errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from foldline.testing.provider import ScriptedReply, SimulatedProvider, call, fail
from support.provider_requests import TOOL, tool_result, user

anthropic = pytest.importorskip("anthropic")
openai = pytest.importorskip("openai")
genai = pytest.importorskip("google.genai")

CLAUDE, GPT, GEMINI = "claude-opus-5-5", "gpt-5.6", "gemini-3-pro"
FUNCTION = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}


@pytest.fixture
def provider() -> Iterator[SimulatedProvider]:
    with SimulatedProvider() as running:
        yield running


@pytest.fixture
def claude(provider: SimulatedProvider) -> Iterator[Any]:
    with anthropic.Anthropic(base_url=provider.url, api_key="x", max_retries=0) as client:
        yield client


@pytest.fixture
def gpt(provider: SimulatedProvider) -> Iterator[Any]:
    with openai.OpenAI(base_url=provider.openai_url, api_key="x", max_retries=0) as client:
        yield client


@pytest.fixture
def gemini(provider: SimulatedProvider) -> Iterator[Any]:
    client = genai.Client(api_key="x", http_options=genai.types.HttpOptions(base_url=provider.url))
    yield client
    client.close()


def test_anthropic_answers(provider: SimulatedProvider, claude: Any) -> None:
    reply = claude.messages.create(model=CLAUDE, max_tokens=100, messages=[user("hello")])
    assert reply.content[0].text == "You said: hello"
    assert reply.stop_reason == "end_turn"
    assert reply.usage.input_tokens > 0
    assert provider.requests[0].body["messages"] == [user("hello")]
    assert provider.refused == []


def test_anthropic_runs_a_tool_loop_with_thinking(provider: SimulatedProvider, claude: Any) -> None:
    provider.script(ScriptedReply(thinking="Let me look.", calls=(("bash", {"command": "ls"}),)), "Two files.")
    messages: list[Any] = [user("What is here?")]
    first = claude.messages.create(model=CLAUDE, max_tokens=100, tools=[TOOL], messages=messages)
    assert [block.type for block in first.content] == ["thinking", "tool_use"]
    assert first.stop_reason == "tool_use"
    content = [block.model_dump(exclude_none=True) for block in first.content]
    messages += [{"role": "assistant", "content": content}, user([tool_result(first.content[1].id)])]
    second = claude.messages.create(model=CLAUDE, max_tokens=100, tools=[TOOL], messages=messages)
    assert second.content[0].text == "Two files."


def test_anthropic_streams(provider: SimulatedProvider, claude: Any) -> None:
    scripted = ScriptedReply(thinking="hm " * 30, text="word " * 40, calls=(("bash", {"command": "ls -la /tmp"}),))
    provider.script(scripted)
    with claude.messages.stream(model=CLAUDE, max_tokens=100, tools=[TOOL], messages=[user()]) as stream:
        events = [event.type for event in stream]
        message = stream.get_final_message()
    assert events[0] == "message_start"
    assert events[-1] == "message_stop"
    assert message.content[0].thinking == "hm " * 30
    assert message.content[0].signature
    assert message.content[1].text == "word " * 40
    assert message.content[2].input == {"command": "ls -la /tmp"}
    assert message.usage.output_tokens > 40


def test_anthropic_counts_tokens(provider: SimulatedProvider, claude: Any) -> None:
    counted = claude.messages.count_tokens(model=CLAUDE, messages=[user("hello")], tools=[TOOL])
    reply = claude.messages.create(model=CLAUDE, max_tokens=100, messages=[user("hello")], tools=[TOOL])
    assert counted.input_tokens == reply.usage.input_tokens
    assert len(provider.bill.requests) == 1


def test_anthropic_refuses(provider: SimulatedProvider, claude: Any) -> None:
    with pytest.raises(anthropic.BadRequestError, match="at least one message is required") as caught:
        claude.messages.create(model=CLAUDE, max_tokens=100, messages=[])
    assert caught.value.body["error"]["type"] == "invalid_request_error"
    assert provider.refused[0].error is not None
    assert provider.refused[0].error.rule == "no_messages"


def test_anthropic_betas_travel_with_their_fields(provider: SimulatedProvider, claude: Any) -> None:
    thinking = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    reply = claude.beta.messages.create(
        model=CLAUDE,
        max_tokens=100,
        messages=[user()],
        thinking=thinking,
        betas=["thinking-binding-controls-2026-08-01"],
    )
    assert reply.input_transformations == []
    with pytest.raises(anthropic.BadRequestError, match="Extra inputs are not permitted"):
        claude.beta.messages.create(model=CLAUDE, max_tokens=100, messages=[user()], thinking=thinking)


def test_anthropic_compacts(provider: SimulatedProvider, claude: Any) -> None:
    reply = claude.beta.messages.create(
        model=CLAUDE,
        max_tokens=1_000,
        messages=[user()],
        compaction={"type": "summarize"},
        betas=["compact-2026-09-04"],
    )
    assert reply.stop_reason == "compaction"
    assert reply.content[0].type == "compaction"
    with claude.beta.messages.stream(
        model=CLAUDE,
        max_tokens=1_000,
        messages=[user()],
        compaction={"type": "summarize"},
        betas=["compact-2026-09-04"],
    ) as stream:
        message = stream.get_final_message()
    assert message.content[0].content.startswith("Summary of 1 messages")


@pytest.mark.parametrize(
    ("status", "error"),
    [(429, "RateLimitError"), (500, "InternalServerError"), (529, "OverloadedError"), (401, "AuthenticationError")],
)
def test_anthropic_fails_as_scripted(provider: SimulatedProvider, claude: Any, status: int, error: str) -> None:
    provider.script(fail(status))
    expected = getattr(anthropic, error, anthropic.APIStatusError)
    with pytest.raises(expected):
        claude.messages.create(model=CLAUDE, max_tokens=100, messages=[user()])
    assert claude.messages.create(model=CLAUDE, max_tokens=100, messages=[user()]).content
    assert provider.refused == []


def test_a_client_that_retries_gets_through(provider: SimulatedProvider) -> None:
    provider.script(fail(529, retry_after=0), fail(500), "at last")
    with anthropic.Anthropic(base_url=provider.url, api_key="x", max_retries=2) as client:
        reply = client.messages.create(model=CLAUDE, max_tokens=100, messages=[user()])
    assert reply.content[0].text == "at last"
    assert len(provider.requests) == 3


def test_a_timeout_is_a_timeout(provider: SimulatedProvider) -> None:
    provider.script(fail("timeout"))
    with (
        anthropic.Anthropic(base_url=provider.url, api_key="x", max_retries=0, timeout=0.3) as client,
        pytest.raises(anthropic.APITimeoutError),
    ):
        client.messages.create(model=CLAUDE, max_tokens=100, messages=[user()])


def test_a_stream_breaks_in_its_middle(provider: SimulatedProvider, claude: Any) -> None:
    provider.script(fail("broken_stream"))
    with (
        pytest.raises(Exception, match=r"(?i)closed|incomplete|connection|peer"),
        claude.messages.stream(model=CLAUDE, max_tokens=100, messages=[user()]) as stream,
    ):
        stream.get_final_message()


def test_an_error_comes_in_the_middle_of_a_stream(provider: SimulatedProvider, claude: Any) -> None:
    provider.script(fail("stream_error"))
    with (
        pytest.raises(anthropic.APIStatusError, match="Overloaded"),
        claude.messages.stream(model=CLAUDE, max_tokens=100, messages=[user()]) as stream,
    ):
        stream.get_final_message()


def test_garbage_is_no_message(provider: SimulatedProvider, claude: Any) -> None:
    provider.script(fail("garbage"))
    with pytest.raises((anthropic.APIError, json.JSONDecodeError, ValueError)):
        claude.messages.create(model=CLAUDE, max_tokens=100, messages=[user()]).content[0]


def test_chat_completions_answer_and_call_tools(provider: SimulatedProvider, gpt: Any) -> None:
    provider.script(call("bash", command="ls"), "Two files.")
    messages: list[Any] = [user("What is here?")]
    first = gpt.chat.completions.create(model=GPT, messages=messages, tools=[FUNCTION])
    (made,) = first.choices[0].message.tool_calls
    assert first.choices[0].finish_reason == "tool_calls"
    assert json.loads(made.function.arguments) == {"command": "ls"}
    messages += [first.choices[0].message, {"role": "tool", "tool_call_id": made.id, "content": "a b"}]
    second = gpt.chat.completions.create(model=GPT, messages=messages, tools=[FUNCTION])
    assert second.choices[0].message.content == "Two files."
    assert second.usage.prompt_tokens > first.usage.prompt_tokens
    assert provider.refused == []


def test_chat_completions_stream(provider: SimulatedProvider, gpt: Any) -> None:
    provider.script(ScriptedReply(text="word " * 30, calls=(("bash", {"command": "ls -la /tmp"}),)))
    chunks = list(
        gpt.chat.completions.create(
            model=GPT, messages=[user()], tools=[FUNCTION], stream=True, stream_options={"include_usage": True}
        )
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    pieces = [
        piece.function.arguments
        for chunk in chunks
        if chunk.choices
        for piece in chunk.choices[0].delta.tool_calls or ()
    ]
    assert text == "word " * 30
    assert json.loads("".join(pieces)) == {"command": "ls -la /tmp"}
    assert chunks[-1].choices == []
    assert chunks[-1].usage.prompt_tokens > 0
    assert chunks[-2].choices[0].finish_reason == "tool_calls"


def test_chat_completions_refuse(provider: SimulatedProvider, gpt: Any) -> None:
    with pytest.raises(openai.BadRequestError, match="must be a response to a preceeding message") as caught:
        gpt.chat.completions.create(model=GPT, messages=[user(), {"role": "tool", "tool_call_id": "x", "content": "y"}])
    assert caught.value.param == "messages.[1].role"


def test_responses_answer_and_call_tools(provider: SimulatedProvider, gpt: Any) -> None:
    tools = [{"type": "function", "name": "bash", "parameters": {"type": "object"}, "strict": False}]
    provider.script(ScriptedReply(thinking="hm", calls=(("bash", {"command": "ls"}),)), "Two files.")
    items: list[Any] = [{"role": "user", "content": "What is here?"}]
    first = gpt.responses.create(model=GPT, input=items, tools=tools, store=False)
    reasoning, made = first.output
    assert (reasoning.type, made.type) == ("reasoning", "function_call")
    items += [item.model_dump(exclude_none=True) for item in first.output]
    items.append({"type": "function_call_output", "call_id": made.call_id, "output": "a b"})
    second = gpt.responses.create(model=GPT, input=items, tools=tools, store=False)
    assert second.output_text == "Two files."
    assert provider.refused == []


def test_responses_continue_by_id(provider: SimulatedProvider, gpt: Any) -> None:
    first = gpt.responses.create(model=GPT, input="hello")
    second = gpt.responses.create(model=GPT, input="more", previous_response_id=first.id)
    assert second.output_text == "You said: more"
    with pytest.raises(openai.BadRequestError, match="Previous response with id 'resp_x' not found"):
        gpt.responses.create(model=GPT, input="more", previous_response_id="resp_x")


def test_responses_stream(provider: SimulatedProvider, gpt: Any) -> None:
    provider.script(ScriptedReply(thinking="hm", text="word " * 30, calls=(("bash", {"command": "ls -la"}),)))
    with gpt.responses.stream(model=GPT, input="hello") as stream:
        events = [event.type for event in stream]
        response = stream.get_final_response()
    assert events[0] == "response.created"
    assert events[-1] == "response.completed"
    assert "response.function_call_arguments.delta" in events
    assert response.output_text == "word " * 30
    assert response.usage.input_tokens > 0


def test_responses_count_and_compact(provider: SimulatedProvider, gpt: Any) -> None:
    counted = gpt.responses.input_tokens.count(model=GPT, input="hello there")
    reply = gpt.responses.create(model=GPT, input="hello there")
    assert counted.input_tokens == reply.usage.input_tokens
    compacted = gpt.responses.compact(model=GPT, input="hello there")
    assert compacted.output[-1].type == "compaction"


def test_a_prompt_above_the_window_fails_in_the_stream() -> None:
    with (
        SimulatedProvider(models={GPT: 1_000}) as provider,
        openai.OpenAI(base_url=provider.openai_url, api_key="x", max_retries=0) as client,
    ):
        events = list(client.responses.create(model=GPT, input="word " * 3_000, stream=True))
        assert events[-1].type == "response.failed"
        assert events[-1].response.error.code == "context_length_exceeded"
        with pytest.raises(openai.BadRequestError, match="exceeds the context window"):
            client.responses.create(model=GPT, input="word " * 3_000)


def test_gemini_answers_and_calls_functions(provider: SimulatedProvider, gemini: Any) -> None:
    provider.script(call("bash", command="ls"), "Two files.")
    declaration = {"name": "bash", "parameters_json_schema": {"type": "object"}}
    config = {
        "tools": [{"function_declarations": [declaration]}],
        "automatic_function_calling": {"disable": True},
        "system_instruction": "You are.",
    }
    contents: list[Any] = [genai.types.Content(role="user", parts=[genai.types.Part(text="What is here?")])]
    first = gemini.models.generate_content(model=GEMINI, contents=contents, config=config)
    (made,) = first.function_calls
    assert made.args == {"command": "ls"}
    response = genai.types.FunctionResponse(id=made.id, name=made.name, response={"output": "a b"})
    contents += [
        first.candidates[0].content,
        genai.types.Content(role="user", parts=[genai.types.Part(function_response=response)]),
    ]
    second = gemini.models.generate_content(model=GEMINI, contents=contents, config=config)
    assert second.text == "Two files."
    assert second.usage_metadata.prompt_token_count > first.usage_metadata.prompt_token_count
    assert provider.refused == []


def test_gemini_streams_and_counts(provider: SimulatedProvider, gemini: Any) -> None:
    provider.script("word " * 30)
    chunks = list(gemini.models.generate_content_stream(model=GEMINI, contents="hello"))
    assert "".join(chunk.text or "" for chunk in chunks) == "word " * 30
    assert chunks[-1].candidates[0].finish_reason == "STOP"
    counted = gemini.models.count_tokens(model=GEMINI, contents="hello")
    assert counted.total_tokens == chunks[-1].usage_metadata.prompt_token_count


def test_gemini_refuses(provider: SimulatedProvider, gemini: Any) -> None:
    contents = [genai.types.Content(role="assistant", parts=[genai.types.Part(text="x")])]
    with pytest.raises(genai.errors.ClientError, match=r"Please use a valid role: user, model\."):
        gemini.models.generate_content(model=GEMINI, contents=contents)
