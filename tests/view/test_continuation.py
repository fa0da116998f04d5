"""A reply that was cut off at its length limit is asked to go on, a bounded number of times."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.message import Message, Text, Thinking, ToolCall, assistant, user
from foldline.policy import Policy
from foldline.session import Session
from foldline.view.continuation import LENGTH_STOPS, continuation
from foldline.wire import REQUEST_FORMATS, render
from foldline.wire.repair import repair
from foldline.wire.validate import check


def cut_off(*parts: Text | Thinking | ToolCall, stop: str = "max_tokens") -> Message:
    message = Message(role="assistant", parts=parts)
    return replace(message, meta=replace(message.meta, stop=stop))


ASK = user("Write the whole module.")


@pytest.mark.promise("S3.42")
@pytest.mark.parametrize("stop", sorted(LENGTH_STOPS))
def test_partial_text_stays_and_the_model_is_asked_to_go_on(stop: str) -> None:
    reply = cut_off(Text(text="def main():"), stop=stop)
    going_on = continuation([ASK, reply], most=2)
    assert going_on is not None
    assert going_on.reply is reply
    assert "smaller pieces" in going_on.prompt.text
    assert going_on.attempt == 1


@pytest.mark.promise("S3.42")
def test_a_call_whose_arguments_broke_off_leaves_and_is_named() -> None:
    whole = ToolCall(id="a", name="read", arguments='{"path": "x"}')
    broken = ToolCall(id="b", name="write", arguments='{"path": "y", "content": "def ma')
    going_on = continuation([ASK, cut_off(Text(text="Writing."), whole, broken)], most=2)
    assert going_on is not None
    assert going_on.reply is not None
    assert going_on.reply.calls == (whole,)
    assert "write" in going_on.prompt.text
    assert "did not run" in going_on.prompt.text


def test_a_reply_that_was_nothing_but_a_broken_call_leaves_whole() -> None:
    going_on = continuation([ASK, cut_off(ToolCall(id="b", name="write", arguments='{"pa'))], most=2)
    assert going_on is not None
    assert going_on.reply is None


@pytest.mark.parametrize("stop", ["end_turn", "stop", "tool_use", "", "refusal", "STOP"])
def test_a_reply_that_ended_is_left_alone(stop: str) -> None:
    assert continuation([ASK, cut_off(Text(text="Done."), stop=stop)], most=2) is None


@pytest.mark.promise("S3.42")
@pytest.mark.parametrize("parts", [(Text(text="I look."), ToolCall(id="a", name="ls", arguments="{}")), ()])
def test_a_reply_with_complete_calls_or_without_text_is_not_continued(parts: tuple[Text | ToolCall, ...]) -> None:
    assert continuation([user("go"), cut_off(*parts)], most=3) is None


def test_nothing_to_go_on_from() -> None:
    assert continuation([], most=2) is None
    assert continuation([ASK], most=2) is None


@pytest.mark.promise("S3.43")
@given(most=st.integers(0, 6))
def test_the_tries_are_counted_in_the_conversation_and_bounded(most: int) -> None:
    messages = [ASK, cut_off(Text(text="part 0"))]
    tries = 0
    while (going_on := continuation(messages, most=most)) is not None:
        tries += 1
        assert going_on.attempt == tries
        messages += [going_on.prompt, cut_off(Text(text=f"part {tries}"))]
    assert tries == most


@pytest.mark.promise("S3.43")
def test_a_new_prompt_starts_the_count_anew() -> None:
    messages = [ASK, cut_off(Text(text="part"))]
    for _ in range(2):
        going_on = continuation(messages, most=2)
        assert going_on is not None
        messages += [going_on.prompt, cut_off(Text(text="part"))]
    assert continuation(messages, most=2) is None
    again = [*messages, user("And now the tests."), cut_off(Text(text="def test"))]
    going_on = continuation(again, most=2)
    assert going_on is not None
    assert going_on.attempt == 1


@pytest.mark.promise("S3.43")
@pytest.mark.parametrize("most", [0, 1, 3])
def test_the_policy_bounds_the_attempts_of_a_session(most: int) -> None:
    session = Session(policy=Policy.preset("balanced").but(continue_max=most))
    session.add(ASK, cut_off(Text(text="part 0")))
    attempts = 0
    while (going_on := session.continuation()) is not None:
        attempts += 1
        session.add(going_on.prompt, cut_off(Text(text=f"part {attempts}")))
    assert attempts == most


@pytest.mark.parametrize("provider", REQUEST_FORMATS)
def test_what_is_sent_to_go_on_is_valid(provider: str) -> None:
    call = ToolCall(id="a", name="read", arguments="{")
    for reply in (cut_off(Text(text="half")), cut_off(Text(text="half"), call), cut_off(call)):
        going_on = continuation([ASK, assistant("Well."), user("go"), reply], most=2)
        assert going_on is not None
        rest = [going_on.reply] if going_on.reply else []
        sent = repair([ASK, assistant("Well."), user("go"), *rest, going_on.prompt], provider).messages
        assert check(provider, render(sent, provider).body) == ()
