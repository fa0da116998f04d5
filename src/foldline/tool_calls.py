"""Interprets a tool call: the file it reads or changes, the command it runs, the tasks it sets.

A call is interpreted by the name of its tool and the names of its arguments, from the tables below. Pruning, the
digest and the watch all use these functions, so that they do not disagree about a call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from foldline.message import ToolCall

# Names of arguments, grouped by what they hold; the first name that a call has is used
_PATHS = ("file_path", "path", "absolute_path", "notebook_path", "filename", "file", "target_file", "filePath")
_SHELL_COMMANDS = ("command", "cmd", "script")
_COMMANDS = (*_SHELL_COMMANDS, "code")
_COMMAND_KEYS = frozenset(_COMMANDS)
_OLD_TEXTS = ("old_string", "oldText", "old_str", "search")
_NEW_TEXTS = ("new_string", "newText", "new_str", "new_source", "replacement", "replace")
_WHOLE_TEXTS = ("content", "contents", "file_text")
_WRITTEN_TEXTS = (*_NEW_TEXTS, *_WHOLE_TEXTS)
_PATCHES = ("input", "patch")
_RANGES = ("offset", "limit", "view_range", "start_line", "end_line", "ranges")
"""Arguments with which a call reads only a part of a file."""
_TASK_LISTS = ("todos", "plan", "tasks", "items")
_TASK_TITLES = ("content", "step", "subject", "title", "text", "description")
_CONTENT = frozenset(
    {
        *(*_OLD_TEXTS, *_NEW_TEXTS, *_WHOLE_TEXTS, *_PATCHES, "edits"),
        *("todos", "prompt", "plan", "text", "description", "body", "tasks", "summary", "thought"),
    }
)
"""Arguments that contain new text. All other arguments are values that the caller had to know to make the call."""

# Words in the name of a tool, or in the command of a tool that has several commands
_EDIT_WORDS = ("edit", "write", "create", "patch", "replace", "insert", "update", "delete", "move", "rename")
_READ_WORDS = ("read", "view", "open", "cat", "show", "get", "fetch")
_SHELLS = frozenset({"bash", "sh", "zsh"})

FINISHED = frozenset({"completed", "done", "deleted", "cancelled"})
"""Statuses of a task that needs no more work."""

_PATCHED_FILE = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_COMMIT, _COMMIT_MESSAGE = re.compile(r"git commit\b"), re.compile(r"\s-\w*m ")
_HEREDOC = re.compile(r"\$\(cat <<-?\s*['\"]?\w+['\"]?\s*")
_LINE_CHARS = 200
_COMMAND_CHARS = 2_000
_CHECK_WORDS = (
    *("test", "build", "vet", "lint", "check", "tox", "nox", "clippy"),
    *("jest", "tsc", "mypy", "ruff", "mocha", "spec", "playwright"),
)
"""Every command that `_CHECK` matches contains one of these words. A search for these words is made first, because it
is faster.
"""
_CHECK = re.compile(
    r"\b(?:go (?:test|build|vet)|pytest|py\.test|unittest|tox|nox|cargo (?:test|build|check|clippy)|npm (?:run )?test|"
    r"npx (?:jest|vitest|tsc|playwright|eslint)|yarn (?:run )?test|pnpm (?:run )?test|jest|vitest|mocha|tsc|mypy|ruff|"
    r"golangci-lint|eslint|(?:mise|make|just|task|bun|deno) (?:run )?(?:test|lint|check|build)\S*|gradle\w* \S*test|"
    r"mvn \S*test|rspec|phpunit|ctest|dotnet test|swift test|mix test)\b"
)
_OUTPUT_FILTERS = re.compile(
    r"2>&1|\|\s*(?:tail|head|grep|tee|cat|sed|awk|sort|less|wc)\b[^|;&]*|\|\|\s*true|;\s*echo\b.*"
)
_FOLDER = re.compile(r"(?:^cd|\bgit -C) (/[^\s;&|]{1,200})")
_CHANGE_FOLDER = re.compile(r"^\s*cd\s+\S+\s*(?:&&|;)\s*")


class InterpretedCall(NamedTuple):
    """What a call does."""

    kind: str = ""
    """`read`, `edit` (the call changes or writes a file), `run` (the call runs a command), or "" for any other call."""
    path: str = ""
    """The file that the call reads or changes."""
    command: str = ""
    """The command that the call runs, on one line."""
    folder: str = ""
    """The absolute path of the folder that the command changes to; "" if it does not change to one."""
    purpose: str = ""
    """The purpose of the call in the caller's words."""
    values: tuple[str, ...] = ()
    """Values that the caller had to know to make the call."""
    contents: tuple[str, ...] = ()
    """Values that contain new text."""
    replaced: tuple[str, ...] = ()
    """Content that the call replaces."""
    is_partial: bool = False
    """Whether the call reads only a part of a file."""
    tasks: tuple[tuple[str, str, str], ...] = ()
    """The tasks that the call sets: number (or ""), text and status of each."""
    is_whole_list: bool = False
    """Whether `tasks` is the whole task list."""


