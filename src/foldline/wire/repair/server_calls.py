"""Invariant: a call that the provider runs itself is sent with its result, or not at all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from foldline.message import Opaque, Part, Text, ToolCall
from foldline.wire.field_access import string_at
from foldline.wire.provider_tools import as_text
from foldline.wire.repair.context import OutgoingMessage, RepairContext, is_silent


class ServerCalls(NamedTuple):
    """Server-side calls (calls that the provider runs itself) without a result, and results without a call."""

    unanswered: list[tuple[str, int, int, int]]
    """For each call: its id, the index of the message, the index of the part, the number of the turn."""
    orphans: list[tuple[str, int, int]]
    """For each result: the call id, the index of the message, the index of the part."""
    last_turn: int
    """Number of the assistant's last turn."""
    is_running: bool
    """Whether the provider may still run the unanswered server-side calls of the last turn.

    This is possible in two cases: the request ends with the last turn and this turn is paused, or the last turn has
    calls for the client and the request ends with the results of these calls.
    """
    callers: set[str]
    """Ids of server-side calls that wait for the client, because they made calls that the client must answer."""
    names: set[str]
    """Ids of all server-side calls."""
    repeated: list[tuple[str, int, int]]
    """Calls with the id of an earlier call: the id, the index of the message, the index of the part."""

    @property
    def lost(self) -> list[tuple[str, int, int, int]]:
        """The elements of `unanswered` whose calls can no longer get a result."""
        return [
            each
            for each in self.unanswered
            if each[0] not in self.callers and (each[3] < self.last_turn or not self.is_running)
        ]


def server_calls_of(out: Sequence[OutgoingMessage], context: RepairContext) -> ServerCalls:
    """The server-side calls without a result, and the server-side results without a call, in these messages."""
    pending: defaultdict[str, list[tuple[str, int, int, int]]] = defaultdict(list)
    orphans: list[tuple[str, int, int]] = []
    callers, names = set[str](), set[str]()
    repeated: list[tuple[str, int, int]] = []
    turn, last, side, has_client_calls = 0, 0, "", False
    for row, each in enumerate(out):
        if each.side in ("user", "assistant") and each.side != side:
            turn, side = turn + 1, each.side
        if each.side == "assistant":
            has_client_calls = any(type(part) is ToolCall for part in each.message.parts) or (
                has_client_calls and last == turn
            )
            last = turn
        for place, part in enumerate(each.message.parts):
            kind, name = server_part(part, context)
            if kind == "call" and name in names and not pending[name]:
                repeated.append((name, row, place))
            elif kind == "call":
                names.add(name)
                pending[name].append((name, row, place, turn))
            elif kind == "result" and pending[name]:
                pending[name].pop()
            elif kind == "result":
                orphans.append((name, row, place))
            elif type(part) is ToolCall and context.own(part.wire):
                callers.add(string_at(part.wire.value.get("caller"), "tool_id"))
    unanswered = [call for calls in pending.values() for call in calls]
    return ServerCalls(unanswered, orphans, last, has_client_calls or is_paused(out, context), callers, names, repeated)


def drop_unpaired_server_calls(out: list[OutgoingMessage], context: RepairContext) -> list[OutgoingMessage]:
    """The messages without unpaired server-side calls and results. A call that may still be running is kept.

    A result without a call is sent as text.
    """
    found, out = server_calls_of(out, context), list(out)
    dropped: dict[int, set[int]] = {}
    for name, row, place in found.orphans:
        context.note("server-result", out[row].origin, f"the provider's own result for {name} has no call")
        parts = list(out[row].message.parts)
        if words := as_text(parts[place]):
            parts[place] = Text(text=words)
            out[row] = out[row]._replace(message=out[row].message.with_parts(*parts))
        else:
            dropped.setdefault(row, set()).add(place)
    for name, row, place in found.repeated:
        context.note("server-call", out[row].origin, f"the id of the provider's own call {name} occurs twice: left out")
        dropped.setdefault(row, set()).add(place)
    for name, row, place, _ in found.lost:
        context.note("server-call", out[row].origin, f"the provider's own call {name} has no result: left out")
        dropped.setdefault(row, set()).add(place)
    remaining = (
        without_places(each, dropped[row], context) if row in dropped else each for row, each in enumerate(out)
    )
    return [each for each in remaining if each is not None]


def without_places(each: OutgoingMessage, places: set[int], context: RepairContext) -> OutgoingMessage | None:
    """The message without the parts at these indexes; None if nothing is left."""
    parts = [part for place, part in enumerate(each.message.parts) if place not in places]
    if not parts:
        return None
    message = each.message.with_parts(*parts)
    return OutgoingMessage(each.origin, message, "" if is_silent(message, context) else each.side)


def is_paused(out: Sequence[OutgoingMessage], context: RepairContext) -> bool:
    """True if the messages end with a paused reply.

    A paused reply is sent back unchanged, so that the provider continues it. A paused reply has the stop reason
    "pause_turn", or it ends with a server-side call or with the result of such a call.
    """
    if not context.grammar.server_calls:
        return False
    last = next((each for each in reversed(out) if each.side in ("user", "assistant")), None)
    if last is None or last.side != "assistant":
        return False
    if last.message.meta.stop == "pause_turn":
        return True
    part = next((part for part in reversed(last.message.parts) if context.is_rendered(part)), None)
    return part is not None and bool(server_part(part, context)[0])


def server_part(part: Part, context: RepairContext) -> tuple[str, str]:
    """The kind ("call" or "result") and the call id of a server-side call or result; ("", "") for other parts."""
    if not isinstance(part, Opaque) or not context.own(part.wire) or not isinstance(part.value, dict):
        return "", ""
    if part.kind in context.grammar.server_calls:
        return "call", str(part.value.get("id"))
    return ("result", str(part.value.get("tool_use_id"))) if part.kind.endswith("_tool_result") else ("", "")
