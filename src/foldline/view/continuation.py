"""The prompt that continues a reply which stopped at its length limit.

The model is asked to go on in smaller pieces, at most `continue_max` times in a row. The text of the reply stays. A
tool call with truncated arguments did not run and cannot be sent, so it is removed and the prompt says so. The number
of attempts is counted from the continuation prompts in the conversation.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from foldline.message import Message, Part, ToolCall, user
from foldline.placeholders import continue_prompt, placeholder_kind

LENGTH_STOPS = frozenset({"max_tokens", "length", "MAX_TOKENS", "max_output_tokens"})
"""Stop reasons of the providers for a reply that hit its length limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuation:
    """How to continue a truncated reply.

    `reply` is the part of the reply that may be sent (None if nothing is left), and `prompt` asks the model to go on.
    """

    reply: Message | None
    prompt: Message
    attempt: int


def continuation(messages: Sequence[Message], *, most: int) -> Continuation | None:
    """How to continue the last message; None if it is complete or if there were already `most` attempts.

    A reply that stopped after complete calls counts as complete, because the results of the calls come next. A reply
    without text and calls also counts as complete, because there is nothing to continue.
    """
    if not messages or messages[-1].role != "assistant" or messages[-1].meta.stop not in LENGTH_STOPS:
        return None
    attempt = _attempts(messages[:-1]) + 1
    if attempt > most:
        return None
    reply = messages[-1]
    broken = [part for part in reply.parts if isinstance(part, ToolCall) and not _is_complete(part)]
    if not broken and (reply.calls or not reply.text.strip()):
        return None
    left: list[Part] = [part for part in reply.parts if not any(part is call for call in broken)]
    names = ", ".join(dict.fromkeys(call.name for call in broken))
    prompt = user(continue_prompt(names), kind="note")
    kept = reply if not broken else reply.with_parts(*left) if left else None
    return Continuation(reply=kept, prompt=prompt, attempt=attempt)


def _attempts(messages: Sequence[Message]) -> int:
    """Number of continuation prompts since the user's last message."""
    count = 0
    for message in reversed(messages):
        if message.kind == "note" and placeholder_kind(message.text) == "prompt":
            count += 1
        elif message.role != "assistant":
            break
    return count


def _is_complete(call: ToolCall) -> bool:
    """Whether the arguments of a call can be sent: valid JSON, or any text for a custom tool."""
    if call.kind != "function":
        return True
    try:
        json.loads(call.arguments)
    except (ValueError, RecursionError):
        return False
    return True
