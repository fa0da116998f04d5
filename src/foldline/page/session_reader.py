"""Reads a branch of a ledger for the page: its log, its state and the size of every message. Nothing is written.

A reader is kept between requests of the page, and reads only what was added to the ledger since its last read. So a
page that sends a request every second causes little work.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import inf
from threading import RLock
from typing import NamedTuple

from foldline.fold import Fold
from foldline.human_input import is_human_prompt
from foldline.ledger import Branch, Store
from foldline.ledger.records import BranchState, FoldReference, LogEntry
from foldline.measure.message_size import message_tokens, part_tokens
from foldline.message import Media, Message, Part, Text, Thinking, ToolCall, ToolResult, Usage
from foldline.plan.fold_cost import CacheState, cache_state
from foldline.plan.gate import HIDDEN
from foldline.session.preview import LastRequest, RewriteCost, last_request, unfold_cost
from foldline.session.record import BranchRecord
from foldline.session.setup import Setup, setup
from foldline.session.state import State
from foldline.tool_calls import interpret_call

_FIRST_MESSAGES = 20
"""Number of messages that are searched for the first prompt."""
_NEWEST_MESSAGES = 20
"""Number of newest messages that are searched for a reply."""
_KINDS = {ToolCall: "tool calls", ToolResult: "tool results", Thinking: "thinking", Media: "media"}


class Share(NamedTuple):
    """The tokens of one part of a message."""

    kind: str
    """`user`, `assistant`, `thinking`, `tool calls`, `tool results`, `media`, …"""
    tool: str
    """The tool of a call or a result; else ""."""
    path: str
    """The file that the tool read or changed; else ""."""
    tokens: int


class MessageFacts(NamedTuple):
    """Figures about a message. They are kept, so that the message is read only once."""

    role: str
    tokens: int
    shares: tuple[Share, ...]
    usage: Usage | None
    model: str
    at: float | None
    is_prompt: bool
    is_error: bool
    has_calls: bool


class FoldChange(NamedTuple):
    """A log entry that changes which fold applies."""

    length: int
    """Number of messages at the time of the entry."""
    at: float
    fold: FoldReference | None
    """The fold that applies after this entry; None if nothing is folded."""
    kind: str
    """`fold`, `unfold`, `refold`, `move` or `branch`."""
    subject: FoldReference | None
    """The fold that was made, taken back or restored; None for a `move` or `branch`."""


class RecordedFold(NamedTuple):
    """A fold that was made in a branch, and whether it was taken back.

    The number of a fold is its position in `FoldHistory.folds`, counted from 1.
    """

    reference: FoldReference
    before: FoldReference | None
    """The fold that applied before this fold was made; None if nothing was folded."""
    taken_back_at: float | None = None
    """When the fold was taken back, in seconds since 1970; None if it was never taken back, or was restored
    afterwards.
    """


class FoldHistory(NamedTuple):
    """All folds of a branch, including those that were taken back, and all changes of the fold that applies."""

    folds: tuple[RecordedFold, ...]
    changes: tuple[FoldChange, ...]

    def number_of(self, reference: FoldReference | None) -> int:
        """The number of a fold; 0 for None, and for a fold that is not in the list."""
        numbers = {one.reference.id: number for number, one in enumerate(self.folds, start=1)}
        return numbers.get(reference.id, 0) if reference else 0

    def applied_at(self, length: int) -> FoldChange | None:
        """The newest change when the branch had this number of messages; None if there was none before."""
        place = bisect_right(self.changes, length, key=lambda change: change.length)
        return self.changes[place - 1] if place else None


def copied_message(name: str, position: int) -> int | None:
    """The index of the message that a pinned note repeats; None if the pinned message is not such a note.

    `name` is the name of the pin, and `position` is the index of the pinned message. If the user pins message #50, the
    pin has the name "#50". Usually, message #50 itself is pinned, and `position` is 49. If the view does not show
    message #50, a note that repeats its text is pinned instead, and `position` is the index of the note.

    >>> copied_message("#50", 465), copied_message("#50", 49), copied_message("task", 0)
    (49, None, None)
    """
    number = name.removeprefix("#")
    is_copy = name.startswith("#") and number.isdecimal() and int(number) != position + 1
    return int(number) - 1 if is_copy else None


class RemovedSpan(NamedTuple):
    """A range of messages during which a note was not in the view, because its pin had been removed."""

    position: int
    """The index of the note."""
    start: int
    """Number of messages when the note left the view."""
    stop: float
    """Number of messages when the note came back into the view; infinite if the note did not come back."""


def removed_spans(marks: Iterable[LogEntry]) -> list[RemovedSpan]:
    """The times for which notes left the view: one `RemovedSpan` for each removal of a note, oldest first."""
    spans: list[RemovedSpan] = []
    for entry in marks:
        if entry.kind == "unpin" and entry.body.get("removed") is not None:
            spans.append(RemovedSpan(entry.body["removed"], entry.length, inf))
        elif entry.kind == "pin":
            back = entry.body.get("position")
            spans = [
                one._replace(stop=entry.length) if one.position == back and one.stop == inf else one for one in spans
            ]
        elif entry.kind in ("move", "branch"):
            spans = [one for one in spans if one.position < entry.body["shared"]]
    return spans


class SessionReader:
    """Reads one branch. All methods may be called from several threads."""

    def __init__(self, store: Store, branch: Branch) -> None:
        self.store, self.branch = store, branch
        self.lock = RLock()
        self._record = BranchRecord(store, branch)
        self._log: BranchState | None = None
        self._setup: Setup | None = None
        self._state: State | None = None
        self._facts: list[MessageFacts] = []
        self._calls: dict[str, tuple[str, str]] = {}
        """For each call id, the tool and the file."""
        self._moves = 0
        self._first_prompt: int | None = None
        self._folds: dict[str, Fold] = {}
        self._newest: tuple[bytes, LastRequest] | None = None
        """The key of the newest message, and the newest request."""

    def version(self) -> str:
        """A string that changes if the branch, its background job or the state of its prompt cache changes."""
        head, job = self.store.head(self.branch), self.store.jobs.get(self.branch)
        return f"{head.seq}-{head.length}-{head.key.hex()[:12]}-{job.seq}-{self.cache_state()}"

    def cache_state(self) -> CacheState:
        """The state of the provider's prompt cache for the newest request of this branch."""
        with self.lock:
            metas, added_at = self._last_request().metas, self.log().head.at
            return cache_state(self.setup().model, metas, now=time.time(), added_at=added_at)

    def _last_request(self) -> LastRequest:
        head = self.log().head
        if self._newest is None or self._newest[0] != head.key:
            self._newest = head.key, last_request(self.messages, head.length)
        return self._newest[1]

    def cache_of(self, state: State) -> CacheState:
        """The state of the provider's prompt cache for a view of this branch."""
        with self.lock:
            return self._last_request().cache_of(state, self.cache_state())

    def unfold_cost(self, state: State, unfolded: State) -> RewriteCost:
        """What it costs to take back the newest fold of this branch. `unfolded` is the state without this fold."""
        with self.lock:
            return unfold_cost(state, unfolded, self._last_request(), self.cache_state())

    def log(self) -> BranchState:
        """The newest log entry, the folds, the pins and the other log entries of the branch."""
        with self.lock:
            head = self.store.head(self.branch)
            if self._log is None or self._log.head.mark != head.mark:
                self._log = self.store.state(self.branch)
                self._setup = None
            elif self._log.head.length != head.length:
                self._log = _with_head(self._log, self.store, self.branch)
            return self._log

    def setup(self) -> Setup:
        """The settings with which the sizes in the branch are measured."""
        with self.lock:
            self.log()
            if self._setup is None:
                self._setup = setup(self._record.snapshot().settings)
            return self._setup

    def state(self) -> State:
        """The state of the branch, up to its newest message."""
        with self.lock:
            state, version = self._state, self._record.version()
            if state is None or state.version.entry != version.entry or version.length < len(state.timeline):
                snapshot = self._record.snapshot()
                state = self._state = State(setup(snapshot.settings), snapshot, self._record.read)
            else:
                for message in self._record.read(len(state.timeline), version.length):
                    state.add(message)
            return state

    def scale(self) -> float:
        """How many tokens the provider counts for each token of a message that the session's counter counts.

        The page multiplies the sizes of messages with it, so that they add up to the sizes of the blocks.
        """
        with self.lock:
            state = self.state()
            load, counted = state.load(), state.identity().tokens + state.setup.tools
            return (load.request - load.blocks.get(HIDDEN, 0)) / counted if counted else 1.0

    def messages(self, start: int, stop: int) -> list[Message]:
        """The messages of a range, as they were added."""
        with self.lock:
            self._record.version()
            return list(self._record.read(start, stop))

    def newest_messages(self) -> list[Message]:
        """The newest messages, oldest first."""
        length = self.log().head.length
        return self.messages(max(0, length - _NEWEST_MESSAGES), length)

    def fold(self, reference: FoldReference) -> Fold:
        """A fold with its digest."""
        with self.lock:
            if reference.id not in self._folds:
                self._folds[reference.id] = self.store.fold(self.branch, reference)
            return self._folds[reference.id]

    def facts(self) -> list[MessageFacts]:
        """The facts about every message, folded or not."""
        with self.lock:
            log = self.log()
            moves = sum(entry.kind == "move" for entry in log.marks)
            if moves != self._moves or log.head.length < len(self._facts):
                self._facts, self._calls, self._moves, self._first_prompt = [], {}, moves, None
            self._record.version()
            used = self.setup()
            for message in self._record.read(len(self._facts), log.head.length):
                self._facts.append(self._facts_of(message, used))
            return self._facts

    def _facts_of(self, message: Message, used: Setup) -> MessageFacts:
        tokens = message_tokens(message, used.counter, used.framing)
        return MessageFacts(
            role=message.role,
            tokens=tokens,
            shares=tuple(self._shares(message, tokens, used)),
            usage=message.meta.usage,
            model=message.meta.model,
            at=message.meta.at,
            is_prompt=message.is_prompt,
            is_error=any(result.is_error for result in message.results),
            has_calls=bool(message.calls),
        )

    def _shares(self, message: Message, tokens: int, used: Setup) -> Iterator[Share]:
        """The tokens of each part of a message. The message's overhead tokens are added to the last part."""
        rest = tokens
        for place, part in enumerate(message.parts):
            is_last = place == len(message.parts) - 1
            size = rest if is_last else min(rest, part_tokens(part, used.counter, used.framing))
            rest -= size
            tool, path = self._tool_of(part)
            yield Share(_kind_of(message, part), tool, path, size)

    def _tool_of(self, part: Part) -> tuple[str, str]:
        if isinstance(part, ToolCall):
            self._calls[part.id] = found = part.name, interpret_call(part, "").path
            return found
        if isinstance(part, ToolResult):
            tool, path = self._calls.get(part.call_id, ("", ""))
            return part.name or tool or "?", path
        return "", ""

    def first_prompt(self) -> int | None:
        """The index of the first prompt of a person; None if there is none among the first messages."""
        with self.lock:
            if self._first_prompt is None:
                found = enumerate(self.messages(0, _FIRST_MESSAGES))
                self._first_prompt = next((index for index, message in found if is_human_prompt(message)), None)
            return self._first_prompt

    def lead(self) -> int:
        """The number of system messages at the start."""
        fold = self.log().fold
        if fold is not None:
            return fold.lead
        roles = [message.role for message in self.messages(0, _FIRST_MESSAGES)]
        return next((index for index, role in enumerate(roles) if role != "system"), len(roles))

    def left_tokens(self, history: FoldHistory, last: FoldChange | None, change: FoldChange | None) -> int:
        """The number of tokens of a request that are no longer in the next request, because another fold applies.

        `last` and `change` are the newest changes before the two requests.
        """
        before, now = last.fold if last else None, change.fold if change else None
        earlier = {one.reference.id: one.before for one in history.folds}
        left, fold = 0, now
        while fold is not None and fold != before:
            left, fold = left + self.fold(fold).left_tokens, earlier.get(fold.id)
        if fold == before:
            return left
        return self.fold(before).digest_tokens if before else 0  # the fold was undone

    def fold_history(self) -> FoldHistory:
        """The folds of the branch and all log entries that change which fold applies, oldest first.

        A fold of messages that the branch no longer has is left out.
        """
        made: dict[str, RecordedFold] = {}
        applied: list[FoldReference] = []
        changes: list[FoldChange] = []
        for entry in self.log().marks:
            subject = None
            match entry.kind:
                case "fold":
                    subject = FoldReference(cut=entry.cut or 0, branch=entry.branch, seq=entry.seq, at=entry.at)
                    made[subject.id] = RecordedFold(subject, applied[-1] if applied else None)
                    applied.append(subject)
                case "unfold" | "refold":
                    branch, seq = entry.body["fold"]
                    recorded = made.get(f"{branch}:{seq}")
                    if recorded is None:
                        continue
                    subject, is_undone = recorded.reference, entry.kind == "unfold"
                    made[subject.id] = recorded._replace(taken_back_at=entry.at if is_undone else None)
                    applied = [one for one in applied if one != subject] + ([] if is_undone else [subject])
                case "move" | "branch":
                    shared = entry.body["shared"]
                    made = {key: one for key, one in made.items() if one.reference.cut <= shared}
                    applied = [one for one in applied if one.cut <= shared]
                    kept = [one for one in changes if one.subject is None or one.subject.id in made]
                    changes = [one._replace(length=min(one.length, shared)) for one in kept]
                case _:
                    continue
            changes.append(FoldChange(entry.length, entry.at, applied[-1] if applied else None, entry.kind, subject))
        return FoldHistory(tuple(made.values()), tuple(changes))


def _with_head(log: BranchState, store: Store, branch: Branch) -> BranchState:
    head = store.head(branch)
    return replace(log, head=head) if head.mark == log.head.mark else store.state(branch)


def _kind_of(message: Message, part: Part) -> str:
    if isinstance(part, Text):
        return message.kind.replace("_", " ") or message.role
    return _KINDS.get(type(part), "other")
