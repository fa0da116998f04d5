"""Acts: what a tool call did, whatever the tool is called.

Agents have different tools for the same few things: they read a file, change one, run a command, look something up, or
keep a list of tasks. What a call was is read from its name and from the names of its arguments; what came of it from
the result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from foldline.message import ToolCall

_PATHS = ("file_path", "path", "absolute_path", "notebook_path", "filename", "file", "target_file", "filePath")
_COMMANDS = ("command", "cmd", "script", "code")
_WRITES = ("edit", "write", "create", "patch", "replace", "insert", "update", "delete", "move", "rename")
_READS = ("read", "view", "open", "cat", "show", "get", "fetch")
_BULK = frozenset(
    {
        *("old_string", "new_string", "oldText", "newText", "old_str", "new_str", "file_text"),
        *("content", "contents", "edits", "todos", "prompt", "plan", "text"),
        *("description", "replacement", "body", "patch", "search", "replace", "input"),
        *("tasks", "new_source", "summary", "thought"),
    }
)
"""Arguments that are content and no address: what stands in them was not needed to make the call."""
_OLD = ("old_string", "oldText", "old_str", "search")
"""Arguments that quote what a call replaces."""
_PARTS = ("offset", "limit", "view_range", "start_line", "end_line", "ranges")
"""Arguments by which a reading call asks for a part of a file."""
_LISTS = ("todos", "plan", "tasks", "items")
_TITLES = ("content", "step", "subject", "title", "text", "description")
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_EXIT = re.compile(
    r"(?:exit(?:ed)?(?: with)?(?: code| status)?|\"?exit_?code\"?|return ?code)[\s:=\"]{1,4}(-?\d{1,3})\b",
    re.IGNORECASE,
)
_ERROR = re.compile(
    r"\b(?:error|errors|exception|traceback|panic|fatal|failed|failure|fail|cannot|can't|undefined|no such file|denied"
    r"|not found|unable|refused|rejected|doesn't want)\b|^E\s{2,}|--- FAIL",
    re.IGNORECASE,
)
_TAGS = re.compile(r"</?[a-z_]{4,30}>")
"""What hosts put around an error."""
_COMMIT = re.compile(r"git commit\b.*?\s-\w*m ", re.DOTALL)
_HEREDOC = re.compile(r"\$\(cat <<-?\s*['\"]?\w+['\"]?\s*")
DONE = frozenset({"completed", "done", "deleted", "cancelled"})
"""States of a task that needs nothing more."""
_LONGEST = 200
_LOOKS = 4_000
"""How many characters of either end of a result are searched for its outcome."""


class Act(NamedTuple):
    """What a call did."""

    kind: str = ""
    """`read`, `modified`, `command`, or "" for anything else."""
    target: str = ""
    """The file."""
    command: str = ""
    why: str = ""
    """What the caller said it was for."""
    texts: tuple[str, ...] = ()
    """Values that had to be known to make the call."""
    bulk: tuple[str, ...] = ()
    """Values that are content."""
    old: tuple[str, ...] = ()
    """Content that the call replaces."""
    part: bool = False
    """It is a part of a file that was read."""
    todos: tuple[tuple[str, str, str], ...] = ()
    """Number (or ""), text and status of tasks."""
    whole: bool = False
    """The tasks are the whole list."""


class Outcome(NamedTuple):
    """What came of a call."""

    failed: bool
    line: str = ""
    """The line that says so."""


def read_call(call: ToolCall, said: str) -> Act:
    """A call as an act; `said` is what the model said beside it."""
    arguments = _arguments(call)
    if arguments is None:
        files = _PATCHED.findall(call.arguments)
        kind = "modified" if files else ""
        return Act(kind=kind, target=files[0] if files else "", texts=tuple(files), bulk=(call.arguments,))
    todos, whole = _tasks(call.name, arguments)
    texts: list[str] = []
    bulk: list[str] = []
    old: list[str] = []
    for key, value in arguments.items():
        for inner, word in _strings(value, key):
            (texts if key not in _BULK else old if inner in _OLD else bulk).append(word)
    path = next((arguments[key] for key in _PATHS if isinstance(arguments.get(key), str)), "")
    command = next((_command(arguments[key]) for key in _COMMANDS if key in arguments), "")
    kind = "" if todos else _kind(call.name, arguments, path, command)
    why = arguments.get("description")
    return Act(
        kind=kind,
        target=path.strip() if kind in {"read", "modified"} else "",
        command=_one_line(_from_commit(command)) if kind == "command" else "",
        why=_one_line(why) if isinstance(why, str) and kind == "command" else _purpose(said),
        texts=tuple(texts),
        bulk=tuple(bulk),
        old=tuple(old),
        part=any(key in arguments for key in _PARTS),
        todos=todos,
        whole=whole,
    )


def _kind(name: str, arguments: dict[str, Any], path: str, command: str) -> str:
    lower = name.lower()
    if path:
        action = str(arguments.get("command", "")) + lower
        if any(word in action for word in _WRITES):
            return "modified"
        return "read" if any(word in action for word in _READS) else ""
    return "command" if command else ""


def _arguments(call: ToolCall) -> dict[str, Any] | None:
    try:
        value = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else {"value": value}


def _strings(value: Any, key: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """The words and numbers in an argument, each with the key it stands under."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, int) and not isinstance(value, bool):
        yield key, str(value)
    elif depth < 8:
        pairs = value.items() if isinstance(value, dict) else ((key, item) for item in _list(value))
        for name, item in pairs:
            yield from _strings(item, name, depth + 1)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _command(value: Any) -> str:
    if isinstance(value, list):
        words = [item for item in value if isinstance(item, str)]
        return words[-1] if words[:1] and words[0].rsplit("/", 1)[-1] in {"bash", "sh", "zsh"} else " ".join(words)
    return value if isinstance(value, str) else ""


