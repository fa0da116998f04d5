"""What a session writes down and reads back: in memory, or on a branch of a ledger.

Both forget nothing and tell the same: messages in order, the folds that hold, pins, and the settings in force. A
session keeps no state of its own beside them, so that another process that reads the same rows makes the same view.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, TypeAlias

from foldline import ledger
from foldline.errors import Conflict, InputError
from foldline.fold import Fold
from foldline.ledger import Branch, Head, Store
from foldline.ledger.jobs import Claim
from foldline.message import Message
from foldline.policy import Policy
from foldline.recall.text_index import TextIndex

SETTINGS = "settings"
"""The entry of the log that says which model, policy and tools hold from here on."""


REFUSED = "refused"
"""The entry that says a fold was not made, and why: the next one waits."""


def knobs(policy: Policy) -> dict[str, Any]:
    """A policy as it is written down: what differs from the defaults."""
    bare, found = Policy(), {}
    for knob in fields(policy):
        value = getattr(policy, knob.name)
        if value != getattr(bare, knob.name):
            found[knob.name] = [str(item) for item in value] if isinstance(value, tuple) else value
    return found


class Refused(NamedTuple):
    """A fold that was not made."""

    at: int
    """How many messages there were."""
    cause: str


class Mark(NamedTuple):
    """How far a record is known: so many messages, and everything else up to the entry `mark`."""

    length: int = 0
    mark: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What holds."""

    at: Mark
    fold: Fold | None = None
    """The fold in force."""
    folds: int = 0
    """How many hold: each can be taken back."""
    pins: Mapping[str, int] = field(default_factory=dict)
    """Where the pinned messages stand, by the name of the pin."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    refused: Refused | None = None
    """The fold that was last tried in vain, if none was made since."""
    moves: int = 0
    """How often the path went back to an earlier place: until the next time, its messages stay the same."""


class Memory:
    """A record that lives as long as its session."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.folds: list[Fold] = []
        self.pins: dict[str, int] = {}
        self.settings: Mapping[str, Any] = {}
        self.refused: Refused | None = None
        self.marks = self.moves = 0

    def look(self) -> Mark:
        """How far it goes."""
        return Mark(len(self.messages), self.marks)

    def known(self) -> Known:
        """What holds."""
        return Known(
            at=self.look(),
            fold=self.folds[-1] if self.folds else None,
            folds=len(self.folds),
            pins=dict(self.pins),
            settings=self.settings,
            refused=self.refused,
            moves=self.moves,
        )

    def read(self, start: int, stop: int) -> Sequence[Message]:
        """Messages by position."""
        return self.messages[start:stop]

    def append(self, messages: Sequence[Message]) -> Mark:
        """Add messages at the end."""
        self.messages += messages
        return Mark(len(self.messages), self.marks)

    def fold(self, fold: Fold, mark: int, claim: Claim | None = None) -> Mark:  # noqa: ARG002 (nobody else is at it)
        """Add a fold."""
        self._held(mark)
        self.folds.append(fold)
        self.refused = None
        return self._marked()

    def refuse(self, refused: Refused, mark: int) -> Mark:
        """Say that a fold was not made."""
        self._held(mark)
        self.refused = refused
        return self._marked()

    def cancel(self) -> bool:
        """Nothing is ever made behind its back."""
        return False

    def unfold(self, mark: int) -> Mark:
        """Take back the newest fold."""
        self._held(mark)
        if not self.folds:
            raise InputError("nothing is folded")
        self.folds.pop()
        return self._marked()

    def pin(self, name: str, position: int, mark: int) -> Mark:
        """Add a pin."""
        self._held(mark)
        self.pins[name] = position
        return self._marked()

    def unpin(self, name: str, mark: int) -> Mark:
        """Let go of a pin."""
        self._held(mark)
        self.pins.pop(name, None)
        return self._marked()

    def move(self, to: int, mark: int) -> Mark:
        """Go back to where there were `to` messages."""
        self._held(mark)
        del self.messages[to:]
        self.folds = [fold for fold in self.folds if fold.cut <= to]
        self.pins = {name: position for name, position in self.pins.items() if position < to}
        self.moves += 1
        return self._marked()

    def settle(self, settings: Mapping[str, Any], mark: int) -> Mark:
        """Set what holds from here on."""
        self._held(mark)
        self.settings = settings
        return self._marked()

    def fork(self, name: str, at: int) -> Memory:  # noqa: ARG002 (only a ledger finds it again by name)
        """A record of its own that begins with the first `at` messages."""
        if not 0 <= at <= len(self.messages):
            raise InputError(f"the path has {len(self.messages)} messages, not {at}")
        made = Memory()
        made.messages, made.settings = self.messages[:at], self.settings
        made.folds = [fold for fold in self.folds if fold.cut <= at]
        made.pins = {pin: position for pin, position in self.pins.items() if position < at}
        return made

    def searched(self) -> tuple[Store, Branch]:
        """Where to search: a ledger that holds the messages for as long as it is asked."""
        store = ledger.open(":memory:", index=TextIndex())
        branch = store.session("memory")
        store.append(branch, self.messages)
        return store, branch

    @property
    def place(self) -> object:
        """What tells it from every other record."""
        return self

    def _held(self, mark: int) -> None:
        """Whoever decided on something else than what holds now is told so, as by a ledger."""
        if mark != self.marks:
            raise Conflict("the session was changed meanwhile", hint="look at what holds now and decide anew")

    def _marked(self) -> Mark:
        self.marks += 1
        return self.look()


