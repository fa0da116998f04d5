"""Handles thinking that the provider has bound to the messages before it (Anthropic's preserved thinking).

The provider accepts a signed thinking block only after the same system prompt, tools and messages as when the block was
written. So a reply is stored with the binding of the view that it answers (see `binding_key`). A view includes the
thinking of a reply only if the view has the same binding at the position of the reply. After a fold, an unfold or a
change of model or tools, all earlier thinking is removed at once; the other parts of these messages stay. What is
removed depends only on the record. So the thinking that precedes a block is always the same as when the block was
written.

If your requests use the beta `BINDING_BETA`, the provider can drop the blocks itself: set `bound_thinking="drop_block"`
in the policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foldline.message import Message, Thinking
from foldline.view.identity import ViewIdentity

BINDING_BETA = "thinking-binding-controls-2026-08-01"
"""The value of the header `anthropic-beta` that allows the field in `DROP_BLOCK`."""
DROP_BLOCK: dict[str, Any] = {"thinking": {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}}
"""The request field that lets the provider drop bound thinking. Every later request needs this field, too."""


def has_thinking_on(parameters: Mapping[str, Any]) -> bool:
    """Whether a request with these parameters lets the model think.

    A request without thinking must not have the field of `DROP_BLOCK`.
    """
    thinking = parameters.get("thinking")
    return isinstance(thinking, Mapping) and thinking.get("type") in ("enabled", "adaptive")


def has_thinking(message: Message) -> bool:
    """Whether a message of the model holds thinking."""
    return message.role == "assistant" and any(isinstance(part, Thinking) for part in message.parts)


def without_thinking(message: Message) -> Message:
    """The message without its thinking."""
    return message.with_parts(*(part for part in message.parts if not isinstance(part, Thinking)))


def is_unbound(message: Message, index: int, binding: str) -> bool:
    """Whether the message at `index` has thinking that does not belong to the current prefix.

    `binding` identifies the current prefix. The result is also True if it is not known which view the message answers.
    The same is true if messages were added between the request and the reply, because the prefix in the request was
    then shorter.
    """
    if not has_thinking(message):
        return False
    answered = ViewIdentity.read(message.meta.view)
    return answered is None or answered.length not in (-1, index) or answered.binding != binding
