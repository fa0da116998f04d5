"""Extracts the facts of tool calls and their results: files, commands and their outcomes, tasks, background work."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import islice

from foldline.call_outcomes import REFUSED, CallOutcome, call_outcome, output_of
from foldline.digest.extract.facts import NO_REPORT, Fact, Facts, MadeCall, PendingCall
from foldline.digest.extract.file_contents import change_of, record_edit, record_read
from foldline.digest.extract.identifiers import IdentifierIndex, Origin
from foldline.digest.turns import TurnLog, Words
from foldline.human_input import refusal_comment, user_answer
from foldline.message import Message, ToolCall, ToolResult
from foldline.redact.redact import clean_arguments
from foldline.tool_calls import FINISHED, InterpretedCall, arguments_of, interpret_call, is_check, strip_command

MAX_PER_KIND, _MAX_TARGETS = 120, 80
"""Maximum numbers of facts per kind, and of calls. The oldest are dropped."""
_MAX_INDEXES, _MAX_CHANGES, _MAX_PRODUCTS = 4, 8, 3
"""Maximum numbers: of messages that a fact names, of changes that a fact lists, and of products of one command."""
_CALL_CHARS, _WORDS_CHARS, _REFUSED_CHARS = 260, 300, 80
"""Maximum lengths in characters: of a call that is listed, of an open call, and of a refused call."""
_REMINDER, _REMINDER_END = "<system-reminder>", "</system-reminder>"
_ROOT_PARTS = 3
"""Absolute paths belong to the same project if this many of their first parts are equal.

