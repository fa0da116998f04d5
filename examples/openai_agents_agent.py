"""An agent of the OpenAI Agents SDK that goes on after its window is full. It needs no key."""

import asyncio
from typing import Any

from agents import Agent, ModelSettings, OpenAIResponsesModel, RunConfig, Runner, SQLiteSession, function_tool
from openai import AsyncOpenAI

import foldline
from foldline.integrations.openai_agents import FoldlineSession
from foldline.testing import SimulatedProvider
from foldline.testing.provider import call

MODEL, WINDOW, TURNS = "gpt-5.6", 8_000, 20
POLICY = foldline.Policy.preset("balanced").but(window_tokens=WINDOW, reply_tokens=400)


@function_tool
def read_file(path: str) -> str:
    """Read a file."""
    return f"{path}\n" + "a line of code\n" * 150


async def work(provider: SimulatedProvider, **options: Any) -> int:
    """Ask until the provider refuses a request, at most `TURNS` times. Returns the number of answers."""
    async with AsyncOpenAI(base_url=provider.openai_url, api_key="x", max_retries=0) as client:
        model = OpenAIResponsesModel(model=MODEL, openai_client=client)
        agent = Agent(name="reader", model=model, tools=[read_file], model_settings=ModelSettings(store=False))
        for turn in range(TURNS):
            provider.script(call("read_file", path=f"src/part_{turn}.py"), f"Part {turn} is fine.")
            try:
                await Runner.run(agent, f"Check part {turn}.", **options)
            except Exception:  # noqa: BLE001 (the error of the client)
                return turn
    return TURNS


with SimulatedProvider(models={MODEL: WINDOW}) as provider, foldline.open(":memory:") as ledger:
    plain, session = SQLiteSession("plain"), FoldlineSession(ledger.session("work", policy=POLICY))
    turns = asyncio.run(work(provider, session=plain, run_config=RunConfig(tracing_disabled=True)))
    print(f"without foldline: {turns} turns")
    plain.close()
    provider.requests.clear()
    config = session.run_config(tracing_disabled=True)
    turns = asyncio.run(work(provider, session=session, run_config=config, hooks=session.hooks))
    kept = ledger.session("work")
    print(f"with foldline: {turns} turns, {kept.folds} folds, {len(provider.refused)} requests refused")
    print(f"messages in the ledger: {len(kept)}")
