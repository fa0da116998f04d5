"""Going on after a reply that stopped at its length limit.

The model is asked once more, in a bounded number of tries, to go on in smaller pieces. What it said so far stays; a
tool call whose arguments broke off did not run and cannot be sent, so it leaves and the prompt says so. How many tries
there were is read off the conversation itself.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from foldline.message import Message, Part, ToolCall, user
from foldline.placeholders import continue_prompt, placeholder_kind

LENGTH_STOPS = frozenset({"max_tokens", "length", "MAX_TOKENS", "max_output_tokens"})
"""The words providers have for a reply that hit its length limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuation:
    """What to send to go on: the cut reply as it may be sent, if anything of it is left, and the prompt."""

    reply: Message | None
    prompt: Message
    attempt: int


def continuation(messages: Sequence[Message], *, most: int) -> Continuation | None:
    """How to go on after the last message; None when it did not break off or `most` tries are used up."""
    if not messages or messages[-1].role != "assistant" or messages[-1].meta.stop not in LENGTH_STOPS:
        return None
    attempt = _attempts(messages[:-1]) + 1
    if attempt > most:
        return None
    reply = messages[-1]
    broken = [part for part in reply.parts if isinstance(part, ToolCall) and not _whole(part)]
    left: list[Part] = [part for part in reply.parts if not any(part is call for call in broken)]
    names = ", ".join(dict.fromkeys(call.name for call in broken))
    prompt = user(continue_prompt(names), kind="note")
    kept = reply if not broken else reply.with_parts(*left) if left else None
    return Continuation(reply=kept, prompt=prompt, attempt=attempt)


def _attempts(messages: Sequence[Message]) -> int:
    """How often the model was already asked to go on, without a break."""
    count = 0
    for message in reversed(messages):
        if _asks_to_go_on(message):
            count += 1
        elif message.role != "assistant":
            break
    return count


def _asks_to_go_on(message: Message) -> bool:
    return message.kind == "note" and placeholder_kind(message.text) == "prompt"


def _whole(call: ToolCall) -> bool:
    """Whether a call's arguments can be sent: JSON, or free text where the tool takes that."""
    if call.kind != "function":
        return True
    try:
        json.loads(call.arguments)
    except (ValueError, RecursionError):
        return False
    return True