def arguments_of(call: ToolCall) -> dict[str, Any] | None:
    """The arguments of a call; None if they are not JSON. If they are no JSON object, the result is `{"value": …}`."""
    try:
        value = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else {"value": value}


def call_kind(name: str, arguments: dict[str, Any]) -> str:
    """What a call does: `read`, `edit`, `run` or "".

    For a tool with several commands (`view`, `str_replace`), the kind depends on the command and not on the tool's
    name.

    >>> call_kind("str_replace_based_edit_tool", {"command": "view", "path": "a.py"})
    'read'
    """
    if command_of(arguments):
        return "run"
    if not _first_text(arguments, _PATHS):
        return "edit" if patched_files(_patch_of(arguments)) else ""
    return _kind_beside_path(name, arguments)


def only_reads(call: ToolCall) -> bool:
    """Whether a call neither changes a file, nor runs a command, nor sets tasks."""
    arguments = arguments_of(call)
    return (
        arguments is not None
        and call_kind(call.name, arguments) in {"read", ""}
        and not _tasks(call.name, arguments)[0]
    )


def _kind_beside_path(name: str, arguments: dict[str, Any]) -> str:
    kind = _kind_by_words(_first_text(arguments, ("command",))) if "command" in arguments else ""
    if not kind and (_first_text(arguments, _WRITTEN_TEXTS) or isinstance(arguments.get("edits"), list)):
        kind = "edit"
    return kind or _kind_by_words(name)


@lru_cache(256)
def _kind_by_words(name: str) -> str:
    lower = name.lower()
    if any(word in lower for word in _EDIT_WORDS):
        return "edit"
    return "read" if any(word in lower for word in _READ_WORDS) else ""


def edited_files(name: str, arguments: dict[str, Any]) -> list[str]:
    """The files that a call edits or writes."""
    # most calls run a command, so no path is searched for
    if not _COMMAND_KEYS.isdisjoint(arguments) and command_of(arguments):
        return []
    path = _first_text(arguments, _PATHS)
    if not path:
        return patched_files(_patch_of(arguments))
    return [path] if _kind_beside_path(name, arguments) == "edit" else []


def patched_files(patch: str) -> list[str]:
    """The files that a patch in Codex's format changes."""
    return [path.strip() for path in _PATCHED_FILE.findall(patch)] if "*** " in patch else []


def _patch_of(arguments: dict[str, Any]) -> str:
    """The patch in Codex's format that a call applies. The patch is an argument, or a part of the command
    `apply_patch`.
    """
    command = _command_text(arguments, _SHELL_COMMANDS)
    return command if _applies_patch(command) else _first_text(arguments, _PATCHES)


def _applies_patch(command: str) -> bool:
    return "*** Begin Patch" in command and _CHANGE_FOLDER.sub("", command, count=1).lstrip().startswith("apply_patch")


def replacements(arguments: dict[str, Any]) -> list[tuple[str, str]]:
    """The old and the new text of each replacement that an edit makes."""
    edits = arguments.get("edits")
    return [
        (_first_text(one, _OLD_TEXTS), _first_text(one, _NEW_TEXTS))
        for one in (edits if isinstance(edits, list) else [arguments])
    ]


def whole_content(arguments: dict[str, Any]) -> str:
    """The text that a call writes as a whole file; "" for a call that replaces parts of a file."""
    return _first_text(arguments, _WHOLE_TEXTS)


def read_key(call: ToolCall) -> str:
    """A key for the file and the range that a call reads; "" if the call reads no file.

    Calls of the same tool with the same file and the same range have the same key.
    """
    arguments = arguments_of(call)
    if arguments is None or call_kind(call.name, arguments) != "read":
        return ""
    return f"{call.name} {json.dumps(arguments, sort_keys=True)}"


def shell_command(arguments: dict[str, Any]) -> str:
    """The shell command that a call runs; "" for other calls."""
    return command_of(arguments, _SHELL_COMMANDS)


def command_of(arguments: dict[str, Any], keys: Iterable[str] = _COMMANDS) -> str:
    """The command or program that a call runs; "" for other calls.

    If the arguments contain a path and the command is one word, the result is "", because the word then names an
    operation of the tool. For a command that only applies a patch, the result is "", because such a call is an edit.
    """
    command = _command_text(arguments, keys)
    return "" if _applies_patch(command) else command


