"""An agent of smolagents, with its real model class for OpenAI, whose client is wrapped."""

from __future__ import annotations

from typing import Any

from smolagents import OpenAIModel, ToolCallingAgent, tool
from smolagents.models import ChatMessageStreamDelta, ChatMessageToolCall, ChatMessageToolCallFunction

import foldline
from foldline.session.session import Session
from foldline.testing import SimulatedProvider
from support.framework_agents import GPT, SYSTEM, Pieces
from support.framework_agents import read_file as read_a_file


@tool
def read_file(path: str) -> str:
    """Read a file.

    Args:
        path: The path of the file.
    """
    return read_a_file(path)


class _Model(OpenAIModel):
    """Makes a call of `final_answer` of a plain text, because smolagents accepts only calls."""

    def parse_tool_calls(self, message: Any) -> Any:
        function = ChatMessageToolCallFunction(name="final_answer", arguments={"answer": message.content})
        message.tool_calls = [ChatMessageToolCall(id="final", type="function", function=function)]
        return message


class SmolagentsAgent:
    """A `ToolCallingAgent` that keeps its memory from run to run."""

    def __init__(
        self, provider: SimulatedProvider, session: Session | None, mode: str, *, thinking: bool = False
    ) -> None:
        self.mode, self.pieces = mode, Pieces()
        model = _Model(GPT, api_base=provider.openai_url, api_key="x", client_kwargs={"max_retries": 0}, retry=False)
        if session is not None:
            model.client = foldline.wrap(model.client, session=session)
        fixed: Any = {"verbosity_level": -1, "stream_outputs": "stream" in mode, "max_tool_threads": 1}
        self.agent: Any = ToolCallingAgent([read_file], model, instructions=SYSTEM, **fixed)

    def ask(self, prompt: str) -> str:
        if "stream" not in self.mode:
            return str(self.agent.run(prompt, reset=False))
        for event in self.agent.run(prompt, reset=False, stream=True):
            if isinstance(event, ChatMessageStreamDelta):
                self.pieces.add(event.content)
        return str(event.output)

    def adopt(self, other: Any) -> None:
        self.agent.memory = other.agent.memory

    def close(self) -> None:
        self.agent.model.client.close()
