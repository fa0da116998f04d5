"""LlamaIndex: a memory for agents and chat engines.

    memory = FoldlineMemory(ledger.session("user-42", model="gpt-5.6"))
    await agent.run("Hello", memory=memory)

`get` returns the view; `get_all` returns every message. A memory does not see the tools and the system prompt of its
agent, and does not see the usage of replies. It sees the tool calls of a run only when the run ends. So give the tools
to the session, and reserve tokens for the system prompt and the tool calls with `extra_tokens`:
`Session(tools=…, extra_tokens=8_000)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.memory import BaseMemory

from foldline.integrations.fitted_items import fit_items
from foldline.integrations.llama_index_messages import CODEC
from foldline.integrations.stored_history import OpenHistories, StoredHistory
from foldline.session.session import Session

_HISTORIES: OpenHistories = OpenHistories()


class FoldlineMemory(BaseMemory):
    """A LlamaIndex memory that stores its messages in a session. By default, the session is a new one in memory."""

    memory_id: str = ""
    _history: StoredHistory = PrivateAttr()

    def __init__(
        self, session: Session | None = None, *, memory_id: str = "", chat_history: Sequence[Any] = (), **fields: Any
    ) -> None:
        """`memory_id` and `chat_history` are those of a memory that LlamaIndex stored earlier (in its `Context`)."""
        super().__init__(memory_id=memory_id or uuid4().hex, **fields)
        messages = [ChatMessage.model_validate(each) for each in chat_history]
        self._history = _HISTORIES.find(self.memory_id, lambda: StoredHistory(session or Session(), CODEC, messages))

    @classmethod
    def class_name(cls) -> str:
        """The name of the class in LlamaIndex."""
        return "FoldlineMemory"

    @classmethod
    def from_defaults(cls, session: Session | None = None, **fields: Any) -> FoldlineMemory:
        """A memory that stores its messages in a session."""
        return cls(session, **fields)

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """The memory as JSON, with all its messages. In the same process, `from_dict` continues the same session."""
        del kwargs
        messages = [message.model_dump(mode="json") for message in self.get_all()]
        return {"memory_id": self.memory_id, "chat_history": messages, "class_name": self.class_name()}

    def __reduce__(self) -> tuple[Any, ...]:
        return FoldlineMemory.from_dict, (self.to_dict(),)

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
        """Replace the history by these messages. The ledger keeps the replaced messages."""
        self._history.replace(messages)

    def reset(self) -> None:
        """Remove all messages from the memory. The ledger keeps them."""
        self._history.clear()


def fit_messages(messages: Sequence[ChatMessage], **options: Any) -> Sequence[ChatMessage]:
    """The messages, shortened so that they fit (see `foldline.fit`). A list that fits is returned as it is."""
    return fit_items(messages, CODEC, **options)
