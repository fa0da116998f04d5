"""A streamed reply is the non-streamed reply: for any reply, any chunks, any cut, and any garbage."""

from __future__ import annotations

import json
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foldline.message import Message, tool, user
from foldline.wire.formats import REQUEST_FORMATS, format_of
from foldline.wire.rendering import render
from foldline.wire.streaming import Assembler, StreamedReply
from foldline.wire.validate import check
from support.replies import REPLIES
from support.samples import SAMPLES
from support.streams import Pieces, by, sse, stream


def parse_reply(provider: str, value: Any) -> tuple[Message, ...]:
    """The messages of a reply that came whole."""
    replies = format_of(provider).reply
    assert replies
    return replies.parse(value)


NEWLINES = st.sampled_from(["\n", "\r\n", "\r"])


def assemble(provider: str, data: bytes, *cuts: int) -> StreamedReply | None:
    assembler = Assembler(provider)
    places = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    for start, end in pairwise(places):
        assembler.feed(data[start:end])
    return assembler.finish()


def loosely(random: Random) -> Pieces:
    """Pieces of all sizes, empty ones too."""

    def pieces(text: str) -> list[str]:
        cuts = sorted(random.choices(range(len(text) + 1), k=random.randrange(4)))
        return [text[start:end] for start, end in pairwise([0, *cuts, len(text)])]

    return pieces


@pytest.mark.parametrize("provider", REQUEST_FORMATS)
@settings(max_examples=120)
@given(st.data(), NEWLINES, st.lists(st.integers(0, 6000), max_size=40), st.randoms(use_true_random=False))
def test_a_streamed_reply_is_the_non_streamed_one(
    provider: str, data: st.DataObject, newline: str, cuts: list[int], random: Random
) -> None:
    value = data.draw(REPLIES[provider])
    expected = parse_reply(provider, value)
    reply = assemble(provider, sse(stream(provider, value, loosely(random)), newline=newline), *cuts)
    assert reply is not None
    assert reply.messages == tuple(expected)
    assert [message.meta for message in reply.messages] == [message.meta for message in expected]
    assert [message.wire for message in reply.messages] == [message.wire for message in expected]
    assert (reply.usage, reply.stop) == (expected[-1].meta.usage, expected[-1].meta.stop)
    assert reply.complete
    assert (reply.error, reply.lost) == (None, ())


@pytest.mark.parametrize("provider", REQUEST_FORMATS)
@settings(max_examples=40)
@given(st.data())
def test_a_reply_that_was_not_streamed_is_read_too(provider: str, data: st.DataObject) -> None:
    value = data.draw(REPLIES[provider])
    reply = assemble(provider, json.dumps(value, indent=1).encode(), 1, 50)
    assert reply is not None
    assert reply.messages == parse_reply(provider, value)
    assert reply.complete


def check_cut(provider: str, reply: StreamedReply | None, whole: StreamedReply) -> None:
    """What is kept of a reply that broke off: a beginning of it that the provider takes back, and never its stop."""
    if reply is None:
        return
    if reply.complete:
        assert reply.messages == whole.messages
        return
    assert reply.stop == "cut"
    assert [message.meta.stop for message in reply.messages[-1:]] == ["cut"] * bool(reply.messages)
    said = "".join(message.text for message in reply.messages)
    assert "".join(message.text for message in whole.messages).startswith(said)
    made = [call for message in reply.messages for call in message.calls]
    assert all(call in [call for message in whole.messages for call in message.calls] for call in made)
    results = [tool(call.id, "done", name=call.name) for call in made]
    sent = render([user("go"), *reply.messages, *results, user("go on")], provider).body
    found = [violation for violation in check(provider, sent) if "new_" not in violation.message]
    assert found == []  # a block of a type from the future goes back as it came


@pytest.mark.parametrize("provider", REQUEST_FORMATS)
@settings(max_examples=15)
@given(st.data(), st.randoms(use_true_random=False))
def test_a_stream_cut_at_any_byte_is_valid_or_nothing(provider: str, data: st.DataObject, random: Random) -> None:
    value = data.draw(REPLIES[provider])
    sent = sse(stream(provider, value, loosely(random)))
    whole = assemble(provider, sent)
    assert whole is not None
    for end in random.sample(range(len(sent)), min(60, len(sent))):
        check_cut(provider, assemble(provider, sent[:end]), whole)


SENT = [(provider, name, value) for provider, samples in SAMPLES.items() for name, value in samples.items()]


@pytest.mark.parametrize(("provider", "name", "value"), SENT, ids=[f"{entry[0]} {entry[1]}" for entry in SENT])
def test_a_sample_cut_at_every_byte_is_valid_or_nothing(provider: str, name: str, value: dict[str, Any]) -> None:
    sent = sse(stream(provider, value, by(30)))
    whole = assemble(provider, sent)
    assert whole is not None
    assert whole.messages == parse_reply(provider, value), name
    for end in range(len(sent)):
        check_cut(provider, assemble(provider, sent[:end]), whole)
