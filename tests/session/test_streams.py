"""Streamed replies of the real SDKs, sync and async, whole and interrupted, from the strict simulated provider."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import foldline
from foldline import AsyncSession, InputError, Session, ToolCall
from foldline.events import Event
from foldline.testing import SimulatedProvider, assert_sendable
from foldline.testing.provider import ScriptedReply, fail
from support.replies import REPLIES
from support.streams import by, stream
from support.vendor_models import MODELS

anthropic = pytest.importorskip("anthropic")
openai = pytest.importorskip("openai")
genai = pytest.importorskip("google.genai")

pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")

TOOL = {"name": "read", "description": "Read a file.", "input_schema": {"type": "object"}}
REPLY = ScriptedReply(text="I will read two files now.", calls=(("read", {"path": "a.py"}), ("read", {"path": "b.py"})))


def asked(format: str, *, words: int = 1) -> Session:
    session = Session(model=MODELS[format], format=format, tools=[TOOL])
    session.add({"role": "user", "content": "Read them. " * words}, format="openai")
    return session


class Clients:
    """The SDKs' clients for one provider."""

    def __init__(self, provider: SimulatedProvider) -> None:
        self.claude = anthropic.Anthropic(base_url=provider.url, api_key="any")
        self.gpt = openai.OpenAI(base_url=provider.openai_url, api_key="any")
        self.gemini = genai.Client(api_key="any", http_options={"base_url": provider.url})
        self.provider = provider

    def start(self, format: str, request: dict[str, Any]) -> Any:
        """A stream of the vendor's own SDK."""
        if format == "anthropic":
            return self.claude.messages.create(**request, stream=True)
        if format == "gemini":
            return self.gemini.models.generate_content_stream(**request)
        create = self.gpt.chat.completions.create if format == "openai" else self.gpt.responses.create
        return create(**request, stream=True)

    @asynccontextmanager
    async def start_async(self, format: str, request: dict[str, Any]) -> AsyncIterator[Any]:
        """An async stream of the vendor's own SDK."""
        if format == "anthropic":
            async with anthropic.AsyncAnthropic(base_url=self.provider.url, api_key="any") as client:
                yield await client.messages.create(**request, stream=True)
        elif format == "gemini":
            yield await self.gemini.aio.models.generate_content_stream(**request)
            await self.gemini.aio.aclose()
        else:
            async with openai.AsyncOpenAI(base_url=self.provider.openai_url, api_key="any") as client:
                create = client.chat.completions.create if format == "openai" else client.responses.create
                yield await create(**request, stream=True)


@pytest.fixture
def clients(provider: SimulatedProvider) -> Iterator[Clients]:
    made = Clients(provider)
    yield made
    for client in (made.claude, made.gpt, made.gemini):
        client.close()


def calls(session: Session) -> list[ToolCall]:
    """All calls of the session; in Responses, each call is a message of its own."""
    return [call for message in session.messages for call in message.calls]


def check(session: Session) -> None:
    reply = [message for message in session.messages if message.role == "assistant"]
    assert "".join(message.text for message in reply) == REPLY.text
    assert [call.name for call in calls(session)] == ["read", "read"]


@pytest.mark.parametrize("format", MODELS)
def test_the_events_pass_unchanged_and_the_reply_is_added(
    provider: SimulatedProvider, clients: Clients, format: str
) -> None:
    provider.script(REPLY, REPLY, "Both are empty.")
    session = asked(format)
    plain = list(clients.start(format, session.view().request(max_tokens=300)))
    tee = session.stream(clients.start(format, session.view().request(max_tokens=300)))
    seen = list(tee)
    assert [type(event) for event in seen] == [type(event) for event in plain]
    check(session)
    assert tee.message is not None
    assert tee.message.text == REPLY.text
    assert list(tee.message.calls) == list(calls(session))
    assert session.reply == tee.message
    for call in calls(session):
        session.add({"role": "tool", "tool_call_id": call.id, "name": "read", "content": "(empty)"}, format="openai")
    session.add(clients.start(format, session.view().request(max_tokens=300)))
    assert session.messages[-1].text == "Both are empty."
    assert not provider.refused


