"""Extracts facts from messages by rules. A digest must not lose facts. Each fact names the messages it comes from.

| kind | what it is | found by |
|---|---|---|
| `read`, `modified` | a file | tool calls |
| `passed`, `failed`, `interrupted`, `command` | a command, by its outcome | results; `call_outcomes.py` |
| `produced` | a commit, a branch, an address | results; `_PRODUCTS` |
| `error` | an error of a call that has no file and no command | results |
| `done`, `open` | tasks and their state | calls that keep a task list |
| `background` | background work that goes on | results; `background_id` |

The words of the user and the agent are in `Facts.turns`, names with values in `Facts.settings`. To add a kind, extract
it in `_FactExtractor` and show it in `status.py`. `audit.py` lists the kinds that a digest should show. Every message
is read once, because a session passes the facts that it already has to the next extraction.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import log
from typing import NamedTuple

from foldline.call_outcomes import REFUSED, CallOutcome, call_outcome, output_of
from foldline.digest.extract.file_contents import FileContents, FilesInWork, change_of
from foldline.digest.extract.identifiers import IdentifiedLine, Identifier, IdentifierIndex, Origin
from foldline.digest.markup import MARKED_DONE, is_local_digest, read_entries
from foldline.digest.turns import MAX_AGENT_CHARS, TurnLog, TurnRecord, Words
from foldline.human_input import (
    QUESTION_TOOLS,
    human_words,
    is_client_digest,
    is_command,
    refusal_comment,
    user_answer,
)
from foldline.message import Message, Opaque, Text, ToolCall, ToolResult
from foldline.placeholders import condensed_count, last_condensed
from foldline.redact.redact import clean_arguments, clean_text
from foldline.tool_calls import (
    FINISHED,
    InterpretedCall,
    arguments_of,
    interpret_call,
    is_check,
    only_reads,
    strip_command,
)
from foldline.wire.provider_tools import with_readable_parts
from foldline.wire.repair.context import native_summary

_MAX_PER_KIND, _MAX_PLACES = 120, 80
"""Maximum number of facts per kind, and the number of calls that are kept.

The oldest facts are dropped. If there are more than 1.5 times `_MAX_PLACES` calls, the least useful calls are dropped.
"""
NEWEST_READ = 2_000
"""The number of newest messages that are read in full.

In older messages, most texts and results, and calls that only read something, are not searched for identifiers, because
a digest would not show identifiers that are so old.
"""
_MAX_INDEXES, _MAX_CHANGES, _MAX_PRODUCTS = 4, 8, 3
"""Maximum numbers: of messages that a fact names, of changes of a fact, and of products of a command."""
_CLEANED_TEXTS = 64
"""Number of texts whose redacted form is cached. If a message has several calls, its text is used once per call."""
_CALL_CHARS, _LONG_CHARS, _WORDS_CHARS, _REFUSED_CHARS = 260, 400, 300, 80
"""Maximum lengths in characters.

