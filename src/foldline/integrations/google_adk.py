"""Google ADK: a plugin for runners and apps.

    runner = InMemoryRunner(agent, plugins=[FoldlinePlugin(ledger)])

The plugin changes only what the model receives. The session service of ADK keeps every event. Use the plugin in place
of `ContextFilterPlugin` and of ADK's event compaction.
"""

from __future__ import annotations

import json
from typing import Any

from google.adk.agents.callback_context import CallbackContext
from google.adk.models import LlmRequest, LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

from foldline.integrations.item_codec import wire_codec
from foldline.integrations.session_choice import FollowedSessions, PendingRequests
from foldline.message import Message
from foldline.policy import Policy
from foldline.session.open_ledger import Ledger
from foldline.session.session import Session
from foldline.wire.gemini.parse import parse_reply, parse_system
from foldline.wire.gemini.render import join_turns


class FoldlinePlugin(BasePlugin):
    """Sends the view of a session instead of the whole history, and records the replies with their usage.

    If `session` is a `Session`, all conversations use it. If it is a `Ledger`, each session id of ADK gets its own
    session in the ledger. If it is None, each conversation gets a session in memory.
    """

    def __init__(
        self, session: Session | Ledger | None = None, *, policy: Policy | str | None = None, name: str = "foldline"
    ) -> None:
        super().__init__(name)
        self._sessions = FollowedSessions(session, CODEC, policy=policy, default_name="adk")
        self._pending = PendingRequests()

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        """Replace the contents of a request by those of the view."""
        config = llm_request.config
        if llm_request.previous_interaction_id:  # the provider keeps the history; the request has only its end
            return
        prepared = await self._pending.prepare(
            _run_of(callback_context),
            self._sessions.session_of(callback_context.session.id),
            llm_request.contents,
            system=_system(config.system_instruction),
            tools=[_dump(tool) for tool in config.tools or () if isinstance(tool, types.Tool)],
            model=(llm_request.model or "").rpartition("/")[2],
        )
        if prepared.is_changed:
            llm_request.contents = [_load(each) for each in join_turns([_dump(item) for item in prepared.items])]

    async def after_model_callback(self, *, callback_context: CallbackContext, llm_response: LlmResponse) -> None:
        """Record a reply when it is complete."""
        if llm_response.partial or llm_response.content is None:
            return
        reply = {
            "candidates": [{"content": _dump(llm_response.content), "finishReason": llm_response.finish_reason}],
            "usageMetadata": _dump(llm_response.usage_metadata) if llm_response.usage_metadata else None,
            "modelVersion": llm_response.model_version,
        }
        await self._pending.record(_run_of(callback_context), *parse_reply(reply))

    async def on_model_error_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest, error: Exception
    ) -> None:
        """Forget the failed request. ADK itself raises the error."""
        del llm_request, error
        self._pending.discard(_run_of(callback_context))


def _run_of(context: CallbackContext) -> str:
    """The name of a run. It includes the agent, because agents that work in parallel have the same invocation id."""
    return f"{context.invocation_id} {context.agent_name}"


def _system(instruction: Any) -> tuple[Message, ...]:
    if not instruction:
        return ()
    return (parse_system(instruction if isinstance(instruction, str) else _dump(instruction)),)


def _dump(value: Any) -> Any:
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


def _load(element: Any) -> types.Content:
    return types.Content.model_validate_json(json.dumps(element))  # as JSON, because signatures are bytes


CODEC = wire_codec("gemini", dump=_dump, load=_load)
"""Converts between contents and messages."""
