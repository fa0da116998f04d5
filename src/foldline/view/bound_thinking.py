"""Thinking that the provider has bound to the messages before it (Anthropic's preserved thinking).

A signed thinking block is accepted only behind the system prompt, tools and messages that it was written behind. After
a fold, an unfold or a change of tools, the blocks written before are refused, and so are those written behind them. So
they leave the view, and nothing else of their messages does. A caller whose requests use the beta `BINDING_BETA` can
let the provider drop them instead: with `bound_thinking="drop_block"` in the policy.
"""

from __future__ import annotations

from typing import Any

from foldline.message import Message, Thinking
from foldline.view.identity import ViewIdentity

BINDING_BETA = "thinking-binding-controls-2026-08-01"
"""The value of the header `anthropic-beta` that allows the field in `DROP_BLOCK`."""
DROP_BLOCK: dict[str, Any] = {"thinking": {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}}
"""The request field that lets the provider drop bound thinking; every later request needs it too."""


def has_thinking(message: Message) -> bool:
    """Whether a message of the model holds thinking."""
    return message.role == "assistant" and any(isinstance(part, Thinking) for part in message.parts)


def without_thinking(message: Message) -> Message:
    """The message without its thinking."""
    return message.with_parts(*(part for part in message.parts if not isinstance(part, Thinking)))


def answers_view(message: Message, key: str, tools: int) -> bool | None:
    """Whether a reply answers a view with this key and these tools; None if it was not noted."""
    if not message.meta.view:
        return None
    answered = ViewIdentity.read(message.meta.view)
    return answered is not None and answered.key == key and answered.tools == tools
