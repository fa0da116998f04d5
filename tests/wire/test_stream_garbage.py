"""Whatever bytes come, assembling gives a reply or nothing: it never raises, and never makes up an end."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foldline.errors import ConfigError
from foldline.wire.formats import REQUEST_FORMATS
from foldline.wire.rendering import render
from foldline.wire.streaming import Assembler, StreamedReply
from support.samples import SAMPLES
from support.streams import by, stream

ODD: list[Any] = [None, True, 0, -1, 7, 1.5, "", "{", "{}", "x", "error", [], {}, [None], ["x"], [[]], {"type": "x"}]
SHAPES = st.recursive(
    st.sampled_from(ODD),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "a"]), inner, max_size=3),
)
SOUND = [(provider, sample) for provider, samples in SAMPLES.items() for sample in samples.values()]


def damaged(value: Any, random: Random) -> Any:
    """The same JSON with a few values replaced, left out or repeated, at any depth."""
    if random.random() < 0.04:
        return random.choice(ODD)
    if isinstance(value, dict):
        return {key: damaged(field, random) for key, field in value.items() if random.random() > 0.03}
    if isinstance(value, list):
        return [damaged(entry, random) for entry in value for _ in range(random.choice([1] * 30 + [0, 2]))]
    return value


def finish(provider: str, *chunks: bytes) -> StreamedReply | None:
    assembler = Assembler(provider, event_bytes=1 << 20)
    for chunk in chunks:
        assembler.feed(chunk)
    reply = assembler.finish()
    assert assembler.finish() == reply
    if reply is not None:
        assert reply.complete == (reply.error is None and reply.stop != "cut")
        render(reply.messages, provider)
    return reply


@pytest.mark.parametrize("provider", REQUEST_FORMATS)
@given(st.lists(st.binary(max_size=60) | st.sampled_from([b"data: ", b"\n\n", b"[1]", b"{}", b"\xff"]), max_size=8))
def test_bytes_never_raise(provider: str, chunks: list[bytes]) -> None:
    finish(provider, *chunks)


@pytest.mark.parametrize("provider", REQUEST_FORMATS)
@settings(max_examples=100)
@given(st.lists(SHAPES, max_size=8))
def test_events_of_any_shape_never_raise(provider: str, values: list[Any]) -> None:
    finish(provider, *(f"data: {json.dumps(value)}\n\n".encode() for value in values))


@settings(max_examples=800)
@given(st.sampled_from(SOUND), st.integers(0, 2**32))
def test_a_damaged_stream_never_raises(sound: tuple[str, dict[str, Any]], seed: int) -> None:
    (provider, value), random = sound, Random(seed)
    events = [damaged(event, random) for _, event in stream(provider, value, by(9))]
    if random.random() < 0.2:
        random.shuffle(events)
    finish(provider, *(f"data: {json.dumps(event)}\n\n".encode() for event in events))


def leaves(value: Any, *path: str | int) -> Iterator[tuple[str | int, ...]]:
    """Where the plain values of a JSON value stand."""
    inner: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
    else:
        yield path
    for key, field in inner:
        yield from leaves(field, *path, key)


@pytest.mark.parametrize("provider", REQUEST_FORMATS)
@pytest.mark.parametrize("depth", [300, 700, 100_000])
def test_deep_nesting_anywhere_never_raises(provider: str, depth: int) -> None:
    for sample in SAMPLES[provider].values():
        values = [value for _, value in stream(provider, sample, by(99)) if isinstance(value, dict)]
        for place, path in Random(depth).sample(
            [(n, path) for n, value in enumerate(values) for path in leaves(value)], 12
        ):
            broken = copy.deepcopy(values)
            target: Any = broken[place]
            for key in path[:-1]:
                target = target[key]
            target[path[-1]] = "@deep@"
            text = "".join(f"data: {json.dumps(value)}\n\n" for value in broken)
            finish(provider, text.replace('"@deep@"', "[" * depth + "]" * depth).encode())


def test_an_unknown_provider_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="unknown wire format 'cohere': use one of anthropic, openai"):
        Assembler("cohere")


@pytest.mark.parametrize("provider", REQUEST_FORMATS)
def test_nothing_gives_nothing(provider: str) -> None:
    assert finish(provider) is None
    assert finish(provider, b"", b": ping\n\n", b"data: [DONE]\n\n", b"event: ping\ndata: {}\n\n") is None
