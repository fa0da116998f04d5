"""The real SDKs, talking to a local server, and foldline read the same replies: streamed and not.

The SDKs are an independent reading of what the providers send. Streamed, the very bytes that the SDK read are given to
the assembler, and the SDK's own final object is the expected value.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foldline.message import Message
from foldline.wire.formats import Lost
from foldline.wire.reader import parse
from foldline.wire.streaming import Assembler, StreamedReply
from support.replies import REPLIES
from support.samples import CALLS, ITEM_CALLS, SAMPLES, THINKING, WEATHER, completion, message, response, said
from support.server import Answer, Provider, provider
from support.streams import DID_NOT_RUN, anthropic_events, by, chat_events, gemini_events, responses_events, sse

anthropic = pytest.importorskip("anthropic")
openai = pytest.importorskip("openai")
genai = pytest.importorskip("google.genai")

ASK: list[Any] = [{"role": "user", "content": "What is the weather in Ulm and Oslo?"}]
BETA = {
    "compaction": message(
        {"type": "compaction", "content": "They asked for the weather.", "encrypted_content": "eA=="},
        {"type": "text", "text": "Yes."},
    ),
    "mcp": message(
        {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "find", "server_name": "s", "input": {"q": "Ulm"}},
        {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": False, "content": []},
        {"type": "text", "text": "Found."},
    ),
}


@pytest.fixture(scope="module")
def server() -> Iterator[Provider]:
    with provider() as running:
        yield running


@pytest.fixture(scope="module")
def claude(server: Provider) -> Iterator[Any]:
    with anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def gpt(server: Provider) -> Iterator[Any]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def gemini(server: Provider) -> Iterator[Any]:
    client = genai.Client(api_key="none", http_options={"base_url": server.url})
    yield client
    client.close()


def streamed(server: Provider, name: str, sent: bytes) -> StreamedReply:
    """Let the server stream these bytes next, and read them ourselves."""
    server.answer = Answer(stream=sent, chunk_bytes=301)
    assembler = Assembler(name)
    for at in range(0, len(sent), 301):
        assembler.feed(sent[at : at + 301])
    reply = assembler.finish()
    assert reply is not None
    return reply


def agree(reply: StreamedReply, final: Any, name: str) -> None:
    """Our reply and the SDK's final object say the same, cost the same, and stopped for the same reason."""
    expected = parse(final, name).messages
    assert reply.messages == expected
    assert [said.meta.stop for said in reply.messages] == [said.meta.stop for said in expected]
    assert reply.usage == expected[-1].meta.usage
    assert (reply.complete, reply.error, reply.lost) == (True, None, ())


def same(found: Any, raw: dict[str, Any], name: str) -> None:
    """An SDK's reply object reads as the JSON it was made of."""
    assert parse(found, name).messages == parse(raw, name).messages
    assert parse(found, name).messages[-1].meta == parse(raw, name).messages[-1].meta


@pytest.mark.parametrize("sample", SAMPLES["anthropic"])
def test_anthropic(server: Provider, claude: Any, sample: str) -> None:
    value = SAMPLES["anthropic"][sample]
    asked = {"model": "claude-sonnet-5", "max_tokens": 100, "messages": ASK}
    server.answer = Answer(value=value)
    same(claude.messages.create(**asked), value, "anthropic")
    reply = streamed(server, "anthropic", sse(anthropic_events(value, by(7))))
    with claude.messages.stream(**asked) as stream:
        agree(reply, stream.get_final_message(), "anthropic")
    assert server.requests[-1]["body"]["stream"] is True


@pytest.mark.parametrize("sample", BETA)
def test_anthropic_beta(server: Provider, claude: Any, sample: str) -> None:
    asked = {"model": "claude-sonnet-5", "max_tokens": 100, "messages": ASK}
    server.answer = Answer(value=BETA[sample])
    same(claude.beta.messages.create(**asked), BETA[sample], "anthropic")
    reply = streamed(server, "anthropic", sse(anthropic_events(BETA[sample], by(7))))
    with claude.beta.messages.stream(**asked) as stream:
        agree(reply, stream.get_final_message(), "anthropic")


