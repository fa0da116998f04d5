"""Extracts facts from messages by rules. Facts are what a digest must not lose; each one names its messages.

| kind | what it is | found by |
|---|---|---|
| `decision`, `open` | a reason, an open task | replies; `_DECISION`, `_OPEN` |
| `read`, `modified` | a file | tool calls |
| `passed`, `failed`, `interrupted`, `command` | a command, by its outcome | results; `call_outcomes.py` |
| `produced`, `error` | a commit, a branch, an address; an error of another call | results; `_PRODUCTS` |
| `done`, `open` | tasks and their state | calls that keep a task list |
| `background` | background work that goes on | results; `calls.py` |

What was said is in `Facts.turns`. To add a kind, extract it in `_FactExtractor` and show it in `status.py`; `audit.py`
lists the kinds that a digest should show. Every message is read once: a session passes its facts so far to the next
extraction.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from foldline.call_outcomes import REFUSED, UNKNOWN, CallOutcome, call_outcome
from foldline.digest.extract.calls import (
    NO_REPORT,
    NO_RESULT,
    OPEN_CALL,
    RUNNING,
    CallLog,
    MadeCall,
    background_id,
    call_words,
    reports_end,
)
from foldline.digest.extract.file_contents import FileContents, FilesInWork, change_of
from foldline.digest.extract.identifiers import IdentifiedLine, Identifier, IdentifierIndex, Origin
from foldline.digest.extract.turns import Run, TurnLog, TurnRecord, Words
from foldline.digest.markup import is_local_digest, read_entries, read_turns
from foldline.human_input import human_words, is_client_digest, is_command, refusal_comment, user_answer
from foldline.message import Message, Opaque, Text, ToolCall, ToolResult
from foldline.redact.redact import clean_text
from foldline.tool_calls import FINISHED, InterpretedCall, arguments_of, interpret_call, is_check, strip_command
from foldline.wire.repair.context import native_summary

_MAX_PER_KIND = 120
"""Maximum number of facts kept per kind; beyond it the oldest are dropped."""
_CLEANED_TEXTS = 1024
"""Number of texts whose redacted form is cached, so that the same text is not searched for secrets again."""
_MAX_INDEXES, _MAX_CHANGES = 4, 8
"""For each fact, the maximum number of messages that it names (the first and the newest ones), and of its changes."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything extracted from the messages with indexes from `first` to `end - 1`."""

    first: int = 0
    end: int = 0
    facts: Mapping[str, Fact] = field(default_factory=dict)
    """The facts, in the order in which they were last updated. A later fact with the same key replaces the earlier
    one.
    """
    identifiers: Mapping[str, Identifier] = field(default_factory=dict)
    forgotten: frozenset[int] = frozenset()
    """Checksums of identifiers that occurred but were dropped from `identifiers`."""
    files: Mapping[str, FileContents] = field(default_factory=dict)
    """The files that were read or edited, by path. The file that was used last comes last."""
    pending: Mapping[str, PendingCall] = field(default_factory=dict)
    """Calls without a result, by call id."""
    task_count: int = 0
    """Number of tasks that were created without a number. Later calls refer to these tasks by their order."""
    turns: tuple[TurnRecord, ...] = ()
    calls: Mapping[str, MadeCall] = field(default_factory=dict)
    """The newest calls that read, searched or ran something, by place."""
    earlier_digest: Words | None = None
    """The newest digest in the messages that was written by a model or by the client."""
    last_commit: int = -1
    """Index of the newest call that may have made a commit; -1 if there is none."""
    last_check: int = -1
    """Index of the newest call that tested, built or linted; -1 if there is none."""

    @property
    def user_words(self) -> list[Words]:
        """The user's words: prompts, refusals and answers."""
        return [
            words
            for turn in self.turns
            for words in (Words(turn.message_index, turn.prompt), *turn.inputs)
            if words.text and words.kind != "command"
        ]

    @property
    def user_text(self) -> str:
        """The user's words as one text."""
        return "\n".join([words.text for words in self.user_words])

    def open_work(self, kept_indexes: Collection[int] = ()) -> list[Fact]:
        """Calls without a result and background work without a report, newest first."""
        found = [
            Fact("waiting", f"{call.words} ({name}){NO_RESULT}", (call.message_index,), name)
            for name, call in self.pending.items()
            if name and call.words
        ]
        found += [fact for fact in self.facts.values() if fact.kind == "background"]
        return sorted(
            (fact for fact in found if fact.indexes[-1] not in kept_indexes), key=lambda fact: -fact.indexes[-1]
        )

    def by_kind(self, kept_indexes: Collection[int]) -> dict[str, list[Fact]]:
        """The facts by kind, without those that occur only in messages in `kept_indexes`."""
        found: dict[str, list[Fact]] = {}
        for fact in self.facts.values():
            if not all(index in kept_indexes for index in fact.indexes):
                found.setdefault(fact.kind, []).append(fact)
        return found


