"""Hermes Agent: a context engine, chosen with `context.engine: foldline` in the configuration of Hermes.

When Hermes asks for a compression, the engine folds without a model and returns the view. The ledger keeps every
message, and the tool `recall` reads messages back. If foldline fails, the messages stay as they are.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agent.context_engine import ContextEngine

from foldline.events import LOG
from foldline.integrations.item_codec import wire_codec
from foldline.integrations.stored_history import StoredHistory
from foldline.recall.tools import RECALL, Tools
from foldline.session.open_ledger import Ledger
from foldline.session.open_ledger import open as open_ledger

CODEC = wire_codec("openai", keeps_unreadable=True)
"""Converts between the messages of Hermes, which have the form of Chat Completions, and foldline's."""
LEDGER_FILE = "foldline.db"
"""Name of the ledger in the folder of Hermes."""


class FoldlineEngine(ContextEngine):
    """The context engine. If no ledger is given, the engine opens a ledger in the folder of Hermes."""

    name = "foldline"

    def __init__(self, ledger: Ledger | None = None) -> None:
        self._given, self._ledger = ledger, ledger
        self._history: StoredHistory | None = None
        self._model = ""

    def __deepcopy__(self, memo: Any) -> FoldlineEngine:
        """A new engine. Hermes copies the registered engine for each agent."""
        return FoldlineEngine(self._given)

    def on_session_start(self, session_id: str, **facts: Any) -> None:
        """Open the session with this id. If Hermes changes the id after a compression, keep the open session."""
        if facts.get("boundary_reason") == "compression" and self._history is not None:
            return
        try:
            if self._ledger is None:
                self._ledger = open_ledger(Path(facts["hermes_home"]) / LEDGER_FILE)
            self._history = StoredHistory(self._ledger.session(session_id), CODEC)
            self._history.show(join=_joined)
        except Exception:  # noqa: BLE001 (Hermes must not notice a fault of foldline)
            LOG.warning("foldline failed to open a session of Hermes", exc_info=True)

    def on_session_end(self, session_id: str, messages: list[dict[str, Any]]) -> None:
        """Record the last messages."""
        del session_id
        if self._history is not None:
            self._history.take_back(messages)

    def update_model(self, model: str, context_length: int, *args: Any, **options: Any) -> None:
        """Use the window of another model."""
        super().update_model(model, context_length, *args, **options)
        self._model = model

    def update_from_response(self, usage: dict[str, Any]) -> None:
        """Remember the tokens of the last request."""
        self.last_prompt_tokens = usage.get("prompt_tokens", 0)
        self.last_completion_tokens = usage.get("completion_tokens", 0)
        self.last_total_tokens = usage.get("total_tokens", 0)

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """Whether the last request was larger than the threshold."""
        tokens = int(self.last_prompt_tokens if prompt_tokens is None else prompt_tokens)
        return tokens >= int(self.threshold_tokens) > 0

    def compress(
        self, messages: list[dict[str, Any]], current_tokens: int | None = None, focus_topic: str | None = None
    ) -> list[dict[str, Any]]:
        """The view of the conversation after a fold; the same list if nothing can be folded."""
        if self._history is None:
            return messages
        try:
            return self._compressed(self._history, messages, current_tokens or 0, focus_topic or "")
        except Exception:  # noqa: BLE001 (Hermes must not notice a fault of foldline)
            LOG.warning("foldline failed to fold a session of Hermes", exc_info=True)
            return messages

    def _compressed(
        self, history: StoredHistory, messages: list[dict[str, Any]], tokens: int, topic: str
    ) -> list[dict[str, Any]]:
        history.take_back(messages)
        session = history.followed.session
        window = session.policy.but(window_tokens=self.context_length)
        session.use(model=self._model or None, policy=window, tools=self.get_tool_schemas())
        counted = session.state.setup.tools + sum(session.size(each) for item in messages for each in CODEC.read(item))
        session.use(extra_tokens=max(0, tokens - counted))
        if session.fold(instructions=topic) is None and session.fold(instructions=topic, force=True) is None:
            return messages
        self.compression_count += 1
        return history.show(join=_joined)

    # The recall tool

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """The definition of the recall tool."""
        return [{"name": RECALL.name, "description": RECALL.description, "parameters": RECALL.schema}]

    def handle_tool_call(self, name: str, args: dict[str, Any], **facts: Any) -> str:
        """The answer to a call of the recall tool, as JSON."""
        del facts
        if self._history is None:
            return json.dumps({"error": "nothing has been folded yet"})
        answer = Tools(self._history.followed.session).run(name, args)
        return json.dumps({"error" if answer.is_error else "result": answer.text}, ensure_ascii=False)


def _joined(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Copies of the messages. Consecutive user texts are joined, as Hermes joins them before a request."""
    found: list[dict[str, Any]] = []
    for message in messages:
        last = found[-1] if found else {}
        before, text = last.get("content"), message.get("content")
        if last.get("role") == message["role"] == "user" and isinstance(before, str) and isinstance(text, str):
            last["content"] = f"{before}\n\n{text}"
        else:
            found.append({**message})
    return found


def register(context: Any) -> None:
    """Register the engine. Hermes calls this function of each installed plugin."""
    context.register_context_engine(FoldlineEngine())
