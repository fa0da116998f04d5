"""The public functions that read the text of a transcript. Each of these entries is a function of one text.

Every entry uses the text in all possible roles (prompt, reply, arguments of a call, result, digest), because each role
is read by different patterns.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from foldline import Policy, Session
from foldline.digest.digester import Digester, DigesterCall, DigesterReply
from foldline.digest.markup import HEADINGS
from foldline.redact.redact import redact

_WINDOW = 1_000_000_000
_FORMATS = ("anthropic", "openai", "openai-responses", "gemini")


def conversation(text: str) -> list[dict[str, Any]]:
    """Messages in which the text is a prompt, a reply, three kinds of arguments, a result and an error."""
    inputs = [
        ("Bash", {"command": text, "description": text}),
        ("Edit", {"file_path": "/w/a.py", "old_string": text, "new_string": text + "b"}),
        ("Read", {"file_path": text}),
        ("apply_patch", {"input": text}),
    ]
    calls = [
        {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": given}
        for number, (name, given) in enumerate(inputs)
    ]
    results = [
        {"type": "tool_result", "tool_use_id": call["id"], "content": text, "is_error": not number}
        for number, call in enumerate(calls)
    ]
    return [
        {"role": "user", "content": text},
        {"role": "assistant", "content": [{"type": "text", "text": text}, *calls]},
        {"role": "user", "content": results},
        {"role": "assistant", "content": text},
        {"role": "user", "content": "go on"},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": "and now?"},
    ]


COPIES = json.dumps(conversation("\0")).count("\\u0000")
"""Number of times that a conversation contains its text."""


def _session(text: str, digester: Digester | None = None, **knobs: Any) -> Session:
    policy = Policy.preset("balanced").but(window_tokens=_WINDOW, **knobs)
    session = Session(model="claude-sonnet-5", policy=policy, format="anthropic", digester=digester)
    session.add(*conversation(text))
    return session


def add(text: str) -> None:
    """Add messages to a session."""
    _session(text)


def view(text: str) -> None:
    """Compose the view and render it in every format, with whole results and with stubs."""
    session = _session(text)
    for name in _FORMATS:
        session.view().render(name)
    _session(text, prune_arrival_tokens=500).view().render("anthropic")


def fold(text: str) -> None:
    """Fold with the local digest, twice, and compose the view with it."""
    session = _session(text, prune_fold_tokens=500)
    session.fold(force=True)
    session.add({"role": "assistant", "content": text}, {"role": "user", "content": "next"})
    session.fold(force=True)
    session.view().render("anthropic")


def digest(text: str) -> None:
    """Fold the text with a digester. Then fold with a digester that answers with the text, and fold that digest."""
    replies = iter(("The parser is broken; it was mended and tested.", text))
    rest = "".join(f"\n\n{heading}\nnone" for heading in HEADINGS[1:])

    def complete(_: DigesterCall) -> DigesterReply:
        objective = next(replies, "The parser is mended.")
        return DigesterReply(text=f"{HEADINGS[0]}\n{objective}{rest}", stop="end_turn")

    digester = Digester(complete=complete, model="claude-haiku-4-5", window=_WINDOW, reply=_WINDOW // 4)
    session = _session(text, digester, digest_tokens=_WINDOW // 4, on_failure="keep", coverage_ratio=0.0)
    session.fold(force=True)
    for _ in range(2):
        session.add(*conversation("word " * 20))
        session.fold(force=True)
    session.view().render("anthropic")


def recall(text: str) -> None:
    """Search messages that hold the text, by a word and by the text itself."""
    session = _session(text)
    session.recall("which port?")
    if text.strip():
        session.recall(text)


def inspect(text: str) -> None:
    """Run `foldline inspect` on a request that holds the text."""
    from foldline.cli.inspect import inspect as command

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        file = Path(folder) / "request.json"
        file.write_text(json.dumps({"model": "claude-sonnet-5", "messages": conversation(text)}))
        command.main([str(file)], standalone_mode=False)


def _events(text: str) -> list[dict[str, Any]]:
    """The events of an agent whose messages hold the text."""
    base = {"session_id": "00000000-0000-4000-8000-000000000001", "parent_tool_use_id": None}
    usage = {"input_tokens": 4, "cache_creation_input_tokens": 900, "cache_read_input_tokens": 20_000}
    events: list[dict[str, Any]] = []
    for number, message in enumerate(conversation(text)):
        if message["role"] == "assistant":
            known = {"id": f"msg_{number}", "model": "claude-sonnet-4-5", "usage": usage}
            events.append({"type": "assistant", "message": {**message, **known}, **base})
        else:
            events.append({"type": "user", "message": message, **base})
    return [*events, {"type": "result", "subtype": "success", "result": text, "usage": usage, **base}]


def _session_file(folder: str, text: str) -> Path:
    file = Path(folder) / "session.jsonl"
    events = _events(text)
    file.write_text("".join(json.dumps(event) + "\n" for event in (*events, *events)))
    return file


def watch(text: str) -> None:
    """Read an agent's stream twice, and write its scratch files as `foldline watch --scratch` does."""
    from foldline.text_lines import LineSplitter, raw_lines_of_file
    from foldline.watch.agent_events import load
    from foldline.watch.scratch_files import ScratchWriter
    from foldline.watch.watcher import Watcher

    with tempfile.TemporaryDirectory() as folder:
        watcher = Watcher(writer=ScratchWriter(folder))
        for line in raw_lines_of_file(str(_session_file(folder, text)), LineSplitter()):
            event = load(line)
            if event is not None:
                watcher.feed(event)
        watcher.end()


def hook(text: str) -> None:
    """Answer every hook event of an agent."""
    from foldline.watch.agent_hooks import EVENTS, handle

    os.environ.pop("CLAUDE_PROJECT_DIR", None)
    with tempfile.TemporaryDirectory() as folder:
        path = str(_session_file(folder, text))
        for event in EVENTS:
            given = {"hook_event_name": event, "cwd": folder, "transcript_path": path, "session_id": "s"}
            handle({**given, "prompt": text, "compact_summary": text, "source": "compact"})


class Entry(NamedTuple):
    """An entry, and the number of copies of the text that it reads."""

    run: Callable[[str], object]
    copies: int = COPIES


ENTRIES = {
    "redact": Entry(redact, 1),
    "add": Entry(add),
    "view": Entry(view),
    "fold": Entry(fold, COPIES + 1),
    "digest": Entry(digest, COPIES + 1),
    "recall": Entry(recall, COPIES + 1),
    "inspect": Entry(inspect),
    "watch": Entry(watch, 2 * COPIES + 2),
    "hook": Entry(hook, 2 * COPIES + 4),
}
