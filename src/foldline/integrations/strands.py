"""Strands: a conversation manager for agents.

    agent = Agent(model, tools=[…], conversation_manager=FoldlineConversationManager(ledger.session("user-42")))

Before each call of the model, `agent.messages` becomes the view. The ledger keeps every message, and a new agent with
the same session continues the conversation. So do not use a session manager of Strands in addition.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from strands.agent.conversation_manager import ConversationManager
from strands.hooks import BeforeModelCallEvent, HookRegistry
from strands.types.exceptions import ContextWindowOverflowException

from foldline.events import LOG
from foldline.integrations.item_codec import (
    arguments_of,
    function_definition,
    json_of,
    kept_blocks,
    message_codec,
    result_text,
    usage_of,
)
from foldline.integrations.stored_history import StoredHistory
from foldline.message import Media, Message, Meta, Opaque, Part, Text, Thinking, ToolCall, ToolResult, Usage, system
from foldline.session.session import Session


class FoldlineConversationManager(ConversationManager):
    """Keeps the messages of an agent inside the window. By default, the session is a new one in memory."""

    def __init__(self, session: Session | None = None) -> None:
        super().__init__()
        self._history = StoredHistory(session if session is not None else Session(), CODEC)

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Register a hook that folds before each call of the model."""
        super().register_hooks(registry, **kwargs)
        registry.add_callback(BeforeModelCallEvent, self._before_model_call)

    def _before_model_call(self, event: BeforeModelCallEvent) -> None:
        self.apply_management(event.agent)

    def apply_management(self, agent: Any, **kwargs: Any) -> None:
        """Record the new messages of an agent, and replace the messages of the agent by the view."""
        del kwargs
        self._history.take_back(agent.messages)
        prompt = agent.system_prompt
        agent.messages[:] = self._history.show(
            system=[system(prompt)] if isinstance(prompt, str) and prompt else (),
            tools=[_definition(spec) for spec in agent.tool_registry.get_all_tool_specs()],
            model=_model_name(agent.model),
        )
        self.removed_message_count = max(0, len(self._history.items()) - len(agent.messages))

    def reduce_context(self, agent: Any, e: Exception | None = None, **kwargs: Any) -> None:
        """Fold because the model has refused a request as too large.

        Raises the model's error if nothing can be folded.
        """
        del kwargs
        try:
            folded = self._history.followed.session.fold(refused=True)
        except Exception:  # noqa: BLE001 (a fault of foldline must not hide the error of the model)
            LOG.warning("foldline failed to fold", exc_info=True)
            folded = None
        if folded is None:
            raise e or ContextWindowOverflowException("nothing more can be folded")
        self.apply_management(agent)


def _model_name(model: Any) -> str:
    """The name of a model; empty if its configuration has none."""
    config = model.get_config()
    return str(config.get("model_id") or "") if isinstance(config, Mapping) else ""


def _definition(spec: Any) -> dict[str, Any]:
    schema = spec["inputSchema"].get("json", spec["inputSchema"])
    return function_definition(spec["name"], spec["description"], schema)


# Messages


def read_message(item: Any) -> Message:
    """The foldline message for a Strands message."""
    used = (item.get("metadata") or {}).get("usage")
    meta = Meta(usage=_usage(used)) if used and item["role"] == "assistant" else Meta()
    return Message(role=item["role"], parts=tuple(map(_part, item["content"])), meta=meta)


def _usage(used: Any) -> Usage:
    """The usage of a reply.

    Some model classes of Strands count cached tokens as input, others do not. If `totalTokens` is larger than input and
    output together, the cached tokens are not in the input, and are added here.
    """
    read, written = used.get("cacheReadInputTokens") or 0, used.get("cacheWriteInputTokens") or 0
    total, output = used["inputTokens"], used["outputTokens"]
    if used.get("totalTokens", 0) > total + output:
        total += read + written
    return usage_of(total, cache_read=read, cache_write=written, output=output)


def _part(block: Any) -> Part:
    if "text" in block:
        return Text(text=block["text"])
    if "toolUse" in block:
        use = block["toolUse"]
        return ToolCall(id=use["toolUseId"], name=use["name"], arguments=json_of(use["input"]))
    if "toolResult" in block:
        result = block["toolResult"]
        inner = tuple(Text(text=json_of(each["json"])) if "json" in each else _part(each) for each in result["content"])
        return ToolResult(call_id=result["toolUseId"], parts=inner, is_error=result.get("status") == "error")
    if "reasoningContent" in block:
        reasoning = block["reasoningContent"].get("reasoningText") or {}
        return Thinking(text=reasoning.get("text") or "", signature=reasoning.get("signature") or "")
    kind = next(iter(block), "")
    data = (block[kind].get("source") or {}).get("bytes") if isinstance(block.get(kind), dict) else None
    if kind in ("image", "document", "video") and isinstance(data, bytes):
        return Media(kind=kind, mime=f"{kind}/{block[kind].get('format', '')}", data=b64encode(data).decode())
    return Opaque(kind=f"strands {kind}", value=json.loads(json.dumps(block, default=str)))


def write_message(message: Message, item: Any) -> dict[str, Any]:
    """The Strands message for a foldline message: a copy of `item` with the new content, or a new message."""
    content = kept_blocks(message.parts, item["content"] if item else (), lambda block: [_part(block)], _new_blocks)
    role = "assistant" if message.role == "assistant" else "user"
    return {**item, "content": content} if item else {"role": role, "content": content}


def _new_blocks(part: Part) -> list[dict[str, Any]]:
    match part:
        case Text():
            return [{"text": part.text}]
        case ToolCall():
            return [{"toolUse": {"toolUseId": part.id, "name": part.name, "input": arguments_of(part)}}]
        case ToolResult():
            content, status = [{"text": result_text(part)}], "error" if part.is_error else "success"
            return [{"toolResult": {"toolUseId": part.call_id, "content": content, "status": status}}]
        case Thinking(text=text) if text:
            signature = {"signature": part.signature} if part.signature else {}
            return [{"reasoningContent": {"reasoningText": {"text": text, **signature}}}]
        case Media():
            return [{part.kind: {"format": part.mime.partition("/")[2], "source": {"bytes": b64decode(part.data)}}}]
    return []


CODEC = message_codec(read_message, write_message)
"""Converts between the messages of Strands and foldline's."""
