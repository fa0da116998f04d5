"""What a caller adds by mistake is answered with what to write instead, and nothing is stored."""

from __future__ import annotations

from typing import Any

import pytest

from foldline import ConfigError, InputError, Policy, Session

WRONG: dict[str, tuple[Any, str]] = {
    "a text": ("hello", r"a text has no role: 'hello': add\(\{\"role\": \"user\", \"content\": 'hello'\}\)"),
    "a long text": ("hello " * 30, r"a text has no role: 'hello .{30,50}…'"),
    "an unknown role": ({"role": "usr", "content": "x"}, r"unknown role 'usr': did you mean 'user'\? Roles are system"),
    "a role of another library": ({"role": "human", "content": "x"}, "unknown role 'human': did you mean 'user'"),
    "a role in a list": ([{"role": "user", "content": "x"}, {"role": "asistant", "content": "x"}], "'assistant'"),
    "no role": ({"content": "x"}, 'the message has no role: add "role"'),
    "nothing": (None, r"not a message: None: add\("),
    "a number": (5, "not a message: 5"),
    "an empty list": ([], "an empty list holds no message"),
    "a pair": (("user", "hi"), "not a message: .'user', 'hi'.: write"),
    "one event of a stream": (
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}},
        "'content_block_delta' is one event of a streamed reply: add the stream itself, or the list of all its events",
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


def test_a_reply_larger_than_the_window_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"reply_tokens 500,000 .* window of 400,000 tokens: lower reply_tokens"):
        Session(model="gpt-5", policy=Policy(reply_tokens=500_000))


def test_a_model_is_named_by_a_text() -> None:
    with pytest.raises(ConfigError, match='model must be a text such as "claude-sonnet-5", not int'):
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