class Tip:
    """A record on a branch of a ledger, which others may write to as well.

    What is read is the path as it was when it was last looked at or written to, whatever others do meanwhile.
    """

    def __init__(self, store: Store, branch: Branch) -> None:
        self.store, self.branch = store, branch
        self._head = Head()

    @property
    def place(self) -> object:
        """What tells it from every other record."""
        return self.store.owner, self.branch

    def look(self) -> Mark:
        """How far it goes now."""
        return self._stands(self.store.head(self.branch))

    def known(self) -> Known:
        """What holds now."""
        state = self.store.state(self.branch)
        settings: Mapping[str, Any] = next(
            (entry.body for entry in reversed(state.marks) if entry.kind == SETTINGS), {}
        )
        tried = next((entry for entry in reversed(state.marks) if entry.kind in {REFUSED, "fold"}), None)
        return Known(
            at=self._stands(state.head),
            fold=state.fold,
            folds=len(state.folds),
            pins={pin.name: pin.position for pin in state.pins if pin.position is not None},
            settings=settings,
            refused=Refused(**tried.body) if tried is not None and tried.kind == REFUSED else None,
            moves=sum(entry.kind == "move" for entry in state.marks),
        )

    def read(self, start: int, stop: int) -> Iterator[Message]:
        """Messages by position, a page at a time."""
        return (stored.message for stored in self.store.read(self._head, start=start, stop=stop))

    def append(self, messages: Sequence[Message]) -> Mark:
        """Add messages at the end."""
        return self._stands(self.store.append(self.branch, messages).head)

    def fold(self, fold: Fold, mark: int, claim: Claim | None = None) -> Mark:
        """Commit a fold, and the job that made it."""
        return self._stands(self.store.append_fold(self.branch, fold, mark=mark, claim=claim))

    def refuse(self, refused: Refused, mark: int) -> Mark:
        """Say that a fold was not made."""
        return self._stands(self.store.note(self.branch, REFUSED, refused._asdict(), mark=mark))

    def cancel(self) -> bool:
        """Take a fold from whoever makes it in the background."""
        return self.store.jobs.cancel(self.branch)

    def unfold(self, mark: int) -> Mark:
        """Take back the newest fold."""
        return self._stands(self.store.unfold(self.branch, mark=mark))

    def pin(self, name: str, position: int, mark: int) -> Mark:
        """Add a pin."""
        return self._stands(self.store.pin(self.branch, name, position, mark=mark))

    def unpin(self, name: str, mark: int) -> Mark:
        """Let go of a pin."""
        return self._stands(self.store.unpin(self.branch, name, mark=mark))

    def move(self, to: int, mark: int) -> Mark:
        """Go back to where there were `to` messages."""
        return self._stands(self.store.move(self.branch, to, mark=mark))

    def fork(self, name: str, at: int) -> Tip:
        """A branch of the session that begins with the first `at` messages."""
        return Tip(self.store, self.store.fork(self.branch, name, at=at))

    def searched(self) -> tuple[Store, Branch]:
        """Where to search."""
        return self.store, self.branch

    def settle(self, settings: Mapping[str, Any], mark: int) -> Mark:
        """Set what holds from here on."""
        return self._stands(self.store.note(self.branch, SETTINGS, dict(settings), mark=mark))

    def _stands(self, head: Head) -> Mark:
        self._head = head
        return Mark(head.length, head.mark)


Record: TypeAlias = Memory | Tip
"""What a session needs of either. What changes anything but the end names the mark it was decided on."""
