"""Repair of calls and results: which result answers which call, and what to do with those left over.

Ids come twice (an abort that wrote its call again, servers that count from `call_0` in every turn), results come before
their calls, twice, as an interim word and a final one, or for calls that a fold took away. Here every call finds at
most one result and every result at most one call; where they stand is the business of `order_of_results`.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass

from foldline.message import Media, Message, Part, Text, ToolCall, ToolResult
from foldline.wire.repair.context import Work, edited

NO_RESULT = "[no result was recorded for this call]"
"""Closes a call that was never answered."""

_LOOSE = ("mcp_approval_request", "tool_search")
"""Kinds of Responses calls that may stay open."""


@dataclass(slots=True, eq=False)
class Slot:
    """A call and the result it got."""

    entry: Entry
    call: ToolCall
    answer: Answer | None = None
    dropped: bool = False


@dataclass(slots=True, eq=False)
class Answer:
    """A result and the call it answers; without one it is an orphan, told in words."""

    entry: Entry
    result: ToolResult
    slot: Slot | None = None
    dropped: bool = False


class Entry:
    """A message on its way through repair."""

    __slots__ = ("answers", "done", "index", "message", "run", "side", "slots", "trail")

    def __init__(self, index: int, message: Message, side: str) -> None:
        self.index = index
        self.message = message
        self.side = side
        self.run = -1
        """Messages of one reply have the same number."""
        self.slots: list[Slot] = []
        self.answers: list[Answer] = []
        self.trail: list[tuple[int, Message]] = []
        """Silent messages that follow it."""
        self.done = False


class _Stack:
    """Waiting calls, the newest message on top, the first call of a message first."""

    def __init__(self) -> None:
        self.groups: list[tuple[Entry, deque[Slot]]] = []

    def add(self, slot: Slot) -> None:
        if not self.groups or self.groups[-1][0] is not slot.entry:
            self.groups.append((slot.entry, deque()))
        self.groups[-1][1].append(slot)

    def first(self) -> Slot | None:
        while self.groups:
            waiting = self.groups[-1][1]
            while waiting and waiting[0].answer is not None:
                waiting.popleft()
            if waiting:
                return waiting[0]
            self.groups.pop()
        return None


class _Waiting:
    """The calls seen so far, and how a result finds its own. Under the name "" stand all of them."""

    def __init__(self) -> None:
        self.slots: list[Slot] = []
        self.last: dict[str, Slot] = {}
        self.by_id: defaultdict[str, _Stack] = defaultdict(_Stack)
        self._by_name: defaultdict[tuple[bool, str], _Stack] = defaultdict(_Stack)
        self._named = 0

    def add(self, slot: Slot) -> None:
        self.slots.append(slot)
        if slot.call.id:
            self.last[slot.call.id] = slot
            self.by_id[slot.call.id].add(slot)

    def find(self, result: ToolResult) -> Slot | None:
        """By id; without one by name, or simply the newest call; an unknown id may belong to a call without one."""
        if result.call_id in self.last:
            return self.by_id[result.call_id].first()
        if result.call_id:
            return self._named_call(False, result.name) if result.name else None
        return self._named_call(False, result.name) or self._named_call(True, result.name)

    def _named_call(self, has_id: bool, name: str) -> Slot | None:
        """The newest waiting call of a name; the names are looked at only when somebody asks."""
        for slot in self.slots[self._named :]:
            stacks = {slot.call.name, ""}
            for each in stacks:
                self._by_name[bool(slot.call.id), each].add(slot)
        self._named = len(self.slots)
        return self._by_name[has_id, name].first()


def pair(entries: Iterable[Entry], work: Work) -> None:
    """Tie results to calls, in place."""
    waiting = _Waiting()
    early: list[Answer] = []
    for entry in entries:
        for part in entry.message.parts:
            if type(part) is ToolCall:
                entry.slots.append(Slot(entry, part))
                waiting.add(entry.slots[-1])
            elif type(part) is ToolResult:
                entry.answers.append(Answer(entry, part))
                _take(entry.answers[-1], waiting, early, work)
    for answer in early:
        if answer.result.call_id not in waiting.last:
            continue
        found = waiting.by_id[answer.result.call_id].first()
        if found is not None:
            found.answer, answer.slot = answer, found
        else:
            _drop_answer(answer, "a result that came before the one it repeats", work)
    _single_ids(waiting, work)


def _take(answer: Answer, waiting: _Waiting, early: list[Answer], work: Work) -> None:
    slot = waiting.find(answer.result)
    if slot is not None:
        slot.answer, answer.slot = answer, slot
        return
    slot = waiting.last.get(answer.result.call_id)
    if slot is None:
        early.append(answer)
        return
    held = slot.answer
    if held is None or _rank(answer.result) >= _rank(held.result):
        if held is not None:
            _drop_answer(held, _why(held.result), work)
        slot.answer, answer.slot = answer, slot
    else:
        _drop_answer(answer, _why(answer.result), work)


def _rank(result: ToolResult) -> int:
    """A final result beats an interim one, and one that worked beats one that failed."""
    return 0 if result.interim else 1 if result.is_error else 2


def _why(result: ToolResult) -> str:
    return "an interim result that a later one replaced" if result.interim else "a second result of the same call"


def _drop_answer(answer: Answer, why: str, work: Work) -> None:
    answer.slot, answer.dropped = None, True
    code = "result-interim" if answer.result.interim else "result-duplicate"
    work.note(code, answer.entry.index, f"{why} was left out ({answer.result.call_id})")


def _single_ids(waiting: _Waiting, work: Work) -> None:
    """No id twice, as far as the provider cares; the completed call stays."""
    groups: dict[tuple[str, int], list[Slot]] = {}
    for slot in waiting.slots:
        scope = slot.entry.run if work.rules.unique == "reply" else -1
        groups.setdefault((slot.call.id, scope), []).append(slot)
    for (name, _), slots in groups.items():
        if not name:
            _give_ids(slots, waiting, work)
        elif len(slots) > 1:
            _single_id(name, slots, waiting, work)


def _single_id(name: str, slots: list[Slot], waiting: _Waiting, work: Work) -> None:
    done = [slot for slot in slots if slot.answer is not None] or slots[:1]
    same = {(slot.call.name, slot.call.arguments) for slot in done}
    runs = {slot.entry.run for slot in done}
    kept: list[Slot] = []
    for slot in slots:
        said = (slot.call.name, slot.call.arguments)
        if slot.answer is None and slot is not done[0] and (said in same or slot.entry.run in runs):
            _drop_call(slot, "the same call again, without a result", work)
        elif kept and _is_repeat(slot, kept[-1]):
            better = _rank_of(slot) > _rank_of(kept[-1])
            worse, kept[-1] = (kept[-1], slot) if better else (slot, kept[-1])
            _drop_call(worse, "the same call with a result again", work)
        else:
            kept.append(slot)
    for count, slot in enumerate(kept[1:], start=2):
        new = _free(name, count, waiting)
        work.note("call-duplicate", slot.entry.index, f"the call id {name} was there before: now {new}")
        _rename(slot, new)


def _is_repeat(slot: Slot, before: Slot) -> bool:
    """The same call with the same result; or written twice into one reply, once with a worse result."""
    one, other = slot.answer, before.answer
    if one is None or other is None:
        return False
    if (slot.call.name, slot.call.arguments) != (before.call.name, before.call.arguments):
        return False
    return one.result.parts == other.result.parts or (
        slot.entry.run == before.entry.run and _rank_of(slot) != _rank_of(before)
    )


def _rank_of(slot: Slot) -> int:
    return _rank(slot.answer.result) if slot.answer else -1


def _drop_call(slot: Slot, why: str, work: Work) -> None:
    slot.dropped = True
    if slot.answer is not None:
        slot.answer.dropped, slot.answer.slot = True, None
    work.note("call-duplicate", slot.entry.index, f"{why} was left out ({slot.call.id})")


def _free(name: str, count: int, waiting: _Waiting) -> str:
    """An id that nobody has, made of the old one."""
    new = f"{name[:40]}_{count}"
    while new in waiting.last:
        new += "_"
    waiting.last[new] = waiting.last[name]
    return new


def _rename(slot: Slot, new: str) -> None:
    slot.call = edited(slot.call, id=new)
    if slot.answer is not None:
        slot.answer.result = edited(slot.answer.result, call_id=new)


def _give_ids(slots: list[Slot], waiting: _Waiting, work: Work) -> None:
    """An id for calls that lack one, where neither the codec makes it nor the provider's old form does without."""
    if work.rules.pairing != "id":
        return
    for slot in slots:
        legacy = work.own(slot.call.wire) and slot.call.wire and "function_call" in slot.call.wire.value
        tied = not work.kin(slot.entry.message) and not (slot.answer and work.kin(slot.answer.entry.message))
        if legacy or tied:
            continue
        waiting.last.setdefault("call", slot)
        new = _free("call", slot.entry.index, waiting)
        work.note("id", slot.entry.index, f"a call without an id was given one: {new}")
        _rename(slot, new)


