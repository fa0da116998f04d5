"""Hands a session over to another agent, as a text or as a session file that the agent can resume.

The text consists of a digest of everything before the last turn, and of the last turn itself. It is written as a user
message and says that it is for reference. Secrets are removed. A session file has only this message, because one agent
cannot use the calls and the thinking of another agent.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from foldline.json_text import dumps, encode
from foldline.message import Message, Text, Thinking, ToolCall, ToolResult, user
from foldline.placeholders import without_handles, without_recall
from foldline.recall.tools import Tools
from foldline.redact.redact import redact
from foldline.session.session import Session

TARGETS = ("markdown", "digest", "claude-code", "codex", "pi")
PART_CHARS = 4_000
"""Maximum number of characters in one part of the last turn. The middle of a longer part is left out."""
TURN_CHARS = 60_000
"""Maximum number of characters in the last turn. If it is longer, its oldest messages are left out."""
_INTRODUCTION = (
    "You take over the work of another agent. Below is the record of its session, for reference: first a digest of the"
    " earlier conversation, then the last turn. Check the state of the files before you change them, and go on where it"
    " stopped."
)
_NEXT_REQUEST = "Go on."
_NOT_IN_PATHS = re.compile(r"[^A-Za-z0-9]")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFile:
    """A session file of an agent."""

    path: Path
    """The path at which the agent looks for the file."""
    data: bytes
    resume: str
    """The command that makes the agent resume the file."""


def handoff_text(session: Session) -> str:
    """The text that hands a session over, as Markdown. Everything before the last turn is folded, if a fold is
    possible.
    """
    session.fold(force=True)
    earlier, turn = _sections(session, len(session))
    return redact("\n\n".join(["# Hand-over", _INTRODUCTION, *earlier, "## Last turn", *turn])) + "\n"


def digest_text(session: Session) -> str:
    """The digest of all messages of a session, as Markdown with handles, for a reader with the recall tool.

    Messages that cannot be folded follow the digest.
    """
    length = len(session)
    session.use(tools=Tools.definitions(session.format))
    session.add(user(_NEXT_REQUEST))  # a fold keeps the last turn, so a new last turn is added
    session.fold(force=True)
    earlier, rest = _sections(session, length, handles=True)
    return redact("\n\n".join([*earlier, *rest])) + "\n"


def _sections(session: Session, end: int, *, handles: bool = False) -> tuple[list[str], list[str]]:
    """The beginning and the last messages of a hand-over, as two lists of texts.

    The beginning is the first request and the digest, with headings. The last messages are those that the fold carried
    over, and those from the cut to the index `end` - 1.
    """
    timeline, fold = session.timeline, session.timeline.fold
    digest = fold.digest.message.text if fold and fold.digest else ""
    first = [_message_text(timeline.shown[index]) for index in (fold.pinned if fold else ())]
    kept = [*(fold.carried if fold else ()), *range(max(timeline.cut, timeline.lead), end)]
    turn: list[str] = []
    size = 0
    for index in reversed(kept):
        if index in timeline.removed:
            continue
        text = _message_text(timeline.shown[index])
        size += len(text)
        if size > TURN_CHARS:
            turn.append("[earlier messages of the turn are left out]")
            break
        turn.append(text)
    sections: list[str] = []
    if any(first):
        sections += ["## First request", *filter(None, first)]
    if digest:
        sections += ["## Earlier conversation", digest if handles else without_handles(digest)]
    return sections, [*filter(None, reversed(turn))]


def _message_text(message: Message) -> str:
    """A message as Markdown: its speaker, texts, calls and results. Thinking is left out."""
    pieces = []
    for part in message.parts:
        match part:
            case Text(text=text):
                pieces.append(_shortened(without_recall(text)))
            case ToolCall(name=name, arguments=arguments):
                pieces.append(f"called `{name}`: {_shortened(arguments)}")
            case ToolResult():
                pieces.append(f"result{' (error)' * part.is_error}:\n{_fenced(_shortened(without_recall(part.text)))}")
            case Thinking():
                continue
            case _:
                pieces.append(f"[{part.kind}]")
    speaker = {"user": "user", "assistant": "agent", "tool": "tool"}.get(message.role, message.role)
    return f"**{speaker}:** " + "\n\n".join(pieces) if any(map(str.strip, pieces)) else ""


def _shortened(text: str) -> str:
    half = PART_CHARS // 2
    left_out = len(text) - 2 * half
    return text if left_out <= 0 else f"{text[:half]}\n[… {left_out:,} characters left out …]\n{text[-half:]}"


def _fenced(text: str) -> str:
    """The text in a code block, with a fence that does not occur in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


