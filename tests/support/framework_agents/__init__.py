"""Agents of real clients and frameworks, all with one tool, for the tests that every adapter must pass.

Each agent keeps its own history, as its framework does, and talks to the simulated provider through the framework's
real model classes. With a session, foldline's adapter is in place; without one, it is the framework alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from threading import Event, local
from typing import Any, Protocol

from foldline.session.session import Session
from foldline.testing import SimulatedProvider

CLAUDE, GPT, GEMINI = "claude-opus-5-5", "gpt-5.6", "gemini-3-pro"
SYSTEM = "You are a careful engineer who reads files."
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
FILLER = "the quick brown fox jumps over the lazy dog and looks at line {} of the file. "


def read_file(path: str) -> str:
    """Read a file."""
    return f"{path}: " + "".join(FILLER.format(line) for line in range(20))


class Pieces(list[str]):
    """The pieces of text that have arrived at the caller of a framework while replies were streamed."""

    def __init__(self) -> None:
        super().__init__()
        self.has_begun = Event()

    def add(self, text: str | None) -> None:
        """Add a piece. A piece without text is not counted."""
        if text:
            self.append(text)
            self.has_begun.set()


class FrameworkAgent(Protocol):
    """An agent with a history and the tool `read_file`."""

    pieces: Pieces
    """Empty if the mode does not stream."""

    def ask(self, prompt: str) -> str:
        """The final answer to a prompt, after all tool calls."""

    def adopt(self, other: Any) -> None:
        """Continue the history of another agent."""

    def close(self) -> None:
        """Close connections."""


class AgentMaker(Protocol):
    """Makes an agent. The mode is one of `MODES`."""

    def __call__(
        self, provider: SimulatedProvider, session: Session | None, mode: str, *, thinking: bool = False
    ) -> FrameworkAgent:
        """An agent; the framework alone if `session` is None."""


MODES = ("sync", "stream", "async", "async-stream")


_loops = local()


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine in the event loop of this thread, which stays open: clients are bound to their loop."""
    if not hasattr(_loops, "loop"):
        _loops.loop = asyncio.new_event_loop()
    return _loops.loop.run_until_complete(work)


def close_loop() -> None:
    """Close the event loop of this thread."""
    if hasattr(_loops, "loop"):
        _loops.loop.run_until_complete(_loops.loop.shutdown_asyncgens())
        _loops.loop.run_until_complete(_loops.loop.shutdown_default_executor())
        _loops.loop.close()
        del _loops.loop
