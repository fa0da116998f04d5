"""pydantic-ai-harness: its sliding window and its tiered compaction, called before each request as an agent does.

The package counts tokens from reported usage. So each reply has the usage that a provider would report for the last
view.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from collections.abc import Iterable
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    CompactionPart,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import RunContext
from pydantic_ai.usage import RequestUsage, RunUsage
from pydantic_ai_harness.compaction import (
    ClearToolResults,
    SlidingWindowCompaction,
    SummarizingCompaction,
    TieredCompaction,
)

from bench.peers.talk import Call, Said, Talk, chars4, picture, size

SUMMARY = "The user asked for several things; files were read and changed, and most of it is done. " * 3


class Harness:
    """One capability that rewrites the messages of one run."""

    def __init__(self, budget: int, *, tiered: bool) -> None:
        self.model = TestModel(custom_output_text=SUMMARY)
        self.capability = self._tiers(budget) if tiered else self._window(budget)
        self.context = RunContext(deps=None, model=self.model, usage=RunUsage(), messages=[])
        self.waits = tiered
        """Whether the capability may call a model. If it cannot, no event loop is used, so that the loop adds no
        time.
        """
        self.loop = asyncio.new_event_loop()
        self.names: dict[str, str] = {}
        self.sent: list[Any] = []
        """The messages of the last request. The usage of the next reply is computed from them."""

    def _window(self, budget: int) -> Any:
        return SlidingWindowCompaction(max_tokens=budget, keep_tokens=budget // 2, tokenizer=chars4)

    def _tiers(self, budget: int) -> Any:
        return TieredCompaction(
            tiers=[
                ClearToolResults(max_tokens=1, tokenizer=chars4),
                SummarizingCompaction(model=self.model, max_messages=1, tokenizer=chars4),
            ],
            target_tokens=budget,
            tokenizer=chars4,
        )

    def native(self, talk: Talk) -> list[Any]:
        """The messages as a run has them: the results of one step are in one request, and replies have usage."""
        made: list[Any] = []
        prompt = size(said for message in self.sent for said in _said(message))
        for said in talk:
            self.names |= {call.id: call.name for call in said.calls}
            if said.role == "assistant":
                usage = RequestUsage(input_tokens=prompt, output_tokens=size([said]))
                made.append(ModelResponse(parts=_reply(said), usage=usage))
            elif made and _goes_on(made[-1], said):
                made[-1].parts.append(self._part(said))
            else:
                made.append(ModelRequest(parts=[self._part(said)]))
            prompt += size([said])
        return made

    def _part(self, said: Said) -> Any:
        if said.role == "system":
            return SystemPromptPart(said.text)
        if said.role == "tool":
            return ToolReturnPart(self.names[said.answers], said.text, said.answers)
        if said.images:
            image = BinaryContent(b64decode(picture()), media_type="image/png")
            return UserPromptPart([said.text, *[image] * said.images])
        return UserPromptPart(said.text)

    def add(self, native: list[Any]) -> None:
        """Add messages."""
        self.context.messages.extend(native)

    def view(self) -> Any:
        """The messages that would be sent."""
        request = ModelRequestContext(
            model=self.model,
            messages=list(self.context.messages),
            model_settings=None,
            model_request_parameters=ModelRequestParameters(),
        )
        work = self.capability.before_model_request(self.context, request)
        if self.waits:
            request = self.loop.run_until_complete(work)
        else:
            try:
                work.send(None)
            except StopIteration as done:
                request = done.value
        self.sent = request.messages
        return self.sent

    def said(self, view: list[Any]) -> Talk:
        """The view as a `Talk`."""
        return [said for message in view for said in _said(message)]


def _goes_on(request: Any, said: Said) -> bool:
    """Whether a message belongs to the same request as the previous one.

    The results of one step are in one request, and so are the system prompt and the first prompt.
    """
    if not isinstance(request, ModelRequest):
        return False
    return said.role == "tool" or (said.role == "user" and isinstance(request.parts[-1], SystemPromptPart))


def _reply(said: Said) -> list[Any]:
    calls = [ToolCallPart(call.name, json.loads(call.arguments), call.id) for call in said.calls]
    return [*([TextPart(said.text)] if said.text else []), *calls]


def _said(message: Any) -> Iterable[Said]:
    if isinstance(message, ModelResponse):
        text = "".join(part.content for part in message.parts if isinstance(part, TextPart))
        calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
        yield Said("assistant", text, tuple(Call(it.tool_call_id, it.tool_name, json.dumps(it.args)) for it in calls))
        return
    for part in message.parts:
        if isinstance(part, SystemPromptPart):
            yield Said("system", part.content)
        elif isinstance(part, ToolReturnPart):
            yield Said("tool", str(part.content), answers=part.tool_call_id)
        elif isinstance(part, CompactionPart):
            yield Said("user", part.content or "")
        elif isinstance(part, UserPromptPart):
            content = [part.content] if isinstance(part.content, str) else list(part.content)
            images = sum(isinstance(piece, BinaryContent) for piece in content)
            text = "".join(piece for piece in content if isinstance(piece, str))
            yield Said("user", text, images=images)
