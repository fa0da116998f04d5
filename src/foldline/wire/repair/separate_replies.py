"""Invariant: a user message separates two replies of the provider.

Each reply of the provider answers a request. If two replies follow each other, the request for the second reply ended
with the first reply. Repair then added a placeholder user message at the end of that request. This placeholder must
stay between the two replies.
"""

from __future__ import annotations

from foldline.message import user
from foldline.placeholders import NO_NEW_PROMPT
from foldline.wire.repair.context import OutgoingMessage, RepairContext, are_two_replies
from foldline.wire.repair.server_calls import is_paused


def separate_replies(out: list[OutgoingMessage], context: RepairContext) -> list[OutgoingMessage]:
    """The messages, with a placeholder user message between two different replies that follow each other."""
    if not context.grammar.end or "assistant" in context.grammar.end:
        return out
    separated: list[OutgoingMessage] = []
    turn: list[OutgoingMessage] = []
    """The messages of the assistant since the last message of the user."""
    for each in out:
        is_next = bool(turn) and each.side == "assistant" and are_two_replies(turn[-1].message, each.message)
        if is_next and not is_paused(turn, context):
            context.note(
                "reply-follows", each.origin, "two replies in a row: a placeholder user message was added between them"
            )
            placeholder = user(NO_NEW_PROMPT, kind="note")
            separated.append(OutgoingMessage(turn[-1].origin, placeholder, "user"))
            turn = []
        separated.append(each)
        if each.side == "assistant":
            turn.append(each)
        elif each.side:
            turn = []
    return separated
