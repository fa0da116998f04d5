"""Invariant: no reply ends with thinking.

A reply ends with thinking in three cases: a stream breaks off, the reply reaches its length limit during the thinking,
or a fold removes the rest of the reply.
"""

from __future__ import annotations

from foldline.message import Message, Opaque, Thinking
from foldline.wire.rendering import is_exact
from foldline.wire.repair.context import OutgoingMessage, RepairContext, are_two_replies
from foldline.wire.repair.server_calls import without_places


def drop_thinking_at_end(out: list[OutgoingMessage], context: RepairContext) -> list[OutgoingMessage]:
    """The messages, without thinking at the end of a reply.

    An element of a request must not end with thinking either. So if a message that ends with thinking would be sent as
    a separate element, it is joined with the next message of the same reply.
    """
    remaining: list[OutgoingMessage] = []
    followed, later = False, -1
    for each in reversed(out):
        if each.side == "assistant":
            if later >= 0 and are_two_replies(each.message, remaining[later].message):
                followed = False
            places, followed = _thinking_at_end(each.message, followed, context)
            if places:
                context.note("thinking-alone", each.origin, "thinking at the end of a reply was left out")
                shorter = without_places(each, places, context)
                if shorter is not None:
                    later = len(remaining) if shorter.side else later
                    remaining.append(shorter)
                continue
            if later >= 0 and _must_be_joined(each.message, remaining[later].message, context):
                context.note("reply-joined", remaining[later].origin, "joined with the thinking before it")
                origin, message, side = remaining[later]
                joined = message.with_parts(*each.message.parts, *message.parts)
                remaining[later] = OutgoingMessage(origin, joined, side)
                continue
            later = len(remaining)
        elif each.side == "user" or (each.side == "system" and context.grammar.alternation != "merged"):
            followed, later = False, -1
        remaining.append(each)
    remaining.reverse()
    return remaining


def _must_be_joined(message: Message, later: Message, context: RepairContext) -> bool:
    """True for a message that ends with thinking, if the renderer would not join it with the later message."""
    last = message.parts[-1] if message.parts else None
    if context.grammar.thinking_last or not isinstance(last, Thinking) or not context.own(last.wire):
        return False
    elements = context.target.element_format
    return is_exact(message, elements) or is_exact(later, elements)


def _thinking_at_end(message: Message, followed: bool, context: RepairContext) -> tuple[set[int], bool]:
    """The indexes of the thinking parts at the end of a message.

    The second value says whether this message or a later message of the reply has other parts.
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
