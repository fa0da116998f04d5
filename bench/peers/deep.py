"""The summarization of deepagents with a folder as its backend. It is configured like the middleware of langchain, on
which it is based.
"""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Any

from deepagents.backends import FilesystemBackend
from deepagents.middleware.summarization import SummarizationMiddleware
from langchain.agents.middleware.types import ExtendedModelResponse, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage

from bench.peers.langchain_middleware import KEEP, SUMMARY, TRIGGER, fake_model
from bench.peers.langchain_talk import count, from_native, to_native
from bench.peers.talk import Talk


class Deep:
    """The middleware, with a model that only records the messages that it gets."""

    def __init__(self, budget: int) -> None:
        self.folder = TemporaryDirectory(prefix="bench-deepagents-")
        self.model = fake_model(budget)
        backend = FilesystemBackend(root_dir=self.folder.name, virtual_mode=True)
        self.middleware = SummarizationMiddleware(
            self.model,
            backend=backend,
            trigger=TRIGGER,
            keep=KEEP,
            token_counter=count,
            summarizer=lambda messages: SUMMARY,  # noqa: ARG005
        )
        self.state: dict[str, Any] = {"messages": []}
        self.system: Any = None
        self.sent: list[Any] = []
        self.reply = ModelResponse(result=[AIMessage("")])

    def native(self, talk: Talk) -> list[Any]:
        """The messages in the form that a caller has. The system prompt is passed to the agent and is not one of its
        messages.
        """
        for message in to_native([said for said in talk if said.role == "system"]):
            self.system = message
        return to_native([said for said in talk if said.role != "system"])

    def add(self, native: list[Any]) -> None:
        """Add messages."""
        self.state["messages"] += native

    def view(self) -> list[Any]:
        """The messages that would be sent."""
        request = ModelRequest(
            model=self.model, messages=self.state["messages"], system_message=self.system, state=self.state, tools=[]
        )
        reply = self.middleware.wrap_model_call(request, self._note)
        if isinstance(reply, ExtendedModelResponse) and reply.command is not None:
            self._update(dict(reply.command.update))
        return self.sent

    def _update(self, update: dict[str, Any]) -> None:
        """Apply an update as the graph does: messages replace messages with the same id, and other values are set."""
        replaced = {message.id: message for message in update.pop("messages", ())}
        if replaced:
            self.state["messages"] = [replaced.get(message.id, message) for message in self.state["messages"]]
        self.state.update(update)

    def _note(self, request: Any) -> Any:
        self.sent = [*([self.system] if self.system is not None else []), *request.messages]
        return self.reply

    def said(self, view: list[Any]) -> Talk:
        """The view as a `Talk`."""
        return from_native(view)
