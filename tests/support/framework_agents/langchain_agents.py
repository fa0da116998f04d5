"""Agents of LangChain, with its real model classes."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from foldline.integrations.langchain import FoldlineMiddleware
from foldline.session.session import Session
from foldline.testing import SimulatedProvider
from support.framework_agents import CLAUDE, GPT, SYSTEM, Pieces, read_file, run


class _WithStrict(AgentMiddleware[Any, Any, Any]):
    """Adds the field `strict`, which the simulated provider demands of tools of the Responses API."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request.override(model_settings={"strict": False}))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request.override(model_settings={"strict": False}))


class LangChainAgent:
    """A `create_agent` whose caller keeps the messages."""

    def __init__(
        self, provider: SimulatedProvider, session: Session | None, mode: str, *, thinking: bool = False
    ) -> None:
        self.mode, self.messages, self.pieces = mode, [], Pieces()
        middleware = [*self.middleware, *([] if session is None else [FoldlineMiddleware(session)])]
        model = self.model(provider, streams="stream" in mode, thinks=thinking)
        self.agent: Any = create_agent(model, [tool(read_file)], system_prompt=SYSTEM, middleware=middleware)

    messages: list[Any]
    middleware: tuple[AgentMiddleware[Any, Any, Any], ...] = ()

    def model(self, provider: SimulatedProvider, *, streams: bool, thinks: bool) -> Any:
        raise NotImplementedError

    def ask(self, prompt: str) -> str:
        state = {"messages": [*self.messages, {"role": "user", "content": prompt}]}
        if self.mode == "sync":
            state = self.agent.invoke(state)
        elif self.mode == "stream":
            for mode, found in self.agent.stream(state, stream_mode=["values", "messages"]):
                state = self._heard(mode, found) or state
        elif self.mode == "async":
            state = run(self.agent.ainvoke(state))
        else:
            state = run(self._astream(state))
        self.messages = state["messages"]
        last = self.messages[-1]
        assert isinstance(last, AIMessage)
        return str(last.text)

    async def _astream(self, state: Any) -> Any:
        async for mode, found in self.agent.astream(state, stream_mode=["values", "messages"]):
            state = self._heard(mode, found) or state
        return state

    def _heard(self, mode: str, found: Any) -> Any:
        """The state in an event of a stream; None if the event is a piece of a message."""
        if mode == "values":
            return found
        if isinstance(found[0], AIMessageChunk):
            self.pieces.add(found[0].text)
        return None

    def adopt(self, other: Any) -> None:
        self.messages = [type(message).model_validate(message.model_dump()) for message in other.messages]

    def close(self) -> None:
        pass


class LangChainAnthropicAgent(LangChainAgent):
    def model(self, provider: SimulatedProvider, *, streams: bool, thinks: bool) -> Any:
        thinking = {"thinking": {"type": "adaptive"}} if thinks else {}
        fixed: Any = {"base_url": provider.url, "api_key": "x", "max_retries": 0, "max_tokens": 400, **thinking}
        return ChatAnthropic(model=CLAUDE, streaming=streams, **fixed)


class LangChainOpenAiAgent(LangChainAgent):
    responses = False

    def model(self, provider: SimulatedProvider, *, streams: bool, thinks: bool) -> Any:
        fixed: Any = {"base_url": provider.openai_url, "api_key": "x", "max_retries": 0, "stream_usage": True}
        if self.responses:
            fixed |= {"use_responses_api": True, "store": False, "include": ["reasoning.encrypted_content"]}
            fixed |= {"output_version": "responses/v1"}
        return ChatOpenAI(model=GPT, streaming=streams, **fixed)


class LangChainResponsesAgent(LangChainOpenAiAgent):
    responses = True
    middleware = (_WithStrict(),)
