"""Invariant: no call id occurs twice within a reply. In some formats, no call id occurs twice within the whole request.

Ids occur twice when a call is written again after an abort, or when a server counts from `call_0` in every turn. If a
later call with the same id repeats the first call, the later call is dropped. Otherwise the later call and its result
get a new id.
"""

from __future__ import annotations

from foldline.message import edited
from foldline.wire.formats import element_format
from foldline.wire.repair.context import CallSlot, RepairContext, RepairEntry
from foldline.wire.repair.results_for_calls import CallIndex, rank_of


def make_ids_unique(calls: CallIndex, context: RepairContext) -> None:
    """Drop calls that are repetitions, and give new ids to other calls whose id occurred before."""
    groups: dict[tuple[str, int], list[CallSlot]] = {}
    for slot in calls.slots:
        scope = slot.entry.reply if context.grammar.unique == "reply" else -1
        groups.setdefault((slot.call.id, scope), []).append(slot)
    taken = set(calls.last)
    for (name, _), slots in groups.items():
        if not name:
            _give_ids(slots, taken, context)
        elif len(slots) > 1:
            _separate(name, slots, taken, context)


def _separate(name: str, slots: list[CallSlot], taken: set[str], context: RepairContext) -> None:
    """Drop repetitions among calls with the same id, and give new ids to all remaining calls except the first.

    Of two equal calls with results, the call with the better result stays (see `rank_of`). If neither result is better,
    the earlier call stays, because it may have been sent already.
    """
    complete = {(slot.entry.turn, key) for slot in slots if slot.answer is not None for key in _keys(slot)}
    earlier = set[tuple[str, str] | int]()
    remaining: list[CallSlot] = []
    for slot in slots:
        repeated = any(key in earlier or (slot.entry.turn, key) in complete for key in _keys(slot))
        earlier.update(_keys(slot))
        if slot.answer is None and repeated:
            _drop_call(slot, "a repeated call without a result", context)
        elif remaining and _is_repetition(slot, remaining[-1]):
            better = rank_of(slot.answer) > rank_of(remaining[-1].answer)
            worse, remaining[-1] = (remaining[-1], slot) if better else (slot, remaining[-1])
            _drop_call(worse, "a repeated call with a result", context)
        else:
            remaining.append(slot)
    for count, slot in enumerate(remaining[1:], start=2):
        new = _free_id(name, count, taken)
        context.note("call-duplicate", slot.entry.index, f"the call id {name} occurs twice: now {new}")
        _rename(slot, new)


def _keys(slot: CallSlot) -> tuple[tuple[str, str], int]:
    """Two keys by which repetitions of a call are found: its content, and the number of its reply."""
    return _content_of(slot), slot.entry.reply


def _content_of(slot: CallSlot) -> tuple[str, str]:
    return slot.call.name, slot.call.arguments


def _is_repetition(slot: CallSlot, before: CallSlot) -> bool:
    """True if a call repeats an earlier call. Both calls must be equal, and one of these conditions must be true:

    - The calls are in one reply, and their results have different ranks (see `rank_of`).
    - The calls are in one turn, and their results have equal parts.
    - The calls are in different turns. Their results are equal, and the messages with the calls have equal parts.
    """
    one, other = slot.answer, before.answer
    if one is None or other is None or _content_of(slot) != _content_of(before):
        return False
    if slot.entry.turn != before.entry.turn:
        return one.result == other.result and slot.entry.message.parts == before.entry.message.parts
    return one.result.parts == other.result.parts or (
        slot.entry.reply == before.entry.reply and rank_of(one) != rank_of(other)
    )


def _drop_call(slot: CallSlot, reason: str, context: RepairContext) -> None:
    slot.dropped = True
    if slot.answer is not None:
        slot.answer.dropped, slot.answer.slot = True, None
    context.note("call-duplicate", slot.entry.index, f"{reason} was left out ({slot.call.id})")


def _free_id(name: str, count: int, taken: set[str]) -> str:
    new = f"{name[:40]}_{count}"
    while new in taken:
        new += "_"
    taken.add(new)
    return new


def _rename(slot: CallSlot, new: str) -> None:
    slot.call = edited(slot.call, id=new)
    if slot.answer is not None:
        slot.answer.result = edited(slot.answer.result, call_id=new)


def _give_ids(slots: list[CallSlot], taken: set[str], context: RepairContext) -> None:
    """Give ids to calls without an id.

    A call gets no id here if the renderer adds an id later, or if the call has a legacy form without ids.
    """
    if context.grammar.pairing != "id":
        return
    for slot in slots:
        legacy = context.own(slot.call.wire) and "function_call" in slot.call.wire.value
        entries = [slot.entry, slot.answer.entry] if slot.answer is not None else [slot.entry]
        if legacy or not any(_is_of_elements(entry, context) for entry in entries):
            continue
        new = _free_id("call", slot.entry.index, taken)
        context.note("id", slot.entry.index, f"a call without an id got one: {new}")
        _rename(slot, new)


def _is_of_elements(entry: RepairEntry, context: RepairContext) -> bool:
    """True for a message that was read from an element of this format, either in a request or in a session log."""
    wire = entry.message.wire
    return wire is not None and element_format(wire.format) == context.target.element_format
