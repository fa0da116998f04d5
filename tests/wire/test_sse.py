"""Server-sent events: the rules of the standard, and what real servers do beyond them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.wire.streaming.sse import EventReader, ServerSentEvent

NEWLINES = ("\n", "\r", "\r\n")
LINES = st.text(alphabet=st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=20)
WRITTEN = st.lists(st.tuples(LINES, st.lists(LINES, min_size=1, max_size=3)), max_size=6)


def read(data: bytes, *cuts: int, event_bytes: int = 1 << 20) -> list[ServerSentEvent]:
    events, found = EventReader(event_bytes=event_bytes), []
    places = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    for start, end in pairwise(places):
        found += events.feed(data[start:end])
    return found + events.close()


@given(WRITTEN, st.sampled_from(NEWLINES), st.lists(st.integers(0, 400), max_size=30), st.booleans())
def test_events_are_read_from_chunks_of_any_size(
    written: list[tuple[str, list[str]]], newline: str, cuts: list[int], mark: bool
) -> None:
    text = f": hello{newline}retry: 10{newline}"
    for name, lines in written:
        text += f"event: {name}{newline}id: 7{newline}:{newline}"
        text += "".join(f"data: {line}{newline}" for line in lines) + newline
    data = (b"\xef\xbb\xbf" if mark else b"") + text.encode()
    expected = [ServerSentEvent(name, "\n".join(lines)) for name, lines in written if "".join(lines) or len(lines) > 1]
    assert read(data, *cuts) == expected


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=20))
def test_the_size_of_chunks_does_not_change_how_garbage_is_read(data: bytes, cuts: list[int]) -> None:
    assert read(data, *cuts) == read(data)


def test_a_character_split_between_chunks_is_whole() -> None:
    data = "data: naïve 家\n\n".encode()
    assert read(data, *range(len(data))) == [ServerSentEvent("", "naïve 家")]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"data:x\n\n", [ServerSentEvent("", "x")]),
        (b"\xef\xbb\xbfdata: x\n\n", [ServerSentEvent("", "x")]),
        (b"data:  x\n\n", [ServerSentEvent("", " x")]),
        (b"data: a\ndata\ndata: b\n\n", [ServerSentEvent("", "a\n\nb")]),
        (b"event: ping\n\n", []),
        (b"event: a\n\ndata: x\n\n", [ServerSentEvent("", "x")]),
        (b"data: last", [ServerSentEvent("", "last")]),
        (b'{"error": 1}', [ServerSentEvent("", '{"error": 1}')]),
        (b'\n [\n{"a": 1},\r\n{"b": 2}]\n\n', [ServerSentEvent("", ' [\n{"a": 1},\n{"b": 2}]\n')]),
        (b'data: x\n\n{"error": 1}\n\n', [ServerSentEvent("", "x"), ServerSentEvent("", '{"error": 1}')]),
        (b'error: {"code": 500}\n\n', [ServerSentEvent("error", '{"code": 500}')]),
    ],
)
def test_lines_by_the_rules_and_beyond(data: bytes, expected: list[ServerSentEvent]) -> None:
    assert read(data, *range(len(data))) == expected


def test_an_event_beyond_the_bound_ends_the_reading_and_frees_its_memory() -> None:
    events = EventReader(event_bytes=1000)
    assert events.feed(b"data: first\n\n") == [ServerSentEvent("", "first")]
    for _ in range(100):
        assert events.feed(b"data: " + b"x" * 90 + b"\n") == []
    assert events.overflow
    assert events.feed(b"\n\ndata: later\n\n") + events.close() == []


def test_a_line_without_end_is_bounded() -> None:
    events = EventReader(event_bytes=1000)
    for _ in range(100):
        events.feed(b"x" * 100)
    assert events.overflow
    assert events.close() == []
