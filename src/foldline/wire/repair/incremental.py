"""Repairs a growing history without reading it again from the start.

The history is split after a user message (text or results). The split is as late as possible, but no message after the
split may refer to a message before the split. The part before the split is stored in repaired form. The rest is
repaired again at every update. If a new message refers to the stored part (a late result, a repeated id), this update
repairs the whole history from its start.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import is_not
from threading import Lock

from foldline.message import Message, Text, Wire
from foldline.models.table import Model
from foldline.wire.json_values import is_encodable
from foldline.wire.repair.context import RepairContext, RepairNote
from foldline.wire.repair.first_and_last import end_placeholder, is_from_user
from foldline.wire.repair.history import Repaired, RepairRun, repair_part
from foldline.wire.repair.reasoning_order import is_reasoning
from foldline.wire.repair.references import References
from foldline.wire.repair.repeated_replies import reply_key

_PLAIN_FIELDS = {"role", "content", "parts"}
"""The only fields that the wire form of a plain text message has."""


@dataclass(slots=True)
class _StoredPart:
    """The stored part of a history, with its repaired form.

    No later message refers to the stored part, so later messages do not change its repaired form. The last message of
    the stored part is a user message.
    """

    messages: list[Message] = field(default_factory=list)
    repaired: list[Message] = field(default_factory=list)
    notes: list[RepairNote] = field(default_factory=list)
    references: References = field(default_factory=References)
    has_user: bool = False


class RepairedHistory:
    """Repairs a growing history. `update` returns what `repair` would return for all messages."""

    def __init__(self, format: str, model: Model | None = None) -> None:
        context = RepairContext.of(format, model)
        self.format, self.model = context.format, model
        self._grammar = context.grammar
        self._stored = _StoredPart()
        self.lock = Lock()
        """A lock for callers that share the object between threads."""

    def __eq__(self, other: object) -> bool:  # the stored part does not count: it is only a cache
        return isinstance(other, RepairedHistory) and (self.format, self.model) == (other.format, other.model)

    def __hash__(self) -> int:
        return hash(self.format)

    def update(self, messages: Iterable[Message], *, grown: bool = False, ending: bool = True) -> Repaired:
        """The whole history, repaired.

        If earlier messages changed (after a fold), all messages are read again. With `grown=True`, the caller promises
        that no earlier message changed. With `ending=False`, a history that ends with a reply gets no placeholder at
        its end.
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
        context = RepairContext.of(self.format, self.model)
        context.ending = ending
        return repair_part(rest, context, start=start)

    def _is_plain(self, messages: Sequence[Message]) -> bool:
        """True if all messages are plain.

        A plain message is from the user or the assistant, and holds only visible text. A plain message of the assistant
        does not directly follow another message of the assistant, and cannot be a repetition of an earlier reply.
        """
        before = "user"
        for message in messages:
            if message.role == before == "assistant":
                return False
            reply = message.meta.reply
            if reply and (reply == self._stored.references.last_reply or reply_key(message) is not None):
                return False
            before = message.role
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
                if type(part) is not Text or not part.text.strip() or not is_encodable(part.text):
                    return False
                if part.wire is not None and not self._is_sendable(part.wire):
                    return False
            if wire is not None and type(wire.value.get("content")) is not str and not self._is_sendable(wire):
                return False
            if not message.parts:
                return False
        return True

    def _is_sendable(self, wire: Wire) -> bool:
        """True if the provider accepts all fields in the wire form of a message or of a part.

        The result is True for a wire form of another format, because such a wire form is not sent.
        """
        grammar, value = self._grammar, wire.value
        if wire.format != self.format:
            return True
        if "role" not in value:
            return grammar.sendable_block(value) is value
        return not grammar.is_malformed(value) and grammar.sendable_element(value) is value

    def _add_plain(self, everything: tuple[Message, ...], rest: Sequence[Message], ending: bool) -> Repaired:
        """The repaired history, if `rest` (the messages after the stored part) holds only plain messages.

        Plain messages need no repair, but a placeholder may be needed at the end. The messages up to the last user
        message are added to the stored part.
        """
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
        place = _last_split(run)
        if place < 0:
            return
        origin, context = run.out[place].origin, run.context
        if rest[origin - start].role == "system":
            return
        if any(note.code == "reply-joined" and note.index > origin for note in context.notes):
            return  # a message after the split may hold parts of a message before the split
        if self._grammar.reasoning_followed and _ends_with_reasoning(run, origin):
            return  # the output that the reasoning led to may still come
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


def _ends_with_reasoning(run: RepairRun, origin: int) -> bool:
    """True if the last assistant message up to index `origin` holds only reasoning."""
    replies = [entry for entry in run.entries if entry.index <= origin and entry.side == "assistant"]
    return bool(replies) and is_reasoning(replies[-1].message)


def _last_split(run: RepairRun) -> int:
    """The index in `run.out` of the last user message after which the history can be split; -1 if there is none.

    At this message, the repaired history can be cut at the same place as the input: repair has moved no message from
    one side of it to the other. The message is never a placeholder that repair added.
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
