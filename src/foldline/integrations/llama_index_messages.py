"""Converts between LlamaIndex messages and foldline messages."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

from llama_index.core.base.llms import types as llama
from llama_index.core.base.llms.types import ChatMessage, MessageRole

from foldline.integrations.item_codec import arguments_of, json_of, kept_blocks, message_codec, result_text
from foldline.message import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from foldline.recall.tools import parse_call

_ROLES = {"assistant": "assistant", "chatbot": "assistant", "model": "assistant", "system": "system"}
_ROLES |= {"developer": "system", "tool": "tool", "function": "tool"}
_MEDIA = {"image": "image", "audio": "audio", "video": "video", "document": "data"}
"""For each kind of media block, the field with its content."""


def read_message(item: ChatMessage) -> Message:
    """The foldline message for a LlamaIndex message."""
    parts = tuple(_part(block) for block in item.blocks)
    role, call_id = _ROLES.get(str(item.role.value), "user"), item.additional_kwargs.get("tool_call_id")
    if role == "tool" and call_id:
        result = ToolResult(call_id=str(call_id), name=str(item.additional_kwargs.get("name") or ""), parts=parts)
        return Message(role="tool", parts=(result,))
    if role == "assistant" and not any(isinstance(part, ToolCall) for part in parts):
        parts += tuple(map(parse_call, item.additional_kwargs.get("tool_calls") or ()))
    return Message(role="user" if role == "tool" else role, parts=parts)


def _part(block: Any) -> Part:
    match block:
        case llama.TextBlock():
            return Text(text=block.text)
        case llama.ThinkingBlock():
            signature = str(block.additional_information.get("signature") or "")
            return Thinking(text=block.content or "", signature=signature)
        case llama.ToolCallBlock():
            arguments = json_of(block.tool_kwargs)
            return ToolCall(id=block.tool_call_id or "", name=block.tool_name, arguments=arguments)
    kind = str(block.block_type)
    data = getattr(block, _MEDIA[kind], None) if kind in _MEDIA else None
    if kind not in _MEDIA or (not isinstance(data, bytes) and not block.url):
        return Opaque(kind=f"llama-index {kind}", value=block.model_dump(mode="json"))
    mime = getattr(block, f"{kind}_mimetype", None) or ""
    return Media(kind=kind, mime=mime, data=data.decode() if isinstance(data, bytes) else "", url=str(block.url or ""))


def write_message(message: Message, item: ChatMessage | None) -> ChatMessage:
    """The LlamaIndex message for a foldline message: a copy of `item` with the new content, or a new message."""
    blocks: list[Any]
    role, extra = MessageRole(message.role), {}
    if message.results:
        result = message.results[0]
        blocks = [llama.TextBlock(text=result_text(result))]
        extra = {"tool_call_id": result.call_id, **({"name": result.name} if result.name else {})}
    else:
        blocks = kept_blocks(message.parts, item.blocks if item else (), lambda block: [_part(block)], _new_blocks)
    if item is not None:
        return item.model_copy(update={"blocks": blocks})
    return ChatMessage(role=role, blocks=blocks, additional_kwargs=extra)


def _new_blocks(part: Part) -> list[Any]:
    match part:
        case Text():
            return [llama.TextBlock(text=part.text)]
        case Thinking():
            information = {"signature": part.signature} if part.signature else {}
            return [llama.ThinkingBlock(content=part.text, additional_information=information)]
        case ToolCall():
            return [llama.ToolCallBlock(tool_call_id=part.id, tool_name=part.name, tool_kwargs=arguments_of(part))]
        case Media() if part.kind == "image":
            data = b64decode(part.data) if part.data else None
            return [llama.ImageBlock(image=data, url=part.url or None, image_mimetype=part.mime or None)]
    return []


CODEC = message_codec(read_message, write_message)
"""Converts between LlamaIndex's messages and foldline's."""
