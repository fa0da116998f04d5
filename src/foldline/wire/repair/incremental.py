"""Repair of a growing history without reading it again from the start.

The history is split behind the last message of the user (text or results) that nothing later depends on. In front of
that point the repaired messages are stored; behind it the steps of `repair` run again at every update. A later message
that refers to the stored part (a late result, an id that occurs again) makes the repairer start over once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import is_not

from foldline.message import Message, Text
from foldline.wire.repair.context import RepairContext, RepairNote
from foldline.wire.repair.first_and_last import end_placeholder, is_from_user
from foldline.wire.repair.history import Repaired, RepairRun, repair_part
from foldline.wire.repair.references import References

_PLAIN_FIELDS = {"role", "content", "parts"}
"""Fields of a wire form that hold nothing but text."""


@dataclass(slots=True)
class _StoredPart:
    """The settled part of a history, up to a message of the user that nothing later depends on."""

    messages: list[Message] = field(default_factory=list)
    repaired: list[Message] = field(default_factory=list)
    notes: list[RepairNote] = field(default_factory=list)
    references: References = field(default_factory=References)
    has_user: bool = False


class RepairedHistory:
    """The repaired form of a history that grows: `update` gives what `repair` gives for all messages."""

    def __init__(self, format: str) -> None:
        context = RepairContext.of(format)
        self.format = context.format
        self._grammar = context.grammar
        self._stored = _StoredPart()

    def update(self, messages: Iterable[Message], *, grown: bool = False, ending: bool = True) -> Repaired:
        """All messages of the history, repaired.

        Everything is read again only after a change of earlier messages (a fold); `grown` says that there was none.
        Without `ending` a history that ends with a reply gets no placeholder behind it.
        """
        everything = tuple(messages)
        stored = self._stored
        if not grown and (len(stored.messages) > len(everything) or any(map(is_not, stored.messages, everything))):
            stored = self._stored = _StoredPart()
        count = len(stored.messages)
        rest = everything[count:]
        if count and self._is_plain(rest):
            return self._add_plain(everything, rest, ending)
        run = self._run(rest, count, ending)
        if count and stored.references.are_used_by(run):
            stored = self._stored = _StoredPart()
            rest = everything
            run = self._run(rest, 0, ending)
        if not stored.notes and not run.context.notes:
            repaired = Repaired(messages=everything)
        else:
            run.context.notes.sort(key=lambda note: note.index)
            repaired = Repaired(
                messages=(*stored.repaired, *(each.message for each in run.out)),
                notes=(*stored.notes, *run.context.notes),
            )
        self._store(run, rest)
        return repaired

    def _run(self, rest: Sequence[Message], start: int, ending: bool) -> RepairRun:
        context = RepairContext.of(self.format)
        context.ending = ending
        return repair_part(rest, context, start=start)

    def _is_plain(self, messages: Sequence[Message]) -> bool:
        """True for messages of the user and the assistant that hold visible text and nothing else."""
        for message in messages:
            if message.role != "user" and (message.role != "assistant" or message.kind):
                return False
            wire = message.wire
            if wire is not None and (
                not isinstance(wire.value, dict)
                or not wire.value.keys() <= _PLAIN_FIELDS
                or wire.value.get("role") not in self._grammar.roles
            ):
                return False
            for part in message.parts:
                if type(part) is not Text or not part.text.strip():
                    return False
            if not message.parts:
                return False
        return True

    def _add_plain(self, everything: tuple[Message, ...], rest: Sequence[Message], ending: bool) -> Repaired:
        """Plain messages behind the stored part need no repair, apart from a placeholder behind the last one."""
        stored = self._stored
        users = [place for place, message in enumerate(rest) if message.role == "user"]
        if users:
            settled, rest = rest[: users[-1] + 1], rest[users[-1] + 1 :]
            stored.messages.extend(settled)
            stored.repaired.extend(settled)
        if ending and rest and self._grammar.end and "assistant" not in self._grammar.end:
            message, note = end_placeholder(len(everything) - 1)
            return Repaired(messages=(*stored.repaired, *rest, message), notes=(*stored.notes, note))
        if not stored.notes:
            return Repaired(messages=everything)
        return Repaired(messages=(*stored.repaired, *rest), notes=tuple(stored.notes))

    def _store(self, run: RepairRun, rest: Sequence[Message]) -> None:
        stored = self._stored
        start = len(stored.messages)
        place = _last_settled(run)
        if place < 0:
            return
        origin, context = run.out[place].origin, run.context
        if rest[origin - start].role == "system":
            return
        if any(note.code == "reply-joined" and note.index > origin for note in context.notes):
            return  # a later message may hold parts of an earlier one
        earlier = (each for each in run.ordered if each.origin <= origin)
        has_user = stored.has_user or any(is_from_user(each, context) for each in earlier)
        if self._grammar.needs_user and not has_user:
            return
        references = References()
        if not references.add(run, origin) or references.are_used_by(run, origin):
            return
        stored.messages.extend(rest[: origin - start + 1])
        stored.repaired.extend(each.message for each in run.out[: place + 1])
        stored.notes.extend(note for note in context.notes if note.index <= origin)
        stored.has_user = has_user
        stored.references.update(references)


def _last_settled(run: RepairRun) -> int:
    """Place in `run.out` of the last user's message that divides it: earlier messages in front, later ones behind.

    The placeholders that repair adds come from the assistant's messages and never divide.
    """
    users = {entry.index for entry in run.entries if entry.side == "user"}
    origins = [each.origin for each in run.out]
    highest = [-1, *accumulate(origins, max)]
    lowest = float("inf")
    for place in range(len(origins) - 1, -1, -1):
        origin = origins[place]
        if run.out[place].side == "user" and origin in users and highest[place] < origin < lowest:
            return place
        lowest = min(lowest, origin)
    return -1