# Session files


def session_file(  # noqa: PLR0913 (all but two are keyword-only)
    target: str, text: str, *, folder: Path, session_id: str, at: datetime, environment: Mapping[str, str] = os.environ
) -> SessionFile:
    """The session file for an agent that works in `folder`. `at` is the time in the file, in UTC."""
    time = at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"
    home = Path(environment.get("HOME") or Path.home())
    if target == "claude-code":
        root = Path(environment.get("CLAUDE_CONFIG_DIR") or home / ".claude")
        path = root / "projects" / _NOT_IN_PATHS.sub("-", str(folder)) / f"{session_id}.jsonl"
        lines = _claude_code_lines(text, str(folder), session_id, time)
        return SessionFile(path=path, data=_jsonl(lines), resume=f"claude --resume {session_id}")
    if target == "codex":
        root = Path(environment.get("CODEX_HOME") or home / ".codex")
        name = f"rollout-{at.strftime('%Y-%m-%dT%H-%M-%S')}-{session_id}.jsonl"
        lines = _codex_lines(text, str(folder), session_id, time)
        path = root / "sessions" / at.strftime("%Y/%m/%d") / name
        return SessionFile(path=path, data=_jsonl(lines), resume=f"codex resume {session_id}")
    root = Path(environment.get("PI_CODING_AGENT_DIR") or home / ".pi" / "agent")
    slug = f"--{str(folder).lstrip('/').replace('/', '-').replace(':', '-')}--"
    path = root / "sessions" / slug / f"{time.replace(':', '-').replace('.', '-')}_{session_id}.jsonl"
    return SessionFile(
        path=path,
        data=_jsonl(_pi_lines(text, str(folder), session_id, time, at)),
        resume=f"pi --session {session_id}",
    )


def _jsonl(lines: list[dict[str, Any]]) -> bytes:
    return encode("".join(f"{dumps(line)}\n" for line in lines))


def _claude_code_lines(text: str, folder: str, session_id: str, time: str) -> list[dict[str, Any]]:
    base = {"parentUuid": None, "isSidechain": False, "userType": "external", "cwd": folder, "sessionId": session_id}
    message = {"role": "user", "content": text}
    return [{**base, "version": "2.1.0", "type": "user", "message": message, "uuid": session_id, "timestamp": time}]


def _codex_lines(text: str, folder: str, session_id: str, time: str) -> list[dict[str, Any]]:
    origin = {"originator": "foldline", "cli_version": "0.0.0", "source": "cli", "model_provider": None}
    meta = {"session_id": session_id, "id": session_id, "timestamp": time, "cwd": folder, **origin}
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    return [
        {"timestamp": time, "type": "session_meta", "payload": meta},
        {"timestamp": time, "type": "response_item", "payload": message},
        {"timestamp": time, "type": "event_msg", "payload": {"type": "user_message", "message": text, "images": []}},
    ]


def _pi_lines(text: str, folder: str, session_id: str, time: str, at: datetime) -> list[dict[str, Any]]:
    head = {"type": "session", "version": 3, "id": session_id, "timestamp": time, "cwd": folder}
    content = [{"type": "text", "text": text}]
    message = {"role": "user", "content": content, "timestamp": int(at.timestamp() * 1000)}
    entry = {"type": "message", "id": session_id[:8], "parentId": None, "timestamp": time, "message": message}
    return [head, entry]
