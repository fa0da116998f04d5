"""Converts between LangChain messages and foldline messages."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from foldline.integrations.item_codec import arguments_of, json_of, media_of, message_codec, result_text, usage_of
from foldline.message import Media, Message, Meta, Opaque, Part, Text, Thinking, ToolCall, ToolResult

_ROLES = {"human": "user", "ai": "assistant", "tool": "tool", "system": "system", "developer": "system"}
_CALLS = ("tool_use", "tool_call", "function_call", "tool_call_chunk", "input_json_delta", "invalid_tool_call")
"""Types of content blocks that contain a call. Such blocks are skipped, because `tool_calls` has the same calls."""
_THINKING = ("thinking", "redacted_thinking", "reasoning", "reasoning_content")


def read_message(item: BaseMessage) -> Message:
    """The foldline message for a LangChain message."""
    blocks = [item.content] if isinstance(item.content, str) else item.content
    parts = [part for block in blocks if (part := _part(block)) is not None]
    if isinstance(item, ToolMessage):
        is_error = item.status == "error"
        result = ToolResult(call_id=item.tool_call_id, name=item.name or "", parts=tuple(parts), is_error=is_error)
        return Message(role="tool", parts=(result,))
    if not isinstance(item, AIMessage):
        return Message(role=_ROLES.get(item.type, "user"), parts=tuple(parts))
    calls = [*item.tool_calls, *item.invalid_tool_calls]
    parts += [ToolCall(id=c["id"] or "", name=c["name"] or "", arguments=json_of(c["args"])) for c in calls]
    return Message(role="assistant", parts=tuple(parts), meta=_meta(item))


def _part(block: Any) -> Part | None:
    """The part for a content block; None for a block with a call, because `tool_calls` has the same call."""
    if isinstance(block, str):
        return Text(text=block) if block else None
    kind = block.get("type", "")
    if kind in _CALLS:
        return None
    if kind in _THINKING:
        return _thinking(block)
    if isinstance(block.get("text"), str):
        return Text(text=block["text"])
    return media_of(block) or Opaque(kind=kind, value=block)


def _thinking(block: dict[str, Any]) -> Thinking:
    """The thinking in a block of Anthropic, of the Responses API (a summary in parts), or of another provider."""
    text = block.get("thinking") or block.get("reasoning") or block.get("text") or ""
    parts = [str(part.get("text") or "") for part in block.get("summary") or () if isinstance(part, dict)]
    signature = block.get("signature") or block.get("data") or block.get("encrypted_content") or ""
    return Thinking(text=str(text) or "\n".join(parts), signature=str(signature))


def _meta(item: AIMessage) -> Meta:
    used, facts = item.usage_metadata, item.response_metadata
    usage = None
    if used is not None:
        details = used.get("input_token_details") or {}
        read, written = details.get("cache_read") or 0, details.get("cache_creation") or 0
        usage = usage_of(used["input_tokens"], cache_read=read, cache_write=written, output=used["output_tokens"])
    stop = facts.get("stop_reason") or facts.get("finish_reason") or ""
    return Meta(usage=usage, stop=str(stop), model=str(facts.get("model_name") or ""))


def write_message(message: Message, item: BaseMessage | None) -> BaseMessage:
    """The LangChain message for a foldline message: a copy of `item` with the new content, or a new message."""
    if message.results:
        result = message.results[0]
        if isinstance(item, ToolMessage):
            return item.model_copy(update={"content": result_text(result)})
        status = "error" if result.is_error else "success"
        return ToolMessage(result_text(result), tool_call_id=result.call_id, name=result.name or None, status=status)
    content = [block for part in message.parts if (block := _block(part)) is not None]
    text = content[0]["text"] if len(content) == 1 and content[0]["type"] == "text" else content or ""
    if isinstance(item, AIMessage) and item.content and isinstance(item.content, list):
        text = [each for each in item.content if not isinstance(each, dict) or each.get("type") not in _THINKING]
    if item is not None and not isinstance(item, ToolMessage):
        return item.model_copy(update={"content": text})
    if message.role == "assistant":
        return AIMessage(
            text, tool_calls=[{"id": c.id, "name": c.name, "args": arguments_of(c)} for c in message.calls]
        )
    return SystemMessage(text) if message.role == "system" else HumanMessage(text)


def _block(part: Part) -> dict[str, Any] | None:
    """The content block for a part; None for thinking and calls."""
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Media):
        source = {"url": part.url} if part.url else {"base64": part.data}
        return {"type": part.kind, **source, "mime_type": part.mime}
    return part.value if isinstance(part, Opaque) else None


CODEC = message_codec(read_message, write_message)
"""Converts between LangChain's messages and foldline's."""
