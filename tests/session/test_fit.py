"""`foldline.fit`: a list in, a list out, in the same format."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import foldline
from foldline import ViewTooLarge, fit, render
from foldline.digesters import DigesterCall
from foldline.message import Message, ToolCall, assistant, tool, user
from foldline.testing import assert_sendable, proper
from foldline.wire.formats import request_format

TASK = "Port the parser in src/parser.py to Rust. Never touch src/lexer.py."
FORMATS = {"anthropic": "claude-sonnet-5", "openai": "gpt-5", "openai-responses": "gpt-5", "gemini": "gemini-2.5-pro"}


def history(steps: int) -> list[Message]:
    messages = [user(TASK)]
    for number in range(steps):
        call = ToolCall(id=f"call_{number}", name="read", arguments=f'{{"path": "src/part_{number}.py"}}')
        messages.append(assistant(f"I read part {number} now.", call))
        messages.append(tool(call.id, f"def part_{number}():\n" + f"    return {number}  # a line of code\n" * 60))
    return messages


def listed(steps: int, format: str) -> list[Any]:
    elements: list[Any] = render(history(steps), format).body[request_format(format).list_key]
    return elements


@pytest.mark.parametrize("format", FORMATS)
def test_the_result_fits_keeps_the_task_and_has_a_digest(format: str) -> None:
    messages = listed(60, format)
    fitting = fit(messages, model=FORMATS[format], budget=20_000)
    text = str(fitting)
    assert len(fitting) < len(messages)
    assert TASK in text
    assert "[session digest" in text
    assert "recall" not in text
    assert "[#" not in text
    assert fitting[-1] is messages[-1]
    assert_sendable(fitting, format)


@pytest.mark.parametrize("format", FORMATS)
def test_a_list_that_fits_is_the_same_object(format: str) -> None:
    messages = listed(5, format)
    assert fit(messages, model=FORMATS[format], budget=50_000) is messages
    assert fit(messages, model=FORMATS[format]) is messages


def test_an_empty_list_is_returned() -> None:
    empty: list[Any] = []
    assert fit(empty, model="gpt-5") is empty


@settings(max_examples=10)
@given(start=st.integers(20, 40), more=st.integers(1, 6))
def test_between_folds_the_result_only_grows_at_its_end(start: int, more: int) -> None:
    """With the whole history, every time: a fold is made at the same place, so the prompt cache stays valid."""
    changes = 0
    before = fit(listed(start, "openai"), model="gpt-5", budget=12_000)
    for steps in range(start + 1, start + more + 1):
        after = fit(listed(steps, "openai"), model="gpt-5", budget=12_000)
        changes += after[: len(before)] != before
        before = after
    assert changes <= 1 + more // 3


def test_the_returned_list_can_be_kept_and_grown() -> None:
    kept: list[Any] = []
    for message in listed(80, "openai"):
        kept = fit([*kept, message], model="gpt-5", budget=12_000)
    text = str(kept)
    assert TASK in text
    assert text.count("[session digest") == 1
    assert "part_3" in text  # from a message that was folded many folds ago
    assert_sendable(kept, "openai")


@pytest.mark.parametrize("is_async", [False, True])
def test_a_digester_is_asked_once_for_the_same_messages(is_async: bool) -> None:
    calls: list[DigesterCall] = []

    def write(call: DigesterCall) -> str:
        calls.append(call)
        return proper(call)

    async def write_later(call: DigesterCall) -> str:
        return write(call)

    digester = write_later if is_async else write
    first = fit(listed(30, "openai"), model="gpt-5", budget=12_000, digester=digester)
    asked = len(calls)
    assert asked
    assert "The user asked" in str(first)
    assert fit(listed(30, "openai"), model="gpt-5", budget=12_000, digester=digester) == first
    assert len(calls) == asked


def test_what_cannot_fit_is_refused() -> None:
    with pytest.raises(ViewTooLarge, match="history"):
        fit([{"role": "user", "content": "word " * 9_000}], model="gpt-5", budget=2_000)


def test_message_values_and_a_named_format() -> None:
    fitting = foldline.fit(history(60), model="gpt-5", budget=12_000)
    assert all(isinstance(message, Message) for message in fitting)
    plain = [{"role": "user", "content": "hi"}]
    assert fit(plain, model="claude-sonnet-5", format="anthropic") is plain
