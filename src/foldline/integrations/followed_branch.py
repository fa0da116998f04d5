"""One branch of a session, and the last history that a client or a framework sent for the branch.

The messages of the history are found in the session by their trace, a hash chain over texts, calls and results. Leading
system messages are not part of the chain: they are taken from the history itself and sent unchanged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import is_
from typing import Any, NamedTuple

from foldline.integrations.item_codec import ItemCodec
from foldline.ledger import MAIN
from foldline.ledger.message_keys import trace
from foldline.ledger.trace_chain import TraceChain
from foldline.message import Message
from foldline.plan.timeline import Timeline
from foldline.session.session import Session
from foldline.view.compose import View

INSTRUCTIONS = "instructions"
"""The value of `Meta.source` in a system message that is not an item of the history."""
_LEADING = frozenset({"system", "developer"})


class Piece(NamedTuple):
    """A message of a history, and its position in the session."""

    owner: int
    """Index of the item that the message was read from."""
    place: int
    """The number of messages in the session up to and including this message."""
    is_stored: bool = True
    """Whether the session has the message.

    A leading system message is not in the session, and a message without content may be missing.
    """
    system: Message | None = None
    """The message if it is a leading system message; else None."""


class HistoryMatch(NamedTuple):
    """The leading messages of a history that are also in a branch, and the new messages."""

    place: int
    """The number of messages in the session up to and including the last message that is in both the session and the
    history.
    """
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
        """The number of leading messages of the branch that the client or framework has sent back. After these
        messages, the branch has at most a reply, which the client or framework may still change.
        """
        self.chain = TraceChain()
        """The hash chain by which the messages of a history are found in the branch. The chain begins after the leading
        system messages.
        """
        self._items: Sequence[Any] = ()
        self._pieces: list[Piece] = []

    @property
    def length(self) -> int:
        """The number of messages of the branch."""
        return self.chain.end

    def refresh(self) -> None:
        """Read the session again if another process or a failed call has changed it."""
        self.session.refresh()
        if self.is_stale or len(self.session) != self.length:
            messages = self.session.messages
            start = next((at for at, one in enumerate(messages) if one.role not in _LEADING), len(messages))
            self.chain, self._items, self._pieces = TraceChain(start, messages[start:]), (), []
            reply = next((at for at, one in enumerate(reversed(messages)) if one.role != "assistant"), 0)
            self.confirmed, self.is_stale = self.length - reply, False  # the framework may still change the reply

    # Finding a history

    def has_instructions(self) -> bool:
        """Whether the session begins with system messages that are not items of the history."""
        timeline = self.session.timeline
        return any(message.meta.source == INSTRUCTIONS for message in timeline.messages[: timeline.lead])

    def align(self, items: Sequence[Any], *, complete: bool = False) -> HistoryMatch:
        """Find the messages of a history in the branch, starting at the first message.

        With `complete`, messages without content (such as reasoning) after the last message of the branch count as new.
        """
        self.refresh()
        shared = 0
        for one, other in zip(self._items, items, strict=False):
            if one is not other and one != other:
                break
            shared += 1
        pieces = [piece for piece in self._pieces if piece.owner < shared]
        place = pieces[-1].place if pieces else self.chain.start
        before, leads = self.chain.trace_before(place), all(piece.system for piece in pieces)
        messages = ((index, each) for index in range(shared, len(items)) for each in self.codec.read(items[index]))
        for index, message in messages:
            leads = leads and message.role in _LEADING
            if leads:
                pieces.append(Piece(index, place, False, message))
                continue
            step = trace("", before, message)
            found = self.chain.find(place, before, step)
            if found is None or (complete and found == place == self.length):
                return HistoryMatch(place, pieces, [(index, message), *messages])
            pieces.append(Piece(index, found, is_stored=found > place))
            place, before = found, step
        return HistoryMatch(place, pieces, [])

    def is_continued(self, found: HistoryMatch) -> bool:
        """Whether a history has all messages of the branch, or all except the last reply."""
        return found.place >= self.confirmed

    # Changing the branch

    def truncate(self, place: int) -> None:
        """Shorten the branch to its first `place` messages."""
        self.session.rewind(place)
        self.chain.truncate(place)
        self.confirmed = min(self.confirmed, place)

    def fork(self, name: str, place: int) -> FollowedBranch:
        """A new branch with the first `place` messages of this branch."""
        fork = FollowedBranch(self.session.branch(name, at=place), self.codec, name)
        fork.tools = self.tools
        fork.refresh()
        return fork

    def add(self, items: Sequence[Any], match: HistoryMatch, system: Sequence[Message]) -> None:
        """Add the new messages of a history. A new session gets the system messages first."""
        pieces = [*match.pieces]
        if not self.length:
            instructions = [each.with_meta(replace(each.meta, source=INSTRUCTIONS)) for each in system]
            leading = [*instructions, *(piece.system for piece in pieces if piece.system is not None)]
            self.session.add(*leading)
            self.chain = TraceChain(len(leading))
            pieces = [piece._replace(place=self.length) for piece in pieces]
        messages = [message for _, message in match.new]
        self.session.add(*messages)
        pieces += [Piece(owner, place) for place, (owner, _) in enumerate(match.new, start=self.length + 1)]
        self.chain.extend(messages)
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
        """For each message to send: the index of its item (None if foldline added the message), the message, and
        whether the message is unchanged.
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
