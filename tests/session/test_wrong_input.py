"""What a caller adds by mistake is answered with what to write instead, and nothing is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from foldline import AsyncSession, ConfigError, FoldlineError, InputError, Policy, Session, parse
from foldline.message import user

WRONG: dict[str, tuple[Any, str]] = {
    "a text": ("hello", r"a text has no role: 'hello': add\(\{\"role\": \"user\", \"content\": 'hello'\}\)"),
    "a text in a brace": ("{hello", r"a text has no role: '\{hello'"),
    "a long text": ("hello " * 30, r"a text has no role: 'hello .{30,50}…'"),
    "an unknown role": ({"role": "usr", "content": "x"}, r"unknown role 'usr': did you mean 'user'\? Roles are system"),
    "a role of another library": ({"role": "human", "content": "x"}, "unknown role 'human': did you mean 'user'"),
    "a role in a list": ([{"role": "user", "content": "x"}, {"role": "asistant", "content": "x"}], "'assistant'"),
    "no role": ({"content": "x"}, 'the message has no role: add "role"'),
    "nothing": (None, r"not a message: None: add\("),
    "a number": (5, "not a message: 5"),
    "an empty list": ([], "an empty list holds no message"),
    "a list of texts": (["a"], r"not a message: \['a'\]: write \{\"role\": \"user\", \"content\": \"…\"\}"),
    "only a role": ({"role": "user"}, r"the message has no content: write \{\"role\": \"user\", \"content\""),
    "a result without the id of its call": (
        {"role": "tool", "content": "x"},
        r"the tool result does not name its call: write \{\"role\": \"tool\", \"tool_call_id\"",
    ),
    "a mistyped block": (
        {"role": "user", "content": [{"type": "textt", "text": "x"}]},
        r"unknown type 'textt' of a content block: did you mean 'text'\?",
    ),
    "a mistyped result": (
        {"role": "user", "content": [{"type": "tool_reslt", "tool_use_id": "c", "content": "x"}]},
        r"did you mean 'tool_result'\?",
    ),
    "an image without its source": (
        [{"role": "user", "content": [{"type": "image"}]}],
        "the block of the type 'image' has no content: add \"source\" to it",
    ),
    "a pair": (("user", "hi"), "not a message: .'user', 'hi'.: write"),
    "one event of a stream": (
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}},
        "'content_block_delta' is one event of a streamed reply: add the whole stream, or the list of all its events",
    ),
    "one chunk": (
        {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "x"}}]},
        "'chat.completion.chunk' is one event of a streamed reply",
    ),
    "a list of chunks without content": (
        [{"type": "message_start", "message": {}}],
        "hold no complete part of a reply",
    ),
}


@pytest.mark.parametrize("model", ["claude-sonnet-5", "gpt-5", "gemini-2.5-pro", "unknown-1"])
@pytest.mark.parametrize("name", WRONG)
def test_the_error_says_what_to_write(name: str, model: str) -> None:
    thing, words = WRONG[name]
    session = Session(model=model)
    with pytest.raises(InputError, match=words) as caught:
        session.add(thing)
    assert "--" not in str(caught.value)
    assert len(session) == 0


@pytest.mark.parametrize("kind", ["newest_block", "texture", "thinking_2", "tool_result_delta", "image_v2"])
def test_a_block_of_an_unknown_type_is_kept(kind: str) -> None:
    session = Session(model="claude-sonnet-5")
    session.add({"role": "user", "content": [{"type": kind, "text": "x", "source": {}, "tool_use_id": "c"}]})
    assert session.messages[0].parts[0].kind == kind  # type: ignore[union-attr]


def test_a_reply_that_was_not_awaited_is_refused_with_await() -> None:
    async def create() -> dict[str, str]:
        return {"role": "assistant", "content": "Hi"}

    session, reply = Session(model="gpt-5"), create()
    with pytest.raises(InputError, match=r"coroutine was not awaited: add\(await "):
        session.add(reply)
    reply.close()
    assert len(session) == 0


def test_a_reply_larger_than_the_window_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"reply_tokens 500,000 .* window of 400,000 tokens: lower reply_tokens"):
        Session(model="gpt-5", policy=Policy(reply_tokens=500_000))


def test_a_model_is_named_by_a_text() -> None:
    with pytest.raises(ConfigError, match='model must be a string such as "claude-sonnet-5", not int'):
        Session(model=3)  # type: ignore[arg-type]


def test_a_session_is_described_by_its_name_its_size_and_its_folds() -> None:
    session = Session(model="gpt-5", name="ticket")
    assert session
    assert len(session) == 0
    session.add({"role": "user", "content": "The port is 7091."}, {"role": "assistant", "content": "Noted."})
    session.pin(handle="#1", name="port")
    assert [message.role for message in session.messages] == ["user", "assistant"]
    assert {name: message.text for name, message in session.pins.items()} == {"port": "The port is 7091."}
    assert repr(session).startswith("<Session 'ticket', gpt-5: 2 messages, ")
    assert repr(session).endswith(" tokens, 0 folds>")


def test_a_small_mistake_is_answered_with_what_to_write() -> None:
    session = Session(model="cladue-sonnet-5")
    session.add(user("The port is 7091."))
    assert "did you mean claude-sonnet-5?" in session.view().assumption
    assert "184k assumed" in repr(session)
    mistakes: list[tuple[Callable[[], object], str]] = [
        (lambda: session.add(b"hello"), "a text has no role: 'hello'"),
        (lambda: session.unpin("nope"), "unknown pin 'nope': nothing is pinned"),
        (lambda: session.rewind(5), "the session has 1 messages, not 5"),
        (lambda: session.recall("port", handle="#1"), "recall takes a query or a handle, not both"),
        (lambda: session.recall("port", tokens=0), "0 tokens are too few: ask for at least 50"),
        (lambda: session.view().request("anthropic", max_tokens=-1), "max_tokens must be above 0, not -1: omit it"),
        (lambda: session.view().request("claude"), "unknown wire format 'claude': use one of anthropic, openai,"),
        (lambda: AsyncSession("gpt-5"), "AsyncSession wraps a Session, not str"),  # type: ignore[arg-type]
        (lambda: parse("session.jsonl"), "not JSON .*: use read"),
        (lambda: parse("# aider chat started"), "not JSON .*: a transcript is JSON or JSONL"),
        (lambda: parse("[]", format="claude"), "unknown wire format 'claude'"),
    ]
    for mistake, told in mistakes:
        with pytest.raises(FoldlineError, match=told):
            mistake()
