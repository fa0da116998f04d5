"""What a session stores and reads back: in memory, or on a branch of a ledger.

Both kinds of record are append-only and have the same methods. The state of a session depends only on its record. So
another process that reads the same rows builds the same state and sends the same view.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, NamedTuple, TypeAlias

from foldline import ledger
from foldline.errors import Conflict, InputError
from foldline.fold import Fold
from foldline.ledger import Branch, Head, Store
from foldline.ledger.jobs import Claim
from foldline.ledger.records import RemovedNote, StoredMessage
from foldline.message import Message
from foldline.recall.text_index import TextIndex

SETTINGS = "settings"
"""The kind of log entry that sets model, policy, tools and format."""

REFUSED = "refused"
"""The kind of log entry that says why a fold was not made. More messages must be added before the next attempt."""

_CHANGES = frozenset({"fold", "unfold", "refold", "move", SETTINGS})
"""The kinds of log entries after which a view may show other messages or be counted in another way."""

ATTEMPTS = 5
"""Maximum number of attempts at a change while other processes write to the record."""


def too_many_conflicts() -> Conflict:
    """The error that is raised after `ATTEMPTS` attempts at a change have failed."""
    return Conflict(f"gave up after {ATTEMPTS} write conflicts with other processes", hint="try again")


class Refusal(NamedTuple):
    """A fold that was not made, and the cause."""

    at: int
    """The number of messages when the fold was refused."""
    cause: str


class Version(NamedTuple):
    """The version of a record."""

    length: int = 0
    """The number of messages in the record."""
    entry: int = 0
    """The number of the newest log entry. Entries for appended messages are ignored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything a record holds at one version, except the messages."""

    version: Version
    fold: Fold | None = None
    """The fold that applies now; None if nothing is folded."""
    shortest: int | None = None
    """The smallest number of messages to which the record was shortened after `fold`; None if never shortened."""
    folds: int = 0
    """The number of folds that can be taken back."""
    undone: Fold | None = None
    """The fold that was taken back last and can be restored; None if there is none."""
    pins: Mapping[str, int] = field(default_factory=dict)
    """Positions of the pinned messages, by the name of the pin."""
    notes: frozenset[int] = frozenset()
    """Positions of the notes that were added only to be pinned. A note stays listed after its pin was removed."""
    removed: Mapping[int, RemovedNote] = field(default_factory=dict)
    """The notes that left the view together with their pin, by their position."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    refusal: Refusal | None = None
    """The last fold that was refused; None if a fold was made since then."""
    moves: int = 0
    """How often the branch was shortened to an earlier message."""
    changed_at: int = 0
    """The number of messages at the last fold, unfold, refold, move, change of settings, or removal of a note."""


