"""LangChain and LangGraph: a middleware for agents, and a function for lists of messages.

    agent = create_agent(model, tools, middleware=[FoldlineMiddleware(ledger)], checkpointer=…)
    messages = fit_messages(messages, model="claude-sonnet-5")

The middleware changes only what the model receives. The state of the agent keeps every message. Use the middleware
instead of `SummarizationMiddleware`, and `fit_messages` instead of `trim_messages`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest
from langchain_core.messages import BaseMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from foldline.integrations.fitted_items import fit_items
from foldline.integrations.followed_session import FollowedSession, PreparedRequest
from foldline.integrations.langchain_messages import CODEC, read_message
from foldline.integrations.session_choice import FollowedSessions
from foldline.policy import Policy
from foldline.session.open_ledger import Ledger
from foldline.session.session import Session
from foldline.wire.overflow_signals import is_overflow


class FoldlineMiddleware(AgentMiddleware[Any, Any, Any]):
    """Sends the view of a session instead of the whole history, and records the replies with their usage.

    If `session` is a `Session`, all threads use it. If it is a `Ledger`, each thread id gets its own session in the
    ledger. If it is None, each thread gets a session in memory.
    """

    def __init__(self, session: Session | Ledger | None = None, *, policy: Policy | str | None = None) -> None:
        super().__init__()
        self._sessions = FollowedSessions(session, CODEC, policy=policy, default_name="langchain")

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> Any:
        """Call the model with the view."""
        followed, prepared = self._prepare(request)
        try:
            response = handler(_folded(request, prepared))
        except Exception as error:
            smaller = followed.fold_refused(prepared) if is_overflow(error) else None
            if smaller is None:
                raise
            prepared, response = smaller, handler(_folded(request, smaller))
        followed.record(prepared, *_replies(response))
        return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[Any]]
    ) -> Any:
        """Call the model with the view, without blocking the event loop."""
        followed, prepared = await asyncio.to_thread(self._prepare, request)
        try:
            response = await handler(_folded(request, prepared))
        except Exception as error:
            smaller = await asyncio.to_thread(followed.fold_refused, prepared) if is_overflow(error) else None
            if smaller is None:
                raise
            prepared, response = smaller, await handler(_folded(request, smaller))
        await asyncio.to_thread(followed.record, prepared, *_replies(response))
        return response

    def _prepare(self, request: ModelRequest[Any]) -> tuple[FollowedSession, PreparedRequest]:
        info = getattr(request.runtime, "execution_info", None)
        followed = self._sessions.session_of((info and info.thread_id) or "")
        system = () if request.system_message is None else [read_message(request.system_message)]
        tools = [_definition(tool) for tool in request.tools]
        name = getattr(request.model, "model_name", None) or getattr(request.model, "model", None)
        model = name if isinstance(name, str) else ""
        return followed, followed.prepare(request.messages, system=system, tools=tools, model=model)


def fit_messages(messages: Sequence[BaseMessage], **options: Any) -> Sequence[BaseMessage]:
    """The messages, shortened so that they fit (see `foldline.fit`). A list that fits is returned as it is."""
    return fit_items(messages, CODEC, **options)


def _folded(request: ModelRequest[Any], prepared: PreparedRequest) -> ModelRequest[Any]:
    return request.override(messages=list(prepared.items)) if prepared.is_changed else request


def _replies(response: Any) -> list[BaseMessage]:
    """The messages of a model response."""
    if isinstance(response, BaseMessage):
        return [response]
    return list(getattr(response, "model_response", response).result)


def _definition(tool: Any) -> dict[str, Any]:
    """The definition of a tool as JSON."""
    return tool if isinstance(tool, dict) else dict(convert_to_openai_tool(tool))
