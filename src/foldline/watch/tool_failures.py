"""How a tool result says that it failed, and whether two failures are the same one.

Agents pipe their tests through `tail` and `grep`, so that an exit status of 0 says little: the words of the tools tell.
Two failures are the same when the same lines name the fault, whatever line numbers, times and addresses stand in them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

from foldline.tool_calls import bare_command
from foldline.watch.agent_events import dict_at, extract_text

_READ_CHARS = 20_000
"""How much of a result's beginning and of its end is looked at; a fault stands at one of them."""
_FAULT_LINES = 12
_LINE_CHARS = 300
_NOT_OURS = (
    "The user doesn't want to",
    "<tool_use_error>Sibling tool call errored",
    "<tool_use_error>Cancelled",
    "[Request interrupted",
    "Permission to use",
    "<tool_use_error>File has not been read yet",
    "<tool_use_error>File has been modified since read",
)
"""Results that tell of a person's no, another call's failure or a rule of the agent, and nothing of the call itself."""
_INPUT_REFUSED = "<tool_use_error>"
"""How an agent begins when what its tool was given cannot be."""
_NAMED_CHARS = 3
"""A shorter value may stand in any text by chance."""
_FAULT = re.compile(
    r"(?:--- FAIL: \S+|FAILED \S+|FAIL:? \S+|FAIL\s+\S+|not ok \d+ .*|E\s{2,}\S.*|[✗✕×●] .*"
    r"|\S*(?:Error|Exception|Panic|panic)\b:.*|error(?:\[\w+\])?:.*|fatal:.*|undefined: .*"
    r"|[\w./@+-]+:\d+(?::\d+)?:? .*"
    r"(?:error|undefined|expected|cannot|unused|missing|declared and not used|not defined|fail).*"
    r"|.*(?:command not found|No such file or directory|Permission denied).*)",
    re.IGNORECASE,
)
_BARE = re.compile(r"\s*(?:--- )?FAIL(?:ED)?:?(?:\s|$)")
_RED = ("--- FAIL", "FAIL", "error: ", "error[", "Traceback ", "panic: ", "npm ERR!", "make: ***", "Build failed")
"""How lines begin that say that a check failed."""
_RED_LINE = re.compile(r"\n(?:" + "|".join(map(re.escape, _RED)) + ")")
_RED_COUNT = re.compile(r"\b[1-9]\d{0,6} (?:failed|failing)\b|ERROR task failed")
_RED_TEST = re.compile(
    r"--- FAIL: (\S+)|FAILED (\S+::\S+)|(?:FAIL|ERROR): (\w+ \(\S+\))|test (\S+) \.\.\. FAILED"
    r"|[✗✕×●] (.+?)(?: \(\d.*)?$"
)
_VOLATILE = re.compile(
    r"0x[0-9a-f]+|\b(?=[a-f]*\d)[0-9a-f]{7,40}\b|(?<=:)\d+|\b\d+(?:\.\d+)?(?:ms|s|µs)?\b|/(?:tmp|var)/\S+",
    re.IGNORECASE,
)
_ANSWERS = ("grep", "rg", "diff", "cmp", "test", "[", "which", "pgrep", "ls")
"""Programs whose exit status of 1 says no, and not that they failed."""


def result_text(result: dict[str, Any]) -> str:
    """The beginning and the end of what a call gave back."""
    content = result.get("content")
    text = content if isinstance(content, str) else extract_text(content)
    return text if len(text) <= 2 * _READ_CHARS else text[:_READ_CHARS] + "\n" + text[-_READ_CHARS:]


def is_call_failure(text: str, command: str = "") -> bool:
    """Whether a failure says something about the call itself."""
    says_no = command.split(" ", 1)[0] in _ANSWERS and not error_lines(text)
    return not says_no and not text.startswith(_NOT_OURS)


def error_lines(text: str) -> tuple[str, ...]:
    r"""The lines that name what is wrong, without what changes from run to run, in a fixed order.

    >>> error_lines("ok a\n--- FAIL: TestFold (0.02s)\n    fold_test.go:17: expected 3\n")
    ('--- FAIL: TestFold (#)', 'fold_test.go:#: expected #')
    """
    found = {normalize(line) for line in _lines(text) if _FAULT.match(line)}
    return tuple(sorted(found)[:_FAULT_LINES])


def is_about_input(call: dict[str, Any], text: str) -> bool:
    """Whether a failure is about what the call was given, and not about the tool: it refuses it, or names it."""
    if text.startswith(_INPUT_REFUSED):
        return True
    said, given = main_error_line(text), dict_at(call, "input")
    values = bare_command(given).split()[1:] or given.values()
    return any(isinstance(one, str) and len(one) >= _NAMED_CHARS and one in said for one in values)


def failed_tests(text: str) -> dict[str, str]:
    """The tests that failed, where the output gives names: as they compare, and as they were printed."""
    found: dict[str, str] = {}
    for match in filter(None, map(_RED_TEST.match, _lines(text))):
        of_go = match[1]
        name = of_go.partition("/")[0] if of_go else next(filter(None, match.groups()))
        if len(found) < _FAULT_LINES:
            found.setdefault(normalize(name), name)
    return found


def normalize(line: str) -> str:
    """A line without line numbers, times and addresses."""
    return " ".join(_VOLATILE.sub("#", line[:_LINE_CHARS]).split())


def is_bare_failure(line: str) -> bool:
    """Whether a line says that something failed, and not what."""
    return bool(_BARE.match(line))


def main_error_line(text: str) -> str:
    """One line that tells a person what went wrong."""
    lines = [line for line in _lines(text) if line and not line.startswith("Exit code")]
    return next(
        (line for line in lines if _FAULT.match(line) and not is_bare_failure(line)), lines[-1] if lines else ""
    )


def _lines(text: str) -> Iterator[str]:
    """The lines of an output, without their indentation and no longer than a person reads."""
    return (line.strip()[:_LINE_CHARS] for line in text.split("\n"))


def is_failed_check(text: str, *, error: bool) -> bool:
    """Whether a check failed."""
    if error and is_call_failure(text):
        return True
    if ("failed" in text or "failing" in text) and _RED_COUNT.search(text):
        return True
    return text.startswith(_RED) or bool(_RED_LINE.search(text))


def discarded_paths(command: str) -> list[str] | None:
    """What a git command throws the changes of away; [] for everything, None when it throws away nothing.

    `git checkout NAME` may name a branch as well: whoever knows the changed files can tell.
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
