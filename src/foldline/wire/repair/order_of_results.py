"""Invariant: every result stands where its format expects it.

Results are gathered behind the message (or the reply) that made the calls, in the order in which they came. Results
that are in place stay, so a sound history passes through as the very same messages. Orphan results and texts between a
call and its result follow behind the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from foldline.message import Message, Part, ToolCall, ToolResult
from foldline.wire.rendering import is_exact
from foldline.wire.repair.context import OutgoingMessage, RepairContext, has_same_parts, is_silent
from foldline.wire.repair.entries import CallSlot, RepairEntry, ResultSlot
from foldline.wire.repair.results_for_calls import closing_result, needs_closing, orphan_as_text, result_for_call


def order_results(entries: Sequence[RepairEntry], context: RepairContext) -> list[OutgoingMessage]:
    """All messages in an order that can be sent."""
    out: list[OutgoingMessage] = []
    place = 0
    while place < len(entries):
        entry = entries[place]
        place += 1
        if entry.emitted:
            continue
        if entry.side != "assistant":
            _emit(out, entry, _remainder(entry, context) if entry.answers else entry.message, entry.side, context)
            continue
        start, place = place, _end_of_reply(entries, place, entry.reply)
        between = entries[start:place]
        reply = [entry, *(each for each in between if each.side == "assistant")]
        _emit_reply(out, entries, reply, place, context)
        for each in between:
            if each.side != "assistant":
                _emit(out, each, each.message, each.side, context)
    return out


def _end_of_reply(entries: Sequence[RepairEntry], place: int, reply: int) -> int:
    """One past the last message of a reply; system messages inside it do not end it."""
    end = place
    while place < len(entries) and (entries[place].side == "system" or entries[place].reply == reply):
        place += 1
        if entries[place - 1].side == "assistant":
            end = place
    return end


def _emit(
    out: list[OutgoingMessage], entry: RepairEntry, message: Message | None, side: str, context: RepairContext
) -> None:
    """Append a message of the entry and the silent messages behind it."""
    if message is entry.message:
        out.append(OutgoingMessage(entry.index, message, side))
    elif message is not None and message.parts:
        out.append(OutgoingMessage(entry.index, message, "" if is_silent(message, context) else side))
    if entry.silent:
        out.extend(OutgoingMessage(index, silent, "") for index, silent in entry.silent)
    entry.emitted = True


def _emit_reply(
    out: list[OutgoingMessage],
    entries: Sequence[RepairEntry],
    reply: list[RepairEntry],
    place: int,
    context: RepairContext,
) -> None:
    """Append the messages of a reply, the results of its calls, and orphan results that stood inside it."""
    for entry in reply:
        message = _without_results(entry, context)
        if context.grammar.calls_after_user and message is not None and any(not slot.dropped for slot in entry.slots):
            message = _joined_reply(out, entry, message, context)
        _emit(out, entry, message, "assistant", context)
    slots = [slot for entry in reply for slot in entry.slots if not slot.dropped]
    if slots:
        _emit_results(out, entries, slots, place, context)
    for entry in reply:
        orphans = [part for answer in entry.answers if answer.is_orphan for part in _orphan_text(answer, context)]
        if orphans:
            note = Message(role="user", parts=tuple(orphans), kind="note")
            out.append(OutgoingMessage(entry.index, note, "user"))


def _without_results(entry: RepairEntry, context: RepairContext) -> Message | None:
    """The assistant's message with its remaining calls and without results; None when nothing is left."""
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
        context.note("empty", entry.index, "left out: no part of it remains")
        return None
    return entry.message.with_parts(*parts)


def _joined_reply(out: list[OutgoingMessage], entry: RepairEntry, message: Message, context: RepairContext) -> Message:
    """A message with calls, joined with the assistant's messages directly in front of it."""
    before: list[Part] = []
    place = len(out) - 1
    while place >= 0 and out[place].side in ("assistant", ""):
        if out[place].side:
            before[:0] = out.pop(place).message.parts
        place -= 1
    if not before:
        return message
    context.note(
        "reply-joined", entry.index, "joined with the assistant's message in front of it, because it has a call"
    )
    return message.with_parts(*before, *message.parts)


def _emit_results(
    out: list[OutgoingMessage],
    entries: Sequence[RepairEntry],
    slots: list[CallSlot],
    place: int,
    context: RepairContext,
) -> None:
    """Append the results of a reply: those in place, those from other places, and closing results."""
    results: list[OutgoingMessage] = []
    near: list[RepairEntry] = []
    if context.grammar.adjacency == "after":
        wanted = [slot.answer for slot in slots if slot.answer and not _may_stay(slot.answer)]
    else:
        wanted = [slot.answer for slot in slots if slot.answer]
        near = _entries_in_place(entries, place, set(wanted), context)
    last = near.pop() if near and _has_more(near[-1], context) else None
    for entry in near:
        _emit(results, entry, _with_results(entry, context), "user", context)
    settled = {*near, last}
    far = [answer for answer in wanted if answer.entry not in settled]
    if far:
        _move_results(results, sorted(far, key=lambda answer: answer.entry.index), context)
    for slot in slots:
        if needs_closing(slot, context):
            name = " ".join(word for word in (slot.call.name, slot.call.id) if word)
            context.note(
                "call-unanswered", slot.entry.index, f"the call {name} has no result: a closing result was added"
            )
            closing = Message(role="tool", parts=(closing_result(slot),))
            results.append(OutgoingMessage(slot.entry.index, closing, "user"))
    if last is not None:
        _emit(results, last, _with_results(last, context), "user", context)
    out.extend(_joined_results(results, context))


