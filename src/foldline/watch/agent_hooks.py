"""What foldline's hooks do inside Claude Code and Codex: record, write, point, and never get in the way.

    UserPromptSubmit   the prompt is recorded; when the window is filling up, the person is told
    PreCompact         the whole session is read and the scratch files are written; the summary is told what to keep
    PostCompact        the summary is recorded, the person is told where the notes are
    SessionStart       after a compaction or a resume, the agent is told where the notes are

A hook that fails must not cost a turn: whatever goes wrong is one line on standard error and a status that no agent
takes for a veto.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from foldline.errors import ConfigError, FoldlineError
from foldline.watch.agent_events import first_text, text_at
from foldline.watch.scratch import FOLDER, INDEX
from foldline.watch.stdio import print_answer, print_failure, read_stdin

EVENTS = ("UserPromptSubmit", "PreCompact", "PostCompact", "SessionStart")
"""The events a hook is installed for."""
TAIL_BYTES = 1 << 20
"""How much of a session's end is read to find its last call."""


def run() -> int:
    """Read a hook's input on standard input and answer it."""
    try:
        given = json.loads(read_stdin())
    except (ValueError, RecursionError):
        return print_failure("hook", "what came in is not JSON: an agent's hook gives its event on standard input")
    except OSError as error:
        return print_failure("hook", f"standard input cannot be read ({error.strerror})")
    try:
        answer = handle(given) if isinstance(given, dict) else ""
    except FoldlineError as error:
        return print_failure("hook", str(error))
    except OSError as error:
        return print_failure("hook", f"{error.filename or FOLDER}: {error.strerror or error}; no notes were read_stdin")
    except Exception as error:  # noqa: BLE001  # whatever it is, it must not cost a turn
        return print_failure("hook", f"no notes were read_stdin ({type(error).__name__}: {error})")
    return print_answer("hook", answer) if answer else 0


def handle(given: dict[str, Any]) -> str:
    """What to answer to one event; "" for nothing."""
    match given.get("hook_event_name"):
        case "UserPromptSubmit":
            return _prompted(_tree(given), given)
        case "PreCompact":
            return _before(_tree(given), given)
        case "PostCompact":
            return _after(_tree(given), given)
        case "SessionStart" if given.get("source") in ("compact", "resume"):
            return _started(_tree(given), given)
    return ""


def _tree(given: dict[str, Any]) -> Path:
    """The work tree that the notes are kept in: the project's, wherever in it the agent is at the moment."""
    name = os.environ.get("CLAUDE_PROJECT_DIR") or text_at(given, "cwd") or "."
    if not os.path.isdir(name):
        raise ConfigError(
            f"{name}: no such folder", hint="no notes are kept; start the agent in a folder that is there"
        )
    return Path(name)


def _notes(tree: Path, given: dict[str, Any]) -> str:
    """Where the notes are, as a path that works where the agent is."""
    from foldline.watch.interventions import pointer  # noqa: PLC0415  # most hooks say nothing

    return pointer(tree / FOLDER / INDEX, text_at(given, "cwd"))


def _prompted(tree: Path, given: dict[str, Any]) -> str:
    from foldline.watch.scratch_files import ScratchWriter  # noqa: PLC0415  # each event loads what it needs

    prompt = first_text(given, ("prompt", "user_prompt")).strip()
    if prompt and not prompt.startswith("/compact"):
        ScratchWriter(tree).append_human_input(prompt, session=text_at(given, "session_id"))
    notice = _fullness(given)
    return json.dumps({"systemMessage": notice}) if notice else ""


def _before(tree: Path, given: dict[str, Any]) -> str:
    from foldline.watch.scratch_files import ScratchWriter  # noqa: PLC0415

    writer = ScratchWriter(tree)
    _record(writer, given)
    counts = writer.counts()
    if "turn_id" in given:
        return ""  # Codex takes no words for its summary
    return (
        f"Keep in the summary, in the user's own words, what the user asked for and has not got yet. "
        f"Working notes are kept in {_notes(tree, given)} ({_told(counts)}): mention that file."
    )


def _after(tree: Path, given: dict[str, Any]) -> str:
    from foldline.watch.scratch import ScratchModel  # noqa: PLC0415
    from foldline.watch.scratch_files import ScratchWriter  # noqa: PLC0415

    writer, summary = ScratchWriter(tree), text_at(given, "compact_summary").strip()
    if summary:  # the compaction itself will be in the session file, which has more to say of it
        writer.append_state_change("compacting", f"summarised:\n{summary}", session=text_at(given, "session_id"))
    writer.write_scratch(ScratchModel())
    notes = f"{_notes(tree, given)} ({_told(writer.counts())})"
    return json.dumps({"systemMessage": f"compacted; working notes are in {notes}"})


def _started(tree: Path, given: dict[str, Any]) -> str:
    from foldline.watch.scratch import ScratchModel  # noqa: PLC0415
    from foldline.watch.scratch_files import ScratchWriter  # noqa: PLC0415

    writer = ScratchWriter(tree)
    counts = writer.counts()
    if not any(counts.values()):
        return ""
    writer.write_scratch(ScratchModel())  # prompts since the last time are not in the index yet
    was = "this conversation was compacted" if given.get("source") == "compact" else "this session was resumed"
    notes = f"{_notes(tree, given)} ({_told(counts)})"
    text = f"Before {was}, working notes were kept: read {notes} for preserved context."
    specific = {"hookEventName": "SessionStart", "additionalContext": text}
    return json.dumps({"hookSpecificOutput": specific})


def _record(writer: Any, given: dict[str, Any]) -> None:
    """Read the whole session and bring the scratch files up to date."""
    from foldline.text_lines import LineSplitter, raw_lines_of_file  # noqa: PLC0415
    from foldline.watch.agent_events import load  # noqa: PLC0415
    from foldline.watch.watcher import Watcher  # noqa: PLC0415

    watch = Watcher(writer=writer)
    path = text_at(given, "transcript_path")
    for line in raw_lines_of_file(path, LineSplitter()) if path and os.path.isfile(path) else ():
        event = load(line)
        if event is not None:
            watch.feed(event)
    watch.save()


def _fullness(given: dict[str, Any]) -> str:
    """A word to the person when the last call filled the window beyond the warning."""
    from foldline.watch.agent_events import load  # noqa: PLC0415
    from foldline.watch.meter import Meter  # noqa: PLC0415

    meter = Meter()
    for line in _tail(text_at(given, "transcript_path")):
        event = load(line)
        if event is not None:
            meter.feed(event)
    if not meter.should_warn:
        return ""
    due = "time to /compact" if meter.should_compact else "a compaction is near"
    return f"context {meter.share:.0%} full ({meter.used:,} of {meter.window.tokens:,} tokens): {due}"


def _tail(path: str) -> list[bytes]:
    """The last lines of a session file; none of anything else, which could make the agent wait."""
    if not os.path.isfile(path):
        return []
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            lines = file.read(TAIL_BYTES).split(b"\n")
    except OSError:
        return []
    return lines[1:] if size > TAIL_BYTES else lines


def _told(counts: dict[str, int]) -> str:
    """What the notes hold, in a few words."""
    words = {
        "human-input.md": "human inputs",
        "decisions.md": "decisions",
        "dead-ends.md": "dead ends",
        "artifacts.md": "changed files",
    }
    return ", ".join(f"{counts[name]} {word}" for name, word in words.items() if counts.get(name)) or "empty so far"
