"""Repair of the order: every result where its provider looks for it.

Results are gathered behind the message (or the reply) that made the calls, in the order in which they came; what
already stands there is left alone, so that a sound conversation passes through as the very same messages. Everything
that has no place of its own (orphan results, texts between a call and its result) follows after the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import is_not
from typing import NamedTuple

from foldline.message import Message, Part, ToolCall, ToolResult
from foldline.wire.formats import is_exact
from foldline.wire.repair.context import Work, is_silent
from foldline.wire.repair.results_for_calls import Answer, Entry, Slot, agreed, closing, needs_closing, told


class Out(NamedTuple):
    """A message to be sent: the place it came from, and whose it is ("" for what changes nothing)."""

    at: int
    message: Message
    side: str


def arrange(entries: Sequence[Entry], work: Work) -> list[Out]:
    """All messages, in the order in which they can be sent."""
    out: list[Out] = []
    place = 0
    while place < len(entries):
        entry = entries[place]
        place += 1
        if entry.done:
            continue
        if entry.side != "assistant":
            _emit(out, entry, _rest(entry, work) if entry.answers else entry.message, entry.side, work)
            continue
        start, place = place, _run_end(entries, place, entry.run)
        between = entries[start:place]
        unit = [entry, *(each for each in between if each.side == "assistant")]
        _put_reply(out, entries, unit, place, work)
        for each in between:
            if each.side != "assistant":
                _emit(out, each, each.message, each.side, work)
    return out


def _run_end(entries: Sequence[Entry], place: int, run: int) -> int:
    """One past the last message of a reply; system messages inside it do not end it."""
    end = place
    while place < len(entries) and (entries[place].side == "system" or entries[place].run == run):
        place += 1
        if entries[place - 1].side == "assistant":
            end = place
    return end


def _emit(out: list[Out], entry: Entry, message: Message | None, side: str, work: Work) -> None:
    """Put a message, and the silent ones behind it."""
    if message is entry.message:
        out.append(Out(entry.index, message, side))
    elif message is not None and message.parts:
        out.append(Out(entry.index, message, "" if is_silent(message, work) else side))
    if entry.trail:
        out.extend(Out(index, silent, "") for index, silent in entry.trail)
    entry.done = True


def _put_reply(out: list[Out], entries: Sequence[Entry], unit: list[Entry], place: int, work: Work) -> None:
    """What the assistant says, the results of what it calls, and what it should not have held."""
    for entry in unit:
        said = _said(entry, work)
        if work.rules.calls_after_user and said is not None and any(not slot.dropped for slot in entry.slots):
            said = _joined_reply(out, entry, said, work)
        _emit(out, entry, said, "assistant", work)
    slots = [slot for entry in unit for slot in entry.slots if not slot.dropped]
    if slots:
        _put_results(out, entries, slots, place, work)
    for entry in unit:
        if not entry.answers:
            continue
        orphans = [part for answer in entry.answers if _is_orphan(answer) for part in _tell(answer, work)]
        if orphans:
            out.append(Out(entry.index, Message(role="user", parts=tuple(orphans), kind="note"), "user"))


def _said(entry: Entry, work: Work) -> Message | None:
    """The assistant's message with its calls as they are now, and without results."""
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
    if _same(parts, entry.message.parts):
        return entry.message
    if not parts:
        work.note("empty", entry.index, "left out: nothing is left in it")
        return None
    return entry.message.with_parts(*parts)


def _joined_reply(out: list[Out], entry: Entry, said: Message, work: Work) -> Message:
    """A message with calls, together with what the assistant said just before it."""
    before: list[Part] = []
    place = len(out) - 1
    while place >= 0 and out[place].side in ("assistant", ""):
        if out[place].side:
            before[:0] = out.pop(place).message.parts
        place -= 1
    if not before:
        return said
    work.note("reply-joined", entry.index, "joined with what the assistant said just before it, because it calls")
    return said.with_parts(*before, *said.parts)


def _put_results(out: list[Out], entries: Sequence[Entry], slots: list[Slot], place: int, work: Work) -> None:
    """The results of a reply: those in place, those from elsewhere, and a word for those that never came."""
    made: list[Out] = []
    near: list[Entry] = []
    if work.rules.adjacency == "after":
        wanted = [slot.answer for slot in slots if slot.answer and not _stays(slot.answer)]
    else:
        wanted = [slot.answer for slot in slots if slot.answer]
        near = _in_place(entries, place, set(wanted), work)
    last = near.pop() if near and _has_rest(near[-1], work) else None
    for entry in near:
        _emit(made, entry, _whole(entry, work), "user", work)
    settled = {*near, last}
    far = [answer for answer in wanted if answer.entry not in settled]
    if far:
        _fetch(made, sorted(far, key=lambda answer: answer.entry.index), work)
    for slot in slots:
        if needs_closing(slot, work):
            work.note("call-unanswered", slot.entry.index, f"no result was recorded for the call {_name(slot)}: closed")
            made.append(Out(slot.entry.index, Message(role="tool", parts=(closing(slot),)), "user"))
    if last is not None:
        _emit(made, last, _whole(last, work), "user", work)
    out.extend(_joined_results(made, work))


def _name(slot: Slot) -> str:
    return " ".join(word for word in (slot.call.name, slot.call.id) if word)


