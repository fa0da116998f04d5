"""Whatever is sent, the simulated provider answers: with a reply or with an error in the vendor's shape."""

from __future__ import annotations

import copy
import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foldline.testing.provider import FORMATS, Account, judge


def seeds(format: str) -> list[Any]:
    """The requests of the tests of a format's rules, without the very long ones."""
    cases = runpy.run_path(str(Path(__file__).with_name(f"test_{format}_rules.py")))
    bodies = [*cases["ACCEPTED"].values(), *(case[0] for case in cases["REFUSED"].values())]
    return [body for body in bodies if len(repr(body)) < 20_000]


SEEDS = {format: seeds(format) for format in FORMATS}
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.floats(),
    st.sampled_from(["", " ", "x", "text", "tool_use", "message", "user", "toolu_1", "\ud800", "é"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["type", "role", "content", "id", "text", "parts", "x"]), inner, max_size=3),
    ),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to every value inside a request."""
    found = [path]
    if isinstance(value, dict):
        for key, item in value.items():
            found += places(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += places(item, (*path, index))
    return found


def changed(body: Any, path: tuple[Any, ...], value: Any, action: str) -> Any:
    """A copy of a request in which the value at a path is replaced, removed or repeated."""
    if not path:
        return value
    result = copy.deepcopy(body)
    parent = result
    for key in path[:-1]:
        parent = parent[key]
    if action == "remove":
        del parent[path[-1]]
    elif action == "repeat" and isinstance(parent, list):
        parent.insert(path[-1], copy.deepcopy(parent[path[-1]]))
    else:
        parent[path[-1]] = value
    return result


@st.composite
def requests(draw: st.DrawFn, format: str) -> Any:
    body = draw(st.sampled_from(SEEDS[format]))
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(body)))
        action = draw(st.sampled_from(["replace", "remove", "repeat"]))
        body = changed(body, path, draw(VALUES), action)
    return body


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=300)
@given(data=st.data())
def test_a_damaged_request_is_answered(format: str, data: st.DataObject) -> None:
    body = data.draw(requests(format))
    found = judge(format, body, model="gemini-3-pro")
    reply = Account(takes_foreign=True).answer(format, body, model="gemini-3-pro")
    if found is not None:
        assert 400 <= found.status < 500
        assert found.message
        assert json.dumps(found.body())
        assert reply.error is not None
    else:
        assert reply.error is None or reply.error.status in {400, 404}
        json.dumps(reply.body)


@pytest.mark.parametrize("format", FORMATS)
def test_deep_nesting_is_refused(format: str) -> None:
    value: Any = "x"
    for _ in range(sys.getrecursionlimit() * 2):
        value = [value]
    found = judge(format, {"model": "x", "messages": value})
    assert found is not None
    assert found.rule == "json"


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("body", [None, 3, "x", [], {}, {"messages": None}, {"model": 3}, {1: 2}], ids=repr)
def test_what_is_no_request_is_refused(format: str, body: Any) -> None:
    assert judge(format, body) is not None
