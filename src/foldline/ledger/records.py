"""What the ledger gives back: values that name rows, and the state that follows from them.

Every branch has a log: numbered entries, none of which is ever changed. An `append` entry says how far the branch
reaches now. All others are marks: a fold, an unfold, a pin, a move to another place, or whatever a caller notes. The
state of a branch is what its marks say, read in order, so two processes that read the same rows know the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from foldline.fold import Fold
from foldline.ledger.message_keys import ROOT
from foldline.ledger.serialize import message_of
from foldline.message import Message

MAIN = "main"
"""The branch a session starts with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One tip of one session."""

    id: int
    session: str
    name: str = MAIN
    origin: int | None = None
    """The branch it was made from, and how far that one's log counts for it too."""
    origin_seq: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Where a branch stands."""

    seq: int = 0
    """The number of its newest entry."""
    mark: int = 0
    """The number of its newest entry that is no append: what a fold was decided on holds while this stays the same."""
    length: int = 0
    """How many messages its path has."""
    key: bytes = ROOT
    """The key of the newest message."""
    at: float = 0.0
    strand: int | None = None
    log: bytes = ROOT
    """The key of the newest entry: it hangs on all entries before."""


class Span(NamedTuple):
    """A stretch of a path that lies together: messages `start` to `stop` - 1 of the path, all on one strand."""

    strand: int
    start: int
    stop: int


class StoredMessage(NamedTuple):
    """A message and where it stands."""

    position: int
    key: bytes
    at: float
    message: Message


class StoredEvent(NamedTuple):
    """Something that happened on a branch."""

    id: int
    kind: str
    at: float
    body: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendResult:
    """What an append did."""

    head: Head
    written: int
    """How many of the messages were new to the ledger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownHistory:
    """The longest known history that a list of messages begins with."""

    count: int
    """How many of the messages are known."""
    branch: Branch
    """The branch that said it first."""
    length: int
    """How long the known path is (it may hold reasoning that the list leaves out)."""
    key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One line of a branch's log."""

    branch: str
    seq: int
    kind: str
    length: int
    tip: bytes
    at: float
    op: str = ""
    cut: int | None = None
    """Where a fold cuts."""
    body: Any = None
    key: bytes = ROOT


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldReference:
    """A fold that was committed: where to find it, without all it says."""

    cut: int
    branch: str
    """The branch it was made on, whose log it stands in."""
    seq: int
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """What no fold may touch: a message by its position, or a text."""

    name: str
    position: int | None = None
    message: Message | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchState:
    """What the log of a branch says."""

    head: Head = Head()
    fold: Fold | None = None
    """The fold in force."""
    folds: tuple[FoldReference, ...] = ()
    """The folds that hold, oldest first; the last one is in force, and taking it back brings the one before."""
    pins: tuple[Pin, ...] = ()
    marks: tuple[LogEntry, ...] = field(default=(), repr=False)
    """Every entry it follows from, oldest first, the origin's included; of a fold, only where it cuts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """A session with its figures."""

    name: str
    made_at: float
    last_at: float
    branches: tuple[str, ...]
    messages: int
    """Messages on the path of its longest branch."""
    folds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegrityFault:
    """Something `verify` found wrong, and where."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def derive(marks: Iterable[LogEntry], head: Head) -> BranchState:
    """The state that follows from the marks of a branch and of its origins, oldest first; the fold is left to read."""
    marks = tuple(marks)
    folds: list[FoldReference] = []
    pins: dict[str, Pin] = {}
    for entry in marks:
        match entry.kind:
            case "fold":
                folds.append(FoldReference(cut=entry.cut or 0, branch=entry.branch, seq=entry.seq, at=entry.at))
            case "unfold":
                folds = [fold for fold in folds if [fold.branch, fold.seq] != entry.body["fold"]]
            case "pin":
                pins[entry.body["name"]] = _pin(entry.body)
            case "unpin":
                pins.pop(entry.body["name"], None)
            case "move" | "branch":
                shared = entry.body["shared"]
                folds = [fold for fold in folds if fold.cut <= shared]
                pins = {name: pin for name, pin in pins.items() if pin.position is None or pin.position < shared}
            case _:
                pass
    return BranchState(head=head, folds=tuple(folds), pins=tuple(pins.values()), marks=marks)


def _pin(body: dict[str, Any]) -> Pin:
    message = body.get("message")
    return Pin(name=body["name"], position=body.get("position"), message=message and message_of(message))
