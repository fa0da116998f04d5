"""CrewAI: an interceptor for the clients of OpenAI and Anthropic that CrewAI uses.

    llm = LLM(model="openai/gpt-5.6", interceptor=FoldlineInterceptor(ledger.session("user-42")))

Like `foldline.wrap`, the interceptor changes requests just before they are sent, and records every message. Each agent
needs an `LLM` of its own, and each `LLM` needs a session of its own.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

from crewai.llms.hooks.base import BaseInterceptor

from foldline.integrations.client_exchange import ClientExchange, ClientRequests
from foldline.integrations.http_replies import follow_async_reply, follow_reply
from foldline.integrations.wrapped_clients import begin_exchange, folded_request
from foldline.session.session import Session


class FoldlineInterceptor(BaseInterceptor[Any, Any]):
    """Sends the view of a session instead of the whole history. By default, the session is a new one in memory."""

    def __init__(self, session: Session | None = None) -> None:
        self._requests = ClientRequests(session if session is not None else Session())
        self._exchange: ContextVar[ClientExchange | None] = ContextVar("exchange", default=None)
        """The current exchange of this thread or task.

        CrewAI calls the interceptor for a request and for its response in the same thread or task.
        """

    def on_outbound(self, message: Any) -> Any:
        """The request with the folded body; the same object if nothing was folded."""
        return self._begin(message, begin_exchange(message, self._requests))

    def on_inbound(self, message: Any) -> Any:
        """Record the reply while it is read."""
        exchange = self._exchange.get()
        if exchange is not None:
            follow_reply(message, exchange)
        return message

    async def aon_outbound(self, message: Any) -> Any:
        """The request with the folded body; the same object if nothing was folded."""
        return self._begin(message, await asyncio.to_thread(begin_exchange, message, self._requests))

    async def aon_inbound(self, message: Any) -> Any:
        """Record the reply while it is read."""
        exchange = self._exchange.get()
        if exchange is not None:
            await follow_async_reply(message, exchange)
        return message

    def _begin(self, request: Any, exchange: ClientExchange | None) -> Any:
        self._exchange.set(exchange)
        return request if exchange is None else folded_request(request, exchange)
