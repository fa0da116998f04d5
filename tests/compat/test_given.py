"""Whatever a caller gives, he gets his own things back, and what is new in the form of the rest."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from foldline.compat.given import Given, Said
from foldline.errors import FormatUnknown, WireError
from foldline.message import Message, Text, ToolCall, assistant, system, tool, user
from foldline.wire.rules import check
from support.chats import wire

TALK = [user("go"), assistant("", ToolCall(id="a", name="run")), tool("a", "done", name="run"), user("so?")]
PROVIDERS = ["openai", "anthropic", "openai-responses", "gemini"]


class Line(NamedTuple):
    role: str
    content: str


class Frozen:
    """Attributes that nobody may set."""

    __slots__ = ("content", "role")

    def __init__(self, role: str, content: Any) -> None:
        object.__setattr__(self, "role", role)
        object.__setattr__(self, "content", content)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(name)


def shorter(given: Given) -> list[Any]:
    """All messages with the first one saying something else, and a note in front."""
    first = given.messages[0].with_parts(Text(text="went"))
    found: list[Any] = given.back([user("earlier", kind="note"), first, *given.messages[1:]])
    return found


@pytest.mark.promise("S0.13", "S0.47")
@pytest.mark.parametrize("provider", PROVIDERS)
def test_dicts(provider: str) -> None:
    items = wire(TALK, provider)
    given = Given(items)
    assert given.form == provider
    assert given.provider == provider
    assert given.back(given.messages) is items
    made = shorter(given)
    assert all(one is other for one, other in zip(made[-len(items) + 1 :], items[1:], strict=True))
    assert "earlier" in str(made[0])
    assert "went" in str(made[:2])
    assert not check(provider, made)
    assert items == wire(TALK, provider), "nothing given is changed"


@pytest.mark.promise("S0.13")
@pytest.mark.parametrize(
    "kind", [Line, Frozen, SimpleNamespace, lambda role, content: Said(role=role, content=content)]
)
def test_objects(kind: Any) -> None:
    make = kind if kind is not SimpleNamespace else lambda role, content: SimpleNamespace(role=role, content=content)
    items = (make("user", "go"), make("assistant", "well"), make("user", "so?"))
    given = Given(items)
    assert given.back(given.messages) is items, "a tuple is as good as a list"
    note, first, *rest = shorter(given)
    assert (note.role, note.content) == ("user", "earlier")
    assert (type(first), first.role, first.content) == (type(items[0]), "user", "went")
    assert items[0].content == "go"
    assert all(one is other for one, other in zip(rest, items[1:], strict=True))


def test_blocks_of_objects() -> None:
    """Untouched blocks stay the very ones; a new text is a block like the others, in a sequence like the others."""
    picture = SimpleNamespace(type="image", data="AAAA", mimeType="image/png")
    text = SimpleNamespace(type="text", text="see")
    item = SimpleNamespace(role="user", content=(text, picture))
    given = Given([item])
    message = given.messages[0]
    (made,) = given.back([message.with_parts(Text(text="saw"), message.parts[1])])
    assert isinstance(made.content, tuple)
    assert made.content[0] == SimpleNamespace(type="text", text="saw")
    assert made.content[1] is picture
    assert text.text == "see"


def test_a_result_that_was_not_there_before() -> None:
    given = Given([SimpleNamespace(role="user", content="go")])
    made = given.back([*given.messages, tool("a", "nothing came", name="run", is_error=True)])
    assert made[1] == Said(role="toolResult", content="nothing came", tool_call_id="a", tool_name="run", is_error=True)


def test_a_shell_run_that_was_changed_is_a_note_of_the_user() -> None:
    given = Given([SimpleNamespace(role="bashExecution", command="ls", output="a b", exitCode=0)])
    assert given.back([given.messages[0].with_parts(Text(text="$ ls"))]) == [Said(role="user", content="$ ls")]


def test_our_own_messages() -> None:
    given = Given(TALK)
    assert given.back(given.messages) is TALK
    assert all(isinstance(message, Message) for message in shorter(given))
    assert given.provider == "openai"
    assert Given([replace(message, wire=None) for message in Given(wire(TALK, "anthropic")).messages]).form == "message"
    assert Given(Given(wire(TALK, "anthropic")).messages).provider == "anthropic"


def test_objects_of_an_sdk() -> None:
    chat = pytest.importorskip("openai.types.chat")
    reply = chat.ChatCompletionMessage(role="assistant", content="well")
    items = [{"role": "user", "content": "go"}, reply]
    given = Given(items)
    assert given.messages[1].text == "well"
    assert shorter(given)[-1] is reply


def test_mixed() -> None:
    items = [system("You are an agent."), {"role": "user", "content": "go"}]
    made = shorter(Given(items))
    assert made[0] == {"role": "user", "content": "earlier"}
    assert made[-1] is items[1]


def test_what_is_no_message_is_refused() -> None:
    with pytest.raises(WireError, match="not a message: int"):
        Given([1, 2])
    with pytest.raises(WireError, match="not a message: str"):
        Given(["hello"])
    with pytest.raises(FormatUnknown, match="list of messages"):
        Given([{"hello": "world"}])
    assert Given([]).back([]) == []
