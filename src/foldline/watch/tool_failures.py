"""Recognises failures in tool results, and compares two failures.

Agents pipe their tests through `tail` and `grep`. So the exit status says little, and the output must be read. Two
failures are the same if their error lines are equal; line numbers, times and addresses are ignored.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

from foldline.tool_calls import bare_command
from foldline.watch.agent_events import dict_at, extract_text

_READ_CHARS = 20_000
"""Number of characters read at the start and at the end of a result."""
_MAX_ERROR_LINES = 12
_LINE_CHARS = 300
_NOT_OF_CALL = (
    "The user doesn't want to",
    "<tool_use_error>Sibling tool call errored",
    "<tool_use_error>Cancelled",
    "[Request interrupted",
    "Permission to use",
    "<tool_use_error>File has not been read yet",
    "<tool_use_error>File has been modified since read",
)
"""Beginnings of results that do not report a failure of the call itself.

Such results report a refusal, the failure of another call, or a rule of the agent.
"""
_INVALID_INPUT = "<tool_use_error>"
"""Beginnings of results that reject the input of the tool."""
_MIN_VALUE_CHARS = 3
"""Minimum length of a value that is searched in an error line. A shorter value may occur in the line by chance."""
_ERROR_LINE = re.compile(
    r"(?:--- FAIL: \S+|FAILED \S+|FAIL:? \S+|FAIL\s+\S+|not ok \d+ .*|E\s{2,}\S.*|[✗✕×●] .*"
    r"|\S*(?:Error|Exception|Panic|panic)\b:.*|error(?:\[\w+\])?:.*|fatal:.*|undefined: .*"
    r"|[\w./@+-]+:\d+(?::\d+)?:? .*"
    r"(?:error|undefined|expected|cannot|unused|missing|declared and not used|not defined|fail).*"
    r"|.*(?:command not found|No such file or directory|Permission denied).*)",
    re.IGNORECASE,
)
_BARE_FAILURE = re.compile(r"\s*(?:--- )?FAIL(?:ED)?:?(?:\s|$)")
_FAILED_STARTS = (
    "--- FAIL",
    "FAIL",
    "error: ",
    "error[",
    "Traceback ",
    "panic: ",
    "npm ERR!",
    "make: ***",
    "Build failed",
)
"""Beginnings of lines that report a failed check."""
_FAILED_LINE = re.compile(r"\n(?:" + "|".join(map(re.escape, _FAILED_STARTS)) + ")")
_FAILED_COUNT = re.compile(r"\b[1-9]\d{0,6} (?:failed|failing)\b|ERROR task failed")
_FAILED_TEST = re.compile(
    r"--- FAIL: (\S+)|FAILED (\S+::\S+)|(?:FAIL|ERROR): (\w+ \(\S+\))|test (\S+) \.\.\. FAILED"
    r"|[✗✕×●] (.+?)(?: \(\d.*)?$"
)
_VOLATILE = re.compile(
    r"0x[0-9a-f]+|\b(?=[a-f]*\d)[0-9a-f]{7,40}\b|(?<=:)\d+|\b\d+(?:\.\d+)?(?:ms|s|µs)?\b|/(?:tmp|var)/\S+",
    re.IGNORECASE,
)
_ANSWERING_PROGRAMS = ("grep", "rg", "diff", "cmp", "test", "[", "which", "pgrep", "ls")
"""Programs whose exit status 1 means "no" and not a failure."""


def result_text(result: dict[str, Any]) -> str:
    """The text of a result. For a long result, only the start and the end are returned."""
    text = extract_text(result.get("content"))
    return text if len(text) <= 2 * _READ_CHARS else text[:_READ_CHARS] + "\n" + text[-_READ_CHARS:]


def is_call_failure(text: str, command: str = "") -> bool:
    """Whether an error result means that the call itself failed.

    A refusal, a cancellation and an exit status that means "no" are not failures of the call.
    """
    is_answer = command.split(" ", 1)[0] in _ANSWERING_PROGRAMS and not error_lines(text)
    return not is_answer and not text.startswith(_NOT_OF_CALL)


def error_lines(text: str) -> tuple[str, ...]:
    r"""Sorted error lines of an output, without line numbers, times and addresses.

    >>> error_lines("ok a\n--- FAIL: TestFold (0.02s)\n    fold_test.go:17: expected 3\n")
    ('--- FAIL: TestFold (#)', 'fold_test.go:#: expected #')
    """
    lines = {normalize(line) for line in _lines(text) if _ERROR_LINE.match(line)}
    return tuple(sorted(lines)[:_MAX_ERROR_LINES])


def is_about_input(call: dict[str, Any], text: str) -> bool:
    """Whether a failure is about the input and not about the tool.

    A failure is about the input if the result rejects the input, or quotes a value from the input.
    """
    if text.startswith(_INVALID_INPUT):
        return True
    line, arguments = main_error_line(text), dict_at(call, "input")
    values = bare_command(arguments).split()[1:] or arguments.values()
    return any(isinstance(value, str) and len(value) >= _MIN_VALUE_CHARS and value in line for value in values)


def failed_tests(text: str) -> dict[str, str]:
    """The names of the failed tests in an output: a dict from each normalized name to the name as printed."""
    tests: dict[str, str] = {}
    for match in filter(None, map(_FAILED_TEST.match, _lines(text))):
        go_test = match[1]
        name = go_test.partition("/")[0] if go_test else next(filter(None, match.groups()))
        if len(tests) < _MAX_ERROR_LINES:
            tests.setdefault(normalize(name), name)
    return tests


def normalize(line: str) -> str:
    """The start of a line, with numbers, times, addresses, hashes and temporary paths replaced by "#"."""
    return " ".join(_VOLATILE.sub("#", line[:_LINE_CHARS]).split())


def is_bare_failure(line: str) -> bool:
    """Whether a line says that something failed, but not why."""
    return bool(_BARE_FAILURE.match(line))


def main_error_line(text: str) -> str:
    """The line of an output that best says what went wrong."""
    lines = [line for line in _lines(text) if line and not line.startswith("Exit code")]
    return next(
        (line for line in lines if _ERROR_LINE.match(line) and not is_bare_failure(line)), lines[-1] if lines else ""
    )


def _lines(text: str) -> Iterator[str]:
    return (line.strip()[:_LINE_CHARS] for line in text.split("\n"))


def is_failed_check(text: str, *, error: bool) -> bool:
    """Whether the output of a check says that the check failed. `error` is the error flag of the result."""
    if error and is_call_failure(text):
        return True
    if ("failed" in text or "failing" in text) and _FAILED_COUNT.search(text):
        return True
    return text.startswith(_FAILED_STARTS) or bool(_FAILED_LINE.search(text))


def discarded_paths(command: str) -> list[str] | None:
    """The paths whose changes a git command discards. [] means all paths; None means that the command discards nothing.

    In `git checkout NAME`, the name may be a branch, so the caller compares it with the changed files.
    """
    if not any(word in command for word in ("checkout", "restore", "reset")):
        return None
    for piece in re.split(r"&&|;|\|\||\n", command):
        try:
            words = shlex.split(piece)
        except ValueError:
            continue
        if words[:1] != ["git"]:
            continue
        words = [word for word in words[1:] if word not in ("-q", "--quiet")]
        if words[:2] == ["reset", "--hard"]:
            return []
        if words[:1] == ["restore"] and "--staged" not in words:
            paths = [word for word in words[1:] if not word.startswith("-")]
            return [] if paths == ["."] else paths
        if words[:1] == ["checkout"] and "-b" not in words:
            paths = words[words.index("--") + 1 :] if "--" in words else words[1:]
            return [] if paths == ["."] else paths
    return None
