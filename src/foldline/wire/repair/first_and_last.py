"""Invariant: a conversation starts and ends with the roles that the format demands, and has a user message.

The invariant is broken when a fold removed the first message, or when the history is sent right after a reply.
"""

from __future__ import annotations

from foldline.message import Media, Message, Opaque, Text, user
from foldline.placeholders import NO_EARLIER_PROMPT, NO_NEW_PROMPT
from foldline.wire.rendering import leading_system
from foldline.wire.repair.context import OutgoingMessage, RepairContext, RepairNote, native_summary
from foldline.wire.repair.server_calls import is_paused


def repair_first_and_last(out: list[OutgoingMessage], context: RepairContext) -> list[OutgoingMessage]:
    """The messages, with a placeholder added where the format demands a user message and there is none."""
    grammar = context.grammar
    starts = bool(out) and out[0].message.role == "system"
    lead = len(leading_system([each.message for each in out], context.target)) if starts else 0
    talk = [place for place in range(lead, len(out)) if out[place].side in ("user", "assistant")]
    if not talk:
        return out
    first, last = out[talk[0]], out[talk[-1]]
    repaired = list(out)
    if context.ending and grammar.end and last.side not in grammar.end and not is_paused(out, context):
        message, note = end_placeholder(last.origin)
        context.notes.append(note)
        repaired.append(OutgoingMessage(last.origin, message, "user"))
    if first.message.parts and native_summary(first.message.parts[0]):
        return repaired  # no message may come before a compaction block of the provider
    if grammar.start and first.side not in grammar.start:
        code, words = "start", "the history starts with the assistant: a placeholder user message was added before it"
    elif grammar.needs_user and _lacks_prompt([out[place] for place in talk], context):
        code, words = "no-user", "there is no user message: a placeholder user message was added before the history"
    else:
        return repaired
    context.note(code, first.origin, words)
    repaired.insert(talk[0], OutgoingMessage(first.origin, user(NO_EARLIER_PROMPT, kind="note"), "user"))
    return repaired


def _lacks_prompt(talk: list[OutgoingMessage], context: RepairContext) -> bool:
    """True if the history has no user message, or had none when the first reply was requested.

    If there was no user message at that time, the request for the first reply began with a placeholder. This
    placeholder must stay, even when a user message arrives later.
    """
    for each in talk:
        if is_from_user(each, context):
            return False
        if each.message.meta.reply or each.message.results:
            return True
    return True


def end_placeholder(index: int) -> tuple[Message, RepairNote]:
    """The placeholder for the end of a history, and the note about it.

    The last message of the history is the assistant's message with the index `index`.
    """
    words = "the history ends with the assistant: a placeholder user message was added after it"
    return user(NO_NEW_PROMPT, kind="note"), RepairNote("end", index, words)


def is_from_user(each: OutgoingMessage, context: RepairContext) -> bool:
    """True for a message that the format counts as a user message.

    In some formats, a message that holds only results does not count as a user message.
    """
    if each.side != "user":
        return False
    parts = each.message.parts
    if not parts or context.grammar.results_are_user:
        return True
    return any(isinstance(part, Text | Media | Opaque) and context.is_rendered(part) for part in parts)
