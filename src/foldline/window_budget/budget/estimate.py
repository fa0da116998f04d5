"""The documented estimate of tokens: it counts characters and needs no tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from foldline.measure.usage_anchor import Gauge
from foldline.message import Message
from foldline.models.table import model as model_of
from foldline.window_budget.contract import TokenEstimate
from foldline.window_budget.host_messages import CHARS_PER_TOKEN, IMAGE_TOKENS, HostMessages, tokens
from foldline.wire.field_access import pick, text_of

__all__ = [
    "CHARS_PER_TOKEN",
    "IMAGE_TOKENS",
    "estimate_context",
    "estimate_message_tokens",
    "estimate_tokens",
    "prefix_tokens",
]


def estimate_message_tokens(message: Any) -> int:
    """The estimated size of one message in tokens. The estimate tends to be too high."""
    return tokens(HostMessages([message]).messages[0])


def estimate_tokens(messages: Sequence[Any]) -> int:
    """The estimated size of a transcript in tokens; 0 if it is empty."""
    return prefix_tokens(messages)[-1]


def prefix_tokens(messages: Sequence[Any]) -> list[int]:
    """A list of sizes in tokens: item i is the estimated size of the first i messages."""
    return list(HostMessages(messages).timeline.prefix)


def estimate_context(messages: Sequence[Any], model: Any) -> TokenEstimate:
    """How full the window is: the last reported usage plus an estimate of later messages.

    If there is no valid usage, all messages are estimated.

    The usage of a reply includes the messages before the reply. If a fold has removed these messages, the usage is no
    longer valid. So the usage is used only if the reply is newer than the leading digest.
    """
    gauge = gauge_of(HostMessages(messages))
    return TokenEstimate(context_tokens=gauge.tokens, context_window=window_of(model), anchored=gauge.is_anchored)


def gauge_of(host: HostMessages) -> Gauge:
    """A `Gauge` that has measured all messages of a transcript. Usage older than the leading digest is ignored."""
    lead = host.timeline.lead
    front = host.messages[lead] if lead < len(host.messages) else None
    folded = front is not None and front.kind == "digest"
    since = front.meta.at if front is not None else None
    gauge = Gauge()
    for index, message in enumerate(host.messages):
        gauge = gauge.add(message if not folded else _unless_void(message, since), host.timeline.tokens(index))
    return gauge


def _unless_void(message: Message, since: float | None) -> Message:
    if message.meta.usage is None or (since is not None and message.meta.at is not None and message.meta.at > since):
        return message
    return message.with_meta(replace(message.meta, usage=None))


def window_of(model: Any) -> int:
    """The window of a model in tokens: the model object's `contextWindow`, else the window in the model table."""
    given = pick(model, "contextWindow")
    if isinstance(given, (int, float)):
        return max(0, int(given))
    return model_of(text_of(model) or text_of(pick(model, "id"))).window
