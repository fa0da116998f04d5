"""Pruned text is cut between characters, and shortened JSON stays JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.message import Text, ToolResult
from foldline.plan.prune import ARGUMENT_CHARS, preview, shorten_json, stub_result
from foldline.policy import Policy

texts = st.text(alphabet='a漢🙂é\n"\\', max_size=60)
long_texts = texts.map(lambda text: (text + "字") * 30)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts | long_texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.promise("I20")
@given(values, st.booleans())
def test_json_with_long_texts_cut_is_the_same_json(value: Any, ascii_only: bool) -> None:
    short = shorten_json(json.dumps(value, ensure_ascii=ascii_only), "#7")
    short.encode()
    same(value, json.loads(short))


def same(was: Any, now: Any) -> None:
    """The same keys and items; a text is whole, or its start with a line that counts the rest."""
    if isinstance(was, dict):
        assert list(was) == list(now)
        for key, item in was.items():
            same(item, now[key])
    elif isinstance(was, list):
        assert len(was) == len(now)
        for one, other in zip(was, now, strict=True):
            same(one, other)
    elif isinstance(was, str) and len(was) > ARGUMENT_CHARS:
        keep = ARGUMENT_CHARS // 4
        assert now == f"{was[:keep]}[{len(was) - keep:,} characters left out; the whole is #7]"
    else:
        assert was == now


@pytest.mark.promise("I20")
@pytest.mark.parametrize("text", ['{"cut": "off', "free text " * 90, '{"a": ' * 5_000])
def test_text_that_is_no_json_is_not_shortened(text: str) -> None:
    assert shorten_json(text, "#7") == text


@pytest.mark.promise("I20", "F18")
@given(long_texts, st.integers(1, 200), st.integers(1, 9))
def test_a_stub_shows_the_start_of_the_text_and_names_the_full_one(text: str, chars: int, lines: int) -> None:
    policy = Policy(preview_chars=chars, preview_lines=lines)
    shown = preview(text, policy)
    shown.encode()
    assert text.startswith(shown)
    assert len(shown) <= chars
    assert shown.count("\n") < lines
    made = stub_result(ToolResult(call_id="a", parts=(Text(text=text),)), "#7", policy)
    assert f"{len(shown):,} of {len(text):,} characters shown; the whole is #7," in made.text
