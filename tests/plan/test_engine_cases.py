"""Cases in which the engine once went wrong, each as small as it can be told."""

from __future__ import annotations

from foldline.message import Message, ToolCall, assistant, system, tool, user
from foldline.policy import Policy
from foldline.session import Session
from foldline.view.compose import messages_of


def steps(count: int, *, chars: int = 400) -> list[Message]:
    """Steps of one call and its result."""
    return [
        message
        for number in range(count)
        for message in (
            assistant("", ToolCall(id=f"c{number}", name="run", arguments='{"what": "look"}')),
            tool(f"c{number}", f"{number} ".ljust(chars, "r")),
        )
    ]


def session(window: int) -> Session:
    return Session(policy=Policy.preset("balanced").but(window_tokens=window, reply_tokens=0, counter="chars/4"))


def test_a_small_window_keeps_the_talk_and_not_the_room_for_a_digest() -> None:
    """The cap of a digest, 2,000 tokens, once made every fold in a window of that size impossible."""
    small = session(1_200)
    small.add(system("Be brief."), user("Fix the build. " * 10), *steps(20))
    view = small.view()
    assert view.tokens <= 1_200
    assert any(message.text == "Fix the build. " * 10 for message in view.messages)
    assert view.messages[-1].results


def test_views_that_grow_are_the_views_made_from_scratch() -> None:
    """A view is carried on from the last one; folds, stubs and late system messages must not leave it behind."""
    long = session(3_000)
    for number, message in enumerate([system("a"), system("b"), user("go"), *steps(60, chars=700), system("note")]):
        long.add(message)
        if number >= 3 and message.role != "assistant":
            assert long.view().messages == messages_of(long.timeline)
    assert long.folds > 3
