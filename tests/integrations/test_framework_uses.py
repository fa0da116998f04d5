"""Unusual but documented uses of frameworks, which work with foldline as they work without it."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path
from typing import Any

import pytest

import foldline
from foldline import Policy
from foldline.testing import SimulatedProvider
from foldline.testing.provider import SimulatedModel, call
from support.framework_agents import CLAUDE, GPT, read_file

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
WINDOW = 4_000
POLICY = Policy.preset("balanced").but(window_tokens=WINDOW, reply_tokens=400)
TURNS = 8


@pytest.fixture
def provider() -> Any:
    with SimulatedProvider(models={name: SimulatedModel(window=WINDOW) for name in (CLAUDE, GPT)}) as running:
        yield running


def test_an_agent_of_pydantic_ai_with_an_output_type_stays_on_one_branch(
    provider: SimulatedProvider, tmp_path: Path
) -> None:
    """Pydantic AI joins the result of the output tool and the next prompt to one request when it sends them again."""
    ai = pytest.importorskip("pydantic_ai")
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    from foldline.integrations.pydantic_ai import FoldlineCapability

    async def work(capability: Any) -> None:
        async with AsyncAnthropic(base_url=provider.url, api_key="x", max_retries=0) as client:
            model = AnthropicModel(CLAUDE, provider=AnthropicProvider(anthropic_client=client))
            agent = ai.Agent(model, tools=[read_file], output_type=list[int], capabilities=[capability])
            history: Any = None
            for turn in range(TURNS):
                answer = call("final_result", response=[turn])
                provider.script(call("read_file", path=f"p{turn}.py"), answer)
                settings: Any = {"max_tokens": 400}
                run = await agent.run(f"Which port? {turn}", message_history=history, model_settings=settings)
                history = run.all_messages()
                assert run.output == [turn]

    with foldline.open(tmp_path / "ledger.db") as ledger:
        asyncio.run(work(FoldlineCapability(ledger, policy=POLICY)))
        (info,) = ledger.sessions()
        assert [branch.name for branch in ledger.store.branches(ledger.store.session(info.name).session)] == ["main"]
        assert ledger.session(info.name).folds >= 1
    assert provider.refused == []


def test_a_memory_of_llama_index_survives_in_a_stored_context(provider: SimulatedProvider, tmp_path: Path) -> None:
    """A context that is used again has its memory as JSON."""
    pytest.importorskip("llama_index.core")
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.core.tools import FunctionTool
    from llama_index.core.workflow import Context, JsonSerializer
    from openai import AsyncOpenAI

    from foldline.integrations.llama_index import FoldlineMemory
    from support.framework_agents.llama_index_agents import SimulatedLLM

    async def work(session: foldline.Session) -> None:
        async with AsyncOpenAI(base_url=provider.openai_url, api_key="x", max_retries=0) as client:
            tools: Any = [FunctionTool.from_defaults(read_file)]
            agent = FunctionAgent(llm=SimulatedLLM(client=client), tools=tools, streaming=False)
            context: Any = Context(agent)
            memory: Any = FoldlineMemory(session)
            for turn in range(TURNS):
                provider.script(call("read_file", path=f"p{turn}.py"), f"Done {turn}.")
                await agent.run(f"Read part {turn}.", ctx=context, memory=memory)
                stored = context.to_dict(serializer=JsonSerializer())
                context, memory = Context.from_dict(agent, stored, serializer=JsonSerializer()), None

    with foldline.open(tmp_path / "ledger.db") as ledger:
        session = ledger.session("work", model=GPT, policy=POLICY)
        session.use(extra_tokens=1_100)
        asyncio.run(work(session))
        assert len(session) == 4 * TURNS
        assert session.folds >= 1
    assert provider.refused == []


def test_a_memory_of_llama_index_is_complete_in_another_process() -> None:
    pytest.importorskip("llama_index.core")
    from llama_index.core.base.llms.types import ChatMessage

    from foldline.integrations.llama_index import FoldlineMemory

    memory = FoldlineMemory()
    memory.put(ChatMessage(role="user", content="hello"))
    stored = memory.to_dict()
    assert FoldlineMemory.from_dict({**stored, "memory_id": "of another process"}).get_all() == memory.get_all()
    assert pickle.loads(pickle.dumps(memory)).get_all() == memory.get_all()
