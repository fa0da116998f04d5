"""Repair of the edges: who starts and who ends, thinking that leads nowhere, system messages inside the list.

These rules look at the finished order, so they come last. A reply that ends with thinking (the stream broke off), a
conversation that starts or ends with the assistant (the rest was folded away), or one without any word of the user: all
of them are refused by some provider, and each is set right with as little as possible.
"""

from __future__ import annotations

from collections import defaultdict

from foldline.message import Media, Message, Opaque, Part, Text, Thinking, user
from foldline.wire.formats import leading_system
from foldline.wire.repair.context import SERVER_CALLS, Work, is_silent
from foldline.wire.repair.order_of_results import Out

START = "[no earlier message of the user was recorded]"
END = "[no new message of the user was recorded]"
"""Stand where a provider wants a message of the user and there is none. They ask for nothing."""


def finish(out: list[Out], work: Work) -> list[Out]:
    """The same messages with edges that the provider accepts."""
    rules = work.rules
    if rules.closed_server_calls and work.thinks:
        out = _close_server_calls(out, work)
    if work.thinks and (rules.reasoning_followed or not rules.thinking_last):
        out = _without_loose_thinking(out, work)
    out = _with_users(out, work)
    if rules.inline_system == "after user" and any(each.side == "system" for each in out):
        out = _place_systems(out, work)
    return out


def _without(each: Out, places: set[int], work: Work) -> Out | None:
    """A message without the parts at some places; None when nothing is left."""
    parts = [part for place, part in enumerate(each.message.parts) if place not in places]
    if not parts:
        return None
    message = each.message.with_parts(*parts)
    return Out(each.at, message, "" if is_silent(message, work) else each.side)


def _close_server_calls(out: list[Out], work: Work) -> list[Out]:
    """Calls that the provider runs itself travel with their result or not at all."""
    asked: defaultdict[str, list[tuple[int, int, int]]] = defaultdict(list)
    drop: dict[int, set[int]] = {}
    turn, last, side = 0, 0, ""
    for row, each in enumerate(out):
        if each.side in ("user", "assistant") and each.side != side:
            turn, side = turn + 1, each.side
        if each.side == "assistant":
            last = turn
        for place, part in enumerate(each.message.parts):
            kind, name = _server_part(part, work)
            if kind == "call":
                asked[name].append((row, place, turn))
            elif kind == "result" and asked[name]:
                asked[name].pop()
            elif kind == "result":
                work.note("server-result", each.at, f"the provider's own result for {name} lost its call: left out")
                drop.setdefault(row, set()).add(place)
    for name, calls in asked.items():
        for row, place, said in calls:
            if said < last:
                work.note("server-call", out[row].at, f"the provider's own call {name} lost its result: left out")
                drop.setdefault(row, set()).add(place)
    made = (_without(each, drop[row], work) if row in drop else each for row, each in enumerate(out))
    return [each for each in made if each is not None]


def _server_part(part: Part, work: Work) -> tuple[str, str]:
    """Whether a part is a call that the provider runs itself, or the result of one, and its id."""
    if not isinstance(part, Opaque) or not work.own(part.wire) or not isinstance(part.value, dict):
        return "", ""
    if part.kind in SERVER_CALLS:
        return "call", str(part.value.get("id"))
    return ("result", str(part.value.get("tool_use_id"))) if part.kind.endswith("_tool_result") else ("", "")


def _without_loose_thinking(out: list[Out], work: Work) -> list[Out]:
    """No reply ends with thinking: what it led to never came, or has left."""
    made: list[Out] = []
    followed = False
    for each in reversed(out):
        if each.side == "assistant":
            loose, followed = _loose(each.message, followed, work)
            if loose:
                work.note("thinking-alone", each.at, "thinking that led to nothing was left out")
                shorter = _without(each, loose, work)
                made.extend([shorter] if shorter else [])
                continue
        elif each.side == "user" or (each.side == "system" and work.rules.alternation != "merged"):
            followed = False
        made.append(each)
    made.reverse()
    return made


def _loose(message: Message, followed: bool, work: Work) -> tuple[set[int], bool]:
    """Thinking at the end of a message that nothing follows, and whether what stands before it is followed."""
    loose = set[int]()
    followed = followed or not message.parts
    for place in range(len(message.parts) - 1, -1, -1):
        part = message.parts[place]
        if isinstance(part, Thinking):
            if work.own(part.wire) and not followed:
                loose.add(place)
        elif not isinstance(part, Opaque) or work.own(part.wire):
            followed = True
    return loose, followed


def _with_users(out: list[Out], work: Work) -> list[Out]:
    """A conversation that starts and ends as it must, and has a word of the user."""
    rules = work.rules
    starts = bool(out) and out[0].message.role == "system"
    lead = len(leading_system([each.message for each in out], work.target)) if starts else 0
    talk = [place for place in range(lead, len(out)) if out[place].side in ("user", "assistant")]
    if not talk:
        return out
    first, last = out[talk[0]], out[talk[-1]]
    made = list(out)
    if rules.end and last.side not in rules.end and not _is_busy(out, work):
        work.note("end", last.at, "the conversation ended with the assistant: a note of the user follows")
        made.append(Out(last.at, user(END, kind="note"), "user"))
    if rules.start and first.side not in rules.start:
        work.note("start", first.at, "the conversation started with the assistant: a note of the user precedes")
        made.insert(talk[0], Out(first.at, user(START, kind="note"), "user"))
    elif rules.needs_user and not any(_is_users(out[place], work) for place in talk):
        work.note("no-user", first.at, "no message was the user's: a note of the user precedes")
        made.insert(talk[0], Out(first.at, user(START, kind="note"), "user"))
    return made


def _is_users(each: Out, work: Work) -> bool:
    """True for a message of the user that is more than results."""
    if each.side != "user":
        return False
    parts = each.message.parts
    return not parts or work.provider in ("anthropic", "gemini") or any(_is_spoken(part, work) for part in parts)


def _is_spoken(part: Part, work: Work) -> bool:
    return isinstance(part, Text | Media) or (isinstance(part, Opaque) and work.own(part.wire))


def _is_busy(out: list[Out], work: Work) -> bool:
    """True when the last reply paused inside the provider's own tool: it is sent back to be continued."""
    if not work.rules.closed_server_calls:
        return False
    open_calls = set[str]()
    for each in out:
        if each.side == "user":
            open_calls.clear()
        for part in each.message.parts if each.side == "assistant" else ():
            kind, name = _server_part(part, work)
            if kind == "call":
                open_calls.add(name)
            elif kind == "result":
                open_calls.discard(name)
    return bool(open_calls)


def _place_systems(out: list[Out], work: Work) -> list[Out]:
    """System messages inside the list at the end of a user's turn."""
    made: list[Out] = []
    held: list[Out] = []
    before: Out | None = None
    for each in [*out, None]:
        if each is not None and each.side == "system":
            held.append(each)
            continue
        open_to = before is not None and (before.side == "user" or _is_busy([before], work))
        if held and (each is None or (each.side == "assistant" and open_to)):
            for system in held:
                if before is not None and before.at != work.stood.get(system.at, before.at):
                    work.note("system-moved", system.at, "a system message was moved to the end of a user's turn")
            made += held
            held = []
        if each is not None:
            made.append(each)
            before = each if each.side in ("user", "assistant") else before
    return made