def _stays(answer: Answer) -> bool:
    """True for a result after its call, where a provider does not mind how far."""
    slot = answer.slot
    return slot is not None and answer.entry.side == "user" and answer.entry.index > slot.entry.index


def _in_place(entries: Sequence[Entry], place: int, wanted: set[Answer], work: Work) -> list[Entry]:
    """The messages directly after a reply that hold nothing but its results; the last may say more after them."""
    found: list[Entry] = []
    missing = len(wanted)
    while place < len(entries) and missing:
        entry = entries[place]
        place += 1
        if entry.done or (entry.side == "system" and work.rules.alternation == "merged"):
            continue
        kept = [answer for answer in entry.answers if answer.slot is not None]
        if entry.side != "user" or not kept or not all(answer in wanted for answer in kept):
            break
        if _has_rest(entry, work) and missing != len(kept):
            break
        found.append(entry)
        missing -= len(kept)
        if _has_rest(entry, work):
            break
    return found


def _has_rest(entry: Entry, work: Work) -> bool:
    """True for a message that says more than results that were called for."""
    return any(_is_orphan(answer) for answer in entry.answers) or (
        len(entry.answers) < len(entry.message.parts)
        and any(type(part) is not ToolResult and work.seen(part) for part in entry.message.parts)
    )


def _fetch(made: list[Out], far: list[Answer], work: Work) -> None:
    """Results from elsewhere: whole messages where those hold nothing else, otherwise the results alone."""
    for entry, group in groupby(far, key=lambda answer: answer.entry):
        answers = list(group)
        for answer in answers:
            name = answer.result.call_id or answer.result.name
            work.note("result-moved", entry.index, f"the result of {name} was moved to its call")
        kept = sum(answer.slot is not None for answer in entry.answers)
        if entry.side != "user" or len(answers) < kept or _has_rest(entry, work):
            made.append(Out(entry.index, _piece(entry, [agreed(answer, work) for answer in answers]), "user"))
        elif entry.done:
            made.append(Out(entry.index, _whole(entry, work), "user"))
        else:
            _emit(made, entry, _whole(entry, work), "user", work)


def _piece(entry: Entry, results: list[ToolResult]) -> Message:
    """Results of a message that stays behind; they keep what the message lends them, unless that was no user's."""
    if entry.message.role in ("tool", "user"):
        return entry.message.with_parts(*results)
    return Message(role="tool", parts=tuple(results))


def _joined_results(made: list[Out], work: Work) -> list[Out]:
    """All results in one message, where the provider counts them and the codec would not join them itself."""
    spoken = [each for each in made if each.side]
    if not work.rules.calls_after_user or len(spoken) < 2:
        return made
    results = [part for each in spoken for part in each.message.parts if isinstance(part, ToolResult)]
    rest = [part for each in spoken for part in each.message.parts if not isinstance(part, ToolResult)]
    if not any(work.seen(part) for part in rest) and not any(is_exact(each.message, work.target) for each in spoken):
        return made
    work.note("results-joined", spoken[0].at, "all results of one reply were put into one message")
    joined = Out(spoken[0].at, spoken[-1].message.with_parts(*results, *rest), "user")
    return [joined, *(each for each in made if not each.side)]


def _whole(entry: Entry, work: Work) -> Message:
    """A message with its results as they are now; orphans are told in words."""
    answers = iter(entry.answers)
    parts: list[Part] = []
    for part in entry.message.parts:
        if type(part) is not ToolResult:
            parts.append(part)
            continue
        answer = next(answers)
        if answer.slot is not None:
            parts.append(agreed(answer, work))
        elif not answer.dropped:
            parts.extend(_tell(answer, work))
    if work.rules.results_first:
        ordered = sorted(parts, key=lambda part: type(part) is not ToolResult and work.seen(part))
        if not _same(ordered, parts):
            work.note("result-order", entry.index, "results were put before everything else in their message")
            parts = ordered
    return _remade(entry.message, parts)


def _rest(entry: Entry, work: Work) -> Message:
    """What a message still says where it stands: the results that are wanted elsewhere have left it."""
    answers = iter(entry.answers)
    parts: list[Part] = []
    for part in entry.message.parts:
        if type(part) is not ToolResult:
            parts.append(part)
            continue
        answer = next(answers)
        if answer.slot is not None:
            parts += [agreed(answer, work)] if work.rules.adjacency == "after" and _stays(answer) else []
        elif not answer.dropped:
            parts.extend(_tell(answer, work))
    return _remade(entry.message, parts)


def _remade(message: Message, parts: list[Part]) -> Message:
    """The message with these parts; one that held results only, and no longer does, is a note of the user."""
    if _same(parts, message.parts):
        return message
    if message.role == "tool" and not any(isinstance(part, ToolResult) for part in parts):
        return Message(role="user", parts=tuple(parts), kind="note", meta=message.meta)
    return message.with_parts(*parts)


def _same(parts: Sequence[Part], others: Sequence[Part]) -> bool:
    return len(parts) == len(others) and not any(map(is_not, parts, others))


def _is_orphan(answer: Answer) -> bool:
    return answer.slot is None and not answer.dropped


def _tell(answer: Answer, work: Work) -> tuple[Part, ...]:
    name = answer.result.call_id or answer.result.name
    work.note("result-orphan", answer.entry.index, f"the result of {name} answers no call: told in words")
    return told(answer)