def _command_text(arguments: dict[str, Any], keys: Iterable[str]) -> str:
    for key in keys:  # this runs for every event of a watched agent, and a loop is faster than a generator
        if key in arguments:
            value = arguments[key]
            break
    else:
        return ""
    if type(value) is str:
        return value if " " in value or not _first_text(arguments, _PATHS) else ""
    words = [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
    return words[-1] if words and words[0].rsplit("/", 1)[-1] in _SHELLS else " ".join(words)


def bare_command(arguments: dict[str, Any]) -> str:
    """The shell command of a call, without a `cd` at its start and without filters of its output such as `| tail`."""
    command = command_of(arguments, _SHELL_COMMANDS)
    return strip_command(command[:_COMMAND_CHARS]) if command else ""


@lru_cache(256)  # agents run the same commands many times
def strip_command(command: str) -> str:
    """A shell command without a `cd` at its start and without filters of its output such as `| tail`."""
    while command.startswith("cd ") and (found := _CHANGE_FOLDER.match(command)):
        command = command[found.end() :]
    if "|" in command or "2>&1" in command or ";" in command:
        command = _OUTPUT_FILTERS.sub(" ", command)
    return " ".join(command.split())


@lru_cache(256)
def is_check(command: str) -> bool:
    """True for a command that tests, builds or lints."""
    return any(word in command for word in _CHECK_WORDS) and bool(_CHECK.search(command))


def interpret_call(call: ToolCall, text: str) -> InterpretedCall:
    """Interpret a call. `text` is the text of the model's message that contains the call."""
    arguments = arguments_of(call)
    if arguments is None:
        files = patched_files(call.arguments)
        kind, path = ("edit", files[0]) if files else ("", "")
        return InterpretedCall(kind=kind, path=path, values=tuple(files), contents=(call.arguments,))
    tasks, is_whole_list = _tasks(call.name, arguments)
    values, contents, replaced = list[str](), list[str](), list[str]()
    for key, value in arguments.items():
        for inner, word in _strings(value, key):
            (values if key not in _CONTENT else replaced if inner in _OLD_TEXTS else contents).append(word)
    kind = "" if tasks else call_kind(call.name, arguments)
    if kind == "edit" and not contents:
        values, contents = [value for value in values if not _applies_patch(value)], [_patch_of(arguments)]
    files = [_first_text(arguments, _PATHS)] if kind == "read" else edited_files(call.name, arguments) if kind else []
    reason, command = arguments.get("description"), command_of(arguments)
    return InterpretedCall(
        kind=kind,
        path=files[0] if files else "",
        command=_one_line(_from_commit(command)) if kind == "run" else "",
        folder=found[1] if kind == "run" and (found := _FOLDER.search(command)) else "",
        purpose=_one_line(reason) if isinstance(reason, str) and kind == "run" else _last_line(text),
        values=tuple(values),
        contents=tuple(contents),
        replaced=tuple(replaced),
        is_partial=any(key in arguments for key in _RANGES),
        tasks=tasks,
        is_whole_list=is_whole_list,
    )


def _first_text(arguments: Any, keys: Iterable[str]) -> str:
    if type(arguments) is dict:
        for key in keys:
            if key in arguments:
                value = arguments[key]
                if value and type(value) is str:
                    return value
    return ""


def _strings(value: Any, key: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """The texts and numbers in an argument, each with its key."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, int) and not isinstance(value, bool):
        yield key, str(value)
    elif depth < 8:
        items = value if isinstance(value, list) else []
        for name, item in value.items() if isinstance(value, dict) else ((key, item) for item in items):
            yield from _strings(item, name, depth + 1)


def _tasks(name: str, arguments: dict[str, Any]) -> tuple[tuple[tuple[str, str, str], ...], bool]:
    """The tasks that a call sets, and whether they are the whole task list.

    A call can also set a single new task or a new status.
    """
    for key in _TASK_LISTS:
        items = arguments.get(key)
        if isinstance(items, list) and items and all(isinstance(item, dict) and "status" in item for item in items):
            tasks = []
            for place, item in enumerate(items, start=1):
                title = next((item[key] for key in _TASK_TITLES if isinstance(item.get(key), str)), "")
                if title:
                    tasks.append((str(place), title, str(item["status"])))
            return tuple(tasks), True
    lower = name.lower()
    if "task" in lower and "create" in lower and isinstance(arguments.get("subject"), str):
        return (("", arguments["subject"], "pending"),), False
    number = arguments.get("taskId")
    if "task" in lower and "update" in lower and isinstance(number, str):
        return ((number, str(arguments.get("subject") or ""), str(arguments.get("status") or "")),), False
    return (), False


def _from_commit(command: str) -> str:
    """The part of a command that starts at `git commit`, without heredoc syntax.

    A command without `git commit -m` is returned unchanged.
    """
    found = _COMMIT.search(command)
    if found is None or not _COMMIT_MESSAGE.search(command, found.end()):
        return command
    return _HEREDOC.sub("", command[found.start() :])


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LINE_CHARS else line[: _LINE_CHARS - 1] + "…"


def _last_line(text: str) -> str:
    """The last line of the text before a call. This line usually says what the call is for."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return lines[-1][:_LINE_CHARS].rstrip(":") if lines else ""