A call is listed only if its text (name and arguments) has at most `_CALL_CHARS` characters, and each argument at most
`_LONG_CHARS`. The text of an open call is cut to `_WORDS_CHARS`, the text of a refused call to `_REFUSED_CHARS`.
"""


class Fact(NamedTuple):
    """A statement or an action, in the words of the transcript."""

    kind: str
    text: str
    indexes: tuple[int, ...]
    """Indexes of the messages that the fact comes from, ascending."""
    note: str = ""
    """A status, an error line, the purpose of a call, or the id of work that is still open."""
    times: int = 1
    changes: tuple[str, ...] = ()
    """For a changed file, the names that were defined in it, or the lines that were written."""


class PendingCall(NamedTuple):
    """A call whose result has not been read yet."""

    message_index: int
    call: InterpretedCall = InterpretedCall()
    added: tuple[IdentifiedLine, ...] = ()
    """The lines that the call writes."""
    words: str = ""
    """The name and the arguments of the call, without secrets and shortened."""
    unread: tuple[Message, ToolCall] | None = None
    """For an old call whose facts have not been extracted yet: its message and the call itself. Otherwise None."""


class MadeCall(NamedTuple):
    """The newest call on a target. A target is a file or folder that is read or searched, or a command that is run."""

    text: str
    message_index: int
    times: int = 1
    is_folder: bool = False
    """Whether the target is a folder. Other sections of a digest do not show the full path of a folder."""

    def weight(self, end: int) -> float:
        """A score for the probability that the target is needed again in message `end` or later."""
        return (0.8 if self.is_folder else 0.0) + log(1 + self.times) - 0.45 * log(max(1, end - self.message_index))


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything extracted from the messages with indexes from `first` to `end - 1`."""

    first: int = 0
    end: int = 0
    facts: dict[str, Fact] = field(default_factory=dict)
    """The facts, in the order in which they were last updated. A later fact replaces the one with the same key."""
    identifiers: dict[str, Identifier] = field(default_factory=dict)
    forgotten: set[int] = field(default_factory=set)
    """Checksums of identifiers that occurred but were dropped from `identifiers`."""
    files: dict[str, FileContents] = field(default_factory=dict)
    """The files that were read or edited, by path. The file that was used last comes last."""
    settings: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    """By source (file, command or call) and name: the line that gives the name a value, and its message index."""
    pending: dict[str, PendingCall] = field(default_factory=dict)
    """Calls without a result, by call id."""
    turns: list[TurnRecord] = field(default_factory=list)
    calls: dict[str, MadeCall] = field(default_factory=dict)
    """The newest call on each target (file, folder or command), by target."""
    marks: dict[str, int] = field(default_factory=dict)
    """`commit`: index of the newest call that may have committed. `check`: index of the newest call that tested, built
    or linted. `tasks`: number of tasks that were created without a number. `condensed`: number of messages that earlier
    digests in the messages replace. The marks for dropped turns are in `turns.py`.
    """
    earlier_digest: Words | None = None
    """The newest digest in the messages that was written by a model or by the client."""
    is_complete: bool = True
    """Whether the identifiers of all messages were read. In a long session, those of old messages are not."""

    @property
    def user_words(self) -> list[Words]:
        """The user's words: prompts, refusals and answers."""
        return [words for turn in self.turns for words in turn.user_words]

    @property
    def user_text(self) -> str:
        """The user's words as one text."""
        return "\n".join([words.text for words in self.user_words])

    def open_work(self, kept_indexes: Collection[int] = ()) -> list[Fact]:
        """Calls without a result and background work without a report, newest first."""
        found = [
            Fact("waiting", f"{call.words} ({name}){_NO_RESULT}", (call.message_index,), name)
            for name, call in self.pending.items()
            if name and call.words
        ]
        found += [fact for fact in self.facts.values() if fact.kind == "background"]
        found = [fact for fact in found if fact.indexes[-1] not in kept_indexes]
        return sorted(found, key=lambda fact: -fact.indexes[-1])

    def by_kind(self, kept_indexes: Collection[int]) -> dict[str, list[Fact]]:
        """The facts by kind, without those that occur only in messages in `kept_indexes`."""
        found: dict[str, list[Fact]] = {}
        for fact in self.facts.values():
            if not all(index in kept_indexes for index in fact.indexes):
                found.setdefault(fact.kind, []).append(fact)
        return found


_COLLECTIONS = ("facts", "identifiers", "forgotten", "files", "settings", "pending", "turns", "calls", "marks")


def extract_facts(messages: Sequence[Message], first: int, prior: Facts | None = None) -> Facts:
    """The facts in `prior` and the facts of `messages`. `first` is the index of the first message."""
    end = first + len(messages)
    extractor = _FactExtractor(prior or Facts(first=first), end)
    for index, message in enumerate(messages, start=first):
        extractor.read(index, message)
    for pending in [pending for pending in extractor.pending.values() if pending.unread is not None]:
        extractor.read_late(pending)
    for place, turn in enumerate(extractor.turns.turns if extractor.newest > first else ()):
        if turn.message_index < extractor.newest:
            extractor.turns.turns[place] = turn.redacted(extractor.clean)
    complete = extractor.new.is_complete and extractor.newest <= first
    return replace(extractor.new, end=end, earlier_digest=extractor.earlier_digest, is_complete=complete)