def agreed(answer: Answer, work: Work) -> ToolResult:
    """The result, with the id or the name by which the provider ties it to its call."""
    result, slot = answer.result, answer.slot
    if slot is None or _is_tied(slot.call, result, work):
        return result
    call = slot.call
    work.note("id", answer.entry.index, f"a result was given the id of the call it answers ({call.id or call.name})")
    by_id = call.id and work.rules.pairing == "id"
    return edited(result, call_id=call.id, name=result.name if by_id else call.name)


def _is_tied(call: ToolCall, result: ToolResult, work: Work) -> bool:
    if call.id and call.id == result.call_id:
        return work.rules.pairing == "id" or result.name in ("", call.name)
    if work.rules.pairing == "id":
        named = result.name == call.name or (not result.name and not work.own(call.wire))
        return call.id == result.call_id and named
    return call.name == result.name and not (call.id and result.call_id)


def closing(slot: Slot) -> ToolResult:
    """What closes a call that was never answered."""
    name = "" if slot.call.id else slot.call.name
    return ToolResult(call_id=slot.call.id, name=name, parts=(Text(text=NO_RESULT),), is_error=True)


def needs_closing(slot: Slot, work: Work) -> bool:
    """True for a call that must not be sent without a result."""
    loose = work.provider == "openai-responses" and slot.call.kind in _LOOSE
    return slot.answer is None and not slot.dropped and not loose


def told(answer: Answer) -> tuple[Part, ...]:
    """An orphan result in words, with all it held that a user's message can hold."""
    result = answer.result
    name = " ".join(word for word in (result.name, result.call_id) if word) or "unknown"
    head = f"[result of a call that is not in this conversation: {name}]"
    texts = [part.text for part in result.parts if isinstance(part, Text) and part.text.strip()]
    media = [part for part in result.parts if isinstance(part, Media)]
    return (Text(text="\n".join([head, *texts])), *media)
