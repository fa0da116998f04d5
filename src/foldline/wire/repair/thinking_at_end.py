"""Invariant: no reply ends with thinking.

A reply ends with thinking when a stream breaks off, or when a fold removes the rest of the reply.
"""

from __future__ import annotations

from foldline.message import Message, Opaque, Thinking
from foldline.wire.repair.context import OutgoingMessage, RepairContext
from foldline.wire.repair.server_calls import without_places


def drop_thinking_at_end(out: list[OutgoingMessage], context: RepairContext) -> list[OutgoingMessage]:
    """The messages, without thinking at the end of a reply."""
    remaining: list[OutgoingMessage] = []
    followed = False
    for each in reversed(out):
        if each.side == "assistant":
            places, followed = _thinking_at_end(each.message, followed, context)
            if places:
                context.note("thinking-alone", each.origin, "thinking at the end of a reply was left out")
                shorter = without_places(each, places, context)
                remaining.extend([shorter] if shorter else [])
                continue
        elif each.side == "user" or (each.side == "system" and context.grammar.alternation != "merged"):
            followed = False
        remaining.append(each)
    remaining.reverse()
    return remaining


def _thinking_at_end(message: Message, followed: bool, context: RepairContext) -> tuple[set[int], bool]:
    """The indexes of the thinking parts at the end of a message, and whether this or a later message of the reply has
    other parts.
    """
    places = set[int]()
    followed = followed or not message.parts
    for place in range(len(message.parts) - 1, -1, -1):
        part = message.parts[place]
        if isinstance(part, Thinking):
            if context.own(part.wire) and not followed:
                places.add(place)
        elif not isinstance(part, Opaque) or context.own(part.wire):
            followed = True
    return places, followed
