"""What `foldline hook` does at each hook event of Claude Code and Codex.

    UserPromptSubmit   records the prompt; warns the user when the window is filling up
    PreCompact         reads the whole session, writes the scratch files, tells the summarizer what to keep
    PostCompact        records the summary, tells the user where the notes are
    SessionStart       after a compaction or a resume, tells the agent where the notes are

To handle another event, add it to `EVENTS` and to `handle`. A failing hook must not block the agent. So a failure
prints one line on standard error, and returns an exit status that no agent treats as a veto.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from foldline.errors import ConfigError, FoldlineError
from foldline.watch.agent_events import first_text, load, text_at
from foldline.watch.scratch import FOLDER, INDEX
from foldline.watch.stdio import print_answer, print_failure, read_stdin

EVENTS = ("UserPromptSubmit", "PreCompact", "PostCompact", "SessionStart")
"""Hook events that `foldline install` registers."""
TAIL_BYTES = 1 << 20
"""Number of bytes read from the end of a session file to find its last call."""


def run() -> int:
    """Read a hook's input from standard input and print the answer; returns the exit status."""
    try:
        hook_input = json.loads(read_stdin())
    except (ValueError, RecursionError):
        return print_failure("hook", "standard input is not JSON; an agent passes its hook event there")
    except OSError as error:
        return print_failure("hook", f"standard input cannot be read ({error.strerror})")
    try:
        answer = handle(hook_input) if isinstance(hook_input, dict) else ""
    except FoldlineError as error:
        return print_failure("hook", str(error))
    except OSError as error:
        return print_failure("hook", f"{error.filename or FOLDER}: {error.strerror or error}; no notes were written")
    except Exception as error:  # noqa: BLE001  # no failure may block the agent
        return print_failure("hook", f"no notes were written ({type(error).__name__}: {error})")
    return print_answer("hook", answer) if answer else 0


def handle(hook_input: dict[str, Any]) -> str:
    """The answer to one hook event; "" if there is none."""
    event = text_at(hook_input, "hook_event_name")
    if event not in EVENTS or (event == "SessionStart" and hook_input.get("source") not in ("compact", "resume")):
        return ""
    name = os.environ.get("CLAUDE_PROJECT_DIR") or text_at(hook_input, "cwd") or "."
    if not os.path.isdir(name):
        raise ConfigError(
            f"{name}: no such folder", hint="no notes were written; start the agent in an existing folder"
        )
    handlers = (_record_prompt, _before_compaction, _after_compaction, _point_to_notes)
    return handlers[EVENTS.index(event)](Path(name), hook_input)


def _notes_path(project: Path, hook_input: dict[str, Any]) -> str:
    from foldline.watch.interventions import path_for_agent  # noqa: PLC0415  # few hooks need it

    return path_for_agent(project / FOLDER / INDEX, text_at(hook_input, "cwd"))


def _record_prompt(project: Path, hook_input: dict[str, Any]) -> str:
    # each hook event imports only what it needs
    from foldline.watch.scratch_files import ScratchWriter  # noqa: PLC0415

    prompt = first_text(hook_input, ("prompt", "user_prompt")).strip()
    if prompt and not prompt.startswith("/compact"):
        ScratchWriter(project).append_human_input(prompt, session=text_at(hook_input, "session_id"))
    warning = _window_warning(hook_input)
    return json.dumps({"systemMessage": warning}) if warning else ""


def _before_compaction(project: Path, hook_input: dict[str, Any]) -> str:
    from foldline.text_lines import LineSplitter, raw_lines_of_file  # noqa: PLC0415
    from foldline.watch.scratch_files import ScratchWriter  # noqa: PLC0415
    from foldline.watch.watcher import Watcher  # noqa: PLC0415

    writer = ScratchWriter(project)
    watcher, path = Watcher(writer=writer), text_at(hook_input, "transcript_path")
    for line in raw_lines_of_file(path, LineSplitter()) if path and os.path.isfile(path) else ():
        if (event := load(line)) is not None:
            watcher.feed(event)
    watcher.save()
    counts = writer.counts()
    if "turn_id" in hook_input:
        return ""  # Codex takes no instructions for its summary
    return (
        f"Keep in the summary, in the user's own words, what the user asked for and has not got yet. "
        f"Working notes are kept in {_notes_path(project, hook_input)} ({_describe(counts)}): mention that file."
    )


def _after_compaction(project: Path, hook_input: dict[str, Any]) -> str:
    from foldline.watch.scratch import ScratchModel  # noqa: PLC0415
    from foldline.watch.scratch_files import ScratchWriter  # noqa: PLC0415

    writer, summary = ScratchWriter(project), text_at(hook_input, "compact_summary").strip()
    if summary:  # the compaction and its figures are read from the session file
        writer.append_state_change("compacting", f"summarised:\n{summary}", session=text_at(hook_input, "session_id"))
    writer.write_scratch(ScratchModel())
    notes = f"{_notes_path(project, hook_input)} ({_describe(writer.counts())})"
    return json.dumps({"systemMessage": f"compacted; working notes are in {notes}"})


def _point_to_notes(project: Path, hook_input: dict[str, Any]) -> str:
    from foldline.watch.scratch import ScratchModel  # noqa: PLC0415
    from foldline.watch.scratch_files import ScratchWriter  # noqa: PLC0415

    writer = ScratchWriter(project)
    counts = writer.counts()
    if not any(counts.values()):
        return ""
    writer.write_scratch(ScratchModel())  # adds to the index the prompts recorded since the last write
    cause = "this conversation was compacted" if hook_input.get("source") == "compact" else "this session was resumed"
    notes = f"{_notes_path(project, hook_input)} ({_describe(counts)})"
    text = f"Before {cause}, working notes were kept: read {notes} for preserved context."
    return json.dumps({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}})


def _window_warning(hook_input: dict[str, Any]) -> str:
    """A warning for the user if the window is filled beyond the warning threshold; else ""."""
    from foldline.watch.meter import Meter  # noqa: PLC0415

    meter = Meter()
    for line in _last_lines(text_at(hook_input, "transcript_path")):
        if (event := load(line)) is not None:
            meter.feed(event)
    if not meter.should_warn:
        return ""
    action = "time to /compact" if meter.should_compact else "a compaction is near"
    return f"context {meter.share:.0%} full ({meter.used:,} of {meter.window.tokens:,} tokens): {action}"


def _last_lines(path: str) -> list[bytes]:
    """Last lines of a session file. A pipe or a device is not read, because reading could block the agent."""
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


def _describe(counts: dict[str, int]) -> str:
    """Number of entries of each kind in the notes: "3 human inputs, 2 dead ends"."""
    words = {
        "human-input.md": "human inputs",
        "decisions.md": "decisions",
        "dead-ends.md": "dead ends",
        "artifacts.md": "changed files",
    }
    return ", ".join(f"{counts[name]} {word}" for name, word in words.items() if counts.get(name)) or "empty so far"
