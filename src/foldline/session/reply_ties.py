"""Notes at a reply which view it answers, so that its usage and its thinking are used for no other view."""

from __future__ import annotations

from collections.abc import Iterable

from foldline.message import Message, Meta
from foldline.view.bound_thinking import has_thinking
from foldline.view.identity import ViewIdentity


def is_untied(message: Message) -> bool:
    """Whether a message is a reply with usage or thinking of which it is not noted which view it answers."""
    if message.role != "assistant" or message.meta.view:
        return False
    return message.meta.usage is not None or has_thinking(message)


def tie_reply(message: Message, identity: ViewIdentity) -> Message:
    """The reply, noted as the answer to a view."""
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
    """The messages, with all replies noted as answers to views of one identity."""
    return [tie_reply(message, identity) if is_untied(message) else message for message in messages]
