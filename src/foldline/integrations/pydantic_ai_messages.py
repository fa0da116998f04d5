"""Converts between Pydantic AI messages and foldline messages."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai import messages as ai
from pydantic_core import to_jsonable_python

from foldline.integrations.item_codec import ItemCodec, arguments_of, kept_blocks, media_kind, result_text, usage_of
from foldline.message import Media, Message, Meta, Opaque, Part, Text, Thinking, ToolCall, ToolResult

_URLS = {"image": ai.ImageUrl, "audio": ai.AudioUrl, "video": ai.VideoUrl, "document": ai.DocumentUrl}


def read_messages(item: ai.ModelMessage) -> list[Message]:
    """The foldline messages for a Pydantic AI message.

    Each part of a request becomes a message of its own. So the messages stay the same if Pydantic AI later joins
    consecutive requests.
    """
    if isinstance(item, ai.ModelResponse):
        parts = tuple(each for part in item.parts for each in _parts(part))
        return [Message(role="assistant", parts=parts, meta=_meta(item))]
    roles = ["system" if isinstance(part, ai.SystemPromptPart) else "user" for part in item.parts]
    return [Message(role=role, parts=tuple(_parts(part))) for role, part in zip(roles, item.parts, strict=True)]


def _parts(part: Any) -> list[Part]:
    match part:
        case ai.TextPart() | ai.SystemPromptPart():
            return [Text(text=part.content)]
        case ai.ThinkingPart():
            return [Thinking(text=part.content, signature=part.signature or "")]
        case ai.ToolCallPart():
            return [ToolCall(id=part.tool_call_id, name=part.tool_name, arguments=part.args_as_json_str())]
        case ai.ToolReturnPart():
            inner, failed = map(_content_part, part.files), part.outcome not in (None, "success")
            text = Text(text=part.model_response_str())
            return [ToolResult(call_id=part.tool_call_id, name=part.tool_name, parts=(text, *inner), is_error=failed)]
        case ai.UserPromptPart():
            return [_content_part(each) for each in ([part.content] if isinstance(part.content, str) else part.content)]
    if not hasattr(part, "model_response"):
        return [Opaque(kind=f"pydantic-ai {part.part_kind}", value=to_jsonable_python(part))]
    text = Text(text=part.model_response())  # feedback of the framework: to a call, or to a reply
    if not getattr(part, "tool_name", None):
        return [text]
    return [ToolResult(call_id=part.tool_call_id, name=part.tool_name, parts=(text,), is_error=True)]


def _content_part(content: Any) -> Part:
    text = content if isinstance(content, str) else getattr(content, "content", None)
    if isinstance(text, str):
        return Text(text=text)
    if isinstance(content, ai.BinaryContent):
        data = b64encode(content.data).decode()
        return Media(kind=media_kind(content.media_type), mime=content.media_type, data=data)
    if isinstance(content, ai.FileUrl):
        return Media(kind=content.kind.removesuffix("-url"), mime=content.media_type, url=content.url)
    return Opaque(kind=f"pydantic-ai {getattr(content, 'kind', '')}", value=to_jsonable_python(content))


def _meta(item: ai.ModelResponse) -> Meta:
    used = item.usage
    read, written = used.cache_read_tokens, used.cache_write_tokens
    usage = usage_of(used.input_tokens, cache_read=read, cache_write=written, output=used.output_tokens)
    return Meta(usage=usage if used.input_tokens else None, stop=item.finish_reason or "", model=item.model_name or "")


def write_messages(messages: Sequence[Message], item: ai.ModelMessage | None) -> list[ai.ModelMessage]:
    """The Pydantic AI messages for foldline messages: a copy of `item` with new parts, or new messages."""
    if item is None:
        return [_new_message(message) for message in messages]
    new = _new_reply_parts if isinstance(item, ai.ModelResponse) else _new_request_parts
    return [
        replace(item, parts=[part for each in messages for part in kept_blocks(each.parts, item.parts, _parts, new)])
    ]


def _new_message(message: Message) -> ai.ModelMessage:
    if message.role == "assistant":
        return ai.ModelResponse(parts=[each for part in message.parts for each in _new_reply_parts(part)])
    if message.role == "system":
        return ai.ModelRequest(parts=[ai.SystemPromptPart(content=message.text)])
    return ai.ModelRequest(parts=[each for part in message.parts for each in _new_request_parts(part)])


def _new_reply_parts(part: Part) -> list[Any]:
    if isinstance(part, ToolCall):
        return [ai.ToolCallPart(part.name, arguments_of(part), part.id)]
    return [ai.TextPart(part.text)] if isinstance(part, Text) else []


def _new_request_parts(part: Part) -> list[Any]:
    if isinstance(part, ToolResult):
        return [ai.ToolReturnPart(part.name, result_text(part), part.call_id)]
    if isinstance(part, Media):
        url = _URLS[part.kind](part.url) if part.url else None
        return [ai.UserPromptPart([url or ai.BinaryContent(data=b64decode(part.data), media_type=part.mime)])]
    return [ai.UserPromptPart(part.text)] if isinstance(part, Text) else []


CODEC = ItemCodec(read=read_messages, write=write_messages)
"""Converts between Pydantic AI's messages and foldline's."""
