"""Checks that each call has a result, that each result has a call, and that the format allows their positions."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator

from foldline.wire.grammar import Grammar
from foldline.wire.validate.plain_request import PlainBlock, PlainTurn, Violation


def check_adjacent(turns: list[PlainTurn], grammar: Grammar) -> Iterator[Violation]:
    """Violations in calls and results, for formats in which results must directly follow their calls."""
    known = set[str]()
    waiting: list[PlainBlock] = []
    last = len(turns) - 1
    for place, turn in enumerate(turns):
        results = [block for block in turn.blocks if block.kind == "result"]
        if waiting or results:
            yield from _match(waiting, results, known, grammar)
        if grammar.results_first and results and turn.role == "user":
            other = next((block for block in turn.blocks[: len(results)] if block.kind != "result"), None)
            if other is not None:
                yield Violation("result-order", other.at, "another block comes before a result")
        if grammar.results_together:
            yield from _check_together(turn, results)
        waiting = [block for block in turn.blocks if block.kind == "call"]
        if not waiting:
            continue
        if grammar.calls_after_user and (place == 0 or turns[place - 1].role != "user"):
            yield Violation("call-place", turn.at, "a call that does not directly follow a message of the user")
        within = known if grammar.unique == "request" else set[str]()
        for call in waiting:
            if call.id and call.id in within:
                yield Violation("call-duplicate", call.at, f"the call id {call.id} occurs twice")
            within.add(call.id)
        known.update(call.id for call in waiting)
        if place == last:
            yield from _match(waiting, [], known, grammar)


def _check_together(turn: PlainTurn, results: list[PlainBlock]) -> Iterator[Violation]:
    """Violations of two rules: one message holds all calls of a turn, and one message holds all results."""
    for result in results:
        if result.at != results[0].at:
            yield Violation(
                "result-split", result.at, f"the result of {result.id} is not in the same message as the other results"
            )
    last = turn.blocks[-1].at if turn.blocks else -1
    for call in turn.blocks:
        if call.kind == "call" and turn.role == "assistant" and call.at != last:
            yield Violation("call-unanswered", call.at, f"an assistant message follows the call{_label(call)}")


def _match(
    calls: list[PlainBlock], results: list[PlainBlock], known: set[str], grammar: Grammar
) -> Iterator[Violation]:
    """Violations in the calls of one turn and in the results of the next turn."""
    waiting: dict[str, deque[PlainBlock]] = {}
    for call in calls:
        waiting.setdefault(_key(call), deque()).append(call)
    keys_called = set(waiting)
    for result in results:
        key, label = _key_of_call(result, waiting, grammar), _label(result)
        if key is not None:
            name = waiting[key].popleft().name
            if grammar.pairing == "name" and name != result.name:
                yield Violation("result-name", result.at, f"the result of{label} has another name than its call")
        elif _key(result) in keys_called:
            yield Violation("result-duplicate", result.at, f"more than one result for{label}")
        elif result.id and result.id in known:
            yield Violation("result-late", result.at, f"the result of{label} does not directly follow its call")
        else:
            yield Violation("result-orphan", result.at, f"a result for{label}, but there is no such call")
    for left in waiting.values():
        for call in left:
            yield Violation("call-unanswered", call.at, f"no result directly follows the call{_label(call)}")


def _key(block: PlainBlock) -> str:
    """The key that a call and its result have in common: the id, or the name if there is no id."""
    return block.id or f" {block.name}"


def _key_of_call(result: PlainBlock, waiting: dict[str, deque[PlainBlock]], grammar: Grammar) -> str | None:
    """The key of the call that a result answers; None if there is no such call.

    In formats that match by name, ids are compared only if the call and the result have one each.
    """
    keys = (_key(result), f" {result.name}") if grammar.pairing == "name" else (_key(result),)
    found = next((key for key in keys if waiting.get(key)), None)
    if found is None and grammar.pairing == "name" and not result.id:
        found = next((key for key, calls in waiting.items() if calls and calls[0].name == result.name), None)
    return found


def _label(block: PlainBlock) -> str:
    return "".join(f" {word}" for word in (block.id, block.name) if word) or " a call without a name"


def check_anywhere(turns: list[PlainTurn]) -> Iterator[Violation]:
    """Violations in calls and results, for formats in which results may be anywhere after their calls."""
    calls: dict[str, PlainBlock] = {}
    answered = set[str]()
    for turn in turns:
        for block in turn.blocks:
            if block.kind == "call":
                if block.id in calls:
                    yield Violation("call-duplicate", block.at, f"the call id {block.id} occurs twice")
                calls[block.id] = block
            elif block.kind == "result":
                if block.id in answered:
                    yield Violation("result-duplicate", block.at, f"more than one result for {block.id}")
                elif block.id not in calls:
                    words = f"a result for {block.id}, but there is no such call before it"
                    yield Violation("result-orphan", block.at, words)
                answered.add(block.id)
    for call in calls.values():
        if call.id not in answered:
            yield Violation("call-unanswered", call.at, f"no result follows the call{_label(call)}")


def check_server_calls(turns: list[PlainTurn], grammar: Grammar) -> Iterator[Violation]:
    """Violations in server-side calls (calls that the provider runs itself) and in approvals.

    A server-side call can make calls that the client must answer. Such a server-side call needs no result yet, because
    it waits for the client.
    """
    callers = {block.caller for turn in turns for block in turn.blocks}
    pending: defaultdict[str, list[int]] = defaultdict(list)
    last = max((place for place, turn in enumerate(turns) if turn.role == "assistant"), default=-1)
    is_running = last == len(turns) - 1 or any(block.kind == "call" for block in turns[last].blocks)
    for place, turn in enumerate(turns):
        for block in turn.blocks:
            if block.kind == "server-call":
                pending[block.id].append(place)
            elif block.kind == "server-result" and pending[block.id]:
                pending[block.id].pop()
            elif block.kind == "server-result":
                yield Violation(
                    "result-orphan", block.at, f"a result for {block.id}, but there is no such call before it"
                )
    for name, places in pending.items():
        if grammar.server_calls and places and name not in callers and (places[0] < last or not is_running):
            yield Violation("call-unanswered", turns[places[0]].at, f"no result follows the provider's own call {name}")


def is_paused_turn(turn: PlainTurn) -> bool:
    """True for a paused reply, which ends with a server-side call or with the result of such a call.

    Such a reply may be sent back, so that the provider continues it.
    """
    return bool(turn.blocks) and turn.blocks[-1].kind in ("server-call", "server-result")
