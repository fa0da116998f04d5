"""One branch of a session, the last history that its owner sent, and the positions of the history's items in the
session.

Messages are found by their trace, a hash chain over texts, calls and results. Leading system messages are not part of
the chain. They belong to the request: those of the owner are always sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import is_
from typing import Any, NamedTuple

from foldline.integrations.item_codec import ItemCodec
from foldline.ledger import MAIN
from foldline.ledger.message_keys import ROOT, trace
from foldline.message import Message
from foldline.plan.timeline import Timeline
from foldline.session.session import Session
from foldline.view.compose import View

_LEADING = frozenset({"system", "developer"})


class Piece(NamedTuple):
    """A message of a history, and its position in the session."""

    owner: int
    """Index of the item that the message was read from."""
    place: int
    """The number of messages in the session up to and including this message."""
    is_stored: bool = True
    """Whether the session has the message.

    A leading system message is not stored, and a message without content need not be.
    """
    system: Message | None = None
    """The message if it is a leading system message; else None."""


class HistoryMatch(NamedTuple):
    """Which messages of a history are in a branch, from the first message on."""

    place: int
    """The number of messages in the session up to and including the last message that both have."""
    pieces: list[Piece]
    new: list[tuple[int, Message]]
    """The messages that the branch does not have, each with the index of its item."""


class FollowedBranch:
    """A branch, and the last history that was sent for it."""

    def __init__(self, session: Session, codec: ItemCodec, name: str = MAIN) -> None:
        self.session, self.codec, self.name = session, codec, name
        self.tools: list[Any] | None = None
        """The tool definitions of the last request; None before the first request."""
        self.is_stale = True
        """Whether the session must be read again, because it is new or because a call failed."""
        self.confirmed = 0
        """The number of leading messages of the branch that its owner has sent back.

        After them comes at most a reply, which the owner may still change.
        """
        self._start = 0
        """Position in the session of the first message after the system messages."""
        self._chain: list[bytes] = []
        """For each message of the session from `_start` on, the trace after it."""
        self._items: Sequence[Any] = ()
        self._pieces: list[Piece] = []

    @property
    def length(self) -> int:
        """The number of messages of the branch."""
        return self._start + len(self._chain)

    def refresh(self) -> None:
        """Read the session again if another process or a failed call has changed it."""
        self.session.refresh()
        if self.is_stale or len(self.session) != self.length:
            messages = self.session.messages
            self._start = next((at for at, one in enumerate(messages) if one.role not in _LEADING), len(messages))
            self._chain, self._items, self._pieces = [], (), []
            self.extend(messages[self._start :])
            self.confirmed, self.is_stale = self.length, False

    def extend(self, messages: Sequence[Message]) -> None:
        """Add messages to the chain. They must have been added to the session."""
        before = self._chain[-1] if self._chain else ROOT
        for message in messages:
            before = trace("", before, message)
            self._chain.append(before)

    # Finding a history

    def align(self, items: Sequence[Any]) -> HistoryMatch:
        """Find the messages of a history in the branch, from the first message on."""
        self.refresh()
        shared = 0
        for one, other in zip(self._items, items, strict=False):
            if one is not other and one != other:
                break
            shared += 1
        pieces = [piece for piece in self._pieces if piece.owner < shared]
        place = pieces[-1].place if pieces else self._start
        before, leads = self._trace_before(place), all(piece.system for piece in pieces)
        messages = ((index, each) for index in range(shared, len(items)) for each in self.codec.read(items[index]))
        for index, message in messages:
            leads = leads and message.role in _LEADING
            if leads:
                pieces.append(Piece(index, place, False, message))
                continue
            step = trace("", before, message)
            found = self._find(place, before, step)
            if found is None:
                return HistoryMatch(place, pieces, [(index, message), *messages])
            pieces.append(Piece(index, found, is_stored=found > place))
            place, before = found, step
        return HistoryMatch(place, pieces, [])

    def _find(self, place: int, before: bytes, step: bytes) -> int | None:
        """The number of messages in the session up to and including the next one; None if its trace is not `step`.

        `place` is this number for the previous message, and `before` is the trace of the previous message.
        """
        if step == before:  # a message without content, which the session may or may not have
            return place + (self._trace_at(place) == before)
        while self._trace_at(place) == before:
            place += 1
        return place + 1 if self._trace_at(place) == step else None

    def is_continued(self, found: HistoryMatch) -> bool:
        """Whether a history has all messages of the branch. The last reply may be missing."""
        return found.place >= self.confirmed

    def has_at(self, place: int, messages: Sequence[Message]) -> bool:
        """Whether the branch has these messages from the position `place` on."""
        before = self._trace_before(place)
        for index, message in enumerate(messages, start=place):
            before = trace("", before, message)
            if self._trace_at(index) != before:
                return False
        return True

    def _trace_before(self, place: int) -> bytes:
        return self._chain[place - self._start - 1] if place > self._start else ROOT

    def _trace_at(self, place: int) -> bytes | None:
        index = place - self._start
        return self._chain[index] if 0 <= index < len(self._chain) else None

    # Changing the branch

    def truncate(self, place: int) -> None:
        """Shorten the branch to its first `place` messages."""
        self.session.rewind(place)
        del self._chain[place - self._start :]
        self.confirmed = min(self.confirmed, place)

    def fork(self, name: str, place: int) -> FollowedBranch:
        """A new branch with the first `place` messages of this one."""
        fork = FollowedBranch(self.session.branch(name, at=place), self.codec, name)
        fork.tools = self.tools
        fork.refresh()
        return fork

    def add(self, items: Sequence[Any], match: HistoryMatch, system: Sequence[Message]) -> None:
        """Add the new messages of a history. A new session gets the system messages first."""
        pieces = [*match.pieces]
        if not self.length:
            leading = [*system, *(piece.system for piece in pieces if piece.system is not None)]
            self.session.add(*leading)
            self._start = len(leading)
            pieces = [piece._replace(place=self._start) for piece in pieces]
        messages = [message for _, message in match.new]
        self.session.add(*messages)
        pieces += [Piece(owner, place) for place, (owner, _) in enumerate(match.new, start=self.length + 1)]
        self.extend(messages)
        self._items, self._pieces, self.confirmed = tuple(items), pieces, self.length

    # What to send

    def items_of(self, view: View, plain: Callable[[Message], Message] | None) -> list[Any] | None:
        """The items for a view; None if the view is the unchanged history.

        `plain` is applied to each message that foldline added or changed.
        """
        timeline = self.session.timeline
        if len(view.messages) == len(timeline) and all(map(is_, view.messages, timeline.messages)):
            return None
        counts = Counter(piece.owner for piece in self._pieces)
        shown: list[Any] = []
        for owner, group in groupby(self._entries(view, timeline), key=lambda entry: entry[0]):
            entries = list(group)
            if owner is not None and len(entries) == counts[owner] and all(same for _, _, same in entries):
                shown.append(self._items[owner])
                continue
            messages = [message if same or plain is None else plain(message) for _, message, same in entries]
            shown += self.codec.write(messages, None if owner is None else self._items[owner])
        return shown

    def _entries(self, view: View, timeline: Timeline) -> Iterator[tuple[int | None, Message, bool]]:
        """For each message to send: the index of its item (None if foldline added it), the message, and whether it is
        unchanged.
        """
        for piece in self._pieces:
            if piece.system is not None:
                yield piece.owner, piece.system, True
        fold = timeline.fold
        kept = {*fold.pinned, *fold.carried} if fold is not None else set()
        stored = ((piece.place - 1, piece.owner) for piece in self._pieces if piece.is_stored)
        owners = {position: owner for position, owner in stored if position >= timeline.cut or position in kept}
        position_of: dict[int, int] = {}
        for position in owners:
            for message in (timeline.shown[position], timeline.messages[position]):
                position_of[id(message)] = position
                position_of.update((id(part), position) for part in message.parts)
        leading = {id(message) for message in timeline.messages[: timeline.lead]}
        source: int | None
        for message in view.messages:
            if id(message) in leading:
                continue
            source = position_of.get(id(message))
            if source is None:
                source = next((position_of[id(part)] for part in message.parts if id(part) in position_of), None)
            same = source is not None and message is timeline.messages[source]
            yield None if source is None else owners[source], message, same
