"""Invariant: a reasoning item is directly followed by the output that it led to.

A note, a pin or a user message between the reasoning and its output is moved before the reasoning. The provider would
refuse an output without its reasoning.
"""

from __future__ import annotations

from foldline.message import Message, Thinking
from foldline.wire.repair.context import OutgoingMessage, RepairContext


def join_reasoning_to_output(out: list[OutgoingMessage], context: RepairContext) -> list[OutgoingMessage]:
    """The messages, with each reasoning item directly before the output of the same reply."""
    ordered: list[OutgoingMessage] = []
    pending: list[int] = []
    interrupted = False
    for each in out:
        if each.side != "assistant":
            interrupted = interrupted or (bool(each.side) and bool(pending))
        elif is_reasoning(each.message):
            pending = [*([] if interrupted else pending), len(ordered)]
            interrupted = False
        else:
            if interrupted and _is_output_of(each.message, ordered[pending[-1]].message):
                context.note("reasoning-moved", ordered[pending[0]].origin, "moved to the output that it led to")
                moved = [ordered[place] for place in pending]
                ordered = [one for place, one in enumerate(ordered) if place not in pending] + moved
            pending, interrupted = [], False
        ordered.append(each)
    return ordered


def is_reasoning(message: Message) -> bool:
    """True for a message that holds only reasoning."""
    return bool(message.parts) and all(isinstance(part, Thinking) for part in message.parts)


def _is_output_of(message: Message, reasoning: Message) -> bool:
    """True for a message that may belong to the reply that holds the reasoning."""
    replies = {message.meta.reply, reasoning.meta.reply} - {""}
    return len(replies) < 2 and not any(isinstance(part, Thinking) for part in message.parts)
