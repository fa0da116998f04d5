"""Pydantic AI: a capability for agents.

    agent = Agent("anthropic:claude-sonnet-5", capabilities=[FoldlineCapability(ledger)])

The capability changes only what the model receives, in each attempt. The run's own history keeps every message, so
`all_messages()` and `new_messages()` stay as they are.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai import messages as ai
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import RunContext
from pydantic_core import to_jsonable_python

from foldline.integrations.followed_session import FollowedSession, PreparedRequest
from foldline.integrations.item_codec import ItemCodec, arguments_of, result_text, usage_of
from foldline.integrations.session_choice import FollowedSessions
from foldline.message import Media, Message, Meta, Opaque, Part, Text, Thinking, ToolCall, ToolResult, system
from foldline.policy import Policy
from foldline.session.open_ledger import Ledger
from foldline.session.session import Session


class FoldlineCapability(AbstractCapability[Any]):
    """Sends the view of a session instead of the whole history, and records the replies with their usage.

    `session` is a `Session`, or a `Ledger` that has a session for each conversation id. Without it, each conversation
    has a session in memory.
    """

    def __init__(self, session: Session | Ledger | None = None, *, policy: Policy | str | None = None) -> None:
        self.id, self.description, self.defer_loading = None, None, False
        self._sessions = FollowedSessions(session, CODEC, policy=policy, default_name="pydantic-ai")
        self._prepared: dict[str, tuple[FollowedSession, PreparedRequest]] = {}
        """For each run id, the request of the run that is being answered."""

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Replace the messages of a request by those of the view. This is called for every attempt."""
        followed, prepared = await asyncio.to_thread(self._prepare, ctx, request_context)
        self._prepared[ctx.run_id or ""] = followed, prepared
        return replace(request_context, messages=list(prepared.items)) if prepared.is_changed else request_context

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ai.ModelResponse
    ) -> ai.ModelResponse:
        """Record the reply."""
        del request_context
        found = self._prepared.pop(ctx.run_id or "", None)
        if found is not None:
            await asyncio.to_thread(found[0].record, found[1], response)
        return response

    async def on_model_request_error(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, error: Exception
    ) -> ai.ModelResponse:
        """Forget the request, and pass the error on."""
        del request_context
        self._prepared.pop(ctx.run_id or "", None)
        raise error

    def _prepare(self, ctx: RunContext[Any], request: ModelRequestContext) -> tuple[FollowedSession, PreparedRequest]:
        followed = self._sessions.session_of(ctx.conversation_id or "")
        parameters = request.model_request_parameters
        tools = [_definition(tool) for tool in (*parameters.function_tools, *parameters.output_tools)]
        instructions = [system(part.content) for part in parameters.instruction_parts or ()]
        model = request.model.model_name
        return followed, followed.prepare(request.messages, system=instructions, tools=tools, model=model)


def _definition(tool: Any) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description or "", "parameters": tool.parameters_json_schema}
    return {"type": "function", "function": function}


# Messages


def read_message(item: ai.ModelMessage) -> list[Message]:
    """The foldline messages for a Pydantic AI message. A request may begin with system messages."""
    if isinstance(item, ai.ModelResponse):
        return [Message(role="assistant", parts=tuple(map(_reply_part, item.parts)), meta=_meta(item))]
    lead = [part for part in item.parts if isinstance(part, ai.SystemPromptPart)]
    rest = tuple(each for part in item.parts if part not in lead for each in _request_parts(part))
    return [*(system(part.content) for part in lead), *([Message(role="user", parts=rest)] if rest else [])]


def _request_parts(part: Any) -> Iterator[Part]:
    call_id = getattr(part, "tool_call_id", None) if getattr(part, "tool_name", None) else None
    if isinstance(part, ai.ToolReturnPart):
        inner = (Text(text=part.model_response_str()), *map(_content_part, part.files))
        yield ToolResult(
            call_id=part.tool_call_id, name=part.tool_name, parts=inner, is_error=part.outcome not in (None, "success")
        )
    elif isinstance(part, ai.UserPromptPart):
        yield from map(_content_part, [part.content] if isinstance(part.content, str) else part.content)
    elif hasattr(part, "model_response"):  # feedback of the framework: to a call, or to a reply
        text = Text(text=part.model_response())
        yield ToolResult(call_id=call_id, name=part.tool_name, parts=(text,), is_error=True) if call_id else text
    else:
        yield Opaque(kind=f"pydantic-ai {part.part_kind}", value=to_jsonable_python(part))


