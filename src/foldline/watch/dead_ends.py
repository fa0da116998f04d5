"""Dead ends, noticed by themselves: a call that keeps failing, work that is undone, a test that stays red.

What an agent tried in vain is what a summary loses first, and what it then tries again. Each finding names its kind,
its subject and the calls that show it. Iterating is no dead end, so a finding needs the same failure twice with nothing
learnt in between; and one subject is told once, so that the page is not flooded.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple

from foldline import tool_calls
from foldline.watch import tool_failures as failures
from foldline.watch.agent_events import AgentEvent, RawEvent, dict_at, text_at
from foldline.watch.reverted_edits import DeadEnd, LineDiff, RevertTracker, clean, remember, some
from foldline.watch.scratch import one_line

__all__ = ["DeadEnd", "DeadEndDetector"]

KEPT_CALLS, KEPT_TESTS, KEPT_PROOFS = 400, 100, 5
"""What is remembered, so that memory has a bound."""
MOST = 60
"""How many findings a session gives at most."""
_BROKEN_AFTER = 3
"""How often a tool must fail in the same way with other input each time before it counts as broken."""
_ENDING_CHARS = 300

_ErrorLines = tuple[str, ...]


@dataclass(slots=True)
class _FailingTest:
    """A test that fails."""

    faults: _ErrorLines
    command: str
    calls: list[str]


class _FailingTool(NamedTuple):
    """A tool that fails, so far in one way."""

    fault: _ErrorLines
    calls: tuple[str, ...]
    at_once: frozenset[str]
    """Calls that were under way when the first of them failed: they could not know."""


class _FailedCheck(NamedTuple):
    """A check that failed, as it was run, with nothing edited since."""

    command: str
    faults: _ErrorLines
    calls: tuple[str, ...]


class DeadEndDetector:
    """Watches one session's calls and their results."""

    def __init__(self) -> None:
        self._calls: dict[str, dict[str, Any]] = {}
        self._failed: OrderedDict[str, list[tuple[str, _ErrorLines]]] = OrderedDict()
        self._broken: OrderedDict[str, _FailingTool] = OrderedDict()
        self._checks: OrderedDict[str, _FailedCheck] = OrderedDict()
        self._red: OrderedDict[str, _FailingTest] = OrderedDict()
        self._undone = RevertTracker()
        self._changed: dict[str, list[LineDiff]] = {}
        """Files changed since the last check."""
        self._told: set[tuple[str, str]] = set()

    def feed(self, raw: RawEvent) -> list[DeadEnd]:
        """Take one event; returns the dead ends that it completes."""
        return self.observe(AgentEvent(raw))

    def observe(self, event: AgentEvent) -> list[DeadEnd]:
        """Take one parsed event; returns the dead ends that it completes."""
        if event.is_subagent:
            return []
        if event.calls:
            for call in event.calls:
                self._calls[text_at(call, "id")] = call
            while len(self._calls) > KEPT_CALLS:
                del self._calls[next(iter(self._calls))]
            return []
        found: list[DeadEnd] = []
        for result in event.results:
            found += self._result(result)
        return self._new(found) if found else found

    def end_turn(self) -> list[DeadEnd]:
        """What was undone up to the end of the turn."""
        return self._new(self._undone.flush())

    def _new(self, found: list[DeadEnd]) -> list[DeadEnd]:
        """Those that were not told yet."""
        new: list[DeadEnd] = []
        for one in found:
            key = (one.kind, one.subject)
            if key not in self._told and len(self._told) < MOST:
                self._told.add(key)
                new.append(one)
        return new

    def _result(self, result: dict[str, Any]) -> list[DeadEnd]:
        id = text_at(result, "tool_use_id")  # noqa: A001
        call = self._calls.pop(id, None)
        if call is None:
            return []
        error, given = result.get("is_error") is True, dict_at(call, "input")
        path = next(iter(tool_calls.edited_files(text_at(call, "name"), given)), "")
        if path and not error:
            self._checks.clear()
            self._changed[path] = self._undone.edit(id, path, given)
            if len(self._changed) > KEPT_PROOFS:
                del self._changed[next(iter(self._changed))]
            return []
        found = [] if path else self._undone.flush()
        command = tool_calls.bare_command(dict_at(call, "input"))
        if command and not error:
            found += self._undone.command(id, command)
        if command and tool_calls.is_check(command):
            text = failures.result_text(result)
            if error and not failures.is_call_failure(text):
                return found
            if failures.is_failed_check(text, error=error):
                fault = failures.error_lines(text)
                stuck = self._still_red(id, command, fault, text)
                return found + (stuck or self._red_again(id, call, fault or _ending(text), text))
            self._green(command)
            return found
        if error:
            text = failures.result_text(result)
            return found + (self._failure(id, call, text) if failures.is_call_failure(text, command) else [])
        if self._broken and _tool(call) in self._broken:
            self._failed.pop(_same(call), None)
            self._broken.pop(_tool(call), None)
        return found

    def _failure(self, id: str, call: dict[str, Any], text: str) -> list[DeadEnd]:  # noqa: A002
        """The same call has failed in the same way before, and not worked since."""
        key, fault = _same(call), failures.error_lines(text) or _ending(text)
        before = self._failed.get(key, [])
        earlier = [past for past, past_fault in before if past_fault == fault]
        remember(self._failed, key, [*before, (id, fault)][-KEPT_PROOFS:], KEPT_CALLS)
        return _again(call, (*earlier, id), text) if earlier else self._tool_failure(id, call, fault, text)

    def _tool_failure(self, id: str, call: dict[str, Any], fault: _ErrorLines, text: str) -> list[DeadEnd]:  # noqa: A002
        """One tool fails in one way with other input each time: not the question is wrong, but the tool."""
        tool = _tool(call)
        past = self._broken.get(tool)
        if failures.is_about_input(call, text):
            broken = _FailingTool(fault, (), frozenset())
        elif past is not None and past.calls and past.fault == fault:
            broken = past._replace(calls=(*past.calls, id)[-KEPT_PROOFS:])
        else:
            broken = _FailingTool(fault, (id,), frozenset(self._calls))
        remember(self._broken, tool, broken, KEPT_CALLS)
        if len(broken.calls) < _BROKEN_AFTER or id in broken.at_once:
            return []
        words = f"{tool} failed {len(broken.calls)} times in the same way, whatever it was given"
        return [DeadEnd("failed again", f"{tool} {fault[0]}", _because(words, text), broken.calls)]

    def _green(self, command: str) -> None:
        """A check that is green takes what was red of it with it."""
        self._changed = {}
        self._checks.pop(command, None)
        for name in [name for name, past in self._red.items() if past.command == command or name in command]:
            del self._red[name]

    def _red_again(self, id: str, call: dict[str, Any], fault: _ErrorLines, text: str) -> list[DeadEnd]:  # noqa: A002
        """A check is run once more as it was, with nothing edited in between, and fails in the same way."""
        command, as_run = (
            tool_calls.bare_command(dict_at(call, "input")),
            tool_calls.shell_command(dict_at(call, "input")),
        )
        past = self._checks.get(command)
        same = past is not None and (past.command, past.faults) == (as_run, fault)
        calls = (*(past.calls if past is not None and same else ()), id)[-KEPT_PROOFS:]
        remember(self._checks, command, _FailedCheck(as_run, fault, calls), KEPT_TESTS)
        return _again(call, calls, text) if same else []

    def _still_red(self, id: str, command: str, fault: _ErrorLines, text: str) -> list[DeadEnd]:  # noqa: A002
        """A test that is red in the same way although files were changed to make it green."""
        edits, self._changed = self._changed, {}
        changed = [path for path, changes in edits.items() if not all(change.in_passing for change in changes)]
        tells = any(not failures.is_bare_failure(line) for line in fault)
        reds = failures.failed_tests(text) or dict.fromkeys(fault[:1], f"`{one_line(command)}`")
        stuck: list[str] = []
        for name in reds:
            past = self._red.get(name)
            calls = [*past.calls, id][-KEPT_PROOFS:] if past else [id]
            if past is not None and changed and tells and past.faults == fault:
                stuck.append(name)
            remember(self._red, name, _FailingTest(fault, command, calls), KEPT_TESTS)
        if not stuck:
            return []
        files = some([path.rpartition("/")[2] for path in changed])
        others = f" and {len(stuck) - 1} more" if len(stuck) > 1 else ""
        words = f"{reds[stuck[0]]}{others} still red in the same way after changing {files}"
        return [DeadEnd("still red", stuck[0], _because(words, text), tuple(self._red[stuck[0]].calls))]


