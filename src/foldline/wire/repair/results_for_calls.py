"""Invariant: every call has at most one result, and every result answers at most one call.

In practice, a result may come before its call or occur twice. A result may be an interim text that a later result
replaces. A result may answer a call that a fold removed. This stage matches each result with its call. The module
`unique_call_ids` repairs repeated ids, and `order_of_results` repairs wrong positions.

A late result is a result that comes only after the model has replied once more. The request for this reply already had
an interim text or a placeholder as the result of the call. What was sent must not change, so the late result stays at
its place, as text. For the same reason, a second result of a call is sent as text. If the second result only repeats
the first result, the second is left out. A result before its call is moved only if no reply comes between the two.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable

from foldline.message import Media, Part, Text, ToolCall, ToolResult, edited
from foldline.placeholders import NO_RESULT, late_result_line, orphan_result_line, second_result_line
from foldline.wire.repair.context import CallSlot, RepairContext, RepairEntry, ResultSlot


class _SlotStack:
    """A stack of calls, grouped by message. `first` returns the first unanswered call of the newest message that has
    one.
    """

    def __init__(self) -> None:
        self.groups: list[tuple[RepairEntry, deque[CallSlot]]] = []

    def add(self, slot: CallSlot) -> None:
        if not self.groups or self.groups[-1][0] is not slot.entry:
            self.groups.append((slot.entry, deque()))
        self.groups[-1][1].append(slot)

    def first(self) -> CallSlot | None:
        while self.groups:
            slots = self.groups[-1][1]
            while slots and slots[0].answer is not None:
                slots.popleft()
            if slots:
                return slots[0]
            self.groups.pop()
        return None


class CallIndex:
    """The calls read so far, searched by id or by name."""

    def __init__(self) -> None:
        self.slots: list[CallSlot] = []
        self.last: dict[str, CallSlot] = {}
        """The newest call with each id."""
        self.by_id: defaultdict[str, _SlotStack] = defaultdict(_SlotStack)
        self._by_name: defaultdict[tuple[bool, str], _SlotStack] = defaultdict(_SlotStack)
        """The calls by name. Each key is a pair: whether the call has an id, and the name of the call.

        Every call is also listed under the name "".
        """
        self._indexed = 0

    def add(self, slot: CallSlot) -> None:
        """Add a call."""
        self.slots.append(slot)
        if slot.call.id:
            self.last[slot.call.id] = slot
            self.by_id[slot.call.id].add(slot)

    def find(self, result: ToolResult) -> CallSlot | None:
        """The unanswered call that a result answers; None if there is none.

        A result with an id answers the call with that id. If no call has the id, the result answers a call of the same
        name that has no id. A result without an id answers a call of the same name. A result without id and name
        answers a call of any name.
        """
        if result.call_id in self.last:
            return self.by_id[result.call_id].first()
        if result.call_id:
            return self._find_by_name(False, result.name) if result.name else None
        return self._find_by_name(False, result.name) or self._find_by_name(True, result.name)

    def _find_by_name(self, has_id: bool, name: str) -> CallSlot | None:
        """The newest unanswered call with this name; None if there is none."""
        for slot in self.slots[self._indexed :]:
            for each in {slot.call.name, ""}:
                self._by_name[bool(slot.call.id), each].add(slot)
        self._indexed = len(self.slots)
        return self._by_name[has_id, name].first()


def tie_results(entries: Iterable[RepairEntry], context: RepairContext) -> CallIndex:
    """Fill `slots` and `answers` of the entries, match each result with its call, and return all calls."""
    calls = CallIndex()
    early: defaultdict[str, list[ResultSlot]] = defaultdict(list)
    moved: list[tuple[ResultSlot, CallSlot]] = []
    for entry in entries:
        for part in entry.message.parts:
            if type(part) is ToolCall:
                slot = CallSlot(entry, part)
                entry.slots.append(slot)
                calls.add(slot)
                if part.id in early:
                    moved += [(answer, slot) for answer in early.pop(part.id) if _is_just_before(answer, slot)]
            elif type(part) is ToolResult:
                answer = ResultSlot(entry, part)
                entry.answers.append(answer)
                _tie(answer, calls, early, context)
    for answer, slot in moved:
        found = calls.by_id[slot.call.id].first() if slot.answer is not None else slot
        if found is not None and _is_just_before(answer, found):
            found.answer, answer.slot = answer, found
        else:
            _set_second(answer, slot.answer, context)
    return calls


def _is_just_before(answer: ResultSlot, slot: CallSlot) -> bool:
    """True for a result that comes before its call, without another reply between the two.

    If there is another reply between the two, the result does not belong to this call, although the ids are equal: some
    servers use the same ids in every reply. The result then belongs to a call that is missing.
    """
    return slot.entry.turn <= answer.entry.turn + 1


def _tie(
    answer: ResultSlot, calls: CallIndex, early: defaultdict[str, list[ResultSlot]], context: RepairContext
) -> None:
    """Match a result with its call. If a call has two results, the first that is not an interim result stays."""
    slot = calls.find(answer.result) or calls.last.get(answer.result.call_id)
    if slot is None:
        early[answer.result.call_id].append(answer)
    elif slot.entry.turn < answer.entry.turn and slot.call.kind not in context.grammar.open_calls:
        answer.late = True
    elif slot.answer is not None and (answer.result.interim or not slot.answer.result.interim):
        _set_second(answer, slot.answer, context)
    else:
        if slot.answer is not None:
            _drop_result(slot.answer, context)
        slot.answer, answer.slot = answer, slot


def _set_second(answer: ResultSlot, first: ResultSlot | None, context: RepairContext) -> None:
    """Drop a second result of a call if it is interim or repeats the first result. Otherwise, mark it to be sent as
    text.
    """
    if answer.result.interim or (first is not None and answer.result.parts == first.result.parts):
        _drop_result(answer, context)
    else:
        answer.second = True


def rank_of(answer: ResultSlot | None) -> int:
    """The rank of a result: -1 for no result, 0 for an interim result, 1 for a failed result, 2 for a successful
    result.
    """
    if answer is None:
        return -1
    return 0 if answer.result.interim else 1 if answer.result.is_error else 2


def _drop_result(answer: ResultSlot, context: RepairContext) -> None:
    answer.slot, answer.dropped = None, True
    code, words = "result-duplicate", "a repetition of the result of a call"
    if answer.result.interim:
        code, words = "result-interim", "an interim result of a call that has another one"
    context.note(code, answer.entry.index, f"{words} was left out ({answer.result.call_id})")


def result_for_call(answer: ResultSlot, context: RepairContext) -> ToolResult:
    """The result, in the form that its call requires.

    The result gets the id or the name by which the format matches results with calls. A result may have been read from
    an element for another kind of call. Such an element cannot be sent again. So the result is marked as edited, and a
    new element is rendered for it.
    """
    result, slot = answer.result, answer.slot
    if slot is None or _is_tied(slot.call, result, context):
        if slot is not None and not _has_form_of(slot.call, answer, context):
            context.note(
                "result-form",
                answer.entry.index,
                f"the result of {slot.call.id} was converted to the form that its call requires",
            )
            return edited(result, name=result.name)
        return result
    call = slot.call
    context.note("id", answer.entry.index, f"a result got the id of the call it answers ({call.id or call.name})")
    by_id = call.id and context.grammar.pairing == "id"
    return edited(result, call_id=call.id, name=result.name if by_id else call.name)


def _has_form_of(call: ToolCall, answer: ResultSlot, context: RepairContext) -> bool:
    """False for a result that was read from an element for another kind of call."""
    wire = answer.entry.message.wire
    if not context.grammar.result_types or wire is None or not isinstance(wire.value, dict) or not context.own(wire):
        return True
    return context.grammar.result_types.get(str(wire.value.get("type")), call.kind) == call.kind


def _is_tied(call: ToolCall, result: ToolResult, context: RepairContext) -> bool:
    if call.id and call.id == result.call_id:
        unnamed = not result.name and not context.exact(result.wire)  # the renderer adds the name
        return context.grammar.pairing == "id" or result.name == call.name or unnamed
    if context.grammar.pairing == "id":
        same_name = result.name == call.name or (not result.name and not context.own(call.wire))
        return call.id == result.call_id and same_name
    return call.name == result.name and not (call.id and result.call_id)


def closing_result(slot: CallSlot, context: RepairContext) -> ToolResult:
    """A placeholder result for a call that has no result."""
    call = slot.call
    name = " ".join(word for word in (call.name, call.id) if word)
    context.note("call-unanswered", slot.entry.index, f"the call {name} has no result: a closing result was added")
    name = "" if call.id else call.name
    return ToolResult(call_id=call.id, name=name, parts=(Text(text=NO_RESULT),), is_error=True)


def orphan_as_text(answer: ResultSlot, context: RepairContext) -> tuple[Part, ...]:
    """An orphan, late or second result as text and media parts of a user message."""
    result = answer.result
    name = result.call_id or result.name
    if answer.late:
        context.note("result-late", answer.entry.index, f"the result of {name} came after the next reply: sent as text")
        line = late_result_line(result)
    elif answer.second:
        context.note(
            "result-second", answer.entry.index, f"a second result of {name} says something else: sent as text"
        )
        line = second_result_line(result)
    else:
        context.note("result-orphan", answer.entry.index, f"the result of {name} answers no call: sent as text")
        line = orphan_result_line(result)
    texts = [part.text for part in result.parts if isinstance(part, Text) and part.text.strip()]
    media = [part for part in result.parts if isinstance(part, Media)]
    return (Text(text="\n".join([line, *texts])), *media)
