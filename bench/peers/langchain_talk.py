"""Converts a `Talk` to langchain messages and back, and counts these messages. Three peers are built on langchain."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from bench.peers.talk import IMAGE_TOKENS, Call, Said, Talk, chars4, picture

_ROLES = {"system": "system", "human": "user", "ai": "assistant", "tool": "tool"}


def to_native(talk: Sequence[Said]) -> list[Any]:
    """The langchain messages for a `Talk`."""
    return [_message(said) for said in talk]


def _message(said: Said) -> Any:
    if said.role == "system":
        return SystemMessage(said.text)
    if said.role == "assistant":
        calls = [{"id": call.id, "name": call.name, "args": json.loads(call.arguments)} for call in said.calls]
        return AIMessage(said.text, tool_calls=calls)
    if said.role == "tool":
        return ToolMessage(said.text, tool_call_id=said.answers)
    if not said.images:
        return HumanMessage(said.text)
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture()}"}}
    return HumanMessage([{"type": "text", "text": said.text}, *[image] * said.images])


def from_native(messages: Iterable[Any]) -> Talk:
    """The `Talk` for langchain messages."""
    return [
        Said(
            _ROLES[message.type],
            message.text if isinstance(message.text, str) else message.text(),
            tuple(Call(call["id"], call["name"], json.dumps(call["args"])) for call in _calls(message)),
            getattr(message, "tool_call_id", ""),
            0 if isinstance(message.content, str) else sum(block["type"] != "text" for block in message.content),
        )
        for message in messages
    ]


def _calls(message: Any) -> list[Any]:
    return message.tool_calls if message.type == "ai" else []


def count(messages: Iterable[Any]) -> int:
    """The number of tokens: the number of characters divided by 4, computed as fast as possible."""
    tokens = 0
    for message in messages:
        content = message.content
        if isinstance(content, str):
            tokens += (len(content) + 3) // 4
        else:
            tokens += sum(chars4(block["text"]) if block["type"] == "text" else IMAGE_TOKENS for block in content)
        if message.type == "ai":
            for call in message.tool_calls:
                tokens += (sum(len(key) + len(str(value)) + 6 for key, value in call["args"].items()) + 12) // 4
    return tokens
