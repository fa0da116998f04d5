"""Repairs a whole history by running all stages of the repair in order.

The first stage repairs each message by itself. The next stages match results with calls, put the messages in order, and
repair the start and the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from foldline.message import Message, ToolCall, ToolResult, user
from foldline.models.table import Model
from foldline.wire.rendering import is_exact
from foldline.wire.repair.context import (
    OutgoingMessage,
    RepairContext,
    RepairEntry,
    RepairNote,
    are_two_replies,
    is_same_reply,
    is_silent,
    side_of,
)
from foldline.wire.repair.first_and_last import repair_first_and_last
from foldline.wire.repair.order_of_results import ResultOrder
from foldline.wire.repair.reasoning_order import join_reasoning_to_output
from foldline.wire.repair.repeated_replies import is_repeated_reply
from foldline.wire.repair.results_for_calls import tie_results
from foldline.wire.repair.separate_replies import separate_replies
from foldline.wire.repair.server_calls import drop_unpaired_server_calls
from foldline.wire.repair.single_messages import repair_message, with_sendable_values
from foldline.wire.repair.system_messages import belongs_to_prompt, place_system_messages, repair_prompt
from foldline.wire.repair.thinking_at_end import drop_thinking_at_end
from foldline.wire.repair.unique_call_ids import make_ids_unique

_EARLIER = user("earlier messages")
"""If only a part of a history is repaired, this message represents all earlier messages.

The message itself is never sent.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """A repaired history: messages that can be sent, and a note about each change."""

    messages: tuple[Message, ...]
    notes: tuple[RepairNote, ...] = ()


class RepairRun(NamedTuple):
    """The result of running all stages on a part of a history, and the data that the stages shared."""

    context: RepairContext
    entries: list[RepairEntry]
    ordered: list[OutgoingMessage]
    """The messages after the stage `ResultOrder`."""
    out: list[OutgoingMessage]
    """The messages after all stages have run."""


def repair(messages: Iterable[Message], format: str = "anthropic", model: Model | None = None) -> Repaired:
    """The messages, changed so that the wire format accepts them. Valid messages are returned as the same objects.

    >>> from foldline.message import ToolCall, assistant, user
    >>> broken = [user("go"), assistant("", ToolCall(id="a", name="run")), user("stop")]
    >>> print(*repair(broken).notes)
    [call-unanswered] message 1: the call run a has no result: a closing result was added
    """
    everything = tuple(messages)
    run = repair_part(everything, RepairContext.of(format, model))
    if not run.context.notes:
        return Repaired(messages=everything)
    notes = tuple(sorted(run.context.notes, key=lambda note: note.index))
    return Repaired(messages=tuple([each.message for each in run.out]), notes=notes)


def repair_part(messages: Sequence[Message], context: RepairContext, *, start: int = 0) -> RepairRun:
    """Run all stages on `messages`: the messages of a history from index `start` to its end.

    If `start` is not 0, the message before index `start` must be a user message.
    """
    head, entries = _read(messages, context, start)
    make_ids_unique(tie_results(entries, context), context)
    ordered = head + ResultOrder(entries, context).run()
    out = ordered
    grammar = context.grammar
    if grammar.server_calls and context.has_thinking:
        out = drop_unpaired_server_calls(out, context)
    if context.has_thinking and grammar.reasoning_followed:
        out = join_reasoning_to_output(out, context)
    if context.has_thinking and (grammar.reasoning_followed or not grammar.thinking_last):
        out = drop_thinking_at_end(out, context)
    out = separate_replies(out, context)
    out = repair_first_and_last(out, context)
    if grammar.inline_system == "after user" and any(each.side == "system" for each in out):
        out = place_system_messages(out, context)
    skipped = 1 if start else 0
    return RepairRun(context, entries[skipped:], ordered, out[skipped:])


def _read(
    messages: Sequence[Message], context: RepairContext, start: int
) -> tuple[list[OutgoingMessage], list[RepairEntry]]:
    """The leading system messages, and the other messages, each repaired by itself.

    A message that renders to nothing is attached to the entry before it.
    """
    head: list[OutgoingMessage] = []
    entries = [RepairEntry(start - 1, _EARLIER, "user")] if start else []
    leading, last = not entries, start - 1
    for index, original in enumerate(messages, start):
        message = with_sendable_values(index, original, context)
        if leading and message.role == "system" and belongs_to_prompt(message, context):
            head.extend(repair_prompt(index, message, context))
            continue
        if message.role == "assistant" and is_repeated_reply(index, message, context):
            continue
        silent = is_silent(message, context)
        context.is_first = leading
        side = side_of(message, context)
        repaired = message if silent else repair_message(index, message, side, context)
        if repaired is None:
            continue
        leading = False
        if silent or (repaired is not message and is_silent(repaired, context)):
            if entries:
                entries[-1].silent.append((index, repaired))
            else:
                head.append(OutgoingMessage(index, repaired, ""))
            continue
        side = side if repaired.role == message.role else "user"
        if side == "system":
            context.predecessors[index] = last
        else:
            last = index
        entries.append(RepairEntry(index, repaired, side))
    _number_replies(entries, context)
    return head, entries


def _number_replies(entries: list[RepairEntry], context: RepairContext) -> None:
    """Give all messages of one reply the same number.

    The results of the reply's calls belong after the last message of the reply. In a log, results may come between the
    messages of a reply. In this case, the messages of the reply are found by their reply id.

    If two replies follow each other, a request was sent between them. So the second reply begins a new turn.
    """
    grammar = context.grammar
    merged = grammar.alternation == "merged"
    last: RepairEntry | None = None
    newest: RepairEntry | None = None
    """The newest assistant message, if only results follow it; otherwise None."""
    calls, turn, requested = False, 0, True
    for entry in entries:
        if entry.side != "assistant":
            last = last if entry.side == "system" and merged else None
            requested = requested or entry.side == "user"
            newest = newest if entry.side == "system" or _holds_results(entry.message) else None
            entry.turn = turn
            continue
        if last is None and merged and newest is not None and is_same_reply(entry, newest):
            last, requested = newest, False
        elif newest is not None and are_two_replies(newest.message, entry.message):
            last, requested = None, True
        turn, requested, newest = turn + requested, False, entry
        entry.turn = turn
        has_calls = any(type(part) is ToolCall for part in entry.message.parts)
        joined = last is not None and (
            merged
            or grammar.adjacency == "after"
            or (
                grammar.adjacency == "message"
                and (calls or has_calls)
                and all(_is_joined_by_renderer(each, context) for each in (last, entry))
            )
        )
        entry.reply = last.reply if joined and last is not None else entry.index + 1
        calls = has_calls or (calls and joined)
        last = entry


def _holds_results(message: Message) -> bool:
    return bool(message.parts) and all(type(part) is ToolResult for part in message.parts)


def _is_joined_by_renderer(entry: RepairEntry, context: RepairContext) -> bool:
    """Whether the renderer joins a message with the other messages of the same reply.

    A message that is sent verbatim is not joined. A message with a legacy `function_call` (a call without an id) is not
    joined either.
    """
    return not is_exact(entry.message, context.target.element_format) and all(
        part.id or not context.own(part.wire) for part in entry.message.parts if isinstance(part, ToolCall)
    )
