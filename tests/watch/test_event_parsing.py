"""Lines as events: every parser gives the same events, and nothing raises."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from foldline.watch import agent_events as events
from foldline.watch.agent_events import load
from support.agent_events import ANYTHING, EVENTS


def plain(line: bytes) -> Any:
    """The event on a line by the reader that every Python has."""
    found = events._parse_leniently(line)
    return found if isinstance(found, dict) else None


def close(value: Any) -> Any:
    """A value as far as readers agree: whole numbers of more than 64 bits may come as a float, and NaN is itself."""
    if isinstance(value, dict):
        return {key: close(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [close(inner) for inner in value]
    if isinstance(value, float) or (isinstance(value, int) and abs(value) >= 2**63):
        return repr(float(value))
    return value


@given(st.one_of(EVENTS, st.dictionaries(st.text(), ANYTHING)), st.booleans(), st.sampled_from(("", " ", "\r")))
@example({"a": 10**30}, False, "")
@example({"\ud800": float("nan"), "b": [1e400, -0.0]}, True, "\r")
def test_both_parsers_give_the_same_event(value: Any, escaped: bool, ending: str) -> None:
    line = (ending + json.dumps(value, ensure_ascii=escaped) + ending).encode("utf-8", "surrogatepass")
    assert close(load(line)) == close(plain(line))


@given(st.one_of(st.binary(max_size=60), st.text(alphabet='{}[]":,\\u0 1eN\n\0', max_size=30).map(str.encode)))
@example(b'{"a": "\xff"}')
@example(b'{"a": 1} x')
@example(b"\xef\xbb\xbf{}")
@example(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}")
def test_garbage_is_no_event_for_either_parser(line: bytes) -> None:
    assert close(load(line)) == close(plain(line))
