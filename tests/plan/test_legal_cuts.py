"""A cut never separates a call from its result, even where one reply is several messages."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given

from foldline.message import Message, Meta, Thinking, ToolCall, assistant, tool, user
from foldline.plan.timeline import timeline_of
from foldline.policy import Atom
from strategies import sound


@pytest.mark.promise("I1")
def test_no_cut_between_replies_while_a_call_is_open() -> None:
    calls = [assistant("", ToolCall(id=name, name="run")) for name in "ab"]
    messages = [user("go"), assistant("Let me see."), *calls, tool("a", "1"), tool("b", "2"), assistant("Done.")]
    timeline = timeline_of(messages, [1] * len(messages))
    assert timeline.cuts == {"message": [0, 1, 2, 6], "step": [0, 1, 6], "turn": [0]}


def test_a_call_that_was_never_answered_does_not_stop_cutting() -> None:
    messages = [user("go"), assistant("", ToolCall(id="a", name="run")), user("stop"), assistant("Stopped.")]
    assert timeline_of(messages, [1] * 4).cuts["message"] == [0, 1, 2, 3]


@pytest.mark.promise("I1")
@given(sound())
def test_messages_of_one_reply_are_never_separated(messages: list[Message]) -> None:
    apart = [
        piece
        for message in messages
        for piece in (
            [message]
            if message.role != "assistant"
            else [message.with_parts(part) for part in message.parts if not isinstance(part, Thinking)] or [message]
        )
    ]
    timeline = timeline_of(apart, [1] * len(apart))
    for atom in get_args(Atom):
        for cut in timeline.cuts[atom]:
            asked = {call.id for message in apart[:cut] for call in message.calls}
            assert not asked & {result.call_id for message in apart[cut:] for result in message.results}


@pytest.mark.promise("I1", "I13")
def test_no_cut_between_the_outputs_of_one_reply_with_reasoning() -> None:
    of_one, of_another = Meta(reply="r1"), Meta(reply="r2")
    reply = [Message(role="assistant", parts=(Thinking(text="so"),)), assistant("Let me see."), assistant("Now.")]
    call = assistant("", ToolCall(id="a", name="run"))
    messages = [user("go"), *(replace(each, meta=of_one) for each in (*reply, call)), tool("a", "1")]
    messages += [replace(each, meta=of_another) for each in (assistant("Done."), assistant("Really."))]
    timeline = timeline_of(messages, [1] * len(messages))
    assert timeline.cuts["message"] == [0, 1, 6, 7]