@pytest.mark.parametrize("format", MODELS)
def test_an_async_stream(provider: SimulatedProvider, clients: Clients, format: str) -> None:
    async def run() -> None:
        session = AsyncSession(asked(format))
        view = await session.view()
        async with clients.start_async(format, view.request(max_tokens=300)) as stream:
            async for _ in session.stream(stream):
                pass
        check(session.session)
        for call in calls(session.session):
            answer = {"role": "tool", "tool_call_id": call.id, "name": "read", "content": "(empty)"}
            await session.add(answer, format="openai")
        view = await session.view()
        async with clients.start_async(format, view.request(max_tokens=300)) as stream:
            await session.add(stream)
        assert session.messages[-1].text == "Both are empty."

    provider.script(REPLY, "Both are empty.")
    asyncio.run(run())
    assert not provider.refused


@pytest.mark.parametrize("format", MODELS)
def test_a_list_of_chunks_is_one_reply(provider: SimulatedProvider, clients: Clients, format: str) -> None:
    provider.script(REPLY)
    session = asked(format)
    chunks = list(clients.start(format, session.view().request(max_tokens=300)))
    session.add(chunks)
    check(session)
    raw = asked(format)
    raw.add([chunk.model_dump(mode="json", by_alias=True, exclude_unset=True) for chunk in chunks])
    check(raw)
    assert raw.messages[-1].meta.usage == session.messages[-1].meta.usage
    assert foldline.parse(chunks).messages == session.messages[1:]


HELPERS: dict[str, tuple[str, Callable[[Clients, dict[str, Any]], Any]]] = {
    "messages.stream": ("anthropic", lambda clients, request: clients.claude.messages.stream(**request)),
    "chat.completions.stream": ("openai", lambda clients, request: clients.gpt.chat.completions.stream(**request)),
    "responses.stream": ("openai-responses", lambda clients, request: clients.gpt.responses.stream(**request)),
}
"""The SDKs' helpers, which add events of their own."""


@pytest.mark.parametrize("name", HELPERS)
def test_the_stream_helpers_of_the_sdks(provider: SimulatedProvider, clients: Clients, name: str) -> None:
    provider.script("A streamed text of several words.", "And another one.")
    format, start = HELPERS[name]
    session = asked(format)
    session.use(tools=[])
    with start(clients, session.view().request(max_tokens=300)) as stream:
        list(session.stream(stream))
    assert session.messages[-1].text == "A streamed text of several words."
    session.add({"role": "user", "content": "Go on."}, format="openai")
    with start(clients, session.view().request(max_tokens=300)) as stream:
        session.add(stream)
    assert session.messages[-1].text == "And another one."
    with pytest.raises(InputError, match=r"StreamManager must be entered.*with client"):
        session.add(start(clients, session.view().request(max_tokens=300)))
    with pytest.raises(InputError, match=r"StreamManager is not a stream yet.*with client"):
        session.stream(start(clients, session.view().request(max_tokens=300)))


@pytest.mark.parametrize("format", MODELS)
def test_leaving_the_loop_keeps_what_was_received(provider: SimulatedProvider, clients: Clients, format: str) -> None:
    provider.script("one two three four five six seven eight nine ten " * 20, "Go on.")
    events: list[Event] = []
    session = asked(format)
    session.listener = events.append
    tee = session.stream(clients.start(format, session.view().request(max_tokens=300)))
    for event in tee:
        if "three" in str(event):
            break
    assert len(session) == 2
    assert session.messages[-1].text.startswith("one two three")
    assert session.messages[-1].meta.stop == "cut"
    assert [event.facts["stop"] for event in events if event.kind == "interrupted"] == ["cut"]
    session.add({"role": "user", "content": "Go on."}, format="openai")
    session.add(clients.start(format, session.view().request(max_tokens=300)))
    assert not provider.refused


