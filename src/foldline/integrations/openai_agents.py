"""OpenAI Agents: a session that stores its items in a ledger, and a filter that folds what the model receives.

    session = FoldlineSession(ledger.session("user-42", model="gpt-5.6"))
    await Runner.run(agent, "Hello", session=session, run_config=session.run_config(), hooks=session.hooks)

The session returns every item of the conversation. Before each call of the model, the filter in the run config replaces
the items by the view. The hooks record the usage of each reply. Without the hooks, the size of a request is estimated.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from agents import RunConfig, RunHooks, SessionSettings
from agents.run_config import CallModelData, ModelInputData

from foldline.integrations.followed_session import PreparedRequest
from foldline.integrations.item_codec import function_definition, usage_of, wire_codec
from foldline.integrations.stored_history import StoredHistory
from foldline.message import Message, system
from foldline.session.session import Session

CODEC = wire_codec("openai-responses", keeps_unreadable=True)
"""Converts between items of the Responses API and messages."""


class FoldlineSession:
    """A session of OpenAI Agents that stores its items in a foldline session."""

    def __init__(
        self,
        session: Session,
        session_id: str = "",
        *,
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        self.session_id = session_id or session.name or "foldline"
        self.session_settings: SessionSettings | None = SessionSettings().resolve(session_settings)
        """The settings of a session of OpenAI Agents. Their limit is used if `get_items` is called without a limit."""
        self.hooks: RunHooks[Any] = FoldlineHooks(self)
        """Pass these hooks as `hooks=` to the runner.

        If you have hooks of your own, call `on_llm_end` of these hooks in the `on_llm_end` of your hooks.
        """
        self.prepared: PreparedRequest | None = None
        """The request that was sent last, to which the next reply belongs."""
        self.history = StoredHistory(session, CODEC)

    def run_config(self, **options: Any) -> RunConfig:
        """A run config with the filter. `options` are the other fields of the run config."""
        return RunConfig(call_model_input_filter=self.input_filter, **options)

    async def input_filter(self, data: CallModelData[Any]) -> ModelInputData:
        """The input of a model call, folded if necessary."""
        tools = [tool for tool in data.agent.tools if hasattr(tool, "params_json_schema")]
        prepared = await asyncio.to_thread(
            self.history.followed.prepare,
            data.model_data.input,
            system=[system(data.model_data.instructions)] if data.model_data.instructions else (),
            tools=[function_definition(tool.name, tool.description, tool.params_json_schema) for tool in tools],
            model=_model_name(data.agent.model),
        )
        self.prepared = prepared
        return replace(data.model_data, input=list(prepared.items)) if prepared.is_changed else data.model_data

    # The session of OpenAI Agents

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """All items; with a limit, only the newest `limit` items."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        items = await asyncio.to_thread(self.history.items)
        return items if limit is None else items[max(0, len(items) - max(0, limit)) :]

    async def add_items(self, items: list[Any]) -> None:
        """Add items at the end."""
        await asyncio.to_thread(self.history.append, items)

    async def pop_item(self) -> Any:
        """Remove the last item and return it; None if there is none."""
        return await asyncio.to_thread(self.history.pop)

    async def clear_session(self) -> None:
        """Remove all items from the session. The ledger keeps them."""
        await asyncio.to_thread(self.history.clear)


class FoldlineHooks(RunHooks[Any]):
    """Records each reply with its usage."""

    def __init__(self, session: FoldlineSession) -> None:
        self._session = session

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        """Record the reply that the model has finished."""
        del context, agent
        prepared, self._session.prepared = self._session.prepared, None
        if prepared is not None:
            await asyncio.to_thread(self._record, prepared, response)

    def _record(self, prepared: PreparedRequest, response: Any) -> None:
        messages: list[Message] = [each for item in response.to_input_items() for each in CODEC.read(item)]
        used = response.usage
        if messages and used.input_tokens:
            details = used.input_tokens_details
            usage = usage_of(
                used.input_tokens,
                cache_read=details.cached_tokens,
                cache_write=getattr(details, "cache_write_tokens", 0),
                output=used.output_tokens,
            )
            messages[-1] = messages[-1].with_meta(replace(messages[-1].meta, usage=usage))
        self._session.history.followed.record(prepared, *messages)


def _model_name(model: Any) -> str:
    """The name of an agent's model. The model is a name, or an object with a field `model`."""
    name = model if isinstance(model, str) else getattr(model, "model", "")
    return name if isinstance(name, str) else ""
