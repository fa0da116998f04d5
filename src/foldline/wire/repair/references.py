"""The ids (of calls, results and items) by which a later message can refer to the part of a history that is stored in
repaired form (see `incremental.py`).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from foldline.message import ToolCall, ToolResult
from foldline.wire.repair.context import RepairEntry
from foldline.wire.repair.history import RepairRun
from foldline.wire.repair.server_calls import server_calls_of, server_part


@dataclass(slots=True)
class References:
    """The ids in the stored part of a history.

    If a later message refers to one of these ids, the whole history must be repaired again.
    """

    calls: set[str] = field(default_factory=set)
    """Ids of calls; "" for a call without an id."""
    new_ids: set[str] = field(default_factory=set)
    """Ids that repair gave to calls."""
    early_results: set[str] = field(default_factory=set)
    """Ids in results that have no call before them."""
    unanswered: set[str] = field(default_factory=set)
    """Ids of calls that have no result after them; "" for a call without an id."""
    items: set[str] = field(default_factory=set)
    replies: set[Hashable] = field(default_factory=set)
    """Keys of replies (see `repeated_replies`)."""
    last_reply: str = ""
    """The id of the last reply. A log may hold further messages of this reply after the results of its calls."""
    server_calls: set[str] = field(default_factory=set)
    """Ids of server-side calls (calls that the provider runs itself)."""

    def add(self, run: RepairRun, last: int) -> bool:
        """Add the ids in the messages of a repair run, up to index `last`.

        Returns False if one of these messages has a server-side call that is still pending.
        """
        context = run.context
        if context.has_thinking and context.grammar.server_calls:
            end = max(place for place, each in enumerate(run.ordered) if each.origin == last)
            found = server_calls_of(run.ordered[: end + 1], context)
            if len(found.lost) < len(found.unanswered):
                return False
            self.server_calls |= found.names
        for entry in run.entries:
            if entry.index > last:
                break
            if entry.side == "assistant":
                self.last_reply = entry.message.meta.reply
            if entry.slots or entry.answers:
                self._add_entry(entry, last)
        self.items.update(key for key, places in context.items.items() if places[0] <= last)
        if context.replies:
            self.replies.update(key for key, places in context.replies.items() if places[0] <= last)
        return True

    def _add_entry(self, entry: RepairEntry, last: int) -> None:
        calls = [part.id for part in entry.message.parts if type(part) is ToolCall]
        for old, slot in zip(calls, entry.slots, strict=True):
            self.calls.add(old)
            if slot.call.id != old:
                self.new_ids.add(slot.call.id)
            if slot.answer is None or slot.answer.is_early or slot.answer.entry.index > last:
                self.unanswered.add(old)
        results = [part.call_id for part in entry.message.parts if type(part) is ToolResult]
        self.early_results.update(key for key, answer in zip(results, entry.answers, strict=True) if answer.is_early)

    def update(self, other: References) -> None:
        """Add the ids of messages that were added to the stored part."""
        self.calls |= other.calls
        self.new_ids |= other.new_ids
        self.early_results |= other.early_results
        self.unanswered |= other.unanswered
        self.items |= other.items
        self.replies |= other.replies
        self.last_reply = other.last_reply
        self.server_calls |= other.server_calls

    def are_used_by(self, run: RepairRun, after: int = -1) -> bool:
        """True if a message of the run refers to one of these ids. Only messages with an index above `after` are
        checked.
        """
        context = run.context
        if any(key in self.items and places[-1] > after for key, places in context.items.items()):
            return True
        for key, places in context.replies.items():
            if key in self.replies and places[-1] > after:
                return True
        own_calls = set[str]()
        return any(entry.index > after and self._is_used_by(entry, own_calls, run) for entry in run.entries)

    def _is_used_by(self, entry: RepairEntry, own_calls: set[str], run: RepairRun) -> bool:
        """True if a message refers to one of these ids. `own_calls` collects the ids of the calls seen so far."""
        if self.last_reply and entry.message.meta.reply == self.last_reply:
            return True
        slots = iter(entry.slots)
        for part in entry.message.parts:
            if type(part) is ToolCall:
                if self._is_used_by_call(part.id, next(slots).call.id, run):
                    return True
                own_calls.add(part.id)
            elif type(part) is ToolResult:
                if self._is_used_by_result(part, own_calls):
                    return True
            elif self.server_calls and server_part(part, run.context)[1] in self.server_calls:
                return True
        return False

    def _is_used_by_call(self, old: str, new: str, run: RepairRun) -> bool:
        """True if the id of a call before repair (`old`) or after repair (`new`) is already used in the stored part."""
        in_request = run.context.grammar.unique == "request"
        if old and (old in self.new_ids or old in self.early_results or (in_request and old in self.calls)):
            return True
        if new == old:
            return False
        return new in self.calls or new in self.new_ids or (in_request and not old and "" in self.calls)

    def _is_used_by_result(self, result: ToolResult, own_calls: set[str]) -> bool:
        """True if a result answers, or may answer, a call in the stored part. Ids are compared first, then names."""
        key = result.call_id
        if key and key in self.unanswered:
            return True
        if key and (key in own_calls or key in self.calls):
            return key not in own_calls
        return bool(self.unanswered) and (not key or bool(result.name))
