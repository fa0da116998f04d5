"""The outcome of a tool call, as far as the result of the call proves one.

The proof is an exit status, the tool's error flag, or the last line that a test runner or a linter prints. The exit
status of a pipe is the exit status of its last program. So the status of `go test | tail` proves nothing about `go
test`. If nothing proves an outcome, foldline states only that the call ran.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from foldline.human_input import is_refusal
from foldline.tool_calls import InterpretedCall

PASSED, FAILED, REFUSED, INTERRUPTED, UNKNOWN = "passed", "failed", "refused", "interrupted", ""
_KILLED = frozenset({124, 130, 137, 143, -2, -9, -15})
"""Exit statuses of a command that was stopped from outside: by a signal, or by a time limit."""
_SIBLING_FAILED = "<tool_use_error>Sibling tool call errored"
_INTERRUPTED = (
    *("[Request interrupted by user", "Command timed out", "Command was killed", "Command was aborted"),
    *(_SIBLING_FAILED, "<tool_use_error>Cancelled"),
)
"""The beginnings of the first or last line in the result of an interrupted call."""
_ENDS_CHARS = 4_000
"""Number of characters that are read at the start of a result; as many are read at its end."""
_LINE_CHARS = 200
_EXIT_LINE = re.compile(
    r"\W{0,3}(?:(?:process |command )?exit(?:ed)?(?: with)?(?: code| status)?|return ?code)"
    r"[\s:=]{1,3}(-?\d{1,3})\W{0,2}",
    re.IGNORECASE,
)
_FRAME_STARTS, _FRAME_END, _FRAME_CHARS = (
    ("Command: ", "Chunk ID: ", "Exit code: ", "Wall time: "),
    "\nOutput:\n",
    3_000,
)
"""The frame that Codex prints above the output of a command: its possible first words, its last line, and its maximum
length.
"""
_FRAME_STATUS = re.compile(r"^(?:Process exited with|Exit) code:? (-?\d{1,3})$", re.MULTILINE)
_PIPE = re.compile(r"(?<!\|)\|(?![|&])|\|&")
_SEVERAL = re.compile(r"\|\||;|(?<![&>])&(?![&>\d])|\n")
_QUOTED = re.compile(r"'[^']{0,2000}'|\"(?:[^\"\\]|\\.){0,2000}\"")
_LATE_OUTPUT = re.compile(r"\|\s*(?:tail|tee|cat)\b[^|;&]*")
"""Filters, such as `tail`, whose last line of output is the last line of their input."""
_ANSWERING_PROGRAMS = frozenset({"grep", "rg", "egrep", "diff", "cmp", "test", "[", "which", "pgrep", "ls", "git"})
"""Programs that also return exit status 1 for the answer "no", which is no failure."""
_READING_PROGRAMS = frozenset({"cat", "head", "less", "more", "tail"})
"""Programs that print a file. The file may contain the output of another program, so its last line proves nothing."""
_PROGRAM = re.compile(r"(?:^|&&|\bsh -c ['\"]|\bbash -c ['\"])\s*+([^\s'\"]++)")
"""Matches the first word of a command at the start, after `&&`, or in the argument of `sh -c` or `bash -c`."""
_PASSED_LINE = re.compile(
    r"=*\s*\d+ passed\b(?:(?!failed|error).){0,120}|ok\s+\S+\s+(?:[\d.]+s|\(cached\))(?! \[no tests).{0,80}|PASS"
    r"|test result: ok\. .{0,120}|All checks passed!?|Success: no issues found.{0,60}|0 issues\.?"
    r"|All matched files use Prettier code style!?|Build succeeded\.?"
)
_FAILED_LINE = re.compile(
    r"FAIL(?:ED)?(?:[:\s(].{0,160})?|=*\s*(?:\d+ \w+, ){0,4}\d+ (?:failed|errors?)\b.{0,120}"
    r"|make(?:\[\d+\])?: \*\*\* .{0,160}|test result: FAILED.{0,120}|error: could not compile.{0,160}|npm ERR!.{0,160}"
    r"|Found \d+ errors?\b.{0,80}|\[[\w:.-]{1,60}\] ERROR task failed|[\w./-]+: exit status [1-9]\d{0,2}"
)
_FAILURE_MARK = re.compile(
    r"^(?:--- FAIL|FAIL\b|FAILED\b|panic: |Traceback |error: |error\[|npm ERR!|make: \*\*\*)|\b[1-9]\d{0,5} failed\b",
    re.MULTILINE,
)
_ERROR_LINE = re.compile(
    r"(?:--- FAIL: |FAILED? \S|FAIL: |not ok |E\s{2,}|[✗✕×●] |panic: |fatal: |error(?:\[\w{1,20}\])?: |undefined: "
    r"|npm ERR! |make: \*\*\* )|\S{0,80}(?:Error|Exception)\b: |[\w./@+-]{1,120}:\d{1,6}:\d{1,5}:? .{0,80}"
    r"(?:error|undefined|cannot|unused|missing|not used|not defined|fail)",
)
"""A line that names an error."""
_ERROR_WORD = re.compile(
    r"\b(?:error|errors|exception|traceback|panic|fatal|failed|failure|fail|cannot|can't|undefined|no such file|denied"
    r"|not found|unable|refused|rejected|doesn't want)\b|^E\s{2,}|--- FAIL",
    re.IGNORECASE,
)
_LOCATION = re.compile(r"(?:\[[\w:.-]{1,60}\] )?[\w./@+-]{1,120}:\d{1,6}:\d{1,5}: ")
"""Matches the start of a line that names a file, a line and a column, as linters and compilers print it."""
_TOOL_ERRORS = (
    *("<tool_use_error>", "Error: ", "Error calling tool", "String to replace not found", "File has not been read"),
    *("Failed to ", "No such file", "InputValidationError"),
)
"""The beginnings of results that report that an edit or a read failed."""
_TAGS = re.compile(r"</?[a-z_]{4,30}>")
"""Tags that agent programs put around an error."""


class CallOutcome(NamedTuple):
    """What the result of a call proves."""

    status: str = UNKNOWN
    """`passed`, `failed`, `refused` (by a person), `interrupted`, or "" if the result proves nothing."""
    line: str = ""
    """The line of the result that shows the outcome: its error, or its last line."""

    @property
    def is_done(self) -> bool:
        """False if the call failed, was refused or was interrupted; otherwise True."""
        return self.status in {PASSED, UNKNOWN}


def call_outcome(text: str, *, failed: bool, call: InterpretedCall) -> CallOutcome:
    """The outcome that a call's result proves. `failed` is the error flag of the result."""
    if is_refusal(text):
        return CallOutcome(REFUSED, "")
    ends = text if len(text) <= 2 * _ENDS_CHARS else f"{text[:_ENDS_CHARS]}\n{text[-_ENDS_CHARS:]}"
    if text.startswith(_INTERRUPTED) or (call.kind == "run" and _last_line(text).startswith(_INTERRUPTED)):
        return CallOutcome(INTERRUPTED, "a parallel call failed" if text.startswith(_SIBLING_FAILED) else "")
    if call.kind != "run":
        failed = failed or (call.kind in {"read", "edit"} and text.startswith(_TOOL_ERRORS))
        return CallOutcome(FAILED, error_line(ends)) if failed else CallOutcome(UNKNOWN, "")
    lines = [line.strip() for line in ends.split("\n")]
    lines = [line for line in lines if line]
    exit_status = _exit_status(lines)
    lines = [line for line in lines if not _EXIT_LINE.fullmatch(line)]
    last = lines[-1][:_LINE_CHARS] if lines else ""
    status = _run_status(call.command, exit_status, ends, last, failed=failed)
    if status == FAILED and exit_status in _KILLED:
        return CallOutcome(INTERRUPTED, f"exit status {exit_status}")
    if status == FAILED:
        return CallOutcome(FAILED, error_line(ends) or (f"exit status {exit_status}" if exit_status else ""))
    if status == PASSED:
        return CallOutcome(PASSED, last)
    return CallOutcome(UNKNOWN, next((line for line in lines if _ERROR_LINE.match(line)), last)[:_LINE_CHARS])


