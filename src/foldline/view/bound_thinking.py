"""Handles bound thinking: thinking that the provider has bound to the messages before it.

Anthropic calls this preserved thinking. The prefix of a thinking block is everything before it: the system prompt, the
tools and the messages. The provider accepts a signed thinking block only if its prefix has not changed since the block
was written. The binding of a view is a hash that identifies the prefix (see `binding_key`). A reply is stored with the
binding of the view that it answers. A view includes the thinking of a reply only if the view has the same binding at
the position of the reply. Otherwise, the thinking is unbound in this view.

After a fold, an unfold or a change of model or tools, all earlier thinking is removed at once; the other parts of these
messages stay. Which thinking is removed depends only on the record, so every later request removes the same thinking.
Thinking that the model writes after such a change stays, until the next change.

If your requests use the beta `BINDING_BETA`, the provider can drop the blocks itself: set `bound_thinking="drop_block"`
in the policy.

Older models think with a budget. They refuse tool results in a turn that does not begin with thinking, for example
because a fold removed the beginning of the turn, or because another model began the turn. In a request for such a turn,
`THINKING_OFF` replaces the budget.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from foldline.message import Message, Thinking
from foldline.view.identity import ViewIdentity

BINDING_BETA = "thinking-binding-controls-2026-08-01"
"""The value of the header `anthropic-beta` that allows the field in `DROP_BLOCK`."""
DROP_BLOCK: dict[str, Any] = {"thinking": {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}}
"""The request field that lets the provider drop thinking blocks that are bound to another prefix.

If one request has this field, every later request needs it, too.
"""

THINKING_OFF = {"type": "disabled"}
"""The value of `thinking` in a request that must not think."""
_THINKING_BLOCKS = ("thinking", "redacted_thinking")


def must_not_think(thinking: Any, elements: Sequence[Mapping[str, Any]]) -> bool:
    """Whether Anthropic refuses thinking with a budget in this request.

    Anthropic refuses it if neither the first nor the last reply of an unfinished turn begins with thinking. A turn is a
    series of replies that are separated only by tool results. A turn is unfinished if tool results follow its last
    reply. `thinking` is the field of the request, and `elements` are the messages of the request.
    """
    if not isinstance(thinking, Mapping) or thinking.get("type") != "enabled":
        return False
    last = len(elements) - 1
    while last >= 0 and elements[last].get("role") != "assistant":
        last -= 1
    if last < 0 or last + 1 == len(elements) or not _has_results(elements[last + 1]):
        return False
    first = last
    while first >= 2 and _has_results(elements[first - 1]) and elements[first - 2].get("role") == "assistant":
        first -= 2
    return not any(_begins_with_thinking(elements[place]) for place in (last, first))


def _has_results(element: Mapping[str, Any]) -> bool:
    return any(block.get("type") == "tool_result" for block in _blocks(element))


def _begins_with_thinking(element: Mapping[str, Any]) -> bool:
    return any(block.get("type") in _THINKING_BLOCKS for block in _blocks(element)[:1])


def _blocks(element: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = element.get("content")
    return [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []


def has_thinking_on(parameters: Mapping[str, Any]) -> bool:
    """Whether a request with these parameters lets the model think.

    If not, the request must not have the field `block_binding` (see `DROP_BLOCK`).
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
    """Whether the message at `index` has thinking that is not bound to the current prefix.

    `binding` identifies the current prefix. The thinking is also unbound in two other cases:

    - It is not known which view the message answers.
    - Messages were added after the request and before the reply, so the request did not contain them.
    """
    if not has_thinking(message):
        return False
    answered = ViewIdentity.read(message.meta.view)
    return answered is None or answered.length not in (-1, index) or answered.binding != binding
