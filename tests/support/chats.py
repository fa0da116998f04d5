"""Sound conversations, as messages and as wire lists: prompts, steps with parallel calls, results, replies."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from hypothesis import strategies as st

from foldline.message import Message, ToolCall, assistant, system, tool, user
from foldline.wire import render

WORDS = ("alpha", "beta", "gamma", "delta", "日本語", "naïve", "-5", "src/app.py")


@cache
def texts(most: int = 30) -> st.SearchStrategy[str]:
    """A text of at least one word, sometimes several lines. Made of few choices, so that long chats stay cheap."""

    def make(first: int, size: int, gap: str) -> str:
        return gap.join(WORDS[(first + n) % len(WORDS)] for n in range(size))

    return st.builds(make, st.integers(0, len(WORDS) - 1), st.integers(1, most), st.sampled_from([" ", " ", "\n"]))


_few, _calls = st.integers(0, 2), st.integers(1, 2)
_last, _words = st.sampled_from([0, 0, 1, 6]), st.sampled_from(["", "Let me look."])


@st.composite
def chats(draw: st.DrawFn, *, turns: int = 4, lead: bool = True, largest: int = 60) -> list[Message]:
    """A conversation that every provider accepts, ending with the user or with results."""
    text = texts(largest)

    def steps(count: int) -> None:
        for _ in range(count):
            calls = [ToolCall(id=f"call_{len(messages)}_{n}", name="run") for n in range(draw(_calls))]
            messages.append(assistant(draw(_words), *calls))
            messages.extend(tool(call.id, draw(text), name="run") for call in calls)

    messages = [system("You are an agent.")] if lead and draw(st.booleans()) else []
    for _ in range(draw(st.integers(0, turns))):
        messages.append(user(draw(text)))
        steps(draw(_few))
        messages.append(assistant(draw(text)))
    messages.append(user(draw(text)))
    steps(draw(_last))
    return messages


def wire(messages: Iterable[Message], provider: str = "openai") -> list[Any]:
    """Messages as the elements a client would hold."""
    body = render(messages, provider).body
    found: list[Any] = body.get("messages") or body.get("contents") or body.get("input") or []
    return found
