"""Calls and their results, held against each other on the wire: part of the validator (`rules`)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from foldline.wire.grammar import Rules
from foldline.wire.plain import Block, Fault, Turn


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
    ids = rules.pairing == "id" or all(block.id for block in (*calls, *results))

    def key(block: Block) -> str:
        return block.id if ids and block.id else f" {block.name}"

    open_calls = Counter(key(call) for call in calls)
    asked = set(open_calls)
    names = {call.id: call.name for call in calls}
    for result in results:
        name = key(result)
        if open_calls[name] > 0:
            open_calls[name] -= 1
            if rules.pairing == "name" and ids and names[name] != result.name:
                yield Fault("result-name", result.at, f"the result of{_named(result)} has another name than its call")
        elif name in asked:
            yield Fault("result-duplicate", result.at, f"more than one result for{_named(result)}")
        elif result.id and result.id in known:
            yield Fault("result-late", result.at, f"the result of{_named(result)} does not directly follow its call")
        else:
            yield Fault("result-orphan", result.at, f"a result for{_named(result)}, which nobody called")
    for call in calls:
        if open_calls[key(call)] > 0:
            open_calls[key(call)] -= 1
            yield Fault("call-unanswered", call.at, f"no result directly follows the call{_named(call)}")


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
        if rules.closed_server_calls and places and places[0] < last:
            yield Fault("call-unanswered", turns[places[0]].at, f"no result follows the provider's own call {name}")


def server_busy(turn: Turn) -> bool:
    """A reply that paused inside the provider's own tool may be sent back to be continued."""
    done = {block.id for block in turn.blocks if block.kind == "server-result"}
    return any(block.kind == "server-call" and block.id not in done for block in turn.blocks)
