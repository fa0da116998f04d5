"""Every placeholder is recognised by its kind, and no other text is."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline import placeholders as ph
from foldline.message import Media, Text, ToolCall, ToolResult

HANDLE = st.integers(1, 10**6).map(lambda number: f"#{number}")
COUNT = st.integers(0, 10**9)
CALL = ToolCall(id="c1", name="run", arguments='{"command": "ls"}')
RESULT = ToolResult(call_id="c1", parts=(Text(text="a.py"),))

WRITTEN: dict[str, st.SearchStrategy[str]] = {
    "stub": st.builds(
        lambda text, handle, shown, total, media: (
            f"{text}\n{ph.stub_line(ph.WINDOW_FULL, handle, shown=shown, total=total, attachments=media)}"
        ),
        st.text(),
        HANDLE,
        COUNT,
        COUNT,
        st.integers(0, 3),
    ),
    "shortened": st.builds(
        lambda text, missing, handle: text + ph.shortened(missing, handle), st.text(), COUNT, HANDLE
    ),
    "messages": st.builds(
        lambda count, handle, partly: ph.missing_messages(count, handle, partly=partly),
        COUNT,
        st.one_of(HANDLE, st.just("#2-13")),
        st.booleans(),
    ),
    "media": st.one_of(
        st.builds(lambda handle: ph.missing_media("image", "over 5,242,880 bytes", handle), HANDLE),
        st.just(ph.unsupported_media(Media(kind="audio", mime="audio/wav"))),
        st.just(ph.unsupported_media(Media(kind="image", mime=""))),
    ),
    "call or result": st.sampled_from(
        [ph.call_as_text(CALL), ph.result_as_text(RESULT), ph.orphan_result_line(RESULT)]
    ),
    "prompt": st.sampled_from([ph.continue_prompt(), ph.continue_prompt("run, write")]),
}


@pytest.mark.parametrize("kind", WRITTEN)
@given(data=st.data())
def test_a_placeholder_is_recognised_and_taken_for_no_other(kind: str, data: st.DataObject) -> None:
    assert ph.placeholder_kind(data.draw(WRITTEN[kind])) == kind


@given(st.text(alphabet="ab[]#1,; \n"))
def test_ordinary_text_is_no_placeholder(text: str) -> None:
    assert not ph.placeholder_kind(text)


@given(st.sampled_from(list(WRITTEN)).flatmap(lambda kind: WRITTEN[kind]))
def test_a_quoted_placeholder_no_longer_offers_recall(text: str) -> None:
    assert "ask recall" not in ph.without_imitations(text)


@pytest.mark.parametrize("kind", ["stub", "shortened", "messages", "media"])
@given(data=st.data())
def test_a_placeholder_without_its_handle_has_the_same_kind(kind: str, data: st.DataObject) -> None:
    plain = ph.without_recall(data.draw(WRITTEN[kind]))
    assert ph.placeholder_kind(plain) == kind
    assert "ask recall" not in plain
    assert "#" not in plain[plain.rfind("[") :]
    assert ph.without_recall(plain) == plain


@given(st.text())
def test_other_text_has_no_handle_to_remove(text: str) -> None:
    assert ph.without_recall(text) == text


@pytest.mark.parametrize(
    "text", ["[" * 10**6, "[1" * 10**6, "\n" * 10**6, "[1 earlier message" * 10**5, "[pruned, " * 10**5]
)
def test_recognition_takes_linear_time(text: str) -> None:
    start = time.perf_counter()
    ph.placeholder_kind(text)
    ph.without_imitations(text)
    ph.without_recall(text)
    assert time.perf_counter() - start < 2
