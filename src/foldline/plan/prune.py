"""What is too large: results leave the view one by one, and a stub with a handle stays.

A stub holds nothing but words of the original and one line that says what was left out and where the whole is. Pruning
happens on arrival, before a result was ever sent, or together with a cut, so that the prompt prefix changes once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from foldline.message import Message, Part, Text, ToolCall, ToolResult
from foldline.placeholders import (
    LARGE_AND_OLD,
    TOO_LARGE_TO_SEND,
    TOO_LARGE_TO_STAY,
    WINDOW_FULL,
    read_again_in,
    repeated_in,
    shortened,
    stub_line,
)
from foldline.plan.timeline import Timeline, handle
from foldline.policy import Policy
from foldline.tool_calls import read_key

Size = Callable[[Message], int]

REPEAT_CHARS = 400
"""Shorter texts are not worth a reference to their twin."""
ARGUMENT_CHARS = 400
"""A longer string inside a call's arguments may be shortened when nothing else helps."""


def stub(result: ToolResult, name: str, policy: Policy, *, why: str = TOO_LARGE_TO_STAY) -> ToolResult:
    """The result with a preview of its text and a line that names the whole; media leave too.

    >>> big = ToolResult(call_id="c", parts=(Text(text=chr(10).join(["a line"] * 999)),))
    >>> print(stub(big, "#7", Policy(preview_lines=1)).text)
    a line
    [pruned, too large to stay: 6 of 6,992 characters shown; the whole is #7, ask recall for it]
    """
    text = result.text
    shown = preview(text, policy)
    media = sum(not isinstance(part, Text) for part in result.parts)
    line = stub_line(why, name, shown=len(shown), total=len(text), attachments=media)
    return replace(result, parts=(Text(text=f"{shown}\n{line}" if shown else line),), wire=_loosen(result))


def preview(text: str, policy: Policy) -> str:
    """The start of a text: at most so many characters and lines, the shorter of both."""
    if len(text) <= policy.preview_chars and text.count("\n") < policy.preview_lines:
        return text
    lines = text[: policy.preview_chars].split("\n")
    return "\n".join(lines[: policy.preview_lines])


def prune_message(message: Message, name: str, policy: Policy, chosen: Iterable[ToolResult], *, why: str) -> Message:
    """The message with the chosen results as stubs, where that leaves something out."""
    ids = {id(part) for part in chosen}
    return message.with_parts(
        *(
            _stubbed(part, name, policy, why=why) if isinstance(part, ToolResult) and id(part) in ids else part
            for part in message.parts
        )
    )


def _stubbed(result: ToolResult, name: str, policy: Policy, *, why: str) -> ToolResult:
    made = stub(result, name, policy, why=why)
    plain = all(isinstance(part, Text) for part in result.parts)
    return result if plain and len(made.text) >= len(result.text) else made


def on_arrival(message: Message, index: int, policy: Policy, *, limit: int, size: Size) -> Message | None:
    """The message as it may be sent for the first time: None when it is not too large, or a stub is no smaller."""
    results = tuple(_prunable(message, policy))
    if not results:
        return None
    large = [part for part in results if size(message.with_parts(part)) >= limit]
    if not large:
        return None
    pruned = prune_message(message, handle(index), policy, large, why=TOO_LARGE_TO_SEND)
    return pruned if size(pruned) < size(message) else None


def at_fold(timeline: Timeline, start: int, end: int, policy: Policy, size: Size) -> dict[int, tuple[Message, int]]:
    """Stubs for the messages from `start` to `end` that need not stay whole at a fold; pins must."""
    stubs: dict[int, tuple[Message, int]] = {}
    if not (policy.prune_repeats or policy.prune_superseded or policy.prune_fold_tokens):
        return stubs
    for index, reason in _dispensable(timeline, start, end, policy):
        pruned = _smaller(timeline, index, policy, size, why=reason)
        if pruned is not None:
            stubs.setdefault(index, pruned)
    return stubs


