"""Messages and folds are read back byte for byte."""

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


def full_value(message: Message) -> object:
    """A message with everything that comparing it leaves out."""
    return (message, message.meta, message.wire, [_inside(part) for part in message.parts])


def _inside(part: Any) -> object:
    return (part, part.wire, [_inside(inner) for inner in getattr(part, "parts", ())])


def read_back(message: Message) -> Message:
    return read_message(unpack(pack(message_body(message))), meta_body(message.meta))


@pytest.mark.promise("I14", "S2.5")
@settings(max_examples=50)
@given(st.sampled_from(REQUEST_FORMATS).flatmap(arrived) | sound() | broken())
def test_every_message_is_read_back_unchanged(messages: list[Message]) -> None:
    for message in messages:
        assert full_value(read_back(message)) == full_value(message)


@pytest.mark.promise("I13")
@settings(max_examples=50)
@given(st.sampled_from(REQUEST_FORMATS).flatmap(lambda format_: st.tuples(st.just(format_), arrived(format_))))
def test_stored_messages_render_to_their_original_bytes(case: tuple[str, list[Message]]) -> None:
    format_, messages = case
    assert json.dumps(render([read_back(message) for message in messages], format_).body) == json.dumps(
        render(messages, format_).body
    )


def test_the_original_text_is_read_back() -> None:
    raw = '{ "content":"caf\\u00e9 \\ud83d\\ude00",  "role":"user", "n": 1.50 }'
    message = format_of("openai").parse(json.loads(raw), raw)
    assert message.wire is not None
    found = read_back(message).wire
    assert found is not None
    assert found.raw == raw


def test_a_text_that_differs_from_its_value_is_stored_with_it() -> None:
    odd = Message(role="user", wire=Wire("openai", {"role": "user"}, '{"role": "other"}'))
    assert full_value(read_back(odd)) == full_value(odd)


def test_content_of_the_wire_form_is_stored_once() -> None:
    value = {"role": "user", "content": [{"type": "text", "text": "z" * 10_000}]}
    message = format_of("anthropic").parse(value, None)
    assert len(message_body(message)) < 10_500
    parts = read_back(message)
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
def test_metadata_is_read_back_unchanged(meta: Meta) -> None:
    assert meta_of(meta_body(meta)) == meta


@pytest.mark.promise("S3.41")
@settings(max_examples=40)
@given(sound(), st.data())
def test_folds_are_read_back_unchanged(messages: list[Message], data: st.DataObject) -> None:
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
    assert [full_value(stub) for stub, _ in found.stubs.values()] == [full_value(message) for message in messages]


def test_values_that_are_not_json_are_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (object(), {1, 2}, deep):
        with pytest.raises(InputError, match="cannot store"):
            message_body(Message(role="user", parts=(Opaque(kind="x", value=value),)))


@settings(max_examples=40)
@given(sound())
def test_a_key_depends_on_owner_history_and_content(messages: list[Message]) -> None:
    bodies = [message_body(message) for message in messages]
    for body in bodies:
        keys = {link(owner, before, body) for owner in ("", "a", "b") for before in (ROOT, b"x" * 20)}
        assert len(keys) == 6
    assert len({link("", ROOT, body) for body in bodies}) == len(set(bodies))


def test_a_trace_depends_on_texts_calls_and_results_only() -> None:
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