The first part is the empty text before the first slash, so two names must be equal.
"""
_to_json = json.JSONEncoder(ensure_ascii=False).encode


class CallReader:
    """Adds the facts of calls and results to `facts`, whose collections are changed in place."""

    def __init__(self, facts: Facts, clean: Callable[[str], str]) -> None:
        self.clean = clean
        self.found, self.pending, self.calls, self.marks = facts.facts, facts.pending, facts.calls, facts.marks
        self.identifiers = IdentifierIndex(facts.identifiers, facts.forgotten)
        self.files, self.turns = facts.files, TurnLog(facts.turns, facts.marks)
        self.counts = Counter(fact.kind for fact in self.found.values())

    def read_report(self, call: str, text: str) -> None:
        """Drop background work if `text` reports its end. `call` is the call that returned `text`; "" for a prompt."""
        if not self.counts["background"]:
            return
        text = f"{call}\n{text}"
        if _ENDED.search(text) and not _GOES_ON.search(text):
            for key in [key for key in self.found if key.startswith("background ")]:
                if key.removeprefix("background ") in text:
                    self.drop(key)

    def read_call(self, index: int, message: Message, call: ToolCall) -> None:
        """Add the facts of a tool call in a message."""
        call = replace(call, arguments=clean_arguments(call.arguments))
        interpreted = interpret_call(call, self.clean(message.text))
        self._put_call(index, call, interpreted)
        origin = Origin.WRITE if interpreted.kind == "edit" else Origin.RESULT
        for text in interpreted.values:
            self.identifiers.read(text, Origin.CALL)
        for text in interpreted.replaced:
            self.identifiers.read(text, origin)
        added = [line for text in interpreted.contents for line in self.identifiers.read(text, origin)]
        if interpreted.tasks:
            self._put_tasks(index, interpreted)
        words = " ".join(f"{call.name} {call.arguments[: 10 * _WORDS_CHARS]}".split())
        words = words if len(words) <= _WORDS_CHARS else f"{words[:_WORDS_CHARS]} …"
        self.pending[call.id] = PendingCall(index, interpreted._replace(values=(), contents=()), tuple(added), words)

    def _put_call(self, index: int, call: ToolCall, interpreted: InterpretedCall) -> None:
        """Store a call that reads, searches or runs something. It replaces the earlier call on the same target."""
        if interpreted.kind == "edit" or interpreted.tasks or len(call.arguments) > 4 * _CALL_CHARS:
            return
        arguments = {key: value for key, value in (arguments_of(call) or {}).items() if key != "description"}
        target = interpreted.path or interpreted.command or str(arguments.get("path") or "")
        text = f"{call.name} {_to_json(arguments)}"
        if target and len(text) <= _CALL_CHARS:
            old = self.calls.pop(target, None)
            is_folder = "/" in target and " " not in target and "." not in target.rpartition("/")[2]
            self.calls[target] = MadeCall(text, index, old.times + 1 if old else 1, is_folder)
            if len(self.calls) > _MAX_TARGETS:
                del self.calls[next(iter(self.calls))]

    def _put_tasks(self, index: int, interpreted: InterpretedCall) -> None:
        """Store tasks. A whole list replaces all earlier tasks. A task without a number gets the next number."""
        if interpreted.is_whole_list:
            for key in [key for key in self.found if key.startswith("task ")]:
                self.drop(key)
        for number, text, status in interpreted.tasks:
            if not number:
                self.marks["tasks"] = self.marks.get("tasks", 0) + 1
            key = f"task {number or self.marks['tasks']}"
            old = self.found.get(key, Fact("open", "", ()))
            if text or old.text:
                note = status or old.note
                kind = "done" if note in FINISHED else "open"
                self.put(key, Fact(kind, text or old.text, _merge(old.indexes, (index,)), note))

    def read_result(self, index: int, result: ToolResult) -> None:
        """Add the facts of a result and of the call that it answers."""
        called_at, call, added, words = pending = self.pending.pop(result.call_id, PendingCall(index))
        indexes = _merge((called_at,), (index,))
        text = self.clean(output_of(result.text))
        if call.kind == "read" and text.endswith(_REMINDER_END):  # added by the agent program, not in the file
            text = text[: text.rfind(_REMINDER)]
        self.read_report(words, text)
        if not result.is_error and (started := background_id(text)):
            named = f"{words or 'background work'}: {started}{NO_REPORT}"
            self.put(f"background {started}", Fact("background", named, (index,), started))
        outcome = call_outcome(text, failed=result.is_error, call=call)
        if outcome.status == REFUSED:
            refused = call.path or call.command or words[:_REFUSED_CHARS]
            comment = refusal_comment(text)
            self.turns.add(Words(index, f"{refused}: {comment}" if comment else refused, "refusal"))
        elif answer := user_answer(words, text):
            self.turns.add(Words(index, answer[0], "answer"))
            if answer[1]:
                self.turns.add(Words(index, f"Plan that the user approved: {answer[1]}", "agent"))
        elif call.kind in {"read", "edit"} and call.path:
            self._put_file(indexes, pending, outcome)
        elif call.command:
            self._put_run(indexes, call, outcome, text)
        elif not outcome.is_done and outcome.line:
            self.put(f"error {outcome.line}", Fact("error", outcome.line, indexes))
        shown = self.identifiers.read(text, Origin.RESULT)
        if outcome.is_done and call.kind == "read":
            record_read(self.files, call.path, index, shown, part=call.is_partial)
        elif outcome.is_done and call.kind == "edit":
            record_edit(self.files, call.path, called_at, "\n".join(call.replaced).split("\n"), added)

    def _put_file(self, indexes: tuple[int, ...], pending: PendingCall, outcome: CallOutcome) -> None:
        """Store that a file was read or changed, or that reading or changing it failed."""
        call = pending.call
        kind = outcome.status if not outcome.is_done else "modified" if call.kind == "edit" else "read"
        key = f"{kind if outcome.is_done else 'failed'} {call.path}"
        old = self.found.get(key, Fact(kind, call.path, (), times=0))
        note = call.purpose or old.note if outcome.is_done else outcome.line
        changes = old.changes
        if kind == "modified":
            changes = tuple(dict.fromkeys((*changes, *change_of(pending.added, call.replaced))))[-_MAX_CHANGES:]
        if outcome.is_done:
            self.drop(f"failed {call.path}")
        self.put(key, Fact(kind, call.path, _merge(old.indexes, indexes), note, old.times + 1, changes))

    def _put_run(self, indexes: tuple[int, ...], call: InterpretedCall, outcome: CallOutcome, text: str) -> None:
        """Store a command that was run. It replaces an earlier run, even one with another filter such as `| tail`."""
        command = call.command
        bare = strip_command(command)
        key = f"command {bare}"
        old = self.found.get(key, Fact("command", command, (), times=0))
        kind = outcome.status or "command"
        mended = old.note if (kind, old.kind) == ("passed", "failed") else ""
        note = f"{outcome.line} (failed before: {mended})" if mended else outcome.line
        self.put(key, Fact(kind, command, indexes, note, old.times + 1))
        self.turns.add(Words(indexes[-1], command, outcome.status or "ran", outcome.line, indexes[0]))
        other_folder = call.folder if self._is_other_project(call.folder) else ""
        if is_check(bare) and not other_folder:
            self.marks["check"] = indexes[-1]
        if "git " in command and not other_folder:
            if outcome.is_done:
                self._drop_commits(_undone_commits(command))
            if _MAY_COMMIT.search(command):
                self.marks["commit"] = indexes[-1]
        for word, mark, pattern, verb in _PRODUCTS if outcome.is_done else ():
            if word in command and mark in text:
                for found in islice(pattern.finditer(text), _MAX_PRODUCTS):
                    named = " ".join(filter(None, (*found.groups(), other_folder and f"(in {other_folder})")))
                    self.put(f"produced {named}", Fact("produced", f"{verb} {named}", indexes))

    def _is_other_project(self, folder: str) -> bool:
        """Whether the changed files are all outside the project of this folder. False if no file was changed."""
        changed = [key.split(" ", 1)[1] for key in self.found if key.startswith("modified /")] if folder else []
        roots = [path.split("/")[:_ROOT_PARTS] for path in changed]
        return bool(roots) and folder.split("/")[:_ROOT_PARTS] not in roots

    def _drop_commits(self, count: int) -> None:
        """Forget the newest commits, because a command has undone or replaced them."""
        commits = [key for key, fact in self.found.items() if fact.text.startswith("Committed ")]
        if count:
            for key in commits[-count:]:
                self.drop(key)
            self.marks["commit"] = max([self.found[key].indexes[-1] for key in commits[:-count]], default=0)

    def put(self, key: str, fact: Fact) -> None:
        """Add a fact at the end. An older fact with the same key is removed."""
        self.drop(key)
        self.found[key] = fact
        self.counts[fact.kind] += 1
        if self.counts[fact.kind] > MAX_PER_KIND:
            self.drop(next(old for old, it in self.found.items() if it.kind == fact.kind))

    def drop(self, key: str) -> None:
        """Remove a fact if it exists."""
        if old := self.found.pop(key, None):
            self.counts[old.kind] -= 1


def _merge(old: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...]:
    """The different indexes of both tuples. If there are too many, only the first one and the last few are kept."""
    both = tuple(dict.fromkeys((*old, *new)))
    return both if len(both) <= _MAX_INDEXES else (both[0], *both[1 - _MAX_INDEXES :])


# Background work

_STARTING_WORDS = ("launched", "running", "started", "runs", "moved", "queued", "submitted")
_STARTED = re.compile(
    rf"\b(?:{'|'.join(_STARTING_WORDS)})\b[^\n]{{0,40}}\b(?:background|asynchronously|async)\b"
    r"|\b(?:async|background)[\w -]{0,30}\b(?:launched|started|running|queued|submitted)\b",
    re.IGNORECASE,
)
_WORK_ID = re.compile(
    r"\b(?:agent|task|shell|bash|job|process|run)?[ _]?id[\"'`]?(?: is)?[:= ]{1,3}[\"'`]?([A-Za-z0-9][\w.-]{2,63})",
    re.IGNORECASE,
)
_ENDED = re.compile(
    r"\b(?:completed?|finished|failed|killed|stopped|cancell?ed|exited|done|exit[ _]code)\b", re.IGNORECASE
)
_GOES_ON = re.compile(r"<status>running|\bstill running\b", re.IGNORECASE)
_HEAD_CHARS = 2_000


def background_id(text: str) -> str:
    """The id of background work that a result reports as started; "" if the result reports none.

    >>> background_id("Async agent launched successfully. agentId: a1b2c3")
    'a1b2c3'
    """
    head = text[:_HEAD_CHARS]
    lower = head.lower()  # a search for words is much faster than the pattern
    may_say = ("background" in lower or "async" in lower) and any(word in lower for word in _STARTING_WORDS)
    found = _WORK_ID.search(head) if may_say and _STARTED.search(head) else None
    return found[1].rstrip(".") if found else ""


# Products of commands

_MAY_COMMIT = re.compile(r"\bgit (?:-\S+ )?(?:-C \S+ )?(?:commit|merge|rebase|cherry-pick|revert|am|push)\b")
"""A git command that shows that changes may have been committed."""
_RESET = re.compile(r"\bgit reset\b[^;&|\n]{0,80}\bHEAD(?:~(\d?)|\^)")


def _undone_commits(command: str) -> int:
    """The number of commits that a command takes back or replaces.

    >>> _undone_commits("git reset --hard HEAD~2"), _undone_commits("git commit --amend --no-edit")
    (2, 1)
    """
    if found := _RESET.search(command):
        return int(found[1] or 1)
    return 1 if "git commit" in command and "--amend" in command else 0


_PRODUCTS = (
    ("git ", "[", re.compile(r"^\[[^\]\n]{0,120}\b([0-9a-f]{7,12})\] (.{1,200})", re.MULTILINE), "Committed"),
    ("git push", "->", re.compile(r"^.{0,80}? (\S{1,200} -> \S{1,200})$", re.MULTILINE), "Pushed"),
    ("git ", "Switched", re.compile(r"^Switched to (?:a new )?(branch '[^'\n]{1,200}')", re.MULTILINE), "Switched to"),
    ("gh ", "https:", re.compile(r"(?m)^(https://\S{1,200}/(?:pull|issues|releases)/\S{1,99})$"), "Printed by gh:"),
    ("", "localhost:", re.compile(r"(?i:local|ready|runn|serv|listen).{0,40}(https?://localhost:\d+)"), "Printed:"),
)
"""Products of commands: a string that the command must contain, a string that its output must contain, a pattern for
the product, and the verb that precedes the product in the fact.
"""
