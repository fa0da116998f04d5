"""Handles thinking that the provider has bound to the messages before it (Anthropic's preserved thinking).

The provider accepts a signed thinking block only after the same system prompt, tools and messages as when the block was
written. After a fold, an unfold or a change of tools, the provider refuses all earlier thinking blocks, and also new
blocks that are written after such a block. So such blocks are removed from the view; the other parts of their messages
stay. If your requests use the beta `BINDING_BETA`, the provider can drop the blocks instead: set
`bound_thinking="drop_block"` in the policy.
"""

from __future__ import annotations

from typing import Any

from foldline.message import Message, Thinking
from foldline.view.identity import ViewIdentity

BINDING_BETA = "thinking-binding-controls-2026-08-01"
"""The value of the header `anthropic-beta` that allows the field in `DROP_BLOCK`."""
DROP_BLOCK: dict[str, Any] = {"thinking": {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}}
"""The request field that lets the provider drop bound thinking. Every later request needs this field, too."""


def has_thinking(message: Message) -> bool:
    """Whether a message of the model holds thinking."""
    return message.role == "assistant" and any(isinstance(part, Thinking) for part in message.parts)


def without_thinking(message: Message) -> Message:
    """The message without its thinking."""
    return message.with_parts(*(part for part in message.parts if not isinstance(part, Thinking)))


def answers_view(message: Message, index: int, key: str, tools: int) -> bool | None:
    """Whether the reply at `index` answers a view with this key and these tools that ends directly before the reply.

    None if no view is stored with the reply. If messages were added before the reply arrived, they are now between that
    view and the reply. The result is then False, because the thinking in the reply has another prefix.
    """
    if not message.meta.view:
        return None
    answered = ViewIdentity.read(message.meta.view)
    return answered is not None and answered.length in (-1, index) and (answered.key, answered.tools) == (key, tools)