def _dispensable(timeline: Timeline, start: int, end: int, policy: Policy) -> Iterator[tuple[int, str]]:
    """Which results may leave, and why: read again later, said again later, or simply large."""
    seen: dict[str, int] = {}
    read: dict[str, int] = {}
    calls = _calls(timeline, start)
    for index in range(len(timeline) - 1, start - 1, -1):
        message = timeline.shown[index]
        for result in message.results:
            text = result.text
            place = read_key(calls[result.call_id]) if policy.prune_superseded and result.call_id in calls else ""
            inside = index < end and index not in timeline.pins and result.name not in policy.prune_protect
            if inside and policy.prune_repeats and len(text) >= REPEAT_CHARS and text in seen:
                yield index, repeated_in(handle(seen[text]))
            elif inside and place and place in read:
                yield index, read_again_in(handle(read[place]))
            elif inside and policy.prune_fold_tokens and timeline.tokens(index) >= policy.prune_fold_tokens:
                yield index, LARGE_AND_OLD
            seen.setdefault(text, index)
            if place:
                read.setdefault(place, index)


def largest_first(timeline: Timeline, start: int, policy: Policy) -> list[int]:
    """Kept messages that carry prunable results, the largest first, for when the view must fit at any price."""
    found = [index for index in range(start, len(timeline)) if any(_prunable(timeline.shown[index], policy))]
    return sorted(found, key=lambda index: (-timeline.tokens(index), index))


def _smaller(timeline: Timeline, index: int, policy: Policy, size: Size, *, why: str) -> tuple[Message, int] | None:
    """A stub for a message, made from the whole of it, and its size; None when that would gain nothing."""
    message = timeline.messages[index]
    chosen = tuple(_prunable(message, policy))
    if not chosen:
        return None
    pruned = prune_message(message, handle(index), policy, chosen, why=why)
    tokens = size(pruned)
    return (pruned, tokens) if tokens < timeline.tokens(index) else None


def squeeze(timeline: Timeline, index: int, policy: Policy, size: Size) -> tuple[Message, int] | None:
    """The smallest honest form of a message: results as bare stubs, long call arguments shortened as JSON.

    None when that is no smaller, or the message is pinned.
    """
    if index in timeline.pins:
        return None
    bare = policy.but(preview_chars=min(policy.preview_chars, 200), preview_lines=min(policy.preview_lines, 4))
    pruned = _smaller(timeline, index, bare, size, why=WINDOW_FULL)
    message = pruned[0] if pruned else timeline.messages[index]
    if any(len(call.arguments) > ARGUMENT_CHARS for call in message.calls):
        message = message.with_parts(*(_short_call(part, handle(index)) for part in message.parts))
    tokens = size(message)
    return (message, tokens) if tokens < timeline.tokens(index) else None


def _short_call(part: Part, name: str) -> Part:
    if not isinstance(part, ToolCall) or len(part.arguments) <= ARGUMENT_CHARS:
        return part
    short = shorten_json(part.arguments, name)
    return part if short == part.arguments else replace(part, arguments=short, wire=_loosen(part))


def shorten_json(text: str, name: str) -> str:
    """JSON text with its long strings cut on code points: the same keys, still JSON. Other text is left alone."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return json.dumps(_shorten(value, name), ensure_ascii=False, separators=(",", ":"))


def _shorten(value: Any, name: str) -> Any:
    if isinstance(value, str) and len(value) > ARGUMENT_CHARS:
        keep = ARGUMENT_CHARS // 4
        return value[:keep] + shortened(len(value) - keep, name)
    if isinstance(value, dict):
        return {key: _shorten(item, name) for key, item in value.items()}
    if isinstance(value, list):
        return [_shorten(item, name) for item in value]
    return value


def _loosen(part: Part) -> Any:
    return part.wire and part.wire._replace(raw=None, exact=False)


def _prunable(message: Message, policy: Policy) -> Iterator[ToolResult]:
    return (part for part in message.results if part.name not in policy.prune_protect)


def _calls(timeline: Timeline, start: int) -> dict[str, ToolCall]:
    return {call.id: call for index in range(start, len(timeline)) for call in timeline.messages[index].calls}
