"""Extracts the facts of tool calls and their results: files, commands and their outcomes, tasks, background work."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from foldline.call_outcomes import REFUSED, CallOutcome, call_outcome, output_of
from foldline.digest.extract.facts import NO_REPORT, Fact, Facts, MadeCall, PendingCall
from foldline.digest.extract.file_contents import FilesInWork, change_of
from foldline.digest.extract.identifiers import IdentifierIndex, Origin
from foldline.digest.turns import TurnLog, Words
from foldline.human_input import QUESTION_TOOLS, refusal_comment, user_answer
from foldline.message import Message, ToolCall, ToolResult
from foldline.redact.redact import clean_arguments
from foldline.tool_calls import FINISHED, InterpretedCall, arguments_of, interpret_call, is_check, strip_command

MAX_PER_KIND, _MAX_PLACES = 120, 80
"""Maximum number of facts per kind, and the number of calls that are kept.

The oldest facts are dropped. If there are more than 1.5 times `_MAX_PLACES` calls, the least useful calls are dropped.
"""
_MAX_INDEXES, _MAX_CHANGES, _MAX_PRODUCTS = 4, 8, 3
"""Maximum numbers: of messages that a fact names, of changes that a fact lists, and of products of one command."""
_CALL_CHARS, _LONG_CHARS, _WORDS_CHARS, _REFUSED_CHARS = 260, 400, 300, 80
"""Maximum lengths in characters.

