"""Sound conversations, as messages and as wire lists: prompts, steps with parallel calls, results, replies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from foldline.message import Message, ToolCall, assistant, system, tool, user
from foldline.wire import render

WORDS = ("alpha", "beta", "gamma", "delta", "日本語", "naïve", "-5", "src/app.py")


def texts(most: int = 30) -> st.SearchStrategy[str]:
    """A text of at least one word, sometimes several lines. Made of few choices, so that long chats stay cheap."""

    def make(first: int, size: int, gap: str) -> str:
        return gap.join(WORDS[(first + n) % len(WORDS)] for n in range(size))

    return st.builds(make, st.integers(0, len(WORDS) - 1), st.integers(1, most), st.sampled_from([" ", " ", "\n"]))


@st.composite
def chats(draw: st.DrawFn, *, turns: int = 4, lead: bool = True, largest: int = 60) -> list[Message]:
    """A conversation that every provider accepts, ending with the user or with results."""
    messages = [system(draw(texts(5)))] if lead and draw(st.booleans()) else []
    for _ in range(draw(st.integers(0, turns))):
        messages.append(user(draw(texts(largest))))
        for _ in range(draw(st.integers(0, 2))):
            messages += draw(steps(len(messages), largest))
        messages.append(assistant(draw(texts(largest))))
    messages.append(user(draw(texts(largest))))
    for _ in range(draw(st.sampled_from([0, 0, 1, 6]))):
        messages += draw(steps(len(messages), largest))
    return messages


@st.composite
def steps(draw: st.DrawFn, place: int, largest: int) -> list[Message]:
    """A reply with one or two calls, and their results."""
    calls = [ToolCall(id=f"call_{place}_{n}", name="run") for n in range(draw(st.integers(1, 2)))]
    said = assistant(draw(st.sampled_from(["", "Let me look."])), *calls)
    return [said, *(tool(call.id, draw(texts(largest)), name="run") for call in calls)]


def wire(messages: Iterable[Message], provider: str = "openai") -> list[Any]:
    """Messages as the elements a client would hold."""
    body = render(messages, provider).body
    found: list[Any] = body.get("messages") or body.get("contents") or body.get("input") or []
    return found
