"""Microsoft Agent Framework: a chat middleware for agents and chat clients.

    agent = Agent(client=client, tools=[…], middleware=[FoldlineChatMiddleware(ledger)])

The middleware changes only what the model receives. The history of the agent's session keeps every message. A
`CompactionStrategy` of the framework sees neither tools nor usage nor replies; use the middleware instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from agent_framework import ChatContext, ChatMiddleware, ChatResponse, Content
from agent_framework import Message as FrameworkMessage

from foldline.integrations.item_codec import (
    arguments_of,
    json_of,
    kept_blocks,
    media_kind,
    media_of,
    message_codec,
    result_text,
    usage_of,
)
from foldline.integrations.session_choice import FollowedSessions
from foldline.message import Media, Message, Meta, Opaque, Part, Text, Thinking, ToolCall, ToolResult, system
from foldline.policy import Policy
from foldline.session.open_ledger import Ledger
from foldline.session.session import Session


class FoldlineChatMiddleware(ChatMiddleware):
    """Sends the view of a session instead of the whole history, and records the replies with their usage.

    If `session` is a `Session`, all conversations use it. If it is a `Ledger`, each session id of the framework gets
    its own session in the ledger. If it is None, each conversation gets a session in memory.
    """

    def __init__(self, session: Session | Ledger | None = None, *, policy: Policy | str | None = None) -> None:
        self._sessions = FollowedSessions(session, CODEC, policy=policy, default_name="agent-framework")

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Call the model with the view, and record its reply."""
        options = context.options or {}
        if options.get("conversation_id"):  # the provider keeps the history, and the request has only the end of it
            await call_next()
            return
        followed = self._sessions.session_of(context.session.session_id if context.session else "")
        instructions = options.get("instructions")
        prepared = await asyncio.to_thread(
            followed.prepare,
            context.messages,
            system=[system(instructions)] if isinstance(instructions, str) and instructions else (),
            tools=[_definition(tool) for tool in options.get("tools") or ()],
            model=str(options.get("model") or getattr(context.client, "model", None) or ""),
        )
        if prepared.is_changed:
            context.messages = list(prepared.items)

        async def record(response: ChatResponse[Any]) -> ChatResponse[Any]:
            await asyncio.to_thread(followed.record, prepared, *_replies(response))
            return response

        if context.stream:
            context.stream_result_hooks.append(record)
        await call_next()
        if isinstance(context.result, ChatResponse):
            await record(context.result)


def _definition(tool: Any) -> dict[str, Any]:
    """The definition of a tool as JSON."""
    return tool if isinstance(tool, dict) else dict(tool.to_json_schema_spec())


def _replies(response: ChatResponse[Any]) -> list[Message]:
    """The messages of a response. The last message has the usage of the response."""
    messages = [read_message(message) for message in response.messages]
    used: Any = response.usage_details or {}
    if messages and used.get("input_token_count"):
        read, written = used.get("cache_read_input_token_count"), used.get("cache_creation_input_token_count")
        total, output = used["input_token_count"], used.get("output_token_count") or 0
        usage = usage_of(total, cache_read=read or 0, cache_write=written or 0, output=output)
        last = messages[-1]
        messages[-1] = Message(role=last.role, parts=last.parts, meta=Meta(usage=usage, model=response.model or ""))
    return messages


# Messages


def read_message(item: FrameworkMessage) -> Message:
    """The foldline message for a message of the framework."""
    role = item.role if item.role in ("user", "assistant", "tool") else "system"
    return Message(role=role, parts=tuple(part for content in item.contents for part in _parts(content)))


def _parts(content: Content) -> list[Part]:
    match content.type:
        case "text":
            return [Text(text=content.text or "")]
        case "text_reasoning":
            return [Thinking(text=content.text or "", signature=content.protected_data or "")]
        case "function_call":
            return [ToolCall(id=content.call_id or "", name=content.name or "", arguments=json_of(content.arguments))]
        case "function_result":
            inner = tuple(part for each in content.items or () for part in _parts(each))
            return [ToolResult(call_id=content.call_id or "", parts=inner, is_error=content.exception is not None)]
        case "usage":
            return []
        case "data" | "uri":
            block = {"type": media_kind(content.media_type or ""), "url": content.uri}
            return [media_of({**block, "mime_type": content.media_type}) or Opaque(kind=content.type)]
    return [Opaque(kind=f"agent-framework {content.type}", value=content.to_dict())]


def write_message(message: Message, item: FrameworkMessage | None) -> FrameworkMessage:
    """The framework's message for a foldline message. Contents that did not change are taken from `item`."""
    contents = kept_blocks(message.parts, item.contents if item else (), _parts, _new_contents)
    return FrameworkMessage(item.role if item else message.role, contents)


def _new_contents(part: Part) -> list[Content]:
    match part:
        case Text():
            return [Content.from_text(part.text)]
        case ToolCall():
            return [Content.from_function_call(part.id, part.name, arguments=arguments_of(part))]
        case ToolResult():
            return [Content.from_function_result(part.call_id, result=result_text(part))]
        case Media():
            uri = part.url or f"data:{part.mime};base64,{part.data}"
            return [Content.from_uri(uri, media_type=part.mime or None)]
    return []


CODEC = message_codec(read_message, write_message)
"""Converts between the messages of the framework and foldline's."""
