"""Reads a branch of a ledger for the page: its log, its state and the size of every message. Nothing is written.

A reader is kept between requests and reads only what was added since then. So a page that asks every second costs
little.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from threading import RLock
from typing import NamedTuple

from foldline.fold import Fold
from foldline.ledger import Branch, Store
from foldline.ledger.records import BranchState, FoldReference
from foldline.measure.message_size import message_tokens, part_tokens
from foldline.message import Media, Message, Part, Text, Thinking, ToolCall, ToolResult, Usage
from foldline.session.record import BranchRecord
from foldline.session.setup import Setup, setup
from foldline.session.state import State
from foldline.tool_calls import interpret_call

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
    """Figures about a message that are kept, so that the message is not read again."""

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
    """The fold that applies from then on; None if nothing is folded."""
    kind: str
    """`fold` or `unfold`."""


class SessionReader:
    """One branch. All methods may be called from several threads."""

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
        self._folds: dict[tuple[str, int], Fold] = {}

    def version(self) -> str:
        """A text that changes if the branch, its background job or the state of its prompt cache changes."""
        head, job = self.store.head(self.branch), self.store.jobs.get(self.branch)
        return f"{head.seq}-{head.length}-{head.key.hex()[:12]}-{job.seq}{'-cold' * self.is_cold()}"

    def is_cold(self) -> bool:
        """Whether the provider's prompt cache has expired since the newest message."""
        last, life = self.log().head.at, self.setup().model.cache.ttl_seconds
        return bool(last and life) and time.time() - last > life

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

    def messages(self, start: int, stop: int) -> list[Message]:
        """The messages of a range, as they were added."""
        with self.lock:
            self._record.version()
            return list(self._record.read(start, stop))

    def fold(self, reference: FoldReference) -> Fold:
        """A fold with its digest."""
        with self.lock:
            key = reference.branch, reference.seq
            if key not in self._folds:
                self._folds[key] = self.store.fold(self.branch, reference)
            return self._folds[key]

    def facts(self) -> list[MessageFacts]:
        """The facts about every message, folded or not."""
        with self.lock:
            log = self.log()
            moves = sum(entry.kind == "move" for entry in log.marks)
            if moves != self._moves or log.head.length < len(self._facts):
                self._facts, self._calls, self._moves = [], {}, moves
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
        """The tokens of each part of a message. The tokens around the parts are added to the last part."""
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

    def fold_changes(self) -> list[FoldChange]:
        """All log entries that change which fold applies, oldest first."""
        changes: list[FoldChange] = []
        stack: list[FoldReference] = []
        for entry in self.log().marks:
            if entry.kind == "fold":
                stack.append(FoldReference(cut=entry.cut or 0, branch=entry.branch, seq=entry.seq, at=entry.at))
            elif entry.kind == "unfold":
                stack = [one for one in stack if [one.branch, one.seq] != entry.body["fold"]]
            else:
                continue
            changes.append(FoldChange(entry.length, entry.at, stack[-1] if stack else None, entry.kind))
        return changes


def _with_head(log: BranchState, store: Store, branch: Branch) -> BranchState:
    head = store.head(branch)
    return replace(log, head=head) if head.mark == log.head.mark else store.state(branch)


def _kind_of(message: Message, part: Part) -> str:
    if isinstance(part, Text):
        return message.kind.replace("_", " ") or message.role
    return _KINDS.get(type(part), "other")
