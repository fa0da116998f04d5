"""The local digest: what it always holds, whatever the conversation."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.digest.facts import gather
from foldline.digest.local import local_digest
from foldline.digest.prompt import HEADINGS
from foldline.measure.counter import Estimator
from foldline.message import Message, user
from strategies import sound

HEADER = "[session digest — older turns condensed]"
COUNT = Estimator()


def size(text: str) -> int:
    return COUNT.count(text).tokens


@given(sound(), st.integers(60, 4000))
@pytest.mark.promise("S0.35")
def test_never_over_its_cap_and_always_the_same(messages: list[Message], cap: int) -> None:
    text = local_digest(gather(messages, 0), cap=cap, size=size, header=HEADER).message.text
    assert size(text) <= cap
    assert text == local_digest(gather(messages, 0), cap=cap, size=size, header=HEADER).message.text
    assert text.startswith(HEADER)
    assert [line for line in text.split("\n") if line.startswith("# ")] in ([], list(HEADINGS))


@given(sound(turns=6), st.data())
def test_gathering_in_pieces_finds_the_same(messages: list[Message], data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(messages)), max_size=4)))
    facts, start = None, 0
    for cut in [*cuts, len(messages)]:
        facts = gather(messages[start:cut], start, facts)
        start = cut
    assert facts == gather(messages, 0)


@given(sound())
def test_every_handle_names_a_message(messages: list[Message]) -> None:
    text = local_digest(gather(messages, 0), cap=4000, size=size, header=HEADER).message.text
    for first, last in re.findall(r"#(\d+)(?:-(\d+))?(?=[,\]])", text):
        assert 1 <= int(first) <= int(last or first) <= len(messages)


def test_a_request_is_kept_word_for_word() -> None:
    facts = gather([user("Port the parser to Rust. Never touch the wire format!")], 0)
    text = local_digest(facts, cap=400, size=size, header=HEADER).message.text
    assert "Port the parser to Rust. Never touch the wire format! [#1]" in text
    assert "- Never touch the wire format! [#1]" in text
