"""Make a broken history sendable: the view heals, the record stays as it is.

Histories break in practice: an abort leaves a call without a result, a fold takes a call and leaves its result, a
stream ends inside thinking, a tool says nothing, two parts get one id. Every provider refuses such a request, and the
next one, for ever. `repair` looks only at the messages it is given, changes as little as the provider's rules
(`grammar`) demand, marks all it did, and gives sound messages back as the very same objects. Its result needs no
further repair. What is told apart is done apart: single messages (`single_messages`), which result answers which call
(`results_for_calls`), where results stand (`order_of_results`), how a conversation starts and ends (`first_and_last`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from foldline.message import Message, Part, Text, ToolCall, ToolResult
from foldline.wire.formats import codec, is_exact, leading_system
from foldline.wire.repair.context import Mend, Work, is_silent, side_of
from foldline.wire.repair.first_and_last import finish
from foldline.wire.repair.order_of_results import Out, arrange
from foldline.wire.repair.results_for_calls import Entry, pair
from foldline.wire.repair.single_messages import clean
from foldline.wire.rules.grammar import rules_of

__all__ = ["Mend", "Repaired", "repair"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """Messages that can be sent, and everything that was done to them."""

    messages: tuple[Message, ...]
    notes: tuple[Mend, ...] = ()


def repair(messages: Iterable[Message], provider: str = "anthropic") -> Repaired:
    """Messages that the provider accepts. Sound messages come back as they are, with no notes.

    >>> from foldline.message import ToolCall, assistant, user
    >>> broken = [user("go"), assistant("", ToolCall(id="a", name="run")), user("stop")]
    >>> print(*repair(broken).notes)
    [call-unanswered] message 1: no result was recorded for the call run a: closed
    """
    everything = tuple(messages)
    work = Work(provider, rules_of(provider), codec(provider))
    head, entries = _read(everything, work)
    pair(entries, work)
    out = finish(head + arrange(entries, work), work)
    if not work.notes:
        return Repaired(messages=everything)
    notes = tuple(sorted(work.notes, key=lambda note: note.index))
    return Repaired(messages=tuple(each.message for each in out), notes=notes)


def _read(messages: tuple[Message, ...], work: Work) -> tuple[list[Out], list[Entry]]:
    """Each message cleaned on its own; leading system messages apart, silent ones tied to the one before."""
    head: list[Out] = []
    entries: list[Entry] = []
    leading, last = True, -1
    for index, message in enumerate(messages):
        if leading and message.role == "system" and _is_prompt(message, messages, work):
            head.extend(_system(index, message, work))
            continue
        silent = is_silent(message, work)
        side = side_of(message, work)
        kept = message if silent else clean(index, message, side, work)
        if kept is None:
            continue
        leading = False
        if silent or (kept is not message and is_silent(kept, work)):
            if entries:
                entries[-1].trail.append((index, kept))
            else:
                head.append(Out(index, kept, ""))
            continue
        side = side if kept.role == message.role else "user"
        if side == "system":
            work.stood[index] = last
        else:
            last = index
        entries.append(Entry(index, kept, side))
    _number_replies(entries, work)
    return head, entries


def _number_replies(entries: list[Entry], work: Work) -> None:
    """Give the messages of one reply the same number: all the results of its calls come after the last of them."""
    rules = work.rules
    last: Entry | None = None
    calls = False
    for entry in entries:
        if entry.side != "assistant":
            last = last if entry.side == "system" and rules.alternation == "merged" else None
            continue
        makes = any(type(part) is ToolCall for part in entry.message.parts)
        joined = last is not None and (
            rules.alternation == "merged"
            or rules.adjacency == "after"
            or (rules.adjacency == "message" and (calls or makes) and _joins(last, work) and _joins(entry, work))
        )
        entry.run = last.run if joined and last is not None else entry.index + 1
        calls = makes or (calls and joined)
        last = entry


def _joins(entry: Entry, work: Work) -> bool:
    """True for a message that the codec writes anew, and so puts together with its neighbour of the same reply."""
    return not is_exact(entry.message, work.target) and all(
        part.id or not work.own(part.wire) for part in entry.message.parts if isinstance(part, ToolCall)
    )


def _is_prompt(message: Message, messages: tuple[Message, ...], work: Work) -> bool:
    """True for a leading system message that belongs to the request's own field, even if it stood in the list."""
    if leading_system((message,), work.target):
        return True
    spoken = bool(message.parts) and any(each.role != "system" and not is_silent(each, work) for each in messages)
    return spoken and work.rules.inline_system == "after user"


def _system(index: int, message: Message, work: Work) -> list[Out]:
    """A leading system message without blank texts, for the request's own field."""
    if not leading_system((message,), work.target):
        work.note("system-moved", index, "a system message at the start of the list belongs to the system prompt")
        message = replace(message, wire=None)
    parts = [part for part in message.parts if not (isinstance(part, Text) and work.refuses(part.text))]
    if len(parts) < len(message.parts):
        work.note("blank", index, "a blank text of the system prompt was left out")
    if any(isinstance(part, ToolCall | ToolResult) for part in parts):
        work.note("role", index, "calls and results in the system prompt: told in words")
        parts = [_told(part) for part in parts]
    elif len(parts) == len(message.parts):
        return [Out(index, message, "")]
    return [Out(index, message.with_parts(*parts), "")] if parts else []


def _told(part: Part) -> Part:
    """A call or a result as plain text."""
    if isinstance(part, ToolCall):
        return Text(text=f"[call of {part.name or 'a tool'} {part.id}: {part.arguments}]")
    return Text(text=f"[result of {part.call_id or part.name}]\n{part.text}") if isinstance(part, ToolResult) else part
