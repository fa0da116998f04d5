"""Transcripts as an agent's host holds them: its own objects, seven kinds of them, and what no host should hold."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from foldline.window_budget import (
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
)

ROLES = ("user", "assistant", "toolResult", "bashExecution", "custom", "branchSummary", "compactionSummary")


def sizes() -> SearchStrategy[int]:
    """How many characters a message has: mostly small, sometimes more than a whole budget."""
    return st.sampled_from((1, 5, 40, 40, 200, 900, 5_000))


@st.composite
def transcripts(draw: DrawFn, *, most: int = 14) -> list[Any]:
    """Turns with every kind of message: parallel calls, replies in several messages, results in any order."""
    made: list[Any] = []
    for turn in range(draw(st.integers(0, most))):
        text = f"{turn} ".ljust(draw(sizes()), "x")
        match draw(st.integers(0, 8)):
            case 0 | 1:
                made.append(UserMessage(content=text))
            case 2:
                made.append(AssistantMessage(content=text))
            case 3:
                made.append(BashExecutionMessage(command="make", output=text, exitCode=1))
            case 4:
                made.append(CustomMessage(content=text, customType="memo"))
            case 5:
                kind = draw(st.sampled_from((BranchSummaryMessage, CompactionSummaryMessage)))
                made.append(kind(summary=text))
            case _:
                made += step(turn, text, draw(st.integers(1, 3)), draw(st.booleans()), draw(st.permutations(range(3))))
    return made


def step(turn: int, text: str, width: int, apart: bool, order: list[int]) -> list[Any]:
    """A reply with calls, in one message or one for each call, and its results."""
    calls = [ToolCallBlock(id=f"{turn}.{place}", name="run", arguments={"text": text}) for place in range(width)]
    said: list[Any] = [ThinkingBlock(thinking=text), TextBlock(text=text)]
    if apart:
        replies = [AssistantMessage(content=said), *(AssistantMessage(content=[call]) for call in calls)]
    else:
        replies = [AssistantMessage(content=[*said, *calls])]
    picture = ImageBlock(data="AAAA", mimeType="image/png")
    results = [ToolResultMessage(toolCallId=call.id, content=[TextBlock(text=text), picture]) for call in calls]
    return [*replies, *(results[place] for place in order if place < width)]


class Hostile:
    """An object that fails when it is looked at."""

    role = "assistant"

    @property
    def content(self) -> str:
        raise RuntimeError("do not look")

    def __str__(self) -> str:
        raise RuntimeError("nor print")


def anything() -> SearchStrategy[Any]:
    """What no host should hold, and some host does."""
    leaf = st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.binary(max_size=4)
    value = st.recursive(
        leaf, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    )
    role = st.sampled_from((*ROLES, "tool", "system", "model", "")) | value
    block = st.builds(
        lambda kind, text, name: SimpleNamespace(
            type=kind, text=text, thinking=text, id=name, name=text, arguments=text
        ),
        st.sampled_from(("text", "thinking", "toolCall", "image", "weird", None)),
        value,
        value,
    )
    content = value | block | st.lists(block | value, max_size=3)
    fields = st.fixed_dictionaries(
        {"role": role, "content": content},
        optional={"toolCallId": value, "summary": value, "usage": value, "timestamp": value, "command": value},
    )
    return fields | fields.map(lambda made: SimpleNamespace(**made)) | value | st.builds(Hostile)