def _tasks(name: str, arguments: dict[str, Any]) -> tuple[tuple[tuple[str, str, str], ...], bool]:
    """The tasks a call sets: a whole list, one new task, or the new state of one."""
    for key in _LISTS:
        items = arguments.get(key)
        if isinstance(items, list) and items and all(isinstance(item, dict) and "status" in item for item in items):
            rows = [(str(place), _title(item), str(item["status"])) for place, item in enumerate(items, start=1)]
            return tuple(row for row in rows if row[1]), True
    lower = name.lower()
    if "task" in lower and "create" in lower and isinstance(arguments.get("subject"), str):
        return (("", arguments["subject"], "pending"),), False
    number = arguments.get("taskId")
    if "task" in lower and "update" in lower and isinstance(number, str):
        return ((number, str(arguments.get("subject") or ""), str(arguments.get("status") or "")),), False
    return (), False


def _title(item: dict[str, Any]) -> str:
    return next((item[key] for key in _TITLES if isinstance(item.get(key), str)), "")


def outcome_of(text: str, *, failed: bool, act: Act) -> Outcome:
    """Whether a call failed, and the line that says why."""
    ends = text if len(text) <= 2 * _LOOKS else f"{text[:_LOOKS]}\n{text[-_LOOKS:]}"
    if act.kind == "command":
        code = _EXIT.search(ends)
        failed = failed or (code is not None and code[1] != "0")
    return Outcome(failed, _error_line(ends) if failed else "")


def _error_line(text: str) -> str:
    lines = [line.strip() for line in text.split("\n")]
    lines = [line for line in lines if line and not (_EXIT.search(line) and len(line) < 40)]
    best = next((line for line in lines if _ERROR.search(line)), lines[0] if lines else "")
    return _TAGS.sub("", best).strip()[:_LONGEST]


def _from_commit(command: str) -> str:
    """A command that commits, from there on and with its message in sight: what came before only prepared it."""
    found = _COMMIT.search(command)
    return _HEREDOC.sub("", command[found.start() :]) if found else command


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _purpose(said: str) -> str:
    """The last line of what was said before a call: usually what it is for."""
    lines = [line.strip() for line in said.split("\n") if line.strip()]
    return lines[-1][:_LONGEST].rstrip(":") if lines else ""