def _ending(text: str) -> _ErrorLines:
    """How an output ends: what two failures are compared by where no line names the fault."""
    return (failures.normalize(text[-_ENDING_CHARS:]),)


def _again(call: dict[str, Any], calls: tuple[str, ...], text: str) -> list[DeadEnd]:
    what = _shown(call)
    words = _because(f"{what} failed {len(calls)} times in the same way", text)
    return [DeadEnd("failed again", what, words, calls)]


def _because(words: str, text: str) -> str:
    """What happened, and the line that names the fault."""
    fault = failures.main_error_line(text)
    return clean(f"{words}: {fault}" if fault else words)


def _same(call: dict[str, Any]) -> str:
    """What makes two calls the same: the tool and what it was given, less what only describes it."""
    command = tool_calls.bare_command(dict_at(call, "input"))
    if command:
        return f"{call.get('name')} {command}"
    given = {key: value for key, value in dict_at(call, "input").items() if key not in ("description", "timeout")}
    try:
        return f"{call.get('name')} {json.dumps(given, sort_keys=True)}"
    except (ValueError, RecursionError):
        return text_at(call, "id")


def _tool(call: dict[str, Any]) -> str:
    """The tool of a call; of a shell, the program that it starts."""
    command = tool_calls.bare_command(dict_at(call, "input"))
    return " ".join(command.split()[:1]) if command else text_at(call, "name")


def _shown(call: dict[str, Any]) -> str:
    given = dict_at(call, "input")
    what = tool_calls.bare_command(dict_at(call, "input")) or next(
        (value for value in given.values() if isinstance(value, str)), ""
    )
    return one_line(f"{call.get('name')} `{what}`" if what else str(call.get("name")))
