"""The `Memory` of LlamaIndex with its own store, an SQLite database in memory.

As in LlamaIndex's agents, the system prompt is not part of the memory. Its size is subtracted from the limit.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock, ToolCallBlock
from llama_index.core.memory import Memory

from bench.peers.talk import IMAGE_TOKENS, Call, Said, Talk, chars4, picture, size


class Llama:
    """A memory, used with `put` and `get`."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.system: Talk = []
        self.loop = asyncio.new_event_loop()
        self.memory = self._memory(budget)

    def _memory(self, limit: int) -> Any:
        return Memory.from_defaults(
            token_limit=max(1, limit),
            tokenizer_fn=lambda text: range(chars4(text)),
            image_token_size_estimate=IMAGE_TOKENS,
        )

    def native(self, talk: Talk) -> list[Any]:
        """The messages in the form that the peer takes."""
        system = [said for said in talk if said.role == "system"]
        if system:
            self.system = system
            self.memory = self._memory(self.budget - size(system))
        return [_message(said) for said in talk if said.role != "system"]

    def add(self, native: list[Any]) -> None:
        """Add messages."""
        self.loop.run_until_complete(self.memory.aput_messages(native))

    def view(self) -> list[Any]:
        """The messages that would be sent, without the system prompt."""
        found: list[Any] = self.loop.run_until_complete(self.memory.aget())
        return found

    def said(self, view: list[Any]) -> Talk:
        """The view as a `Talk`."""
        return [*self.system, *(_said(message) for message in view)]


def _message(said: Said) -> Any:
    blocks: list[Any] = [TextBlock(text=said.text)] if said.text else []
    blocks += [ImageBlock(image=b64decode(picture()), image_mimetype="image/png")] * said.images
    for call in said.calls:
        blocks.append(ToolCallBlock(tool_call_id=call.id, tool_name=call.name, tool_kwargs=json.loads(call.arguments)))
    more = {"tool_call_id": said.answers} if said.role == "tool" else {}
    return ChatMessage(role=said.role, blocks=blocks, additional_kwargs=more)


def _said(message: Any) -> Said:
    calls = [block for block in message.blocks if isinstance(block, ToolCallBlock)]
    return Said(
        message.role.value,
        "".join(block.text for block in message.blocks if isinstance(block, TextBlock)),
        tuple(Call(call.tool_call_id, call.tool_name, json.dumps(call.tool_kwargs)) for call in calls),
        message.additional_kwargs.get("tool_call_id", ""),
        sum(isinstance(block, ImageBlock) for block in message.blocks),
    )
