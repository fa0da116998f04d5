"""Invariant: system messages are in the request's system field, or at a place in the list that the format allows."""

from __future__ import annotations

from dataclasses import replace

from foldline.message import Message, Part, Text, ToolCall, ToolResult
from foldline.placeholders import call_as_text, result_as_text
from foldline.wire.rendering import leading_system
from foldline.wire.repair.context import OutgoingMessage, RepairContext
from foldline.wire.repair.server_calls import is_paused


def belongs_to_prompt(message: Message, context: RepairContext) -> bool:
    """True for a leading system message that goes into the request's system field.

    Such a message may have been read from the list of messages.
    """
    if leading_system((message,), context.target):
        return True
    return bool(message.parts) and context.grammar.inline_system != "free"


def repair_prompt(index: int, message: Message, context: RepairContext) -> list[OutgoingMessage]:
    """A leading system message in a form that the system field accepts; an empty list if nothing is left."""
    if not leading_system((message,), context.target):
        context.note("system-moved", index, "a system message at the start of the list belongs to the system prompt")
        message = replace(message, wire=None)
    parts = [part for part in message.parts if not (isinstance(part, Text) and context.grammar.is_blank(part.text))]
    if len(parts) < len(message.parts):
        context.note("blank", index, "a blank text of the system prompt was left out")
    if any(isinstance(part, ToolCall | ToolResult) for part in parts):
        context.note("role", index, "calls and results in the system prompt are sent as text")
        parts = [_as_text(part) for part in parts]
    elif len(parts) == len(message.parts):
        return [OutgoingMessage(index, message, "")]
    return [OutgoingMessage(index, message.with_parts(*parts), "")] if parts else []


def _as_text(part: Part) -> Part:
    if isinstance(part, ToolCall):
        return Text(text=call_as_text(part))
    return Text(text=result_as_text(part)) if isinstance(part, ToolResult) else part


def place_system_messages(out: list[OutgoingMessage], context: RepairContext) -> list[OutgoingMessage]:
    """The messages, with each system message moved to the end of a user turn."""
    placed: list[OutgoingMessage] = []
    pending: list[OutgoingMessage] = []
    before: OutgoingMessage | None = None
    for each in [*out, None]:
        if each is not None and each.side == "system":
            pending.append(each)
            continue
        ends_turn = before is not None and (before.side == "user" or is_paused([before], context))
        if pending and (each is None or (each.side == "assistant" and ends_turn)):
            for system in pending:
                if before is not None and before.origin != context.predecessors.get(system.origin, before.origin):
                    words = "a system message was moved to the end of a user's turn"
                    context.note("system-moved", system.origin, words)
            placed += pending
            pending = []
        if each is not None:
            placed.append(each)
            before = each if each.side in ("user", "assistant") else before
    return placed
