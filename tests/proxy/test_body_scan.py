"""A body that shares its beginning with the previous one is read as if it were read alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.proxy.body_scan import NotScannable, scan_body

_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.dictionaries(_TEXTS.filter(lambda key: key != "messages"), JSON, max_size=4)


@given(
    before=FIELDS,
    after=FIELDS,
    old=st.lists(JSON, max_size=8),
    keep=st.integers(0, 8),
    new=st.lists(JSON, max_size=5),
    same=st.booleans(),
    spaces=st.sampled_from([None, 2]),
    escapes=st.booleans(),
)
def test_what_is_new_is_found_whatever_stays(
    before: dict[str, Any],
    after: dict[str, Any],
    old: list[Any],
    keep: int,
    new: list[Any],
    same: bool,
    spaces: int | None,
    escapes: bool,
) -> None:
    first = json.dumps({**before, "messages": old, **after}, indent=spaces, ensure_ascii=escapes).encode()
    changed = after if same else {**after, "extra": 1}
    body = {**before, "messages": old[:keep] + new, **changed}
    second = json.dumps(body, indent=spaces, ensure_ascii=escapes).encode()
    previous, alone = scan_body(first, "messages"), scan_body(second, "messages")
    found = scan_body(second, "messages", previous)
    assert (found.starts, found.ends, found.list_start, found.list_end) == (
        alone.starts,
        alone.ends,
        alone.list_start,
        alone.list_end,
    )
    assert {key: item.value for key, item in found.fields.items()} == {
        key: value for key, value in body.items() if key != "messages"
    }
    assert all(found.field_text(key) == alone.field_text(key) for key in found.fields)
    assert [json.loads(found.element(index)) for index in range(len(found.ends))] == body["messages"]
    assert all(found.values[index] == body["messages"][index] for index in range(found.shared, len(found.ends)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "nonsense",
        '{"messages": "text"}',
        '{"messages": [1,]}',
        '{"messages": [1], "messages": [2]}',
        '{"messages": [1]} x',
        '{"messages": [1]',
        '{"messages": [1 2]}',
        '{"a" 1, "messages": []}',
        '{"messages": ' + "[" * 100_000,
    ],
)
def test_other_bodies_are_not_scannable(text: str) -> None:
    with pytest.raises(NotScannable):
        scan_body(text.encode(), "messages")
