"""Calls and their results, held against each other on the wire: part of the validator (`rules`)."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator

from foldline.wire.rules.grammar import Rules
from foldline.wire.rules.plain import Block, Fault, Turn


def adjacent(turns: list[Turn], rules: Rules) -> Iterator[Fault]:
    """Every call answered once in the next turn, every result after its call."""
    known = set[str]()
    waiting: list[Block] = []
    last = len(turns) - 1
    for place, turn in enumerate(turns):
        results = [block for block in turn.blocks if block.kind == "result"]
        if waiting or results:
            yield from _match(waiting, results, known, rules)
        if rules.results_first and results and turn.role == "user":
            intruder = next((block for block in turn.blocks[: len(results)] if block.kind != "result"), None)
            if intruder is not None:
                yield Fault("result-order", intruder.at, "something else stands before a result")
        waiting = [block for block in turn.blocks if block.kind == "call"]
        if not waiting:
            continue
        if rules.calls_after_user and (place == 0 or turns[place - 1].role != "user"):
            yield Fault("call-place", turn.at, "a call that does not directly follow a message of the user")
        within = known if rules.unique == "request" else set[str]()
        for call in waiting:
            if call.id and call.id in within:
                yield Fault("call-duplicate", call.at, f"the call id {call.id} occurs twice")
            within.add(call.id)
        known.update(call.id for call in waiting)
        if place == last:
            yield from _match(waiting, [], known, rules)


def _match(calls: list[Block], results: list[Block], known: set[str], rules: Rules) -> Iterator[Fault]:
    """Calls of one turn against the results of the next."""
    waiting: dict[str, deque[Block]] = {}
    for call in calls:
        waiting.setdefault(_key(call), deque()).append(call)
    asked = set(waiting)
    for result in results:
        key = _answered(result, waiting, rules)
        if key is not None:
            name = waiting[key].popleft().name
            if rules.pairing == "name" and name != result.name:
                yield Fault("result-name", result.at, f"the result of{_named(result)} has another name than its call")
        elif _key(result) in asked:
            yield Fault("result-duplicate", result.at, f"more than one result for{_named(result)}")
        elif result.id and result.id in known:
            yield Fault("result-late", result.at, f"the result of{_named(result)} does not directly follow its call")
        else:
            yield Fault("result-orphan", result.at, f"a result for{_named(result)}, which nobody called")
    for left in waiting.values():
        for call in left:
            yield Fault("call-unanswered", call.at, f"no result directly follows the call{_named(call)}")


def _key(block: Block) -> str:
    """What ties a call and its result: the id, or the name where there is none."""
    return block.id or f" {block.name}"


def _answered(result: Block, waiting: dict[str, deque[Block]], rules: Rules) -> str | None:
    """The key of the call a result answers; where names tie, one side without an id is no obstacle."""
    keys = (_key(result), f" {result.name}") if rules.pairing == "name" else (_key(result),)
    found = next((key for key in keys if waiting.get(key)), None)
    if found is None and rules.pairing == "name" and not result.id:
        found = next((key for key, calls in waiting.items() if calls and calls[0].name == result.name), None)
    return found


def _named(block: Block) -> str:
    return "".join(f" {word}" for word in (block.id, block.name) if word) or " a call without a name"


def anywhere(turns: list[Turn]) -> Iterator[Fault]:
    """Every call answered once, somewhere after it."""
    calls: dict[str, Block] = {}
    answered = set[str]()
    for turn in turns:
        for block in turn.blocks:
            if block.kind == "call":
                if block.id in calls:
                    yield Fault("call-duplicate", block.at, f"the call id {block.id} occurs twice")
                calls[block.id] = block
            elif block.kind == "result":
                if block.id in answered:
                    yield Fault("result-duplicate", block.at, f"more than one result for {block.id}")
                elif block.id not in calls:
                    yield Fault("result-orphan", block.at, f"a result for {block.id}, which nobody called before it")
                answered.add(block.id)
    for call in calls.values():
        if call.id not in answered:
            yield Fault("call-unanswered", call.at, f"no result follows the call{_named(call)}")


def by_server(turns: list[Turn], rules: Rules) -> Iterator[Fault]:
    """Calls the provider runs itself, and approvals: no answer without its question, no question left behind."""
    asked: defaultdict[str, list[int]] = defaultdict(list)
    last = max((place for place, turn in enumerate(turns) if turn.role == "assistant"), default=-1)
    for place, turn in enumerate(turns):
        for block in turn.blocks:
            if block.kind == "server-call":
                asked[block.id].append(place)
            elif block.kind == "server-result" and asked[block.id]:
                asked[block.id].pop()
            elif block.kind == "server-result":
                yield Fault("result-orphan", block.at, f"a result for {block.id}, which nobody called before it")
    for name, places in asked.items():
        if rules.server_calls and places and places[0] < last:
            yield Fault("call-unanswered", turns[places[0]].at, f"no result follows the provider's own call {name}")


def server_busy(turn: Turn) -> bool:
    """A reply that paused inside the provider's own tool may be sent back to be continued."""
    done = {block.id for block in turn.blocks if block.kind == "server-result"}
    return any(block.kind == "server-call" and block.id not in done for block in turn.blocks)