class MemoryRecord:
    """A record in memory, which is lost with its session."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.folds: list[tuple[Fold, int | None]] = []
        """Each fold, with the smallest number of messages to which the record was shortened after it."""
        self.undone: list[tuple[Fold, int | None]] = []
        """The folds that were taken back and can be restored."""
        self.pins: dict[str, int] = {}
        self.notes: frozenset[int] = frozenset()
        self.removed: Mapping[int, RemovedNote] = {}
        self.settings: Mapping[str, Any] = {}
        self.refusal: Refusal | None = None
        self.entries = self.moves = self.changed_at = 0
        self._index: tuple[Store, Branch, int] | None = None
        """The temporary ledger that recall searches, its branch, and the value of `moves` when it was created."""
        self._index_lock = Lock()

    def version(self) -> Version:
        """The current version."""
        return tuple.__new__(Version, (len(self.messages), self.entries))  # half the time of `Version(…)`

    def snapshot(self) -> Snapshot:
        """The current snapshot: everything except the messages."""
        return Snapshot(
            version=self.version(),
            fold=self.folds[-1][0] if self.folds else None,
            shortest=self.folds[-1][1] if self.folds else None,
            folds=len(self.folds),
            undone=self.undone[-1][0] if self.undone else None,
            pins=self.pins,
            notes=self.notes,
            removed=self.removed,
            settings=self.settings,
            refusal=self.refusal,
            moves=self.moves,
            changed_at=self.changed_at,
        )

    def read(self, start: int, stop: int) -> Sequence[Message]:
        """Messages by position."""
        return self.messages[start:stop]

    def append(self, messages: Sequence[Message]) -> Version:
        """Add messages at the end."""
        self.messages += messages
        return self.version()

    def fold(self, fold: Fold, entry: int, claim: Claim | None = None) -> Version:  # noqa: ARG002 (no other workers)
        """Add a fold."""
        folds = [*self.folds, (fold, None)]
        return self._change(entry, folds=folds, undone=[], refusal=None, changed_at=len(self.messages))

    def refuse(self, refusal: Refusal, entry: int) -> Version:
        """Record that a fold was not made."""
        return self._change(entry, refusal=refusal)

    def cancel(self) -> bool:
        """Always False, because no fold is made in the background."""
        return False

    def cancel_direct(self) -> bool:
        """Always False, because no other process has this record."""
        return False

    def unfold(self, entry: int) -> Version:
        """Take back the newest fold."""
        if not self.folds:
            raise InputError("nothing is folded")
        undone = [*self.undone, self.folds[-1]]
        return self._change(entry, folds=self.folds[:-1], undone=undone, changed_at=len(self.messages))

    def refold(self, entry: int) -> Version:
        """Restore the fold that was taken back last."""
        if not self.undone:
            raise InputError("no fold was taken back since the last fold was made", hint="make a new fold")
        folds = [*self.folds, self.undone[-1]]
        return self._change(entry, folds=folds, undone=self.undone[:-1], changed_at=len(self.messages))

    def pin(self, name: str, position: int, entry: int, *, is_note: bool = False) -> Version:
        """Add a pin. `is_note` says that the message is a note that was added only to be pinned."""
        removed = {at: note for at, note in self.removed.items() if at != position}
        notes = self.notes | {position} if is_note else self.notes
        changed_at = self.changed_at if len(removed) == len(self.removed) else len(self.messages)
        pins = {**self.pins, name: position}
        return self._change(entry, pins=pins, notes=notes, removed=removed, changed_at=changed_at)

    def unpin(self, name: str, entry: int, *, removed: int | None = None) -> Version:
        """Remove a pin. `removed` is the position of the pinned note, if the note leaves the view together with it."""
        pins = {pin: position for pin, position in self.pins.items() if pin != name}
        if removed is None:
            return self._change(entry, pins=pins)
        length = len(self.messages)
        notes = {**self.removed, removed: RemovedNote(name, length)}
        return self._change(entry, pins=pins, removed=notes, changed_at=length)

    def move(self, to: int, entry: int) -> Version:
        """Shorten the record to its first `to` messages."""
        return self._change(entry, moves=self.moves + 1, changed_at=to, **self._first(to))

    def configure(self, settings: Mapping[str, Any], entry: int) -> Version:
        """Store new settings: model, policy, tools and format."""
        return self._change(entry, settings=settings, changed_at=len(self.messages))

    def fork(self, name: str, at: int) -> MemoryRecord:  # noqa: ARG002 (only a ledger uses the name)
        """A new record that begins with the first `at` messages."""
        if not 0 <= at <= len(self.messages):
            raise InputError(f"cannot branch at message {at}: the session has {len(self.messages)} messages")
        record = MemoryRecord()
        vars(record).update(self._first(at), settings=self.settings, changed_at=min(self.changed_at, at))
        return record

    def _first(self, count: int) -> dict[str, Any]:
        """The first `count` messages, with the folds and the pins of these messages."""

        def shortened(folds: list[tuple[Fold, int | None]]) -> list[tuple[Fold, int | None]]:
            kept = [(fold, shortest) for fold, shortest in folds if fold.cut <= count]
            return [(fold, count if shortest is None else min(shortest, count)) for fold, shortest in kept]

        return {
            "messages": self.messages[:count],
            "folds": shortened(self.folds),
            "undone": shortened(self.undone),
            "pins": {pin: position for pin, position in self.pins.items() if position < count},
            "notes": frozenset(position for position in self.notes if position < count),
            "removed": {position: note for position, note in self.removed.items() if position < count},
        }

    def search_target(self) -> tuple[Store, Branch]:
        """The store and branch to search: a temporary ledger, to which the newest messages are added.

        The temporary ledger is created again after the record was shortened.
        """
        with self._index_lock:
            if self._index is None or self._index[2] != self.moves:
                store = ledger.open(":memory:", index=TextIndex())
                self._index = store, store.session("memory"), self.moves
            store, branch, _ = self._index
            store.append(branch, self.messages[store.head(branch).length :])
            return store, branch

    @property
    def identity(self) -> object:
        """A value that no other record has."""
        return self

    def _change(self, entry: int, **values: Any) -> Version:
        """Set attributes of the record. Raises `Conflict`, as a ledger does, if `entry` is not the newest log entry."""
        if entry != self.entries:
            raise Conflict("the session was changed meanwhile", hint="read its current state and decide again")
        vars(self).update(values, entries=entry + 1)
        return self.version()


class BranchRecord:
    """A record on a branch of a ledger. Other processes may write to the same branch.

    `read` returns the messages of the version that the caller got last, even if other processes have written since.
    """

    def __init__(self, store: Store, branch: Branch) -> None:
        self.store, self.branch = store, branch
        self.next_events: list[tuple[str, Any]] = []
        """Events (kind and body) that the next `append` stores in the same transaction as its messages."""
        self.guards_head = False
        """Whether `append` raises `Conflict` if another process has appended messages since the last read."""
        self._head = Head()

    @property
    def identity(self) -> object:
        """A value that no other record has."""
        return self.store.owner, self.branch

    @property
    def known_length(self) -> int:
        """The number of messages of the version that this record has read or written last."""
        return self._head.length

    def version(self) -> Version:
        """The current version."""
        return self._at(self.store.head(self.branch))

    def snapshot(self) -> Snapshot:
        """The current snapshot: everything except the messages."""
        state = self.store.state(self.branch)
        settings: Any = next((entry.body for entry in reversed(state.marks) if entry.kind == SETTINGS), {})
        attempt = next((entry for entry in reversed(state.marks) if entry.kind in {REFUSED, "fold"}), None)
        changes = [entry.length for entry in state.marks if entry.kind in _CHANGES]
        return Snapshot(
            version=self._at(state.head),
            fold=state.fold,
            shortest=state.folds[-1].shortest if state.folds else None,
            folds=len(state.folds),
            undone=self.store.fold(self.branch, state.undone[-1]) if state.undone else None,
            pins={pin.name: pin.position for pin in state.pins if pin.position is not None},
            notes=state.notes,
            removed=state.removed,
            settings=settings,
            refusal=Refusal(**attempt.body) if attempt is not None and attempt.kind == REFUSED else None,
            moves=sum(entry.kind == "move" for entry in state.marks),
            changed_at=min(state.head.length, max(changes[-1] if changes else 0, state.note_changed_at)),
        )

    def read(self, start: int, stop: int) -> Iterator[Message]:
        """Messages by position, a page at a time."""
        return (_with_time(stored) for stored in self.store.read(self._head, start=start, stop=stop))

    def append(self, messages: Sequence[Message]) -> Version:
        """Add messages at the end."""
        events, self.next_events = self.next_events, []
        expected = self._head.key if self.guards_head else None
        return self._at(self.store.append(self.branch, messages, events=events, expected=expected).head)

    def fold(self, fold: Fold, entry: int, claim: Claim | None = None) -> Version:
        """Add a fold, and finish the background job that made it, if there is one."""
        return self._at(self.store.append_fold(self.branch, fold, mark=entry, claim=claim))

    def refuse(self, refusal: Refusal, entry: int) -> Version:
        """Record that a fold was not made."""
        return self._at(self.store.note(self.branch, REFUSED, refusal._asdict(), mark=entry))

    def cancel(self) -> bool:
        """Cancel the fold that is being made in the background. Returns False if there is none."""
        return self.store.jobs.cancel(self.branch)

    def cancel_direct(self) -> bool:
        """Cancel the folds that sessions of any process make without a background job.

        Returns False if there are none.
        """
        return self.store.jobs.cancel_direct(self.branch)

    def unfold(self, entry: int) -> Version:
        """Take back the newest fold."""
        return self._at(self.store.unfold(self.branch, mark=entry))

    def refold(self, entry: int) -> Version:
        """Restore the fold that was taken back last."""
        return self._at(self.store.refold(self.branch, mark=entry))

    def pin(self, name: str, position: int, entry: int, *, is_note: bool = False) -> Version:
        """Add a pin. `is_note` says that the message is a note that was added only to be pinned."""
        return self._at(self.store.pin(self.branch, name, position, is_note=is_note, mark=entry))

    def unpin(self, name: str, entry: int, *, removed: int | None = None) -> Version:
        """Remove a pin. `removed` is the position of the pinned note, if the note leaves the view together with it."""
        return self._at(self.store.unpin(self.branch, name, removed=removed, mark=entry))

    def move(self, to: int, entry: int) -> Version:
        """Shorten the record to its first `to` messages."""
        return self._at(self.store.move(self.branch, to, mark=entry))

    def configure(self, settings: Mapping[str, Any], entry: int) -> Version:
        """Store new settings: model, policy, tools and format."""
        return self._at(self.store.note(self.branch, SETTINGS, dict(settings), mark=entry))

    def fork(self, name: str, at: int) -> BranchRecord:
        """A new branch of the session that begins with the first `at` messages."""
        return BranchRecord(self.store, self.store.fork(self.branch, name, at=at))

    def search_target(self) -> tuple[Store, Branch]:
        """The store and branch to search."""
        return self.store, self.branch

    def _at(self, head: Head) -> Version:
        self._head = head
        return Version(head.length, head.mark)


def _with_time(stored: StoredMessage) -> Message:
    """A stored message. If it has no time of its own, it gets the time when it was stored."""
    message = stored.message
    if message.meta.at is not None:
        return message
    return message.with_meta(replace(message.meta, at=stored.at))


Record: TypeAlias = MemoryRecord | BranchRecord
"""The record of a session.

Every method that changes the record, except `append`, gets the newest log entry that the caller knows as `entry`. It
raises `Conflict` if the record has a newer entry.
"""
