"""Invariant: no reply occurs twice.

A queue that delivers a message at least once may deliver a reply again. The repetition is left out as a whole. If only
its calls were left out, its thinking would remain, and the provider would refuse the request.
"""

from __future__ import annotations

from collections.abc import Hashable

from foldline.message import REPLY_TO_VIEW, Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from foldline.wire.repair.context import RepairContext


def is_repeated_reply(index: int, message: Message, context: RepairContext) -> bool:
    """True for a message of the assistant that repeats an earlier message of the same reply."""
    key = reply_key(message)
    if key is None:
        return False
    places = context.replies.setdefault(key, [])
    places.append(index)
    if len(places) == 1:
        return False
    context.note("reply-duplicate", index, "a repetition of an earlier reply was left out")
    return True


def reply_key(message: Message) -> Hashable:
    """A key that is equal for two deliveries of one message; None if two equal messages may be two replies.

    The key consists of the provider's reply id, the item id and the content.

    - If there is a reply id, the key leaves out thinking, because a view may leave out the thinking of one delivery. A
      message with only thinking is an exception: its key contains the thinking.
    - If there is an item id but no reply id, there is no key: `single_messages` finds repeated item ids.
    - If there is no id, there is a key only for a message with a signature or a server-side call, because these are
      different in every reply.
    """
    reply, parts = message.meta.reply, message.parts
    value = message.wire.value if message.wire is not None else None
    item = value.get("id") if isinstance(value, dict) else ""
    if not reply or reply.startswith(REPLY_TO_VIEW):
        reply = ""
        if item:
            return None
        for part in parts:
            if isinstance(part, Thinking) and part.signature:
                break
            if isinstance(part, Opaque) and isinstance(part.value, dict) and part.value.get("id"):
                break
        else:
            return None
    else:
        parts = tuple([part for part in parts if not isinstance(part, Thinking)]) or parts
    return reply, str(item or ""), tuple([_content_of(part) for part in parts])


def _content_of(part: Part) -> Hashable:
    """The values of a part that stay the same when its message is delivered again."""
    match part:
        case Text():
            return part.text
        case Thinking():
            return part.signature, part.text
        case ToolCall():
            return part.id, part.name, part.arguments
        case ToolResult():
            return part.call_id, part.name, part.text
        case Media():
            return part.data, part.url, part.text
    return part.kind, repr(part.value)