def output_of(text: str) -> str:
    r"""The output in a result of Codex, without the metadata around it.

    The output is a field of a JSON object with metadata, or it comes after lines with metadata. If the metadata has an
    exit status, the returned text begins with a line that contains this status. A result without metadata is returned
    unchanged.

    >>> output_of('{"output":"a\\nb","metadata":{"exit_code":2}}')
    'Exit code: 2\na\nb'
    """
    if text.startswith("{") and '"metadata"' in text:
        try:
            frame = json.loads(text)
        except (ValueError, RecursionError):
            return text
        output, metadata = frame.get("output"), frame.get("metadata")
        if isinstance(output, str) and isinstance(metadata, dict):
            status = metadata.get("exit_code")
            return f"Exit code: {status}\n{output}" if type(status) is int else output
    elif text.startswith(_FRAME_STARTS) and (end := text.find(_FRAME_END, 0, _FRAME_CHARS)) > 0:
        statuses = _FRAME_STATUS.findall(text, 0, end)
        output = text[end + len(_FRAME_END) :]
        return f"Exit code: {statuses[-1]}\n{output}" if statuses else output
    return text


def _last_line(text: str) -> str:
    return text[-_LINE_CHARS:].rstrip().rpartition("\n")[2]


def _exit_status(lines: list[str]) -> int | None:
    """The exit status in one of the first two lines or in the last line of a result; None if there is none."""
    found = filter(None, map(_EXIT_LINE.fullmatch, (*lines[:2], *lines[-1:])))
    return next((int(line[1]) for line in found), None)


