"""Messages that are sent to an agent from outside: the `/compact` command, and a queue of messages per session.

An agent takes everything after `/compact` as the command's argument, so each message is sent alone. A message belongs
to one session. When the session changes, the message is dropped, because `/compact` would discard the history of the
wrong session.
"""

from __future__ import annotations

import os
from pathlib import Path

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
}


def build_compact_prompt(*, task: str, cfa_state: str = "", scratch_path: str = "") -> str:
    """The command that makes an agent compact. The command says what to keep, and names the path of the notes.

    Line breaks in the arguments are removed, because they would add lines to the command.
    """
    state = f" -- current CfA state is {_flat(cfa_state)}" if cfa_state else ""
    lines = [f"{COMPACT} focus on {_flat(task)}{state}"]
    if scratch_path:
        lines.append(f"After compaction, read {_flat(scratch_path)} for preserved context.")
    return "\n".join(lines)


def path_for_agent(index: Path, cwd: str) -> str:
    """The path of the notes for an agent.

    The path is relative if the agent works in the project's folder; otherwise it is absolute.
    """
    absolute = os.path.abspath(index)
    is_here = not cwd or os.path.join(os.path.normpath(cwd), FOLDER, INDEX) == absolute
    return f"{FOLDER}/{INDEX}" if is_here else absolute


def _flat(text: str) -> str:
    return " ".join(str(text).split())


def compact_tool(dialect: str = "anthropic") -> dict[str, object]:
    """The definition of the compaction tool in the format "anthropic", "openai" or "mcp".

    An agent calls this tool to ask for its own compaction.
    """
    if dialect == "openai":
        return {"type": "function", "function": {"name": TOOL, "description": _TOOL_TEXT, "parameters": _SCHEMA}}
    return {"name": TOOL, "description": _TOOL_TEXT, "inputSchema" if dialect == "mcp" else "input_schema": _SCHEMA}


def is_compact_tool(name: str) -> bool:
    """Whether a name is the name of the compaction tool, with or without Claude Code's prefix for tools of an MCP
    server.
    """
    return name.endswith(TOOL) and (name == TOOL or (name.startswith("mcp__") and name.endswith(f"__{TOOL}")))


class InterventionQueue:
    """Messages that wait for an agent's next turn.

    One message is taken per turn. A waiting compaction is taken before other messages.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[str, str]] = []
        """Session and text of each message."""

    def put(self, session: str, text: str) -> None:
        """Add a message. A new compaction replaces a waiting compaction."""
        if _is_compact(text):
            self.drop_compact()
            self._waiting.insert(0, (session, text))
        else:
            self._waiting.append((session, text))

    def take(self, session: str) -> str | None:
        """Remove and return the message for the session's next turn; messages for other sessions are dropped."""
        self.keep_only(session)
        return self._waiting.pop(0)[1] if self._waiting else None

    def keep_only(self, session: str) -> None:
        """Drop all messages except those for this session."""
        self._waiting = [message for message in self._waiting if message[0] == session]

    def drop_compact(self) -> None:
        """Drop a waiting compaction."""
        self._waiting = [message for message in self._waiting if not _is_compact(message[1])]

    def __len__(self) -> int:
        return len(self._waiting)


def _is_compact(text: str) -> bool:
    return text == COMPACT or text.startswith(COMPACT + " ")
