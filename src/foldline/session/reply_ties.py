"""Stores with a reply which view it answers, so that its usage and its thinking are not used for another view."""

from __future__ import annotations

from collections.abc import Iterable

from foldline.message import Message, Meta
from foldline.view.bound_thinking import has_thinking
from foldline.view.identity import ViewIdentity


def is_untied(message: Message) -> bool:
    """Whether a message is a reply with usage or thinking for which no view is stored yet."""
    if message.role != "assistant" or message.meta.view:
        return False
    return message.meta.usage is not None or has_thinking(message)


def tie_reply(message: Message, identity: ViewIdentity) -> Message:
    """The reply, with the identity of the view that it answers."""
    meta = message.meta
    tied = Meta(
        reply=meta.reply,
        model=meta.model,
        stop=meta.stop,
        usage=meta.usage,
        at=meta.at,
        hidden=meta.hidden,
        source=meta.source,
        view=str(identity),
    )  # `replace` would take several times as long
    return Message(role=message.role, parts=message.parts, kind=message.kind, meta=tied, wire=message.wire)


def tie_replies(messages: Iterable[Message], identity: ViewIdentity) -> list[Message]:
    """The messages. Each reply without a stored view gets this identity."""
    return [tie_reply(message, identity) if is_untied(message) else message for message in messages]
