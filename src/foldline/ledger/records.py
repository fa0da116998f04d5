"""Values that the ledger returns, and the state derived from a branch's log.

Every branch has a log of numbered entries that never change. An `append` entry records how many messages the branch has
now. All other entries are marks: fold, unfold, refold, pin, unpin, move, branch, and notes of the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from foldline.fold import Fold
from foldline.ledger.message_keys import ROOT
from foldline.ledger.serialize import message_of
from foldline.message import Message

MAIN = "main"


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A branch of a session."""

    id: int
    session: str
    name: str = MAIN
    origin: int | None = None
    """The id of the branch that this branch was forked from.

    Entries of that branch's log up to `origin_seq` also apply to this branch.
    """
    origin_seq: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The newest entry of a branch: position, length and version."""

    seq: int = 0
    mark: int = 0
    """Number of the newest entry that is not an append.

    A new fold or pin names the number that the caller last read. If the branch has a newer mark, the fold or pin is
    refused.
    """
    length: int = 0
    key: bytes = ROOT
    """Key of the newest message."""
    at: float = 0.0
    segment: int | None = None
    log: bytes = ROOT
    """Key of the newest entry. This key depends on all previous entries."""


class Span(NamedTuple):
    """Consecutive messages of a branch that are in one segment: the positions from `start` to `stop` - 1."""

    segment: int
    start: int
    stop: int


class StoredMessage(NamedTuple):
    """A message with its position, key and time."""

    position: int
    key: bytes
    at: float
    message: Message


class StoredEvent(NamedTuple):
    """A recorded event of a branch."""

    id: int
    kind: str
    at: float
    body: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendResult:
    """Result of an append."""

    head: Head
    written: int
    """Number of messages that were new to the ledger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownHistory:
    """The longest stored history that is also the beginning of a list of messages."""

    count: int
    """Number of messages of the list that belong to the stored history."""
    branch: Branch
    """The branch that stored the history first."""
    length: int
    """Number of messages in the stored history.

    The number can be higher than `count`, because the list may omit reasoning that is stored.
    """
    key: bytes


class LogEntry(NamedTuple):
    """One entry of a branch's log."""

    branch: str
    seq: int
    kind: str
    length: int
    tip: bytes
    at: float
    op: str = ""
    key: bytes = ROOT
    cut: int | None = None
    """The cut, if the entry is a fold; else None."""
    body: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldReference:
    """A committed fold without its body."""

    cut: int
    branch: str
    """Name of the branch whose log has the fold."""
    seq: int
    at: float
    shortest: int | None = None
    """The smallest number of messages that the branch has had since the fold; None if the branch was not shortened."""

    @property
    def id(self) -> str:
        """A name of the fold that no other fold of the session has."""
        return f"{self.branch}:{self.seq}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A pinned message, given by its position or by its content."""

    name: str
    position: int | None = None
    message: Message | None = None


class RemovedNote(NamedTuple):
    """A note that left the view together with its pin."""

    name: str
    """The name of the pin."""
    length: int
    """The number of messages of the branch when the pin was removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchState:
    """State of a branch, derived from its log."""

    head: Head = Head()
    fold: Fold | None = None
    """The fold in force."""
    folds: tuple[FoldReference, ...] = ()
    """The folds that were not undone, oldest first. The last fold is in force."""
    undone: tuple[FoldReference, ...] = ()
    """The undone folds that can be restored. The last of them is restored first. A new fold empties this list."""
    pins: tuple[Pin, ...] = ()
    notes: frozenset[int] = frozenset()
    """Positions of the notes that were added only to be pinned. A note stays listed after its pin was removed."""
    removed: Mapping[int, RemovedNote] = field(default_factory=dict)
    """The notes that left the view together with their pin, by their position."""
    note_changed_at: int = 0
    """The number of messages when a note last left the view or came back; 0 if that never happened."""
    marks: tuple[LogEntry, ...] = field(default=(), repr=False)
    """The entries from which the state was derived, oldest first, including inherited entries.

    The entries of folds have no bodies.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """A session with its counts and times."""

    name: str
    made_at: float
    last_at: float
    branches: tuple[str, ...]
    messages: int
    """Number of messages of the longest branch."""
    folds: int
    """Number of folds in all branches, without those that were undone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegrityFault:
    """An error that `verify` found, and the place of the error."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def derive(marks: Iterable[LogEntry], head: Head) -> BranchState:
    """Derive the state of a branch from its log entries (`marks`), oldest first. The field `fold` stays None."""
    marks = tuple(marks)
    folds: list[FoldReference] = []
    undone: list[FoldReference] = []
    pins: dict[str, Pin] = {}
    notes: set[int] = set()
    removed: dict[int, RemovedNote] = {}
    note_changed_at = 0
    for entry in marks:
        match entry.kind:
            case "fold":
                folds.append(FoldReference(cut=entry.cut or 0, branch=entry.branch, seq=entry.seq, at=entry.at))
                undone = []
            case "unfold":
                undone += [fold for fold in folds if [fold.branch, fold.seq] == entry.body["fold"]]
                folds = [fold for fold in folds if [fold.branch, fold.seq] != entry.body["fold"]]
            case "refold":
                folds += [fold for fold in undone if [fold.branch, fold.seq] == entry.body["fold"]]
                undone = [fold for fold in undone if [fold.branch, fold.seq] != entry.body["fold"]]
            case "pin":
                pin = pins[entry.body["name"]] = _pin(entry.body)
                if pin.position in removed:
                    note_changed_at = entry.length
                    del removed[pin.position]
                if pin.position is not None and entry.body.get("is_note"):
                    notes.add(pin.position)
            case "unpin":
                pins.pop(entry.body["name"], None)
                if (position := entry.body.get("removed")) is not None:
                    removed[position] = RemovedNote(entry.body["name"], entry.length)
                    note_changed_at = entry.length
            case "move" | "branch":
                shared = entry.body["shared"]
                folds = [_shortened(fold, shared) for fold in folds if fold.cut <= shared]
                undone = [_shortened(fold, shared) for fold in undone if fold.cut <= shared]
                pins = {name: pin for name, pin in pins.items() if pin.position is None or pin.position < shared}
                notes = {position for position in notes if position < shared}
                removed = {position: note for position, note in removed.items() if position < shared}
                note_changed_at = min(note_changed_at, shared)
            case _:
                pass
    return BranchState(
        head=head,
        folds=tuple(folds),
        undone=tuple(undone),
        pins=tuple(pins.values()),
        notes=frozenset(notes),
        removed=removed,
        note_changed_at=note_changed_at,
        marks=marks,
    )


def _shortened(fold: FoldReference, length: int) -> FoldReference:
    return fold if fold.shortest is not None and fold.shortest <= length else replace(fold, shortest=length)


def _pin(body: dict[str, Any]) -> Pin:
    message = body.get("message")
    return Pin(name=body["name"], position=body.get("position"), message=message and message_of(message))