class _FactExtractor:
    def __init__(self, prior: Facts, end: int) -> None:
        self.newest = end - NEWEST_READ
        self.new = new = replace(prior, **{name: copy(getattr(prior, name)) for name in _COLLECTIONS})
        self.clean = lru_cache(_CLEANED_TEXTS)(clean_text)
        self.found, self.pending, self.calls, self.marks = new.facts, new.pending, new.calls, new.marks
        self.identifiers = IdentifierIndex(new.identifiers, new.forgotten)
        self.files, self.turns = FilesInWork(new.files, new.settings), TurnLog(new.turns, new.marks)
        self.earlier_digest = prior.earlier_digest
        self.counts = Counter(fact.kind for fact in self.found.values())

    def read(self, index: int, message: Message) -> None:
        """Extract the facts of one message. Hidden messages, system messages, reasoning and media contain no facts."""
        if message.meta.hidden or message.role == "system":
            return
        for part in with_readable_parts(message).parts:
            if isinstance(part, Text):
                if index >= self.newest or not self._keep_old_text(index, message, part.text):
                    self._read_text(index, message, self.clean(part.text))
            elif isinstance(part, ToolCall):
                if index >= self.newest or not only_reads(part) or part.name.startswith(QUESTION_TOOLS):
                    self._read_call(index, message, part)
                else:
                    self.pending[part.id] = PendingCall(index, unread=(message, part))
            elif isinstance(part, ToolResult):
                self._read_result(index, part)
            elif isinstance(part, Opaque) and (summary := native_summary(part)):
                self._read_earlier_digest(index, self.clean(summary))
        self.identifiers.finish_message(index)
        while len(self.pending) > _MAX_PER_KIND:
            del self.pending[next(iter(self.pending))]

    def _keep_old_text(self, index: int, message: Message, text: str) -> bool:
        """Add a text of an old message to its turn, without redaction. Returns False if the text must be read in full.

        Turns are redacted at the end of the extraction, because most old turns are dropped before then. A long text
        must be read in full, because it is shortened when it is added to a turn, and redaction needs the whole text.
        """
        if len(text) > MAX_AGENT_CHARS or message.kind:
            return False
        if message.is_prompt:
            if self.counts["background"] or (words := human_words(text)) != text.strip():
                return False
            if words:
                self.turns.start(index, words)
        elif message.role == "assistant" and text.strip():
            self.turns.add(Words(index, text, "agent"))
        return True

    def _read_text(self, index: int, message: Message, text: str) -> None:
        origin = Origin.RESULT
        is_client = message.is_prompt and is_client_digest(text)
        is_digest = is_client or message.kind in {"digest", "branch_digest"}
        is_local = is_digest and is_local_digest(text)
        if is_client and is_local and self.new.first < last_condensed(text) <= index:
            return  # foldline wrote it for the client, and the messages that it replaces have been read
        if is_local:
            self._read_local_digest(index, text)
        elif is_digest:
            self._read_earlier_digest(index, text)
        elif message.is_prompt:
            origin = Origin.USER
            self._read_report("", text)
            if request := human_words(text):
                self.turns.start(index, request, is_command=is_command(text))
        elif message.role == "assistant":
            origin = Origin.MODEL
            if text.strip():
                self.turns.add(Words(index, text, "agent"))
        self.identifiers.read(index, text, origin)

    def _read_local_digest(self, index: int, text: str) -> None:
        """Add the entries of an earlier local digest as facts.

        A digest without handles was written for a plain list of messages (see `DigestRequest.plain_list`). The messages
        that it replaces are not in the record, so their number is added to the mark `condensed`.
        """
        if not last_condensed(text):
            self.marks["condensed"] = self.marks.get("condensed", 0) + max(0, condensed_count(text) - 1)
        for section, speaker, words, indexes in read_entries(text, index):
            if speaker == "user":
                self.turns.start(indexes[0], words, is_separate=True)
            elif speaker:
                self.turns.add(Words(indexes[0], words, speaker))
            elif open_call := _OPEN_CALL.fullmatch(words):
                self.pending[open_call[2]] = PendingCall(indexes[-1], words=open_call[1])
            elif running := _RUNNING.fullmatch(words):
                self._put(f"background {running[1]}", Fact("background", words, indexes, running[1]))
            elif section == "Plan":
                status, _, task = words.partition(": ") if ": " in words else ("open", "", words)
                kind = "done" if status == MARKED_DONE else "open"
                self._put(f"{kind} {task.lower()}", Fact(kind, task, indexes, "" if status == kind else status))
            elif section == "Files changed" and (file := _CHANGED_FILE.fullmatch(words)):
                path, times, about = file.groups()
                self._put(f"modified {path}", Fact("modified", path, indexes, about or "", int(times or 1)))
            elif section == "Carryover":
                source, _, settings = words.partition(": ")
                self.files.record_settings(source, indexes[-1], (), [(line, ()) for line in settings.split(" · ")])

    def _read_earlier_digest(self, index: int, text: str) -> None:
        """Keep a digest of a model, the client or a provider. The record may lack the messages that it covers."""
        self.earlier_digest = Words(index, text)
        self.identifiers.read(index, text, Origin.MODEL)

    def _read_report(self, call: str, text: str) -> None:
        """Drop background work that the text reports as ended. If the text is a result, `call` is the call as text."""
        if not self.counts["background"]:
            return
        text = f"{call}\n{text}"
        if _ENDED.search(text) and not _GOES_ON.search(text):
            for key in [key for key in self.found if key.startswith("background ")]:
                if key.removeprefix("background ") in text:
                    self._drop(key)

    def _read_call(self, index: int, message: Message, call: ToolCall) -> None:
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
        """The `PendingCall` of a call that has been read. An old call is read now, if it has not been read yet."""
        if pending.unread is None:
            return pending
        message, call = pending.unread
        self._read_call(pending.message_index, message, call)
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
                self._drop(key)
        for number, text, status in interpreted.tasks:
            if not number:
                self.marks["tasks"] = self.marks.get("tasks", 0) + 1
            key = f"task {number or self.marks['tasks']}"
            old = self.found.get(key, Fact("open", "", ()))
            if text or old.text:
                note = status or old.note
                kind = "done" if note in FINISHED else "open"
                self._put(key, Fact(kind, text or old.text, _merge(old.indexes, (index,)), note))

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

    def _read_result(self, index: int, result: ToolResult) -> None:
        pending = self._answered_call(index, result)
        if pending is None:
            return
        called_at, call, added, words, _ = pending
        indexes = _merge((called_at,), (index,))
        text = self.clean(output_of(result.text))
        self._read_report(words, text)
        if not result.is_error and (started := background_id(text)):
            named = f"{words or 'background work'}: {started}{_NO_REPORT}"
            self._put(f"background {started}", Fact("background", named, (index,), started))
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
            self._put(f"error {outcome.line}", Fact("error", outcome.line, indexes))
        shown = self.identifiers.read(index, text, Origin.RESULT, call.path or call.command)
        if outcome.is_done:
            removed = [line.strip() for line in "\n".join(call.replaced).split("\n")]
            self.files.record_settings(call.path or call.command or words, index, removed, added or shown)
            if call.kind == "read":
                self.files.record_read(call.path, index, shown, part=call.is_partial)
            elif call.kind == "edit":
                self.files.record_edit(call.path, called_at, removed, added)

    def _is_plain(self, result: ToolResult, pending: PendingCall) -> bool:
        """Whether an old result has no facts: no failure, no command, no question, and no background work is open."""
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
            self._drop(f"failed {call.path}")
        self._put(key, Fact(kind, call.path, _merge(old.indexes, indexes), note, old.times + 1, changes))

    def _put_run(self, indexes: tuple[int, ...], call: InterpretedCall, outcome: CallOutcome, text: str) -> None:
        """Store a command that was run. It replaces an earlier run, even one with another filter such as `| tail`."""
        command = call.command
        bare = strip_command(command)
        key = f"command {bare}"
        old = self.found.get(key, Fact("command", command, (), times=0))
        kind = outcome.status or "command"
        mended = old.note if (kind, old.kind) == ("passed", "failed") else ""
        note = f"{outcome.line} (failed before: {mended})" if mended else outcome.line
        self._put(key, Fact(kind, command, indexes, note, old.times + 1))
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
                    self._put(f"produced {named}", Fact("produced", f"{verb} {named}", indexes))

    def _is_other_project(self, folder: str) -> bool:
        """Whether files were changed, but none of them in the project of this folder."""
        changed = [key.split(" ", 1)[1] for key in self.found if key.startswith("modified /")] if folder else []
        roots = [path.split("/")[:_ROOT_PARTS] for path in changed]
        return bool(roots) and folder.split("/")[:_ROOT_PARTS] not in roots

    def _drop_commits(self, count: int) -> None:
        """Forget the newest commits, because a command has undone or replaced them."""
        commits = [key for key, fact in self.found.items() if fact.text.startswith("Committed ")]
        if count:
            for key in commits[-count:]:
                self._drop(key)
            self.marks["commit"] = max([self.found[key].indexes[-1] for key in commits[:-count]], default=0)

    def _put(self, key: str, fact: Fact) -> None:
        """Add a fact at the end. An older fact with the same key is removed."""
        self._drop(key)
        self.found[key] = fact
        self.counts[fact.kind] += 1
        if self.counts[fact.kind] > _MAX_PER_KIND:
            self._drop(next(old for old, it in self.found.items() if it.kind == fact.kind))

    def _drop(self, key: str) -> None:
        if old := self.found.pop(key, None):
            self.counts[old.kind] -= 1


_to_json = json.JSONEncoder(ensure_ascii=False).encode


def _is_short(value: object) -> bool:
    return isinstance(value, int | float) or (isinstance(value, str) and len(value) <= _LONG_CHARS)


def _merge(old: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...]:
    """The indexes of both tuples, each once. Of too many, only the first one and the last few are kept."""
    both = tuple(dict.fromkeys((*old, *new)))
    return both if len(both) <= _MAX_INDEXES else (both[0], *both[1 - _MAX_INDEXES :])


_CHANGED_FILE = re.compile(r"(\S+)(?: ×(\d{1,6}))?(?:: (.+))?")
"""An entry for a changed file: its path, how often it was changed, and what was changed."""

# Work that goes on

_NO_RESULT, _NO_REPORT = ": no result yet", " runs, no report yet"
_OPEN_CALL = re.compile(rf"(.+) \((\S+)\){_NO_RESULT}")
_RUNNING = re.compile(rf".+: (\S+){_NO_REPORT}")
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
"""Absolute paths belong to the same project if this many of their first parts are equal: the empty part before the
first slash, and two names.
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
"""Products of commands. Each row has a string that the command must contain, a string that its output must contain, a
pattern for the product, and the verb that precedes the product in the fact.
"""