A call is listed only if its text (name and arguments) has at most `_CALL_CHARS` characters, and each argument at most
`_LONG_CHARS`. The text of an open call is cut to `_WORDS_CHARS`, the text of a refused call to `_REFUSED_CHARS`.
"""


class CallReader:
    """Adds the facts of calls and results to `facts`, whose collections are changed in place.

    Results before the message index `newest` are not read if they are plain (see `_is_plain`).
    """

    def __init__(self, facts: Facts, newest: int, clean: Callable[[str], str]) -> None:
        self.newest, self.clean = newest, clean
        self.found, self.pending, self.calls, self.marks = facts.facts, facts.pending, facts.calls, facts.marks
        self.identifiers = IdentifierIndex(facts.identifiers, facts.forgotten)
        self.files, self.turns = FilesInWork(facts.files, facts.settings), TurnLog(facts.turns, facts.marks)
        self.counts = Counter(fact.kind for fact in self.found.values())

    def read_report(self, call: str, text: str) -> None:
        """Drop background work that has ended according to the text. `call` is the call as text; "" for a prompt."""
        if not self.counts["background"]:
            return
        text = f"{call}\n{text}"
        if _ENDED.search(text) and not _GOES_ON.search(text):
            for key in [key for key in self.found if key.startswith("background ")]:
                if key.removeprefix("background ") in text:
                    self.drop(key)

    def read_call(self, index: int, message: Message, call: ToolCall) -> None:
        """Add the facts of a tool call in a message."""
        arguments = clean_arguments(call.arguments)
        call = call if arguments == call.arguments else replace(call, arguments=arguments)
        interpreted = interpret_call(call, self.clean(message.text))
        path = interpreted.path
        self._put_call(index, call, interpreted)
        for text in interpreted.values:
            self.identifiers.read(index, text, Origin.CALL, path)
        origin = Origin.WRITE if interpreted.kind == "edit" else Origin.RESULT
        for text in interpreted.replaced:
            self.identifiers.read(index, text, origin, path)
        written = [self.identifiers.read(index, text, origin, path) for text in interpreted.contents]
        added = [line for lines in written for line in lines] if origin == Origin.WRITE else []
        if interpreted.tasks:
            self._put_tasks(index, interpreted)
        words = " ".join(f"{call.name} {arguments[: 10 * _LONG_CHARS]}".split())
        words = words if len(words) <= _WORDS_CHARS else f"{words[:_WORDS_CHARS]} …"
        self.pending[call.id] = PendingCall(index, interpreted._replace(values=(), contents=()), tuple(added), words)

    def read_late(self, pending: PendingCall) -> PendingCall:
        """Extract the facts of a pending call, unless they are extracted already. Returns the updated pending call."""
        if pending.unread is None:
            return pending
        message, call = pending.unread
        self.read_call(pending.message_index, message, call)
        return self.pending[call.id]

    def _put_call(self, index: int, call: ToolCall, interpreted: InterpretedCall) -> None:
        """Store a call that reads, searches or runs something. It replaces the earlier call on the same target."""
        if interpreted.kind == "edit" or interpreted.tasks:
            return
        arguments = {key: value for key, value in (arguments_of(call) or {}).items() if key != "description"}
        place = interpreted.path or interpreted.command or str(arguments.get("path") or "")
        if not place or not all(map(_is_short, arguments.values())):
            return
        old = self.calls.pop(place, None)
        text = f"{call.name} {_to_json(arguments)}"
        if len(text) <= _CALL_CHARS:
            is_folder = "/" in place and " " not in place and "." not in place.rpartition("/")[2]
            self.calls[place] = MadeCall(text, index, old.times + 1 if old else 1, is_folder)
        if len(self.calls) > _MAX_PLACES * 3 // 2:
            for key in sorted(self.calls, key=lambda key: (-self.calls[key].weight(index + 1), key))[_MAX_PLACES:]:
                del self.calls[key]

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

    def _answered_call(self, index: int, result: ToolResult) -> PendingCall | None:
        """The call that a result answers; None if the text of the result need not be read (see `_is_plain`)."""
        pending = self.pending.get(result.call_id, PendingCall(index))
        is_plain = index < self.newest and self._is_plain(result, pending)
        if not is_plain:
            pending = self.read_late(pending)
        self.pending.pop(result.call_id, None)
        if is_plain and pending.call.path and pending.call.kind in {"read", "edit"}:
            self._put_file(_merge((pending.message_index,), (index,)), pending, CallOutcome())
        return None if is_plain else pending

    def read_result(self, index: int, result: ToolResult) -> None:
        """Add the facts of a result and of the call that it answers."""
        pending = self._answered_call(index, result)
        if pending is None:
            return
        called_at, call, added, words, _ = pending
        indexes = _merge((called_at,), (index,))
        text = self.clean(output_of(result.text))
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
        shown = self.identifiers.read(index, text, Origin.RESULT, call.path or call.command)
        if outcome.is_done:
            removed = [line.strip() for line in "\n".join(call.replaced).split("\n")]
            self.files.record_settings(call.path or call.command or words, index, removed, added or shown)
            if call.kind == "read":
                self.files.record_read(call.path, index, shown, part=call.is_partial)
            elif call.kind == "edit":
                self.files.record_edit(call.path, called_at, removed, added)

    def _is_plain(self, result: ToolResult, pending: PendingCall) -> bool:
        """Whether an old result has no facts.

        Such a result reports no failure, and answers neither a command nor a question to the user. A result is never
        plain while background work runs.
        """
        call, text = pending.call, output_of(result.text)
        if call.command or pending.words.startswith(QUESTION_TOOLS) or self.counts["background"] or background_id(text):
            return False
        return call_outcome(text, failed=result.is_error, call=call).is_done

    def _put_file(self, indexes: tuple[int, ...], pending: PendingCall, outcome: CallOutcome) -> None:
        """Store that a file was read or changed, or that reading or changing it failed."""
        call = pending.call
        kind = outcome.status if not outcome.is_done else "modified" if call.kind == "edit" else "read"
        key = f"{kind if outcome.is_done else 'failed'} {call.path}"
        old = self.found.get(key, Fact(kind, call.path, (), times=0))
        note = call.purpose or old.note if outcome.is_done else outcome.line
        changes = old.changes
        if kind == "modified":
            self.turns.add_change(indexes[-1], call.path)
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
                for found in list(pattern.finditer(text))[:_MAX_PRODUCTS]:
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


_to_json = json.JSONEncoder(ensure_ascii=False).encode


def _is_short(value: object) -> bool:
    return isinstance(value, int | float) or (isinstance(value, str) and len(value) <= _LONG_CHARS)


def _merge(old: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...]:
    """The indexes of both tuples, without duplicates.

    If there are too many, only the first one and the last few are kept.
    """
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
_ROOT_PARTS = 3
"""Absolute paths belong to the same project if this many of their first parts are equal.

The first part is the empty text before the first slash, so two names must be equal.
"""
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
    (
        "",
        "localhost:",
        re.compile(r"(?i:listening|running|serving|ready|local)\b.{0,40}(https?://localhost:\d+)"),
        "Printed by a command:",
    ),
)
"""Products of commands. Each row begins with a string that the command must contain, and a string that its output must
contain. Then come a pattern for the product, and the verb that precedes the product in the fact.
"""