@pytest.mark.parametrize("format", MODELS)
def test_leaving_an_async_loop_keeps_what_was_received(
    provider: SimulatedProvider, clients: Clients, format: str
) -> None:
    async def run() -> None:
        session = AsyncSession(asked(format))
        view = await session.view()
        async with clients.start_async(format, view.request(max_tokens=300)) as stream:
            async for event in session.stream(stream):
                if "three" in str(event):
                    break
        assert session.messages[-1].text.startswith("one two three")
        assert session.messages[-1].meta.stop == "cut"

    provider.script("one two three four five six seven eight nine ten " * 20)
    asyncio.run(run())


@pytest.mark.parametrize("format", MODELS)
def test_a_broken_connection_keeps_what_was_received(
    provider: SimulatedProvider, clients: Clients, format: str
) -> None:
    provider.script(fail("broken_stream"))
    session = asked(format, words=200)
    with suppress(Exception):
        session.add(clients.start(format, session.view().request(max_tokens=300)))
    assert len(session) == 1 or session.messages[-1].meta.stop == "cut"  # Anthropic's first two events hold no text
    session.add({"role": "user", "content": "Again."}, format="openai")
    session.add(clients.start(format, session.view().request(max_tokens=300)))
    assert not provider.refused


def test_a_cancelled_task_keeps_what_was_received() -> None:
    async def events() -> AsyncIterator[dict[str, Any]]:
        yield {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "half a"}}]}
        await asyncio.sleep(60)

    async def read(session: AsyncSession) -> None:
        await session.add(events())

    async def run() -> AsyncSession:
        session = AsyncSession(asked("openai"))
        task = asyncio.create_task(read(session))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await session.view()
        return session

    assert asyncio.run(run()).messages[-1].text == "half a"


def test_an_async_stream_in_a_sync_loop_is_refused() -> None:
    async def events() -> AsyncIterator[Any]:
        yield {}

    session = asked("openai")
    with pytest.raises(InputError, match="this stream is async: write: async for"):
        session.add(events())
    with pytest.raises(InputError, match="not a stream: int"):
        session.stream(5)
    with pytest.raises(InputError, match="the stream yields int objects"):
        session.add(iter([5]))


@st.composite
def cut_streams(draw: st.DrawFn) -> tuple[str, list[Any]]:
    """The first events of a streamed reply of blocks that requests may have, as their JSON values."""
    format = draw(st.sampled_from(sorted(MODELS)))
    replies = REPLIES[format].filter(lambda reply: "new_use" not in str(reply))
    made = stream(format, draw(replies), by(draw(st.integers(1, 9))))
    events = [value for _, value in made if value != "[DONE]"]
    return format, events[: draw(st.integers(0, len(events)))]


@settings(max_examples=60)
@given(cut=cut_streams())
def test_a_stream_cut_anywhere_leaves_a_session_that_can_be_sent(cut: tuple[str, list[Any]]) -> None:
    format, events = cut
    session = Session(model=MODELS[format], format=format)
    session.add({"role": "user", "content": "What is the weather?"}, format="openai")
    tee = session.stream(iter(events))
    assert list(tee) == events
    assert len(session) == 1 + len(tee.reply.messages if tee.reply else ())
    session.add({"role": "user", "content": "And tomorrow?"}, format="openai")
    assert_sendable(session.view().render(format).body, format)


def test_the_usage_belongs_to_the_view_of_the_stream() -> None:
    """A view that is made while the reply is streamed does not take the usage of the request before it."""
    session = asked("openai")
    view = session.view()
    usage = {"prompt_tokens": 321, "completion_tokens": 3, "total_tokens": 324}
    events = [
        {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "Yes."}}]},
        {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {"object": "chat.completion.chunk", "choices": [], "usage": usage},
    ]
    for _ in session.stream(events):
        session.view()
    assert session.messages[-1].meta.view == str(view.identity)
    assert session.view().source.startswith("usage")
