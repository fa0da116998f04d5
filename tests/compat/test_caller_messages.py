"""A caller gets the own objects back, and new messages in the format of the list."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from foldline.compat.caller_messages import CallerMessages, PlainMessage
from foldline.errors import FormatUnknown, WireError
from foldline.message import Message, Text, ToolCall, assistant, system, tool, user
from foldline.wire.validate import check
from support.chats import wire

TALK = [user("go"), assistant("", ToolCall(id="a", name="run")), tool("a", "done", name="run"), user("so?")]
PROVIDERS = ["openai", "anthropic", "openai-responses", "gemini"]


class Line(NamedTuple):
    role: str
    content: str


class Frozen:
    """An object with read-only attributes."""

    __slots__ = ("content", "role")

    def __init__(self, role: str, content: Any) -> None:
        object.__setattr__(self, "role", role)
        object.__setattr__(self, "content", content)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(name)


def shorter(caller: CallerMessages) -> list[Any]:
    """All messages with the first one saying something else, and a note in front."""
    first = caller.messages[0].with_parts(Text(text="went"))
    found: list[Any] = caller.restore([user("earlier", kind="note"), first, *caller.messages[1:]])
    return found


@pytest.mark.promise("S0.13", "S0.47")
@pytest.mark.parametrize("provider", PROVIDERS)
def test_unchanged_dicts_come_back_as_the_same_objects(provider: str) -> None:
    items = wire(TALK, provider)
    caller = CallerMessages(items)
    assert caller.format == provider
    assert caller.wire_format == provider
    assert caller.restore(caller.messages) is items
    made = shorter(caller)
    assert all(one is other for one, other in zip(made[-len(items) + 1 :], items[1:], strict=True))
    assert "earlier" in str(made[0])
    assert "went" in str(made[:2])
    assert not check(provider, made)
    assert items == wire(TALK, provider), "nothing given is changed"


@pytest.mark.promise("S0.13")
@pytest.mark.parametrize(
    "kind", [Line, Frozen, SimpleNamespace, lambda role, content: PlainMessage(role=role, content=content)]
)
def test_unchanged_objects_come_back_and_changed_ones_are_copies(kind: Any) -> None:
    make = kind if kind is not SimpleNamespace else lambda role, content: SimpleNamespace(role=role, content=content)
    items = (make("user", "go"), make("assistant", "well"), make("user", "so?"))
    caller = CallerMessages(items)
    assert caller.restore(caller.messages) is items, "a tuple is as good as a list"
    note, first, *rest = shorter(caller)
    assert (note.role, note.content) == ("user", "earlier")
    assert (type(first), first.role, first.content) == (type(items[0]), "user", "went")
    assert items[0].content == "go"
    assert all(one is other for one, other in zip(rest, items[1:], strict=True))


def test_unchanged_blocks_of_an_object_stay_the_same_objects() -> None:
    """A new text becomes a block of the same type, in a sequence of the same type."""
    picture = SimpleNamespace(type="image", data="AAAA", mimeType="image/png")
    text = SimpleNamespace(type="text", text="see")
    item = SimpleNamespace(role="user", content=(text, picture))
    caller = CallerMessages([item])
    message = caller.messages[0]
    (made,) = caller.restore([message.with_parts(Text(text="saw"), message.parts[1])])
    assert isinstance(made.content, tuple)
    assert made.content[0] == SimpleNamespace(type="text", text="saw")
    assert made.content[1] is picture
    assert text.text == "see"


def test_a_new_result_becomes_a_plain_message() -> None:
    caller = CallerMessages([SimpleNamespace(role="user", content="go")])
    made = caller.restore([*caller.messages, tool("a", "nothing came", name="run", is_error=True)])
    assert made[1] == PlainMessage(
        role="toolResult", content="nothing came", tool_call_id="a", tool_name="run", is_error=True
    )


def test_a_changed_shell_run_becomes_a_user_message() -> None:
    caller = CallerMessages([SimpleNamespace(role="bashExecution", command="ls", output="a b", exitCode=0)])
    assert caller.restore([caller.messages[0].with_parts(Text(text="$ ls"))]) == [
        PlainMessage(role="user", content="$ ls")
    ]


def test_message_values_stay_message_values() -> None:
    caller = CallerMessages(TALK)
    assert caller.restore(caller.messages) is TALK
    assert all(isinstance(message, Message) for message in shorter(caller))
    assert caller.wire_format == "openai"
    assert (
        CallerMessages(
            [replace(message, wire=None) for message in CallerMessages(wire(TALK, "anthropic")).messages]
        ).format
        == "message"
    )
    assert CallerMessages(CallerMessages(wire(TALK, "anthropic")).messages).wire_format == "anthropic"


def test_objects_of_an_sdk_are_read_and_returned() -> None:
    chat = pytest.importorskip("openai.types.chat")
    reply = chat.ChatCompletionMessage(role="assistant", content="well")
    items = [{"role": "user", "content": "go"}, reply]
    caller = CallerMessages(items)
    assert caller.messages[1].text == "well"
    assert shorter(caller)[-1] is reply


def test_a_list_of_messages_and_dicts_is_written_as_dicts() -> None:
    items = [system("You are an agent."), {"role": "user", "content": "go"}]
    made = shorter(CallerMessages(items))
    assert made[0] == {"role": "user", "content": "earlier"}
    assert made[-1] is items[1]


def test_an_element_that_is_no_message_is_refused() -> None:
    with pytest.raises(WireError, match="cannot read a int as a message"):
        CallerMessages([1, 2])
    with pytest.raises(WireError, match="cannot read a str as a message"):
        CallerMessages(["hello"])
    with pytest.raises(FormatUnknown, match="list of messages"):
        CallerMessages([{"hello": "world"}])
    assert CallerMessages([]).restore([]) == []
