"""LangChain and LangGraph: a middleware for agents, and a function for lists of messages.

    agent = create_agent(model, tools, middleware=[FoldlineMiddleware(ledger)], checkpointer=…)
    messages = fit_messages(messages, model="claude-sonnet-5")

The middleware changes only what the model receives. The state of the agent keeps every message. It takes the place of
`SummarizationMiddleware`; `fit_messages` takes the place of `trim_messages`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from foldline.integrations.fitted_items import fit_items
from foldline.integrations.followed_session import FollowedSession, PreparedRequest
from foldline.integrations.item_codec import ItemCodec, arguments_of, json_of, media_of, result_text, usage_of
from foldline.integrations.session_choice import FollowedSessions
from foldline.message import Media, Message, Meta, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from foldline.policy import Policy
from foldline.session.open_ledger import Ledger
from foldline.session.session import Session

_ROLES = {"human": "user", "ai": "assistant", "tool": "tool", "system": "system", "developer": "system"}
_CALLS = ("tool_use", "tool_call", "function_call", "tool_call_chunk", "input_json_delta", "invalid_tool_call")
"""Types of content blocks that contain a call. They are skipped, because `tool_calls` has the same calls."""
_THINKING = ("thinking", "redacted_thinking", "reasoning", "reasoning_content")


class FoldlineMiddleware(AgentMiddleware[Any, Any, Any]):
    """Sends the view of a session instead of the whole history, and records the replies with their usage.

    `session` is a `Session`, or a `Ledger` that has a session for each thread id. Without it, each thread has a session
    in memory.
    """

    def __init__(self, session: Session | Ledger | None = None, *, policy: Policy | str | None = None) -> None:
        super().__init__()
        self._sessions = FollowedSessions(session, CODEC, policy=policy, default_name="langchain")

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> Any:
        """Call the model with the view."""
        followed, prepared = self._prepare(request)
        response = handler(_folded(request, prepared))
        followed.record(prepared, *_replies(response))
        return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[Any]]
    ) -> Any:
        """Call the model with the view, without blocking the event loop."""
        followed, prepared = await asyncio.to_thread(self._prepare, request)
        response = await handler(_folded(request, prepared))
        await asyncio.to_thread(followed.record, prepared, *_replies(response))
        return response

    def _prepare(self, request: ModelRequest[Any]) -> tuple[FollowedSession, PreparedRequest]:
        info = getattr(request.runtime, "execution_info", None)
        followed = self._sessions.session_of((info and info.thread_id) or "")
        system = () if request.system_message is None else read_message(request.system_message)
        tools = [_definition(tool) for tool in request.tools]
        name = getattr(request.model, "model_name", None) or getattr(request.model, "model", None)
        model = name if isinstance(name, str) else ""
        return followed, followed.prepare(request.messages, system=system, tools=tools, model=model)


def fit_messages(messages: Sequence[BaseMessage], **options: Any) -> Sequence[BaseMessage]:
    """The messages, shortened so that they fit the window of `model` or the `budget` in tokens.

    A list that already fits is returned as the same object. `options` are those of `foldline.fit`.
    """
    return fit_items(messages, CODEC, **options)


def _folded(request: ModelRequest[Any], prepared: PreparedRequest) -> ModelRequest[Any]:
    return request.override(messages=list(prepared.items)) if prepared.is_changed else request


def _replies(response: Any) -> list[BaseMessage]:
    """The messages of a model response. A handler may return three forms of response."""
    if isinstance(response, BaseMessage):
        return [response]
    return list(getattr(response, "model_response", response).result)


def _definition(tool: Any) -> dict[str, Any]:
    """The definition of a tool as JSON. A provider's own tool is already JSON."""
    return tool if isinstance(tool, dict) else dict(convert_to_openai_tool(tool))


# Messages


def read_message(item: BaseMessage) -> tuple[Message, ...]:
    """The foldline message for a LangChain message."""
    blocks = [item.content] if isinstance(item.content, str) else item.content
    parts = [part for block in blocks if (part := _part(block)) is not None]
    if isinstance(item, ToolMessage):
        is_error = item.status == "error"
        result = ToolResult(call_id=item.tool_call_id, name=item.name or "", parts=tuple(parts), is_error=is_error)
        return (Message(role="tool", parts=(result,)),)
    if not isinstance(item, AIMessage):
        return (Message(role=_ROLES.get(item.type, "user"), parts=tuple(parts)),)
    calls = [*item.tool_calls, *item.invalid_tool_calls]
    parts += [ToolCall(id=c["id"] or "", name=c["name"] or "", arguments=json_of(c["args"])) for c in calls]
    return (Message(role="assistant", parts=tuple(parts), meta=_meta(item)),)


def _part(block: Any) -> Part | None:
    """The part for a content block; None for a block with a call, because `tool_calls` has the same call."""
    if isinstance(block, str):
        return Text(text=block) if block else None
    kind = block.get("type", "")
    if kind in _CALLS:
        return None
    if kind in _THINKING:
        text = block.get("thinking") or block.get("reasoning") or block.get("text") or ""
        return Thinking(text=str(text), signature=str(block.get("signature") or block.get("data") or ""))
    if isinstance(block.get("text"), str):
        return Text(text=block["text"])
    return media_of(block) or Opaque(kind=kind, value=block)


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
    """The LangChain message for a foldline message: a copy of `item` with the new content or, without an item, a new
    message.
    """
    if message.results:
        result = message.results[0]
        if isinstance(item, ToolMessage):
            return item.model_copy(update={"content": result_text(result)})
        status = "error" if result.is_error else "success"
        return ToolMessage(result_text(result), tool_call_id=result.call_id, name=result.name or None, status=status)
    content = [block for part in message.parts if (block := _block(part)) is not None]
    text = content[0]["text"] if len(content) == 1 and content[0]["type"] == "text" else content or ""
    if isinstance(item, AIMessage):
        old = item.content if isinstance(item.content, list) else []
        kept = [block for block in old if not isinstance(block, dict) or block.get("type") not in _THINKING]
        return item.model_copy(update={"content": kept if old else text})
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


CODEC = ItemCodec(
    read=read_message, write=lambda messages, item: [write_message(message, item) for message in messages]
)
"""Converts between LangChain's messages and foldline's."""
