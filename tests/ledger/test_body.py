"""What is stored comes back as it was, byte for byte."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foldline.errors import InputError
from foldline.fold import Digest, Fold, Loss
from foldline.ledger.message_keys import ROOT, link, trace
from foldline.ledger.serialize import fold_of, fold_value, message_body, meta_body, meta_of, pack, read_message, unpack
from foldline.message import Message, Meta, Opaque, Text, Thinking, ToolCall, Usage, Wire, assistant, user
from foldline.wire.formats import REQUEST_FORMATS, format_of
from foldline.wire.rendering import render
from strategies import arrived, broken, sound


def whole(message: Message) -> object:
    """A message with everything that comparing it leaves out."""
    return (message, message.meta, message.wire, [_inside(part) for part in message.parts])


def _inside(part: Any) -> object:
    return (part, part.wire, [_inside(inner) for inner in getattr(part, "parts", ())])


def again(message: Message) -> Message:
    return read_message(unpack(pack(message_body(message))), meta_body(message.meta))


@pytest.mark.promise("I14", "S2.5")
@settings(max_examples=50)
@given(st.sampled_from(REQUEST_FORMATS).flatmap(arrived) | sound() | broken())
def test_every_message_comes_back_whole(messages: list[Message]) -> None:
    for message in messages:
        assert whole(again(message)) == whole(message)


@pytest.mark.promise("I13")
@settings(max_examples=50)
@given(st.sampled_from(REQUEST_FORMATS).flatmap(lambda provider: st.tuples(st.just(provider), arrived(provider))))
def test_stored_messages_render_as_they_came(case: tuple[str, list[Message]]) -> None:
    provider, messages = case
    assert json.dumps(render([again(message) for message in messages], provider).body) == json.dumps(
        render(messages, provider).body
    )


def test_the_very_text_comes_back() -> None:
    raw = '{ "content":"caf\\u00e9 \\ud83d\\ude00",  "role":"user", "n": 1.50 }'
    message = format_of("openai").parse(json.loads(raw), raw)
    assert message.wire is not None
    found = again(message).wire
    assert found is not None
    assert found.raw == raw


def test_text_whose_value_is_another_keeps_both() -> None:
    odd = Message(role="user", wire=Wire("openai", {"role": "user"}, '{"role": "other"}'))
    assert whole(again(odd)) == whole(odd)


def test_what_the_wire_says_is_written_once() -> None:
    value = {"role": "user", "content": [{"type": "text", "text": "z" * 10_000}]}
    message = format_of("anthropic").parse(value, None)
    assert len(message_body(message)) < 10_500
    parts = again(message)
    assert parts.wire is not None
    assert parts.parts[0].wire is not None
    assert parts.parts[0].wire.value is parts.wire.value["content"][0]


@given(
    st.builds(
        Meta,
        reply=st.text(max_size=5),
        model=st.text(max_size=5),
        stop=st.text(max_size=5),
        usage=st.none() | st.builds(Usage, *[st.integers(0, 2**40)] * 6),
        at=st.none() | st.floats(0, 1e10),
        hidden=st.booleans(),
        source=st.text(max_size=5),
    )
)
def test_facts_come_back(meta: Meta) -> None:
    assert meta_of(meta_body(meta)) == meta


@pytest.mark.promise("S3.41")
@settings(max_examples=40)
@given(sound(), st.data())
def test_folds_come_back(messages: list[Message], data: st.DataObject) -> None:
    loss = Loss(facts=3, kept=1, carried=1, missing=("a",), unsourced=("b",))
    fold = Fold(
        cut=data.draw(st.integers(0, 9)),
        digest=Digest(message=messages[0], loss=data.draw(st.sampled_from((None, loss))), usage=Usage(input=3)),
        pinned=(0, 2),
        carried=(1,),
        stubs={number: (message, number) for number, message in enumerate(messages)},
        before=10,
        after=4,
    )
    found = fold_of(json.loads(json.dumps(fold_value(fold))))
    assert found == fold
    assert [whole(stub) for stub, _ in found.stubs.values()] == [whole(message) for message in messages]


def test_what_is_no_json_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (object(), {1, 2}, deep):
        with pytest.raises(InputError, match="cannot store"):
            message_body(Message(role="user", parts=(Opaque(kind="x", value=value),)))


@settings(max_examples=40)
@given(sound())
def test_a_key_names_the_owner_the_past_and_the_content(messages: list[Message]) -> None:
    bodies = [message_body(message) for message in messages]
    for body in bodies:
        keys = {link(owner, before, body) for owner in ("", "a", "b") for before in (ROOT, b"x" * 20)}
        assert len(keys) == 6
    assert len({link("", ROOT, body) for body in bodies}) == len(set(bodies))


def test_a_trace_is_what_is_said() -> None:
    call = ToolCall(id="c", name="run", arguments='{"a": 1}')
    reply = assistant("done", call)
    same = (
        replace(reply, meta=Meta(model="m")),
        replace(reply, wire=Wire("openai", {"role": "assistant", "refusal": None})),
        replace(reply, parts=(Thinking(text="hm"), *reply.parts)),
        assistant("done", replace(call, arguments='{"a":1}')),
        replace(reply, parts=(Text(text=" "), *reply.parts)),
    )
    assert {trace("", ROOT, message) for message in same} == {trace("", ROOT, reply)}
    other = (
        assistant("done"),
        assistant("done", replace(call, id="d")),
        assistant("done", replace(call, arguments='{"a": 2}')),
        user("done"),
    )
    assert trace("", ROOT, reply) not in {trace("", ROOT, message) for message in other}
    assert trace("", b"x", Message(role="assistant", parts=(Thinking(text="hm"),))) == b"x"