def test_anthropic_stopped_inside_a_calls_input(server: Provider, claude: Any) -> None:
    events = anthropic_events(message(THINKING, {"type": "text", "text": "Both."}, *WEATHER, stop="max_tokens"), by(7))
    del events[-4]
    reply = streamed(server, "anthropic", sse(events))
    with claude.messages.stream(model="claude-sonnet-5", max_tokens=100, messages=ASK) as stream:
        final = parse(stream.get_final_message(), "anthropic").messages[0]
    assert reply.messages[0].parts == final.parts[:-1]
    assert final.parts[-1] in final.calls
    assert reply.lost == (Lost(0, "tool_use weather", DID_NOT_RUN),)
    assert (reply.stop, reply.complete) == (final.meta.stop, True)


def test_anthropic_error_in_the_stream(server: Provider, claude: Any) -> None:
    events = anthropic_events(message({"type": "text", "text": "It rains"}), by(99))[:4]
    error = {"type": "overloaded_error", "message": "Overloaded"}
    reply = streamed(server, "anthropic", sse([*events, ("error", {"type": "error", "error": error})]))
    asked = {"model": "claude-sonnet-5", "max_tokens": 100, "messages": ASK}
    with claude.messages.stream(**asked) as stream, pytest.raises(anthropic.APIStatusError) as raised:
        stream.get_final_message()
    assert raised.value.body == {"type": "error", "error": reply.error}
    assert (reply.stop, reply.complete) == ("error", False)


def final_completion(stream: Any) -> Any:
    """The SDK's final object, which it hands out inside an error when the reply was too long."""
    try:
        return stream.get_final_completion()
    except openai.LengthFinishReasonError as error:
        return error.completion


@pytest.mark.parametrize("sample", SAMPLES["openai"])
def test_openai_chat(server: Provider, gpt: Any, sample: str) -> None:
    value = SAMPLES["openai"][sample]
    server.answer = Answer(value=value)
    same(gpt.chat.completions.create(model="gpt-5.6", messages=ASK), value, "openai")
    reply = streamed(server, "openai", sse(chat_events(value, by(7))))
    with gpt.chat.completions.stream(model="gpt-5.6", messages=ASK, stream_options={"include_usage": True}) as stream:
        agree(reply, final_completion(stream), "openai")


