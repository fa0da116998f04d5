"""Truncation recovery of a context window policy: continue a reply that stopped at its length limit.

    state = TruncationState()
    while True:
        reply = model(messages)
        messages, state = continue_reply([*messages, reply.message], reply.stop_reason, state)
        if not state.retry:
            break

The reply's text stays. An incomplete tool call did not run, so it is removed. A prompt asks the model to go on in
smaller pieces, at most `max_retries` times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from foldline.compat.caller_messages import CallerMessages
from foldline.compat.context_policy import PRESET
from foldline.errors import ConfigError
from foldline.message import Message
from foldline.view.continuation import LENGTH_STOPS, continuation

DEFAULT_MAX_RETRIES: int = PRESET.continue_max


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncationState:
    """How often a reply was continued, and whether to call the model again. `continue_reply` returns a new state."""

    truncation_retries: int = 0
    """Number of continuations since the last complete reply."""
    retry: bool = False
    """Whether the last call added a continuation prompt, so that the model must be called again."""


def continue_reply(
    messages: Sequence[Any],
    stop_reason: str | None = None,
    state: TruncationState | None = None,
    *,
    max_retries: int = DEFAULT_MAX_RETRIES,
) -> tuple[Any, TruncationState]:
    """The messages to send next, and the new state.

    The last message must be the model's reply. `stop_reason` is the stop reason that the provider's API returned, such
    as `max_tokens` or `length`. By default, the stop reason in the reply is used. If the reply is complete or
    `max_retries` is reached, the list is returned unchanged, and the state has `retry=False`.
    """
    if max_retries < 0:
        raise ConfigError(f"max_retries must be 0 or more, not {max_retries}")
    state = state or TruncationState()
    caller = CallerMessages(messages)
    found = continuation(_with_stop(caller.messages, stop_reason), most=1) if caller.messages else None
    if found is None:
        return messages, TruncationState()
    if state.truncation_retries >= max_retries:
        return messages, replace(state, retry=False)
    reply = caller.messages[-1] if found.reply is not None and not _lost_parts(caller, found.reply) else found.reply
    kept = [*caller.messages[:-1], *([reply] if reply is not None else []), found.prompt]
    return caller.restore(kept), TruncationState(truncation_retries=state.truncation_retries + 1, retry=True)


def _with_stop(messages: Sequence[Message], stop_reason: str | None) -> list[Message]:
    """A list with only the last message. If `stop_reason` is not None, it becomes the stop reason of this message.

    A stop reason that means a length limit is replaced by the engine's name for it.
    """
    reply = messages[-1]
    stop = reply.meta.stop if stop_reason is None else stop_reason
    if stop and stop.replace("_", "").lower() in _LENGTH_STOPS:
        stop = next(iter(LENGTH_STOPS))
    return [reply.with_meta(replace(reply.meta, stop=stop or ""))]


def _lost_parts(caller: CallerMessages, reply: Message) -> bool:
    return len(reply.parts) != len(caller.messages[-1].parts)


_LENGTH_STOPS = {stop.replace("_", "").lower() for stop in LENGTH_STOPS}
