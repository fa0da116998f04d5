"""Pruning: a stub replaces a large result in the view.

A stub has the start of the text and one more line. This line says how much of the text is shown, and names the handle
of the full text. A result is pruned either on arrival, before it is first sent, or at a fold. So the beginning of the
prompt changes only once per fold.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from foldline.message import Message, Part, Text, ToolCall, ToolResult, edited
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
SizedMessage = tuple[Message, int]

REPEAT_CHARS = 400
"""A result whose text is repeated later is pruned only if the text has at least this many characters."""
ARGUMENT_CHARS = 400
"""In a view that does not fit, strings in call arguments are shortened if they have more characters than this."""


def stub_result(result: ToolResult, name: str, policy: Policy, *, reason: str = TOO_LARGE_TO_STAY) -> ToolResult:
    """The stub of a result: the start of its text and a line with the handle of the full text. Media are removed, too.

    >>> big = ToolResult(call_id="c", parts=(Text(text=chr(10).join(["a line"] * 999)),))
    >>> print(stub_result(big, "#7", Policy(preview_lines=1)).text)
    a line
    [pruned, too large to stay: 6 of 6,992 characters shown; the whole is #7, ask recall for it]
    """
    text = result.text
    shown = preview(text, policy)
    media = sum(not isinstance(part, Text) for part in result.parts)
    line = stub_line(reason, name, shown=len(shown), total=len(text), attachments=media)
    return edited(result, parts=(Text(text=f"{shown}\n{line}" if shown else line),))


def preview(text: str, policy: Policy) -> str:
    """The start of a text, within the policy's limits of characters and lines."""
    if len(text) <= policy.preview_chars and text.count("\n") < policy.preview_lines:
        return text
    lines = text[: policy.preview_chars].split("\n")
    return "\n".join(lines[: policy.preview_lines])


def stub_results(message: Message, name: str, policy: Policy, chosen: Iterable[ToolResult], *, reason: str) -> Message:
    """The message with stubs in place of the chosen results. A result stays if its stub would not be shorter."""
    stubs: dict[int, Part] = {id(part): _shorter_stub(part, name, policy, reason=reason) for part in chosen}
    return message.with_parts(*(stubs.get(id(part), part) for part in message.parts))


def _shorter_stub(result: ToolResult, name: str, policy: Policy, *, reason: str) -> ToolResult:
    made = stub_result(result, name, policy, reason=reason)
    plain = all(isinstance(part, Text) for part in result.parts)
    return result if plain and len(made.text) >= len(result.text) else made


def stub_on_arrival(message: Message, index: int, policy: Policy, *, limit: int, size: Size) -> Message | None:
    """The message with stubs for its results of at least `limit` tokens; None if it does not become smaller."""
    large = [part for part in _prunable(message, policy) if size(message.with_parts(part)) >= limit]
    if not large:
        return None
    pruned = stub_results(message, handle(index), policy, large, reason=TOO_LARGE_TO_SEND)
    return pruned if size(pruned) < size(message) else None


def stubs_at_fold(timeline: Timeline, start: int, end: int, policy: Policy, size: Size) -> dict[int, SizedMessage]:
    """The messages from `start` to `end` that the policy prunes at a fold, without pinned messages.

    The result maps the index of each message to its pruned form and the size of this form.
    """
    stubs: dict[int, SizedMessage] = {}
    if policy.prune_repeats or policy.prune_superseded or policy.prune_fold_tokens:
        for index, reason in _prune_reasons(timeline, start, end, policy):
            pruned = _message_stub(timeline, index, policy, size, reason=reason)
            if pruned is not None:
                stubs.setdefault(index, pruned)
    return stubs


def _prune_reasons(timeline: Timeline, start: int, end: int, policy: Policy) -> Iterator[tuple[int, str]]:
    """Indexes of messages with a result that can be pruned, each with the reason.

    The reasons are: a later result has the same text, the same file is read again later, or the result is large.
    """
    texts: dict[str, int] = {}
    reads: dict[str, int] = {}
    calls = {call.id: call for index in range(start, len(timeline)) for call in timeline.messages[index].calls}
    for index in range(len(timeline) - 1, start - 1, -1):
        message = timeline.shown[index]
        for result in message.results:
            text = result.text
            place = read_key(calls[result.call_id]) if policy.prune_superseded and result.call_id in calls else ""
            inside = index < end and index not in timeline.pins and result.name not in policy.prune_protect
            if inside and policy.prune_repeats and len(text) >= REPEAT_CHARS and text in texts:
                yield index, repeated_in(handle(texts[text]))
            elif inside and place and place in reads:
                yield index, read_again_in(handle(reads[place]))
            elif inside and policy.prune_fold_tokens and timeline.tokens(index) >= policy.prune_fold_tokens:
                yield index, LARGE_AND_OLD
            texts.setdefault(text, index)
            if place:
                reads.setdefault(place, index)


def largest_first(timeline: Timeline, start: int, policy: Policy) -> list[int]:
    """Indexes of the messages, starting at `start`, that have results to prune. The largest message comes first."""
    found = [index for index in range(start, len(timeline)) if any(_prunable(timeline.shown[index], policy))]
    return sorted(found, key=lambda index: (-timeline.tokens(index), index))


def _message_stub(timeline: Timeline, index: int, policy: Policy, size: Size, reason: str) -> SizedMessage | None:
    """The message with stubs for all results that may be pruned, and its size; None if the message does not become
    smaller.
    """
    message = timeline.messages[index]
    chosen = tuple(_prunable(message, policy))
    if not chosen:
        return None
    pruned = stub_results(message, handle(index), policy, chosen, reason=reason)
    tokens = size(pruned)
    return (pruned, tokens) if tokens < timeline.tokens(index) else None


def smallest_form(timeline: Timeline, index: int, policy: Policy, size: Size) -> SizedMessage | None:
    """The shortest form of a message, and its size. Results become short stubs, and long call arguments are shortened.

    Returns None if this form is not smaller than the message, or if the message is pinned.
    """
    if index in timeline.pins:
        return None
    bare = policy.but(preview_chars=min(policy.preview_chars, 200), preview_lines=min(policy.preview_lines, 4))
    pruned = _message_stub(timeline, index, bare, size, reason=WINDOW_FULL)
    message = pruned[0] if pruned else timeline.messages[index]
    if any(len(call.arguments) > ARGUMENT_CHARS for call in message.calls):
        message = message.with_parts(*(_short_call(part, handle(index)) for part in message.parts))
    tokens = size(message)
    return (message, tokens) if tokens < timeline.tokens(index) else None


def _short_call(part: Part, name: str) -> Part:
    if not isinstance(part, ToolCall) or len(part.arguments) <= ARGUMENT_CHARS:
        return part
    short = shorten_json(part.arguments, name)
    return part if short == part.arguments else edited(part, arguments=short)


def shorten_json(text: str, name: str) -> str:
    """JSON text in which long strings are shortened.

    The keys stay the same. Text that is not JSON is returned unchanged.
    """
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


def _prunable(message: Message, policy: Policy) -> Iterator[ToolResult]:
    return (part for part in message.results if part.name not in policy.prune_protect)
