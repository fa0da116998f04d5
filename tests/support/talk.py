"""What is said, called and answered in a conversation, whichever provider carried it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from foldline.message import Message, Text, ToolCall, ToolResult
from foldline.wire.formats import format_of


def said(provider: str, body: dict[str, Any]) -> Any:
    """The talk of a rendered request."""
    target = format_of(provider)
    system = [target.parse_system(body[target.system_key])] if target.parse_system and target.system_key in body else []
    return talk([*system, *(target.parse(element, None) for element in body[target.list_key])])


def talk(messages: Iterable[Message]) -> Any:
    """What is said, called and answered, whatever the borders of messages and the spaces between texts."""
    parts = [part for message in messages for part in message.parts]
    return (
        "".join("".join(part.text.split()) for part in parts if isinstance(part, Text)),
        [(part.name, _arguments(part.arguments)) for part in parts if isinstance(part, ToolCall)],
        ["".join(part.text.split()) for part in parts if isinstance(part, ToolResult)],
    )


def _arguments(text: str) -> Any:
    """Arguments as every provider can say them: an object, or text in one."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"input": text}
