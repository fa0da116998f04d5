"""Sessions in small windows, with sizes that can be read off, and conversations to fill them."""

from __future__ import annotations

from typing import Any

from foldline.message import Message, ToolCall, assistant, tool, user
from foldline.policy import Policy
from foldline.session import Session
from foldline.view.compose import View

FULL = "fold when request > 100%"


def session(window: int, *rules: str, pins: tuple[int, ...] = (), **knobs: Any) -> Session:
    """A session in a small window, counted in characters over 4 so that sizes can be read off."""
    knobs = {"counter": "chars/4", "leave": "marker", "reply_tokens": 0, "window_tokens": window, **knobs}
    made = Session(policy=Policy().but(**{"rules": rules or (FULL,), **knobs}))
    made.timeline.pins.update((index, f"#{index + 1}") for index in pins)
    return made


def step(name: str, chars: int = 400) -> list[Message]:
    """A call and its result of so many characters."""
    return [assistant("", ToolCall(id=name, name="run")), tool(name, name.ljust(chars, "r"))]


def talk(turns: int, chars: int = 200) -> list[Message]:
    """Prompts and replies."""
    return [
        message
        for turn in range(turns)
        for message in (user(f"ask {turn} ".ljust(chars, "u")), assistant(f"say {turn} ".ljust(chars, "a")))
    ]


def recount(made: Session, view: View) -> int:
    """The size of a view, counted anew."""
    return made.state.tools + sum(map(made.size, view.messages))


def exchange(number: int, chars: int = 400) -> list[Message]:
    """A question and its answer of so many characters each."""
    return [user(f"{'ask ' * (chars // 4 - 1)}{number:4}"), assistant(f"{'say ' * (chars // 4 - 1)}{number:4}")]


def tight(**knobs: Any) -> Session:
    """The default in a window of 3,000."""
    return Session(
        policy=Policy.preset("balanced").but(window_tokens=3_000, reply_tokens=0, counter="chars/4", **knobs)
    )


def cuts(made: Session, turns: int) -> list[int]:
    """Where the view begins at each request of a long conversation."""
    found = []
    for number in range(turns):
        question, answer = exchange(number)
        made.add(question)
        found.append(made.view().cut)
        made.add(answer)
    return found


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


def balanced(window: int) -> Session:
    """The default policy in a small window."""
    return Session(policy=Policy.preset("balanced").but(window_tokens=window, reply_tokens=0, counter="chars/4"))
