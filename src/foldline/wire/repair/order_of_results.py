"""Invariant: every result is at the position that its format expects.

Results are moved so that they directly follow the message or reply with the calls, in the order in which they came.
Results at the right position stay, so a valid history is returned as the same messages. Orphan results (results without
a call) come after the other results, and so do texts between a call and its result. If the format demands it, all
results of a reply are joined into one message. If a call has no result and another reply follows, a closing result is
added before that reply.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

from foldline.message import Message, Part, ToolCall, ToolResult
from foldline.wire.rendering import is_exact
from foldline.wire.repair.context import (
    CallSlot,
    OutgoingMessage,
    RepairContext,
    RepairEntry,
    ResultSlot,
    are_two_replies,
    has_same_parts,
    is_same_reply,
    is_silent,
)
from foldline.wire.repair.results_for_calls import closing_result, orphan_as_text, result_for_call


class ResultOrder:
    """Builds `out`, the list of messages in which every reply is followed by the results of its calls."""

    def __init__(self, entries: Sequence[RepairEntry], context: RepairContext) -> None:
        self.entries, self.context = entries, context
        self.out: list[OutgoingMessage] = []
        self._last_of_reply = {entry.reply: place for place, entry in enumerate(entries) if entry.reply >= 0}

    def run(self) -> list[OutgoingMessage]:
        """All messages in an order that can be sent."""
        place = 0
        while place < len(self.entries):
            entry = self.entries[place]
            place += 1
            if entry.emitted:
                continue
            if entry.side != "assistant":
                self._emit(entry, self._resolved(entry, moved=True) if entry.answers else entry.message, entry.side)
                continue
            start, place = place, self._end_of_reply(place, entry.reply)
            between = self.entries[start:place]
            *closed, last = self._split_reply([entry, *(each for each in between if each.side == "assistant")])
            for part in closed:
                self._emit_reply(part, len(self.entries))
            self._emit_reply(last, place)
            for each in between:
                if each.side != "assistant" and not each.emitted:
                    self._emit(each, self._resolved(each, moved=True) if each.answers else each.message, each.side)
        return self.out

    def _end_of_reply(self, place: int, reply: int) -> int:
        """The index after the last message of a reply.

        Other messages between the messages of the reply do not end the reply.
        """
        last = self._last_of_reply.get(reply, -1)
        return max(place, last + 1)

    def _split_reply(self, reply: list[RepairEntry]) -> list[list[RepairEntry]]:
        """The messages of `reply`, split into groups. The results of a group's calls are placed after that group.

        `reply` holds consecutive messages of the assistant. The provider may have sent these messages as several
        replies. If a message has an unanswered call and the next message is from another reply of the provider, the
        next message starts a new group.
        """
        if len(reply) == 1:
            return [reply]
        parts = [[reply[0]]]
        for before, entry in pairwise(reply):
            if any(map(self._is_unanswered, before.slots)) and self._are_apart(before, entry):
                parts.append([])
            parts[-1].append(entry)
        return parts

    def _are_apart(self, before: RepairEntry, entry: RepairEntry) -> bool:
        """True if it is known that two messages belong to different replies of the provider.

        If the format accepts results anywhere after their calls and neither message has a reply id, this is unknown,
        and the method returns False.
        """
        if self.context.grammar.adjacency == "after" and not (before.message.meta.reply or entry.message.meta.reply):
            return False
        return not is_same_reply(before, entry)

    def _is_unanswered(self, slot: CallSlot) -> bool:
        """True for a call that has no result and gets a closing result."""
        return slot.answer is None and not slot.dropped and slot.call.kind not in self.context.grammar.open_calls

    def _emit(self, entry: RepairEntry, message: Message | None, side: str) -> None:
        """Append `message` (the repaired form of the entry) to `out`, then the entry's silent messages.

        A silent message (a message that renders to nothing) stays in the history, so that the report of lost content
        names the message.
        """
        if message is entry.message:
            self.out.append(OutgoingMessage(entry.index, message, side))
        elif message is not None and message.parts:
            self.out.append(OutgoingMessage(entry.index, message, "" if is_silent(message, self.context) else side))
        if entry.silent:
            self.out.extend(OutgoingMessage(index, silent, "") for index, silent in entry.silent)
        entry.emitted = True

    def _emit_reply(self, reply: list[RepairEntry], place: int) -> None:
        """Append the messages of a reply, the results of its calls, and the orphan results in these messages."""
        calls_before = False
        for entry in reply:
            message = self._without_results(entry)
            has_calls = any(not slot.dropped for slot in entry.slots)
            joined = has_calls if self.context.grammar.calls_after_user else calls_before
            if joined and message is not None:
                message = self._joined_reply(entry, message)
            self._emit(entry, message, "assistant")
            calls_before = self.context.grammar.results_together and (calls_before or has_calls)
        slots = [slot for entry in reply for slot in entry.slots if not slot.dropped]
        if slots:
            start = len(self.out)
            self._emit_results(slots, place)
            if self.context.grammar.results_together or self.context.grammar.calls_after_user:
                self.out[start:] = self._joined_results(self.out[start:])
        for entry in reply:
            orphans = [
                part for answer in entry.answers if answer.is_orphan for part in orphan_as_text(answer, self.context)
            ]
            if orphans:
                note = Message(role="user", parts=tuple(orphans), kind="note")
                self.out.append(OutgoingMessage(entry.index, note, "user"))

    def _without_results(self, entry: RepairEntry) -> Message | None:
        """The assistant's message without results and without dropped calls; None if nothing is left."""
        if not entry.slots and not entry.answers:
            return entry.message
        slots = iter(entry.slots)
        parts: list[Part] = []
        for part in entry.message.parts:
            if type(part) is ToolCall:
                slot = next(slots)
                parts += [] if slot.dropped else [slot.call]
            elif type(part) is not ToolResult:
                parts.append(part)
        if has_same_parts(parts, entry.message.parts):
            return entry.message
        if not parts:
            self.context.note("empty", entry.index, "left out: no part of it remains")
            return None
        return entry.message.with_parts(*parts)

    def _joined_reply(self, entry: RepairEntry, message: Message) -> Message:
        """The message of an entry, joined with the assistant's messages directly before it.

        In some formats, a call must follow a user message. In these formats, two replies of the provider are not
        joined, because a placeholder user message separates the two replies.
        """
        before: list[Part] = []
        place = len(self.out) - 1
        if self.context.grammar.results_together and not is_exact(message, self.context.target.element_format):
            spoken = (each.message for each in reversed(self.out) if each.side)
            if not is_exact(next(spoken, message), self.context.target.element_format):
                return message  # the renderer joins them
        while place >= 0 and self.out[place].side in ("assistant", ""):
            if self.out[place].side:
                if self.context.grammar.calls_after_user and are_two_replies(self.out[place].message, message):
                    break
                before[:0] = self.out.pop(place).message.parts
            place -= 1
        if not before:
            return message
        words = "joined with the message before it, because the reply has a call"
        self.context.note("reply-joined", entry.index, words)
        return message.with_parts(*before, *message.parts)

    def _emit_results(self, slots: list[CallSlot], place: int) -> None:
        """Append the results of a reply.

        First come the results that already follow the reply, then results moved from other positions, then closing
        results.
        """
        near: list[RepairEntry] = []
        if self.context.grammar.adjacency == "after":
            wanted = [slot.answer for slot in slots if slot.answer and not slot.answer.may_stay]
        else:
            wanted = [slot.answer for slot in slots if slot.answer]
            near = self._entries_in_place(place, set(wanted))
        last = near.pop() if near and self._has_more(near[-1]) else None
        for entry in near:
            self._emit(entry, self._resolved(entry), "user")
        settled = {*near, last}
        far = [answer for answer in wanted if answer.entry not in settled]
        if far:
            self._move_results(sorted(far, key=lambda answer: answer.entry.index))
        for slot in slots:
            if self._is_unanswered(slot):
                closing = Message(role="tool", parts=(closing_result(slot, self.context),))
                self.out.append(OutgoingMessage(slot.entry.index, closing, "user"))
        if last is not None:
            self._emit(last, self._resolved(last), "user")

    def _entries_in_place(self, place: int, wanted: set[ResultSlot]) -> list[RepairEntry]:
        """The consecutive messages directly after a reply that hold results of this reply.

        Only the last of these messages may also hold other parts.
        """
        found: list[RepairEntry] = []
        missing = len(wanted)
        while place < len(self.entries) and missing:
            entry = self.entries[place]
            place += 1
            if entry.emitted or (entry.side == "system" and self.context.grammar.alternation == "merged"):
                continue
            tied = [answer for answer in entry.answers if answer.slot is not None]
            if entry.side != "user" or not tied or not all(answer in wanted for answer in tied):
                break
            has_more = self._has_more(entry)
            if has_more and missing != len(tied):
                break
            found.append(entry)
            missing -= len(tied)
            if has_more:
                break
        return found

    def _has_more(self, entry: RepairEntry) -> bool:
        """True for a message that holds orphan results, or rendered parts that are not results."""
        return any(answer.is_orphan for answer in entry.answers) or (
            len(entry.answers) < len(entry.message.parts)
            and any(type(part) is not ToolResult and self.context.is_rendered(part) for part in entry.message.parts)
        )

    def _move_results(self, far: list[ResultSlot]) -> None:
        """Append the results that are at wrong positions.

        If a message holds only such results, the whole message is appended. Otherwise only its results are appended.
        """
        for entry, group in groupby(far, key=lambda answer: answer.entry):
            answers = list(group)
            for answer in answers:
                name = answer.result.call_id or answer.result.name
                self.context.note("result-moved", entry.index, f"the result of {name} was moved to its call")
            tied = sum(answer.slot is not None for answer in entry.answers)
            if entry.side != "user" or len(answers) < tied or self._has_more(entry):
                results = tuple(result_for_call(answer, self.context) for answer in answers)
                keeps_role = entry.message.role in ("tool", "user")
                moved = entry.message.with_parts(*results) if keeps_role else Message(role="tool", parts=results)
                self.out.append(OutgoingMessage(entry.index, moved, "user"))
            elif entry.emitted:
                self.out.append(OutgoingMessage(entry.index, self._resolved(entry), "user"))
            else:
                self._emit(entry, self._resolved(entry), "user")

    def _joined_results(self, results: list[OutgoingMessage]) -> list[OutgoingMessage]:
        """The results of one reply, joined into one message.

        If the renderer joins the results itself, they are returned unchanged.
        """
        context = self.context
        spoken = [each for each in results if each.side]
        if len(spoken) < 2:
            return results
        parts = [part for each in spoken for part in each.message.parts]
        others = [part for part in parts if not isinstance(part, ToolResult)]
        exact = any(is_exact(each.message, context.target.element_format) for each in spoken)
        if not exact and not any(map(context.is_rendered, others)):
            return results
        origin = max(each.origin for each in spoken)
        context.note("results-joined", origin, "all results of one reply were joined into one message")
        joined = spoken[-1].message.with_parts(*(part for part in parts if isinstance(part, ToolResult)), *others)
        return [OutgoingMessage(origin, joined, "user"), *(each for each in results if not each.side)]

    def _resolved(self, entry: RepairEntry, *, moved: bool = False) -> Message:
        """The message with changed results: each result gets the id of its call, and each orphan result becomes a text.

        With `moved`, results that must be moved to another position are left out.
        """
        free = self.context.grammar.adjacency == "after"
        answers = iter(entry.answers)
        parts: list[Part] = []
        for part in entry.message.parts:
            if type(part) is not ToolResult:
                parts.append(part)
                continue
            answer = next(answers)
            if answer.slot is not None:
                stays = not moved or (free and answer.may_stay)
                parts += [result_for_call(answer, self.context)] if stays else []
            elif not answer.dropped:
                parts.extend(orphan_as_text(answer, self.context))
        if self.context.grammar.results_first and not moved:
            ordered = sorted(parts, key=lambda part: type(part) is not ToolResult and self.context.is_rendered(part))
            if not has_same_parts(ordered, parts):
                self.context.note("result-order", entry.index, "results were moved to the start of their message")
                parts = ordered
        message = entry.message
        if has_same_parts(parts, message.parts):
            return message
        if message.role == "tool" and not any(isinstance(part, ToolResult) for part in parts):
            return Message(role="user", parts=tuple(parts), kind="note", meta=message.meta)
        return message.with_parts(*parts)
