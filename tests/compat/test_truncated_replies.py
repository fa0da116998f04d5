"""Truncation recovery: a reply that stopped at its length limit is continued, a bounded number of times."""

from __future__ import annotations

from typing import Any

import pytest

from foldline.compat.truncated_replies import DEFAULT_MAX_RETRIES, TruncationState, continue_reply
from foldline.errors import ConfigError
from foldline.message import Text, ToolCall, assistant, user
from foldline.wire.validate import check

ASK = {"role": "user", "content": "Write the module."}
PART = {"role": "assistant", "content": "def f():"}


def broken_call(arguments: str, text: str = "") -> dict[str, Any]:
    function = {"name": "write", "arguments": arguments}
    return {
        "role": "assistant",
        "content": text or None,
        "tool_calls": [{"id": "c", "type": "function", "function": function}],
    }


@pytest.mark.promise("S3.42")
@pytest.mark.parametrize("stop", ["length", "max_tokens", "MAX_TOKENS", "MaxTokens", "max_output_tokens"])
def test_a_cut_off_text_stays_and_a_prompt_asks_to_continue(stop: str) -> None:
    messages, state = continue_reply([ASK, PART], stop)
    assert messages[:2] == [ASK, PART]
    assert messages[1] is PART
    assert messages[2]["role"] == "user"
    assert "smaller pieces" in messages[2]["content"]
    assert state == TruncationState(truncation_retries=1, retry=True)
    assert not check("openai", messages)


@pytest.mark.promise("S3.42")
def test_a_call_with_broken_arguments_is_removed_and_named() -> None:
    messages, state = continue_reply([ASK, broken_call('{"path": "a.py", "te')], "length")
    assert len(messages) == 2
    assert "call of write" in messages[1]["content"]
    messages, state = continue_reply([ASK, broken_call('{"path": "a', "I write it.")], "length")
    assert messages[1] == {"role": "assistant", "content": "I write it."}
    assert state.retry


@pytest.mark.promise("S3.42")
@pytest.mark.parametrize(
    ("reply", "stop"),
    [
        (PART, "stop"),
        (PART, "end_turn"),
        (PART, None),
        (PART, ""),
        (broken_call("{}"), "length"),
        ({"role": "assistant", "content": ""}, "length"),
    ],
    ids=["stop", "end of turn", "no reason", "empty reason", "complete call", "no text"],
)
def test_other_replies_are_returned_unchanged(reply: dict[str, Any], stop: str | None) -> None:
    messages = [ASK, reply]
    made, state = continue_reply(messages, stop, TruncationState(truncation_retries=1, retry=True))
    assert made is messages
    assert state == TruncationState()


@pytest.mark.promise("S3.43")
@pytest.mark.parametrize("most", [0, 1, 3])
def test_retries_are_counted_and_bounded(most: int) -> None:
    messages: Any = [ASK]
    state, calls = TruncationState(), 0
    while calls == 0 or state.retry:
        calls += 1
        messages, state = continue_reply([*messages, PART], "length", state, max_retries=most)
    assert calls == most + 1
    assert state == TruncationState(truncation_retries=most)
    assert len(messages) == 2 + 2 * most
    assert DEFAULT_MAX_RETRIES == 2


@pytest.mark.promise("S3.42")
def test_the_stop_reason_of_a_response_is_found_in_it() -> None:
    head = {"id": "msg_1", "type": "message", "role": "assistant", "stop_reason": "max_tokens"}
    reply: dict[str, Any] = {**head, "content": [{"type": "text", "text": "def f():"}]}
    assert continue_reply([ASK, reply])[1].retry
    assert not continue_reply([ASK, {**reply, "stop_reason": "end_turn"}])[1].retry


def test_nothing_to_continue() -> None:
    for messages in ([], [ASK]):
        assert continue_reply(messages, "length") == (messages, TruncationState())
    with pytest.raises(ConfigError, match="max_retries must be 0 or more"):
        continue_reply([ASK, PART], "length", max_retries=-1)


def test_message_values_are_continued_too() -> None:
    reply = assistant("def f():")
    messages, _ = continue_reply([user("go"), reply], "length")
    assert messages[1] is reply
    assert isinstance(messages[2].parts[0], Text)
    assert not any(isinstance(part, ToolCall) for message in messages for part in message.parts)
