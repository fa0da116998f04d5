"""Detects dead ends: a call that keeps failing, work that is undone, a test that keeps failing.

A summary loses failed attempts first, and the agent then repeats them. Each finding has a kind, a subject and the calls
that show it. Repeated attempts are normal. So a dead end needs the same failure twice, with no progress in between.
Each subject is reported once.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple

from foldline import tool_calls
from foldline.watch import tool_failures as failures
from foldline.watch.agent_events import AgentEvent, RawEvent, dict_at, text_at
from foldline.watch.reverted_edits import DeadEnd, LineDiff, RevertTracker, join_names, remember, shorten
from foldline.watch.scratch import one_line

__all__ = ["DeadEnd", "DeadEndDetector"]

MAX_CALLS, MAX_TESTS, MAX_EVIDENCE = 400, 100, 5
"""Maximum number of remembered calls, of remembered tests, and of calls or files per finding."""
MAX_DEAD_ENDS = 60
"""Maximum number of findings per session."""
_TOOL_FAILURES = 3
"""If a tool fails this many times in the same way with different input, it counts as broken."""
_ENDING_CHARS = 300

_ErrorLines = tuple[str, ...]


@dataclass(slots=True)
class _FailingTest:
    """A test that fails, and the calls that ran it."""

    errors: _ErrorLines
    command: str
    calls: list[str]


class _FailingTool(NamedTuple):
    """A tool whose last calls failed in the same way."""

    errors: _ErrorLines
    calls: tuple[str, ...]
    concurrent: frozenset[str]
    """Ids of the calls that were still running when the first failure arrived."""


class _FailedCheck(NamedTuple):
    """A check (a test, build or lint command) that failed, its exact command, and the calls that ran it since the last
    edit.
    """

    command: str
    errors: _ErrorLines
    calls: tuple[str, ...]


class DeadEndDetector:
    """Detects the dead ends of one session from its calls and their results."""

    def __init__(self) -> None:
        self._calls: dict[str, tuple[dict[str, Any], list[str]]] = {}
        """Calls that have no result yet, and the files that they edit, by call id."""
        self._failures: OrderedDict[str, list[tuple[str, _ErrorLines]]] = OrderedDict()
        self._failing_tools: OrderedDict[str, _FailingTool] = OrderedDict()
        self._failed_checks: OrderedDict[str, _FailedCheck] = OrderedDict()
        self._failing_tests: OrderedDict[str, _FailingTest] = OrderedDict()
        self._reverts = RevertTracker()
        self._changed: dict[str, list[LineDiff]] = {}
        """Edits since the last check, by file."""
        self._reported: set[tuple[str, str]] = set()

    def feed(self, raw: RawEvent) -> list[DeadEnd]:
        """Take one event; returns the dead ends that are detected with this event."""
        return self.observe(AgentEvent(raw))

    def observe(self, event: AgentEvent) -> list[DeadEnd]:
        """Take one parsed event; returns the dead ends that are detected with this event."""
        if event.is_subagent:
            return []
        if event.calls:
            for call, paths in zip(event.calls, event.edited, strict=True):
                self._calls[text_at(call, "id")] = call, paths
            while len(self._calls) > MAX_CALLS:
                del self._calls[next(iter(self._calls))]
            return []
        found: list[DeadEnd] = []
        for result in event.results:
            found += self._read_result(result)
        return self._select_new(found) if found else found

    def end_turn(self) -> list[DeadEnd]:
        """The dead ends to report at the end of a turn: edits that were undone."""
        return self._select_new(self._reverts.flush())

    def _select_new(self, found: list[DeadEnd]) -> list[DeadEnd]:
        """The findings that have not been reported yet."""
        new: list[DeadEnd] = []
        for one in found:
            key = (one.kind, one.subject)
            if key not in self._reported and len(self._reported) < MAX_DEAD_ENDS:
                self._reported.add(key)
                new.append(one)
        return new

    def _read_result(self, result: dict[str, Any]) -> list[DeadEnd]:
        call_id = text_at(result, "tool_use_id")
        if call_id not in self._calls:
            return []
        call, paths = self._calls.pop(call_id)
        error, arguments = result.get("is_error") is True, dict_at(call, "input")
        if paths and not error:
            self._failed_checks.clear()
            self._changed[paths[0]] = self._reverts.add_edit(call_id, paths[0], arguments)
            if len(self._changed) > MAX_EVIDENCE:
                del self._changed[next(iter(self._changed))]
            return []
        found = [] if paths else self._reverts.flush()
        command = tool_calls.bare_command(arguments)
        if command and not error:
            found += self._reverts.add_command(call_id, command)
        if command and tool_calls.is_check(command):
            text = failures.result_text(result)
            if error and not failures.is_call_failure(text):
                return found
            if failures.is_failed_check(text, error=error):
                errors = failures.error_lines(text)
                stuck = self._find_unfixed_test(call_id, command, errors, text)
                return found + (stuck or self._find_repeated_check(call_id, call, errors or _ending(text), text))
            self._clear_check(command)
            return found
        if error:
            text = failures.result_text(result)
            return found + (self._find_repeated(call_id, call, text) if failures.is_call_failure(text, command) else [])
        if self._failing_tools and _tool(call) in self._failing_tools:
            self._failures.pop(_call_key(call), None)
            self._failing_tools.pop(_tool(call), None)
        return found

    def _find_repeated(self, call_id: str, call: dict[str, Any], text: str) -> list[DeadEnd]:
        """A dead end, if the call failed in the same way before and has not succeeded since; else an empty list."""
        key, errors = _call_key(call), failures.error_lines(text) or _ending(text)
        before = self._failures.get(key, [])
        earlier = [past for past, past_errors in before if past_errors == errors]
        remember(self._failures, key, [*before, (call_id, errors)][-MAX_EVIDENCE:], MAX_CALLS)
        if earlier:
            return _repeated_failure(call, (*earlier, call_id), text)
        return self._find_broken_tool(call_id, call, errors, text)

    def _find_broken_tool(self, call_id: str, call: dict[str, Any], errors: _ErrorLines, text: str) -> list[DeadEnd]:
        """A dead end, if a tool fails in the same way with different input, because then the tool is at fault."""
        tool = _tool(call)
        past = self._failing_tools.get(tool)
        if failures.is_about_input(call, text):
            failing = _FailingTool(errors, (), frozenset())
        elif past is not None and past.calls and past.errors == errors:
            failing = past._replace(calls=(*past.calls, call_id)[-MAX_EVIDENCE:])
        else:
            failing = _FailingTool(errors, (call_id,), frozenset(self._calls))
        remember(self._failing_tools, tool, failing, MAX_CALLS)
        if len(failing.calls) < _TOOL_FAILURES or call_id in failing.concurrent:
            return []
        text = _with_error(f"{tool} failed {len(failing.calls)} times in the same way with different input", text)
        return [DeadEnd("failed again", f"{tool} {errors[0]}", text, failing.calls)]

    def _clear_check(self, command: str) -> None:
        """Forget the failures of a check that has passed."""
        self._changed = {}
        self._failed_checks.pop(command, None)
        if tests := self._failing_tests:
            for name in [name for name, test in tests.items() if test.command == command or name in command]:
                del tests[name]

    def _find_repeated_check(self, call_id: str, call: dict[str, Any], errors: _ErrorLines, text: str) -> list[DeadEnd]:
        """A dead end, if a check fails in the same way when it is run again without an edit in between."""
        arguments = dict_at(call, "input")
        command, exact = tool_calls.bare_command(arguments), tool_calls.shell_command(arguments)
        past = self._failed_checks.get(command)
        is_same = past is not None and (past.command, past.errors) == (exact, errors)
        calls = (*(past.calls if past is not None and is_same else ()), call_id)[-MAX_EVIDENCE:]
        remember(self._failed_checks, command, _FailedCheck(exact, errors, calls), MAX_TESTS)
        return _repeated_failure(call, calls, text) if is_same else []

    def _find_unfixed_test(self, call_id: str, command: str, errors: _ErrorLines, text: str) -> list[DeadEnd]:
        """A dead end, if a test still fails in the same way after files were changed."""
        edits, self._changed = self._changed, {}
        changed = [path for path, diffs in edits.items() if not all(diff.is_minor for diff in diffs)]
        has_cause = any(not failures.is_bare_failure(line) for line in errors)
        tests = failures.failed_tests(text) or dict.fromkeys(errors[:1], f"`{one_line(command)}`")
        stuck: list[str] = []
        for name in tests:
            past = self._failing_tests.get(name)
            calls = [*past.calls, call_id][-MAX_EVIDENCE:] if past else [call_id]
            if past is not None and changed and has_cause and past.errors == errors:
                stuck.append(name)
            remember(self._failing_tests, name, _FailingTest(errors, command, calls), MAX_TESTS)
        if not stuck:
            return []
        files = join_names([path.rpartition("/")[2] for path in changed])
        others = f" and {len(stuck) - 1} more" if len(stuck) > 1 else ""
        text = _with_error(f"{tests[stuck[0]]}{others} still red in the same way after changing {files}", text)
        return [DeadEnd("still red", stuck[0], text, tuple(self._failing_tests[stuck[0]].calls))]


def _ending(text: str) -> _ErrorLines:
    """The end of an output. If no line names an error, two failures are compared by the ends of their outputs."""
    return (failures.normalize(text[-_ENDING_CHARS:]),)


def _repeated_failure(call: dict[str, Any], calls: tuple[str, ...], text: str) -> list[DeadEnd]:
    subject = _describe(call)
    text = _with_error(f"{subject} failed {len(calls)} times in the same way", text)
    return [DeadEnd("failed again", subject, text, calls)]


def _with_error(description: str, output: str) -> str:
    """The description, followed by the main error line of the output."""
    line = failures.main_error_line(output)
    return shorten(f"{description}: {line}" if line else description)


def _call_key(call: dict[str, Any]) -> str:
    """A key that is the same for equal calls.

    The key consists of the tool and its arguments, without description and timeout.
    """
    command = tool_calls.bare_command(dict_at(call, "input"))
    if command:
        return f"{call.get('name')} {command}"
    arguments = {key: value for key, value in dict_at(call, "input").items() if key not in ("description", "timeout")}
    try:
        return f"{call.get('name')} {json.dumps(arguments, sort_keys=True)}"
    except (ValueError, RecursionError):
        return text_at(call, "id")


def _tool(call: dict[str, Any]) -> str:
    """Name of the tool; for a shell call, the program that it starts."""
    command = tool_calls.bare_command(dict_at(call, "input"))
    return " ".join(command.split()[:1]) if command else text_at(call, "name")


def _describe(call: dict[str, Any]) -> str:
    arguments = dict_at(call, "input")
    texts = (value for value in arguments.values() if isinstance(value, str))
    detail = tool_calls.bare_command(arguments) or next(texts, "")
    return one_line(f"{call.get('name')} `{detail}`" if detail else str(call.get("name")))