def extract_facts(messages: Sequence[Message], first: int, prior: Facts | None = None) -> Facts:
    """The facts in `prior` and those of `messages`. The first of these messages has the index `first`."""
    extractor = _FactExtractor(prior or Facts(first=first))
    for index, message in enumerate(messages, start=first):
        extractor.read(index, message)
    return extractor.facts(first + len(messages))


class _FactExtractor:
    def __init__(self, prior: Facts) -> None:
        self.prior = prior
        self.clean = lru_cache(_CLEANED_TEXTS)(clean_text)  # an argument is a value, and also a path or a command
        self.found = dict(prior.facts)
        self.identifiers = IdentifierIndex(prior.identifiers, prior.forgotten)
        self.files = FilesInWork(prior.files)
        self.pending = dict(prior.pending)
        self.task_count = prior.task_count
        self.turns, self.calls = TurnLog(prior.turns), CallLog(prior.calls, self.clean)
        self.earlier_digest = prior.earlier_digest
        self.last_commit, self.last_check = prior.last_commit, prior.last_check
        self.counts = Counter(fact.kind for fact in self.found.values())

    def facts(self, end: int) -> Facts:
        """The facts of all messages before `end`."""
        return Facts(
            first=self.prior.first,
            end=end,
            facts=self.found,
            identifiers=self.identifiers.identifiers,
            forgotten=self.identifiers.forgotten,
            files=self.files.files,
            pending=self.pending,
            task_count=self.task_count,
            turns=tuple(self.turns.turns),
            calls=self.calls.calls,
            earlier_digest=self.earlier_digest,
            last_commit=self.last_commit,
            last_check=self.last_check,
        )

    def read(self, index: int, message: Message) -> None:
        """Extract the facts of one message. Hidden and system messages, reasoning and media have none."""
        if message.meta.hidden or message.role == "system":
            return
        for part in message.parts:
            if isinstance(part, Text):
                self._read_text(index, message, self.clean(part.text))
            elif isinstance(part, ToolCall):
                self._read_call(index, message, part)
            elif isinstance(part, ToolResult):
                self._read_result(index, part)
            elif isinstance(part, Opaque) and (summary := native_summary(part)):
                self._read_earlier_digest(index, self.clean(summary))
        self.identifiers.finish_message(index)
        while len(self.pending) > _MAX_PER_KIND:
            del self.pending[next(iter(self.pending))]

    def _read_text(self, index: int, message: Message, text: str) -> None:
        origin = Origin.RESULT
        if message.kind in {"digest", "branch_digest"} and is_local_digest(text):
            self._read_local_digest(index, text)
        elif message.kind in {"digest", "branch_digest"} or (message.is_prompt and is_client_digest(text)):
            self._read_earlier_digest(index, text)
        elif message.is_prompt:
            origin = Origin.USER
            self._read_report(text)
            if request := human_words(text):
                self.turns.start(index, request, is_command=is_command(text))
        elif message.role == "assistant":
            origin = Origin.MODEL
            self._read_reply(index, text)
        self.identifiers.read(index, text, origin)

    def _read_local_digest(self, index: int, text: str) -> None:
        """Add what a local digest says as facts."""
        for kind, words, indexes in read_entries(text, index):
            if open_call := OPEN_CALL.fullmatch(words):
                self.pending[open_call[2]] = PendingCall(indexes[-1], words=open_call[1])
            elif running := RUNNING.fullmatch(words):
                self._put(f"background {running[1]}", Fact("background", words, indexes, running[1]))
            elif kind:
                self._put(f"{kind} {words.lower()}", Fact(kind, words, indexes))
        for place, speaker, words in read_turns(text, index):
            if speaker == "user":
                self.turns.start(place, words)
            elif speaker == "agent":
                self.turns.add_reply(place, words)
            else:
                self.turns.add_input(place, speaker, words)

    def _read_earlier_digest(self, index: int, text: str) -> None:
        """Keep a digest of a model, the client or a provider. The record may lack the messages that it covers."""
        self.earlier_digest = Words(index, text)
        self.identifiers.read(index, text, Origin.MODEL)

    def _read_report(self, text: str) -> None:
        """Drop the background work whose end the text reports."""
        started = [key for key in self.found if key.startswith("background ")]
        if started and reports_end(text):
            for key in started:
                if key.removeprefix("background ") in text:
                    self._drop(key)

    def _read_reply(self, index: int, text: str) -> None:
        for sentence in _sentences(text, _DECISION):
            if not sentence.endswith((":", "?")) and sentence.count(" ") >= _REASON_SPACES:
                self._put(f"decision {sentence.lower()}", Fact("decision", sentence, (index,)))
        if text.strip():
            self._drop("open reply")
            self.turns.add_reply(index, text)
        for sentence in list(_sentences(text, _OPEN))[-1:]:
            self._put("open reply", Fact("open", sentence, (index,)))

    def _read_call(self, index: int, message: Message, call: ToolCall) -> None:
        interpreted = interpret_call(call, message.text)
        self.calls.add(index, call.name, arguments_of(call) or {}, interpreted)
        for text in interpreted.values:
            self.identifiers.read(index, self.clean(text), Origin.CALL, source=interpreted.path, is_call=True)
        added: list[IdentifiedLine] | None = [] if interpreted.kind == "edit" else None
        origin = Origin.RESULT if added is None else Origin.WRITE
        old = tuple(map(self.clean, interpreted.replaced))
        for text in old:
            self.identifiers.read(index, text, origin, source=interpreted.path)
        for text in interpreted.contents:
            self.identifiers.read(index, self.clean(text), origin, source=interpreted.path, lines=added)
        interpreted = interpreted._replace(
            path=self.clean(interpreted.path),
            command=self.clean(interpreted.command),
            purpose=self.clean(interpreted.purpose),
            values=(),
            contents=(),
            replaced=old,
        )
        if interpreted.tasks:
            self._put_tasks(index, interpreted)
        self.pending[call.id] = PendingCall(index, interpreted, tuple(added or ()), call_words(call, self.clean))

    def _put_tasks(self, index: int, interpreted: InterpretedCall) -> None:
        """Store tasks and their status.

        A whole list replaces all earlier tasks. A task without a number gets the next one.
        """
        if interpreted.is_whole_list:
            for key in [key for key in self.found if key.startswith("task ")]:
                self._drop(key)
        for number, text, status in interpreted.tasks:
            self.task_count += not number
            key = f"task {number or self.task_count}"
            old = self.found.get(key, Fact("open", "", ()))
            if text or old.text:
                note = status or old.note
                kind = "done" if note in FINISHED else "open"
                self._put(key, Fact(kind, self.clean(text) or old.text, _merge(old.indexes, (index,)), note))

    def _read_result(self, index: int, result: ToolResult) -> None:
        pending = self.pending.pop(result.call_id, PendingCall(index))
        called_at, interpreted, added, words = pending
        text = self.clean(result.text)
        self._read_report(f"{words}\n{text}")
        if not result.is_error and (started := background_id(text)):
            named = f"{words or 'background work'}: {started}{NO_REPORT}"
            self._put(f"background {started}", Fact("background", named, (index,), started))
        outcome = call_outcome(text, failed=result.is_error, call=interpreted)
        indexes = (called_at, index) if called_at != index else (called_at,)
        if outcome.status == REFUSED:
            refused = interpreted.path or interpreted.command or words[:_REFUSED_CHARS]
            comment = refusal_comment(text)
            self.turns.add_input(index, "refusal", f"{refused}: {comment}" if comment else refused)
        elif answer := user_answer(words, text):
            self.turns.add_input(index, "answer", answer[0])
            if answer[1]:
                self.turns.add_reply(index, f"Plan that the user approved: {answer[1]}")
        elif interpreted.kind in {"read", "edit"} and interpreted.path:
            self._put_file(indexes, pending, outcome)
        elif interpreted.command:
            self._put_run(indexes, interpreted.command, outcome, text)
        elif not outcome.is_done and outcome.line:
            self._put(f"error {outcome.line}", Fact("error", outcome.line, indexes))
        shown: list[IdentifiedLine] | None = [] if interpreted.kind == "read" else None
        self.identifiers.read(index, text, Origin.RESULT, source=interpreted.path or interpreted.command, lines=shown)
        if outcome.is_done and shown is not None:
            self.files.record_read(interpreted.path, index, shown, part=interpreted.is_partial)
        elif outcome.is_done and interpreted.kind == "edit":
            self.files.record_edit(interpreted.path, called_at, "\n".join(interpreted.replaced).split("\n"), added)

    def _put_file(self, indexes: tuple[int, ...], pending: PendingCall, outcome: CallOutcome) -> None:
        """Store that a file was read or changed, or that this failed."""
        call = pending.call
        kind = "failed" if not outcome.is_done else "modified" if call.kind == "edit" else "read"
        key = f"{kind} {call.path}"
        old = self.found.get(key, Fact(kind, call.path, (), times=0))
        note = call.purpose or old.note if outcome.is_done else outcome.line or outcome.status
        changes = old.changes
        if kind == "modified":
            self.turns.add_change(indexes[-1], call.path)
            changes = tuple(dict.fromkeys((*changes, *change_of(pending.added, call.replaced))))[-_MAX_CHANGES:]
        if outcome.is_done:
            self._drop(f"failed {call.path}")
        self._put(key, Fact(kind, call.path, _merge(old.indexes, indexes), note, old.times + 1, changes))

    def _put_run(self, indexes: tuple[int, ...], command: str, outcome: CallOutcome, text: str) -> None:
        """Store a command that was run. It replaces an earlier run of the same command.

        Commands that differ only in a filter of their output, such as `| tail`, count as the same.
        """
        bare = strip_command(command)
        key = f"command {bare}"
        old = self.found.get(key, Fact("command", command, (), times=0))
        kind = outcome.status if outcome.status != UNKNOWN else "command"
        mended = old.note if (kind, old.kind) == ("passed", "failed") else ""
        note = f"{outcome.line} (failed before: {mended})" if mended else outcome.line
        self._put(key, Fact(kind, command, indexes, note, old.times + 1))
        self.turns.add_run(Run(command, outcome.status, outcome.line, indexes))
        if is_check(bare):
            self.last_check = indexes[-1]
        if "git " in command and _MAY_COMMIT.search(command):
            self.last_commit = indexes[-1]
        for word, mark, pattern, verb in _PRODUCTS if outcome.is_done else ():
            if word in command and mark in text:
                for found in list(pattern.finditer(text))[:_MAX_PRODUCTS]:
                    named = " ".join(filter(None, found.groups()))
                    self._put(f"produced {named}", Fact("produced", f"{verb} {named}", indexes))

    def _put(self, key: str, fact: Fact) -> None:
        """Add a fact as the last one; it replaces an older fact with the same key."""
        if fact.kind == "decision" and key in self.found:
            fact = fact._replace(indexes=_merge(self.found[key].indexes, fact.indexes))
        self._drop(key)
        self.found[key] = fact
        self.counts[fact.kind] += 1
        if self.counts[fact.kind] > _MAX_PER_KIND:
            self._drop(next(old for old, it in self.found.items() if it.kind == fact.kind))

    def _drop(self, key: str) -> None:
        old = self.found.pop(key, None)
        if old is not None:
            self.counts[old.kind] -= 1