def _run_status(command: str, exit_status: int | None, text: str, last: str, *, failed: bool) -> str:
    bare = _QUOTED.sub('""', command)
    is_pipe = _PIPE.search(bare) is not None and "pipefail" not in bare
    is_filtered = _PIPE.search(_LATE_OUTPUT.sub("", bare)) is not None
    programs = _PROGRAM.findall(command)
    # `tail` does not fail: a status other than 0 comes from a command before `&&`
    if (exit_status or failed) and not (is_filtered if "&&" in bare else is_pipe):
        may_mean_no = exit_status == 1 and not _ANSWERING_PROGRAMS.isdisjoint((*programs[:1], *programs[-1:]))
        return UNKNOWN if may_mean_no else FAILED
    if not _READING_PROGRAMS.isdisjoint(programs[-1:]):
        return UNKNOWN
    if "…" in command[-2:] or is_filtered:
        return UNKNOWN
    if _FAILED_LINE.fullmatch(last):
        return FAILED
    if exit_status or failed or _FAILURE_MARK.search(text) or not _proves_all(bare):
        return UNKNOWN
    if _PASSED_LINE.fullmatch(last):
        return PASSED
    return PASSED if exit_status == 0 and not is_pipe else UNKNOWN


def _proves_all(bare: str) -> bool:
    """Whether exit status 0 of a command line proves that all its commands succeeded.

    This is so if each command runs only after all earlier commands succeeded.
    """
    *before, _ = bare.split("&&")
    return not _SEVERAL.search(bare) and not any(map(_PIPE.search, before))


def error_line(text: str) -> str:
    """The line of a result that best says what went wrong."""
    lines = [_TAGS.sub("", line).strip() for line in text.split("\n")]
    lines = [line for line in lines if line and not _EXIT_LINE.fullmatch(line)]
    found = (
        line for pattern in (_ERROR_LINE.match, _LOCATION.match, _ERROR_WORD.search) for line in lines if pattern(line)
    )
    return next(found, lines[0] if lines else "")[:_LINE_CHARS]