def _may_stay(answer: ResultSlot) -> bool:
    """True for a result behind its call, for formats that accept it at any distance."""
    slot = answer.slot
    return slot is not None and answer.entry.side == "user" and answer.entry.index > slot.entry.index


def _entries_in_place(
    entries: Sequence[RepairEntry], place: int, wanted: set[ResultSlot], context: RepairContext
) -> list[RepairEntry]:
    """The messages directly behind a reply that hold only its results; the last of them may hold more."""
    found: list[RepairEntry] = []
    missing = len(wanted)
    while place < len(entries) and missing:
        entry = entries[place]
        place += 1
        if entry.emitted or (entry.side == "system" and context.grammar.alternation == "merged"):
            continue
        tied = [answer for answer in entry.answers if answer.slot is not None]
        if entry.side != "user" or not tied or not all(answer in wanted for answer in tied):
            break
        if _has_more(entry, context) and missing != len(tied):
            break
        found.append(entry)
        missing -= len(tied)
        if _has_more(entry, context):
            break
    return found


def _has_more(entry: RepairEntry, context: RepairContext) -> bool:
    """True for a message that holds more than results of calls."""
    return any(answer.is_orphan for answer in entry.answers) or (
        len(entry.answers) < len(entry.message.parts)
        and any(type(part) is not ToolResult and context.is_rendered(part) for part in entry.message.parts)
    )


def _move_results(results: list[OutgoingMessage], far: list[ResultSlot], context: RepairContext) -> None:
    """Append results from other places: their whole message if it holds nothing else, otherwise the results alone."""
    for entry, group in groupby(far, key=lambda answer: answer.entry):
        answers = list(group)
        for answer in answers:
            name = answer.result.call_id or answer.result.name
            context.note("result-moved", entry.index, f"the result of {name} was moved to its call")
        tied = sum(answer.slot is not None for answer in entry.answers)
        if entry.side != "user" or len(answers) < tied or _has_more(entry, context):
            moved = _only_results(entry, [result_for_call(answer, context) for answer in answers])
            results.append(OutgoingMessage(entry.index, moved, "user"))
        elif entry.emitted:
            results.append(OutgoingMessage(entry.index, _with_results(entry, context), "user"))
        else:
            _emit(results, entry, _with_results(entry, context), "user", context)


def _only_results(entry: RepairEntry, results: list[ToolResult]) -> Message:
    """A message with some results of the entry; it keeps the other fields of a user's or tool's message."""
    if entry.message.role in ("tool", "user"):
        return entry.message.with_parts(*results)
    return Message(role="tool", parts=tuple(results))


def _joined_results(results: list[OutgoingMessage], context: RepairContext) -> list[OutgoingMessage]:
    """All results in one message, for formats that count them, unless the renderer joins them itself."""
    spoken = [each for each in results if each.side]
    if not context.grammar.calls_after_user or len(spoken) < 2:
        return results
    parts = [part for each in spoken for part in each.message.parts]
    others = [part for part in parts if not isinstance(part, ToolResult)]
    if not any(map(context.is_rendered, others)) and not any(
        is_exact(each.message, context.target.element_format) for each in spoken
    ):
        return results
    context.note("results-joined", spoken[0].origin, "all results of one reply were joined into one message")
    joined = spoken[-1].message.with_parts(*(part for part in parts if isinstance(part, ToolResult)), *others)
    return [OutgoingMessage(spoken[0].origin, joined, "user"), *(each for each in results if not each.side)]


def _with_results(entry: RepairEntry, context: RepairContext) -> Message:
    """The message with its results tied to their calls and orphans as text."""
    parts = _resolved_parts(entry, context, keeps=lambda _answer: True)
    if context.grammar.results_first:
        ordered = sorted(parts, key=lambda part: type(part) is not ToolResult and context.is_rendered(part))
        if not has_same_parts(ordered, parts):
            context.note("result-order", entry.index, "results were moved to the start of their message")
            parts = ordered
    return _rebuilt(entry.message, parts)


def _remainder(entry: RepairEntry, context: RepairContext) -> Message:
    """The message without the results that were moved to their calls."""
    free = context.grammar.adjacency == "after"
    return _rebuilt(entry.message, _resolved_parts(entry, context, keeps=lambda answer: free and _may_stay(answer)))


def _resolved_parts(entry: RepairEntry, context: RepairContext, *, keeps: Callable[[ResultSlot], bool]) -> list[Part]:
    """Parts of a message: results that it `keeps` tied to their calls, orphans as text."""
    answers = iter(entry.answers)
    parts: list[Part] = []
    for part in entry.message.parts:
        if type(part) is not ToolResult:
            parts.append(part)
            continue
        answer = next(answers)
        if answer.slot is not None:
            parts += [result_for_call(answer, context)] if keeps(answer) else []
        elif not answer.dropped:
            parts.extend(_orphan_text(answer, context))
    return parts


def _rebuilt(message: Message, parts: list[Part]) -> Message:
    """The message with these parts; a tool message without results becomes a note of the user."""
    if has_same_parts(parts, message.parts):
        return message
    if message.role == "tool" and not any(isinstance(part, ToolResult) for part in parts):
        return Message(role="user", parts=tuple(parts), kind="note", meta=message.meta)
    return message.with_parts(*parts)


def _orphan_text(answer: ResultSlot, context: RepairContext) -> tuple[Part, ...]:
    name = answer.result.call_id or answer.result.name
    context.note("result-orphan", answer.entry.index, f"the result of {name} answers no call: sent as text")
    return orphan_as_text(answer)