def _merge(old: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...]:
    """The indexes of both tuples, without duplicates.

    If there are too many indexes, only the first and the last ones are kept.
    """
    both = tuple(dict.fromkeys((*old, *new)))
    return both if len(both) <= _MAX_INDEXES else (both[0], *both[1 - _MAX_INDEXES :])


# Decisions and open tasks, found by the words that people use for them in common languages

_SENTENCE = re.compile(r"(?<=[.!?。！？;；])(?:\s+|(?<=[。！？；]))|\n+")
_DECISION = re.compile(
    r"\b(?:because|decided|decision|instead of|rather than|chose|root cause|the (?:issue|problem|bug|fix) (?:is|was)"
    r"|turns out|so that|therefore|which means|this means|trade-?off|i'll use|we'll use|let's use|weil|daher)\b"
    r"|因为|决定|所以",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\b(?:next|todo|remaining|still (?:need|has|have|to)|left to|follow-?up|not yet|pending|later)\b|\?\s*$"
    r"|下一步|还需要",
    re.IGNORECASE,
)
_MAY_COMMIT = re.compile(r"\bgit (?:-\S+ )?(?:-C \S+ )?(?:commit|merge|rebase|cherry-pick|revert|am|push)\b")
"""A command after which changes may be committed."""
_PRODUCTS = (
    ("git ", "[", re.compile(r"^\[[^\]\n]{0,120}\b([0-9a-f]{7,12})\] (.{1,200})", re.MULTILINE), "Committed"),
    ("git push", "->", re.compile(r"^.{0,80}? (\S{1,200} -> \S{1,200})$", re.MULTILINE), "Pushed"),
    ("git ", "Switched", re.compile(r"^Switched to (?:a new )?(branch '[^'\n]{1,200}')", re.MULTILINE), "Switched to"),
    (
        "gh ",
        "https:",
        re.compile(r"^(https://\S{1,200}/(?:pull|issues|releases)/\S{1,99})$", re.MULTILINE),
        "Printed by gh:",
    ),
    (
        "",
        "localhost:",
        re.compile(r"(?i:listening|running|serving|ready|local)\b.{0,40}(https?://localhost:\d+)"),
        "Printed by a command:",
    ),
)
"""What a command may produce: a word in the command, a word in the result, a pattern for the product's name, and a
verb.
"""
_MAX_PRODUCTS, _REFUSED_CHARS = 3, 80
_MIN_SENTENCE_CHARS, _MAX_SENTENCE_CHARS = 12, 320
_REASON_SPACES = 5
"""A sentence with fewer spaces is too short to be a decision."""
_BULLET = re.compile(r"^(?:[-*•+]|\d{1,2}[.)])\s+")


def _sentences(text: str, pattern: re.Pattern[str]) -> Iterator[str]:
    """The sentences of a text that match a pattern, verbatim, without bullets."""
    if not pattern.search(text):
        return
    for raw in _SENTENCE.split(text):
        sentence = _BULLET.sub("", raw.strip()) if raw else ""
        if _MIN_SENTENCE_CHARS <= len(sentence) <= _MAX_SENTENCE_CHARS and pattern.search(sentence):
            yield sentence