def _content_part(content: Any) -> Part:
    text = content if isinstance(content, str) else getattr(content, "content", None)
    if isinstance(text, str):
        return Text(text=text)
    if isinstance(content, ai.BinaryContent):
        kind = content.media_type.partition("/")[0]
        kind = kind if kind in ("image", "audio", "video") else "document"
        return Media(kind=kind, mime=content.media_type, data=b64encode(content.data).decode())
    if isinstance(content, ai.FileUrl):
        return Media(kind=content.kind.removesuffix("-url"), mime=content.media_type, url=content.url)
    return Opaque(kind=f"pydantic-ai {getattr(content, 'kind', '')}", value=to_jsonable_python(content))


def _reply_part(part: Any) -> Part:
    if isinstance(part, ai.TextPart):
        return Text(text=part.content)
    if isinstance(part, ai.ThinkingPart):
        return Thinking(text=part.content, signature=part.signature or "")
    if isinstance(part, ai.ToolCallPart):
        return ToolCall(id=part.tool_call_id, name=part.tool_name, arguments=part.args_as_json_str())
    return Opaque(kind=f"pydantic-ai {part.part_kind}", value=to_jsonable_python(part))


def _meta(item: ai.ModelResponse) -> Meta:
    used = item.usage
    read, written = used.cache_read_tokens, used.cache_write_tokens
    usage = usage_of(used.input_tokens, cache_read=read, cache_write=written, output=used.output_tokens)
    return Meta(usage=usage if used.input_tokens else None, stop=item.finish_reason or "", model=item.model_name or "")


def write_messages(messages: Sequence[Message], item: ai.ModelMessage | None) -> list[ai.ModelMessage]:
    """The Pydantic AI messages for foldline messages: a copy of `item` with the parts that are
    left, or new messages.
    """
    if item is None:
        return [_new_message(message) for message in messages]
    if isinstance(item, ai.ModelResponse):
        return [replace(item, parts=_kept_reply(messages[0], item))]
    texts = {
        part.text
        for message in messages
        if message.role == "system"
        for part in message.parts
        if isinstance(part, Text)
    }
    body = next((message for message in messages if message.role != "system"), None)
    parts: list[Any] = [part for part in item.parts if isinstance(part, ai.SystemPromptPart) and part.content in texts]
    return [replace(item, parts=parts + (_kept_request(body, item) if body is not None else []))]


def _kept_reply(message: Message, item: ai.ModelResponse) -> list[Any]:
    """The parts of a reply. Thinking and calls that `message` does not have are left out."""
    calls = {call.id for call in message.calls}
    thinks = any(isinstance(part, Thinking) for part in message.parts)
    return [
        part
        for part in item.parts
        if (thinks or not isinstance(part, ai.ThinkingPart))
        and (not isinstance(part, ai.ToolCallPart) or part.tool_call_id in calls)
    ]


def _kept_request(message: Message, item: ai.ModelRequest) -> list[Any]:
    """The parts of the framework's request, with the results and the prompt that `message` has."""
    results = {result.call_id: result for result in message.results}
    parts: list[Any] = []
    for part in item.parts:
        call_id = getattr(part, "tool_call_id", None)
        if isinstance(part, ai.ToolReturnPart):
            result = results.get(part.tool_call_id)
            if result is not None:
                same = part.model_response_str() == result_text(result)
                parts.append(part if same else replace(part, content=result_text(result)))
        elif not isinstance(part, ai.SystemPromptPart) and (call_id is None or call_id in results):
            parts.append(part)
    prompts = [part for part in parts if isinstance(part, ai.UserPromptPart)]
    old = [each for part in prompts for each in _request_parts(part)]
    new = [part for part in message.parts if isinstance(part, Text | Media)]
    if prompts and [part for part in old if not isinstance(part, Opaque)] != new:
        parts = [part for part in parts if part not in prompts]
        parts.append(ai.UserPromptPart(content=message.text))
    return parts


def _new_message(message: Message) -> ai.ModelMessage:
    if message.role == "assistant":
        calls = [ai.ToolCallPart(call.name, arguments_of(call), call.id) for call in message.calls]
        texts = [ai.TextPart(message.text)] if message.text else []
        return ai.ModelResponse(parts=[*texts, *calls])
    if message.role == "system":
        return ai.ModelRequest(parts=[ai.SystemPromptPart(content=message.text)])
    results = [ai.ToolReturnPart(result.name, result_text(result), result.call_id) for result in message.results]
    prompts = [ai.UserPromptPart(content=message.text)] if message.text or not results else []
    return ai.ModelRequest(parts=[*results, *prompts])


CODEC = ItemCodec(read=read_message, write=write_messages)
"""Converts between Pydantic AI's messages and foldline's."""
