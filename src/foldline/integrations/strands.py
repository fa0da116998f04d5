"""Strands: a conversation manager for agents.

    agent = Agent(model, tools=[…], conversation_manager=FoldlineConversationManager(ledger.session("user-42")))

Before each call of the model, `agent.messages` becomes the view. The ledger keeps every message, and a new agent on the
same session goes on from there, so do not use a session manager of Strands as well.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from operator import is_
from typing import Any

from strands.agent.conversation_manager import ConversationManager
from strands.hooks import BeforeModelCallEvent, HookRegistry
from strands.types.exceptions import ContextWindowOverflowException

from foldline.events import LOG
from foldline.integrations.item_codec import ItemCodec, arguments_of, json_of, result_text, usage_of
from foldline.integrations.stored_history import StoredHistory
from foldline.message import Media, Message, Meta, Opaque, Part, Text, Thinking, ToolCall, ToolResult, Usage, system
from foldline.session.session import Session


class FoldlineConversationManager(ConversationManager):
    """Keeps the messages of an agent inside the window. Without a session, a new one in memory is used."""

    def __init__(self, session: Session | None = None) -> None:
        super().__init__()
        self._history = StoredHistory(session if session is not None else Session(), CODEC)
        self._shown: list[Any] = []
        """The messages of the agent after the last call of `apply_management`."""

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Register a hook that folds before each call of the model."""
        super().register_hooks(registry, **kwargs)
        registry.add_callback(BeforeModelCallEvent, self._before_model_call)

    def _before_model_call(self, event: BeforeModelCallEvent) -> None:
        self.apply_management(event.agent)

    def apply_management(self, agent: Any, **kwargs: Any) -> None:
        """Record the new messages of an agent, and replace its messages by the view."""
        del kwargs
        known = len(self._shown)
        if len(agent.messages) >= known and all(map(is_, self._shown, agent.messages)):
            self._history.append(agent.messages[known:])
        else:  # the program has changed the messages of the agent
            self._history.replace(agent.messages)
        prompt = agent.system_prompt
        prepared = self._history.prepare(
            system=[system(prompt)] if isinstance(prompt, str) and prompt else (),
            tools=[_definition(spec) for spec in agent.tool_registry.get_all_tool_specs()],
            model=str(agent.model.get_config().get("model_id") or ""),
        )
        agent.messages[:] = prepared.items
        self.removed_message_count = max(0, len(self._history.items()) - len(agent.messages))
        self._shown = list(agent.messages)

    def reduce_context(self, agent: Any, e: Exception | None = None, **kwargs: Any) -> None:
        """Fold because the model has refused a request as too large.

        Raises the model's error if nothing can be folded.
        """
        del kwargs
        try:
            folded = self._history.followed.session.fold(force=True)
        except Exception:  # noqa: BLE001 (a fault of foldline must not hide the error of the model)
            LOG.warning("foldline failed to fold", exc_info=True)
            folded = None
        if folded is None:
            raise e or ContextWindowOverflowException("nothing more can be folded")
        self.apply_management(agent)


def _definition(spec: Any) -> dict[str, Any]:
    schema = spec["inputSchema"].get("json", spec["inputSchema"])
    return {
        "type": "function",
        "function": {"name": spec["name"], "description": spec["description"], "parameters": schema},
    }


# Messages


def read_message(item: Any) -> tuple[Message, ...]:
    """The foldline message for a Strands message."""
    used = (item.get("metadata") or {}).get("usage")
    meta = Meta(usage=_usage(used)) if used and item["role"] == "assistant" else Meta()
    return (Message(role=item["role"], parts=tuple(map(_part, item["content"])), meta=meta),)


def _usage(used: Any) -> Usage:
    """The usage of a reply. Some model classes of Strands count cached tokens as input, others do not."""
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
    """The Strands message for a foldline message: a copy of `item` with the new content or, without an item, a new
    message.
    """
    content = [block for part in message.parts if (block := _block(part)) is not None]
    role = "assistant" if message.role == "assistant" else "user"
    return {**item, "content": content} if item else {"role": role, "content": content}


def _block(part: Part) -> dict[str, Any] | None:
    match part:
        case Text():
            return {"text": part.text}
        case ToolCall():
            return {"toolUse": {"toolUseId": part.id, "name": part.name, "input": arguments_of(part)}}
        case ToolResult():
            content, status = [{"text": result_text(part)}], "error" if part.is_error else "success"
            return {"toolResult": {"toolUseId": part.call_id, "content": content, "status": status}}
        case Thinking(text=text) if text:
            signature = {"signature": part.signature} if part.signature else {}
            return {"reasoningContent": {"reasoningText": {"text": text, **signature}}}
        case Media():
            return {part.kind: {"format": part.mime.partition("/")[2], "source": {"bytes": b64decode(part.data)}}}
    return None


def _write(messages: Sequence[Message], item: Any) -> list[Any]:
    return [write_message(message, item) for message in messages]


CODEC = ItemCodec(read=read_message, write=_write)
"""Converts between the messages of Strands and foldline's."""
