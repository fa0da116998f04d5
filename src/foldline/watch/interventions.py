"""What is said to an agent from outside: each text stands alone, belongs to one session, and lapses with it.

A message that begins with `/compact` takes all that follows as its argument, so nothing may be joined to it. And a
command that was meant for one session would throw away the memory of another, so it is handed out only to its own.
"""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path
from typing import NamedTuple

from foldline.watch.scratch import FOLDER, INDEX

COMPACT = "/compact"
TOOL = "compact_context"
_TOOL_TEXT = (
    "Ask for this conversation to be compacted at the end of the turn. Call it when a larger piece of work is done and "
    "its details are no longer needed. Say what the summary must keep."
)
_SCHEMA = {
    "type": "object",
    "properties": {"focus": {"type": "string", "description": "What the summary must keep"}},
    "required": ["focus"],
}


def build_compact_prompt(*, task: str, cfa_state: str, scratch_path: str = "") -> str:
    """The command that has an agent compact, with what it shall keep and where the rest is written.

    Task and state are data: they are squeezed into one line each, so that none of them begins a line of its own.
    """
    lines = [f"{COMPACT} focus on {_flat(task)} -- current CfA state is {_flat(cfa_state)}"]
    if scratch_path:
        lines.append(f"After compaction, read {_flat(scratch_path)} for preserved context.")
    return "\n".join(lines)


def pointer(index: Path, cwd: str) -> str:
    """Where an agent finds the notes: beside its work, or by their whole path when it works elsewhere."""
    whole = os.path.abspath(index)
    beside = not cwd or os.path.join(os.path.normpath(cwd), FOLDER, INDEX) == whole
    return f"{FOLDER}/{INDEX}" if beside else whole


def _flat(text: str) -> str:
    return " ".join(str(text).split())


def compact_tool(dialect: str = "anthropic") -> dict[str, object]:
    """The tool by which an agent asks for its own compaction, as Anthropic, OpenAI or MCP want it described."""
    if dialect == "openai":
        return {"type": "function", "function": {"name": TOOL, "description": _TOOL_TEXT, "parameters": _SCHEMA}}
    return {"name": TOOL, "description": _TOOL_TEXT, "inputSchema" if dialect == "mcp" else "input_schema": _SCHEMA}


def is_compact_tool(name: str) -> bool:
    """Whether a call is for that tool, also by the name that Claude Code gives to tools of a server."""
    return name.endswith(TOOL) and (name == TOOL or (name.startswith("mcp__") and name.endswith(f"__{TOOL}")))


class Intervention(NamedTuple):
    """A message to an agent, for one session."""

    session: str
    text: str


class InterventionQueue:
    """Messages that wait for an agent's next turn, handed out one at a time; a compaction goes first."""

    def __init__(self) -> None:
        self._waiting: deque[Intervention] = deque()

    def put(self, session: str, text: str) -> Intervention:
        """Have a message wait; a new compaction takes the place of one that still waits."""
        made = Intervention(session, text)
        if _is_compact(made):
            self._waiting = deque(one for one in self._waiting if not _is_compact(one))
            self._waiting.appendleft(made)
        else:
            self._waiting.append(made)
        return made

    def take(self, session: str) -> str | None:
        """The message that the session's next turn opens with, alone; those for other sessions lapse."""
        self.keep_only(session)
        return self._waiting.popleft().text if self._waiting else None

    def keep_only(self, session: str) -> None:
        """Let go of what waits for other sessions."""
        self._waiting = deque(one for one in self._waiting if one.session == session)

    def drop_compact(self) -> None:
        """The agent has compacted: the command has nothing left to do."""
        self._waiting = deque(one for one in self._waiting if not _is_compact(one))

    def __len__(self) -> int:
        return len(self._waiting)


def _is_compact(made: Intervention) -> bool:
    return made.text == COMPACT or made.text.startswith(COMPACT + " ")
