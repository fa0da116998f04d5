"""Replies of Anthropic's Messages API: the message, its usage, and its stream of events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from foldline.testing.provider.cache import CachedPrompt
from foldline.testing.provider.script import ScriptedReply

Event = dict[str, Any]
CHUNK = 24
"""Number of characters in one delta of a stream."""


def anthropic_content(reply: ScriptedReply, name: str) -> list[dict[str, Any]]:
    """The content blocks of a reply; thinking is not signed yet."""
    blocks: list[dict[str, Any]] = []
    if reply.thinking:
        blocks.append({"type": "thinking", "thinking": reply.thinking, "signature": ""})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    for index, (tool, arguments) in enumerate(reply.calls):
        blocks.append({"type": "tool_use", "id": f"toolu_{name}_{index}", "name": tool, "input": dict(arguments)})
    return blocks


def anthropic_usage(prompt: CachedPrompt, output: int) -> dict[str, Any]:
    """The usage of a reply. Cached tokens are not included in `input_tokens`."""
    return {
        "input_tokens": prompt.plain,
        "cache_creation_input_tokens": prompt.write_5m + prompt.write_1h,
        "cache_read_input_tokens": prompt.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": prompt.write_5m,
            "ephemeral_1h_input_tokens": prompt.write_1h,
        },
        "output_tokens": output,
        "service_tier": "standard",
    }


def anthropic_message(
    name: str, model: str, content: list[dict[str, Any]], stop: str, usage: dict[str, Any]
) -> dict[str, Any]:
    """A message as the API returns it."""
    return {
        "id": f"msg_{name}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": usage,
    }


def anthropic_events(message: dict[str, Any]) -> Iterator[tuple[str, Event]]:
    """The events of a stream that carries a message."""
    opening = {**message["usage"], "output_tokens": 1}
    start = {**message, "content": [], "stop_reason": None, "usage": opening}
    yield "message_start", {"type": "message_start", "message": start}
    yield "ping", {"type": "ping"}
    for index, block in enumerate(message["content"]):
        empty, deltas = _deltas(block)
        yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": delta, "usage": message["usage"]}
    yield "message_stop", {"type": "message_stop"}


def _deltas(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A block without its content, and the deltas that contain its content."""
    kind = block["type"]
    if kind == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": part} for part in chunks(block["text"])]
    if kind == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": part} for part in chunks(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
        return {**block, "thinking": "", "signature": ""}, deltas
    if kind == "tool_use":
        text = json.dumps(block["input"])
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": part} for part in chunks(text)]
    if kind == "compaction":
        return {**block, "content": None}, [{"type": "compaction_delta", "content": block["content"]}]
    return block, []


def chunks(text: str, size: int = CHUNK) -> list[str]:
    """A text in pieces, as in a stream.

    >>> chunks("hello", 3)
    ['hel', 'lo']
    """
    return [text[at : at + size] for at in range(0, len(text), size)]