def test_openai_chat_stopped_inside_a_calls_arguments(server: Provider, gpt: Any) -> None:
    cut = {"id": "call_2", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Os'}}
    reply = streamed(server, "openai", sse(chat_events(completion("length", tool_calls=[CALLS[0], cut]), by(7))))
    with gpt.chat.completions.stream(model="gpt-5.6", messages=ASK) as stream:
        final = parse(final_completion(stream), "openai").messages[0]
    assert reply.messages[0].calls == final.calls[:1]
    assert final.calls[1].id == "call_2"
    assert reply.lost == (Lost(0, "tool call weather", DID_NOT_RUN),)
    assert (reply.stop, reply.complete) == (final.meta.stop, True)


def test_openai_chat_error_in_the_stream(server: Provider, gpt: Any) -> None:
    error = {"message": "too long", "type": "invalid_request_error", "param": None, "code": "context_length_exceeded"}
    reply = streamed(server, "openai", sse([*chat_events(completion(content="It"), by(9))[:2], ("", {"error": error})]))
    with gpt.chat.completions.stream(model="gpt-5.6", messages=ASK) as stream, pytest.raises(openai.APIError) as raised:
        stream.get_final_completion()
    assert raised.value.body == reply.error == error
    assert (reply.stop, reply.complete) == ("error", False)


@pytest.mark.parametrize("sample", SAMPLES["openai-responses"])
def test_openai_responses(server: Provider, gpt: Any, sample: str) -> None:
    value = SAMPLES["openai-responses"][sample]
    server.answer = Answer(value=value)
    same(gpt.responses.create(model="gpt-5.6", input="Weather?"), value, "openai-responses")
    reply = streamed(server, "openai-responses", sse(responses_events(value, by(7))))
    with gpt.responses.stream(model="gpt-5.6", input="Weather?") as stream:
        agree(reply, stream.get_final_response(), "openai-responses")


def test_a_cut_openai_responses_stream_gives_the_snapshot_of_the_sdk(server: Provider, gpt: Any) -> None:
    events = responses_events(response(said("It rains in Ulm"), *ITEM_CALLS), by(7))
    reply = streamed(server, "openai-responses", sse(events[:-1]))
    with gpt.responses.stream(model="gpt-5.6", input="Weather?") as stream:
        done = [event.item for event in stream if event.type == "response.output_item.done"]
    expected: list[Message] = [found for item in done for found in parse([item], "openai-responses").messages]
    assert list(reply.messages) == expected
    assert (reply.stop, reply.complete) == ("cut", False)


@pytest.mark.parametrize("sample", SAMPLES["gemini"])
def test_gemini(server: Provider, gemini: Any, sample: str) -> None:
    value = SAMPLES["gemini"][sample]
    server.answer = Answer(value=value)
    same(gemini.models.generate_content(model="gemini-3.5-flash", contents="Weather?"), value, "gemini")
    reply = streamed(server, "gemini", sse(gemini_events(value, by(7))))
    chunks = list(gemini.models.generate_content_stream(model="gemini-3.5-flash", contents="Weather?"))
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts]
    said = [part.text for part in parts if part.text and not part.thought]
    called = [(part.function_call.id, part.function_call.args) for part in parts if part.function_call]
    made = [(call.id, json.loads(call.arguments)) for call in reply.messages[0].calls]
    assert reply.messages == parse(value, "gemini").messages
    assert reply.messages[0].text == "".join(said)
    assert made == called
    assert reply.usage == parse(value, "gemini").messages[0].meta.usage


FUZZ = settings(max_examples=25, deadline=None)


@FUZZ
@given(value=REPLIES["anthropic"], pieces=st.integers(1, 20))
def test_anthropic_on_any_reply(server: Provider, claude: Any, value: dict[str, Any], pieces: int) -> None:
    """Kinds of blocks that the SDK does not know, it does not rebuild either: they are proven elsewhere."""
    known = [block for block in value["content"] if block["type"] not in ("new_use", "compaction")]
    sent = sse(anthropic_events({**value, "content": known or [THINKING]}, by(pieces)))
    reply = streamed(server, "anthropic", sent)
    with claude.beta.messages.stream(model="claude-sonnet-5", max_tokens=100, messages=ASK) as stream:
        agree(reply, stream.get_final_message(), "anthropic")


@FUZZ
@given(value=REPLIES["openai"], pieces=st.integers(1, 20))
def test_openai_chat_on_any_reply(server: Provider, gpt: Any, value: dict[str, Any], pieces: int) -> None:
    """The SDK's stream helper does not know custom calls: they are proven elsewhere."""
    said = value["choices"][0]["message"]
    if "tool_calls" in said:
        said["tool_calls"] = [call for call in said["tool_calls"] if call["type"] == "function"]
    reply = streamed(server, "openai", sse(chat_events(value, by(pieces))))
    usage = {"include_usage": True}
    with gpt.chat.completions.stream(model="gpt-5.6", messages=ASK, stream_options=usage) as stream:
        agree(reply, final_completion(stream), "openai")


@FUZZ
@given(value=REPLIES["openai-responses"], pieces=st.integers(1, 20))
def test_openai_responses_on_any_reply(server: Provider, gpt: Any, value: dict[str, Any], pieces: int) -> None:
    reply = streamed(server, "openai-responses", sse(responses_events(value, by(pieces))))
    with gpt.responses.stream(model="gpt-5.6", input="Weather?") as stream:
        agree(reply, stream.get_final_response(), "openai-responses")
