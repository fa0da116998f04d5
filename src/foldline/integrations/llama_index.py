"""LlamaIndex: a memory for agents and chat engines.

    memory = FoldlineMemory(ledger.session("user-42", model="gpt-5.6"))
    await agent.run("Hello", memory=memory)

`get` returns the view, `get_all` every message. A memory sees neither the tools and the system prompt of its agent, nor
the usage of replies, nor the tool calls of a run before the run ends. So give the tools to the session, and leave room
for the rest with `extra_tokens`: `Session(tools=…, extra_tokens=8_000)`.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms import types as llama
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.memory import BaseMemory

from foldline.integrations.fitted_items import fit_items
from foldline.integrations.item_codec import ItemCodec, arguments_of, json_of, result_text
from foldline.integrations.stored_history import StoredHistory
from foldline.message import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from foldline.session.session import Session

_ROLES = {"assistant": "assistant", "chatbot": "assistant", "model": "assistant", "system": "system"}
_ROLES |= {"developer": "system", "tool": "tool", "function": "tool"}
_MEDIA = {"image": "image", "audio": "audio", "video": "video", "document": "data"}
"""For each kind of media block, the field with its content."""


class FoldlineMemory(BaseMemory):
    """A LlamaIndex memory that stores its messages in a session. Without a session, a new one in memory is used."""

    _history: StoredHistory = PrivateAttr()

    def __init__(self, session: Session | None = None, **fields: Any) -> None:
        super().__init__(**fields)
        self._history = StoredHistory(session if session is not None else Session(), CODEC)

    @classmethod
    def class_name(cls) -> str:
        """The name of the class in LlamaIndex."""
        return "FoldlineMemory"

    @classmethod
    def from_defaults(cls, session: Session | None = None, **fields: Any) -> FoldlineMemory:
        """A memory that stores its messages in a session."""
        return cls(session, **fields)

    def get(self, input: str | None = None, **kwargs: Any) -> list[ChatMessage]:  # noqa: A002 (LlamaIndex's name)
        """The messages to send now, folded if necessary."""
        del input, kwargs
        return list(self._history.prepare().items)

    def get_all(self) -> list[ChatMessage]:
        """All messages, folded or not."""
        return self._history.items()

    def put(self, message: ChatMessage) -> None:
        """Add a message at the end."""
        self._history.append([message])

    def put_messages(self, messages: list[ChatMessage]) -> None:
        """Add messages at the end."""
        self._history.append(messages)

    def set(self, messages: list[ChatMessage]) -> None:
        """Make these messages the history. The ledger keeps the others."""
        self._history.replace(messages)

    def reset(self) -> None:
        """Remove all messages. The ledger keeps them."""
        self._history.clear()


def fit_messages(messages: Sequence[ChatMessage], **options: Any) -> Sequence[ChatMessage]:
    """The messages, shortened so that they fit the window of `model` or the `budget` in tokens.

    A list that already fits is returned as the same object. `options` are those of `foldline.fit`.
    """
    return fit_items(messages, CODEC, **options)


# Messages


def read_message(item: ChatMessage) -> tuple[Message, ...]:
    """The foldline message for a LlamaIndex message."""
    parts = tuple(_part(block) for block in item.blocks)
    role, call_id = _ROLES.get(str(item.role.value), "user"), item.additional_kwargs.get("tool_call_id")
    if role == "tool" and call_id:
        result = ToolResult(call_id=str(call_id), name=str(item.additional_kwargs.get("name") or ""), parts=parts)
        return (Message(role="tool", parts=(result,)),)
    if role == "assistant" and not any(isinstance(part, ToolCall) for part in parts):
        parts += tuple(map(_listed_call, item.additional_kwargs.get("tool_calls") or ()))
    return (Message(role="user" if role == "tool" else role, parts=parts),)


def _listed_call(call: Any) -> ToolCall:
    """A call in the field `tool_calls`, as OpenAI's client gives it."""
    value = call if isinstance(call, dict) else call.model_dump()
    function = value.get("function") or value
    return ToolCall(
        id=str(value.get("id") or ""),
        name=str(function.get("name") or ""),
        arguments=json_of(function.get("arguments") or function.get("input") or "{}"),
    )


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
    """The LlamaIndex message for a foldline message: a copy of `item` with the new content or, without an item, a new
    message.
    """
    if message.results:
        result = message.results[0]
        blocks: list[Any] = [llama.TextBlock(text=result_text(result))]
        extra = {"tool_call_id": result.call_id, **({"name": result.name} if result.name else {})}
        return item.model_copy(update={"blocks": blocks}) if item else _new(MessageRole.TOOL, blocks, extra)
    blocks = [block for part in message.parts if (block := _block(part)) is not None]
    return item.model_copy(update={"blocks": blocks}) if item else _new(MessageRole(message.role), blocks, {})


def _new(role: MessageRole, blocks: list[Any], extra: dict[str, Any]) -> ChatMessage:
    return ChatMessage(role=role, blocks=blocks, additional_kwargs=extra)


def _block(part: Part) -> Any:
    match part:
        case Text():
            return llama.TextBlock(text=part.text)
        case Thinking():
            information = {"signature": part.signature} if part.signature else {}
            return llama.ThinkingBlock(content=part.text, additional_information=information)
        case ToolCall():
            return llama.ToolCallBlock(tool_call_id=part.id, tool_name=part.name, tool_kwargs=arguments_of(part))
        case Media() if part.kind == "image":
            data = b64decode(part.data) if part.data else None
            return llama.ImageBlock(image=data, url=part.url or None, image_mimetype=part.mime or None)
    return None


CODEC = ItemCodec(
    read=read_message, write=lambda messages, item: [write_message(message, item) for message in messages]
)
"""Converts between LlamaIndex's messages and foldline's."""
