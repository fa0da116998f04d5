"""Pydantic AI: a capability for agents.

    agent = Agent("anthropic:claude-sonnet-5", capabilities=[FoldlineCapability(ledger)])

The capability changes only what the model receives, in each attempt of a request. The run's own history keeps every
message, so the results of `all_messages()` and `new_messages()` do not change.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic_ai import messages as ai
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import RunContext

from foldline.integrations.item_codec import function_definition
from foldline.integrations.pydantic_ai_messages import CODEC
from foldline.integrations.session_choice import FollowedSessions, PendingRequests
from foldline.message import system
from foldline.policy import Policy
from foldline.session.open_ledger import Ledger
from foldline.session.session import Session


class FoldlineCapability(AbstractCapability[Any]):
    """Sends the view of a session instead of the whole history, and records the replies with their usage.

    If `session` is a `Session`, all conversations use it. If it is a `Ledger`, each conversation id gets its own
    session in the ledger. If it is None, each conversation gets a session in memory.
    """

    def __init__(self, session: Session | Ledger | None = None, *, policy: Policy | str | None = None) -> None:
        self.id, self.description, self.defer_loading = None, None, False
        self._sessions = FollowedSessions(session, CODEC, policy=policy, default_name="pydantic-ai")
        self._pending = PendingRequests()

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Replace the messages of a request by those of the view. Pydantic AI calls this method for every attempt of a
        request.
        """
        parameters = request_context.model_request_parameters
        tools = (*parameters.function_tools, *parameters.output_tools)
        prepared = await self._pending.prepare(
            ctx.run_id or "",
            self._sessions.session_of(ctx.conversation_id or ""),
            request_context.messages,
            system=[system(part.content) for part in parameters.instruction_parts or ()],
            tools=[function_definition(tool.name, tool.description, tool.parameters_json_schema) for tool in tools],
            model=request_context.model.model_name,
        )
        return replace(request_context, messages=list(prepared.items)) if prepared.is_changed else request_context

    async def wrap_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, handler: Any
    ) -> ai.ModelResponse:
        """Call the model. Pydantic AI before 2.66 does not call `prepare_model_request`, so this method calls it."""
        if not hasattr(AbstractCapability, "prepare_model_request"):
            request_context = await self.prepare_model_request(ctx, request_context)
        response: ai.ModelResponse = await handler(request_context)
        return response

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ai.ModelResponse
    ) -> ai.ModelResponse:
        """Record the reply."""
        del request_context
        await self._pending.record(ctx.run_id or "", response)
        return response

    async def on_model_request_error(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, error: Exception
    ) -> ai.ModelResponse:
        """Forget the failed request, and pass the error on."""
        del request_context
        self._pending.discard(ctx.run_id or "")
        raise error
