"""An agent of Microsoft Agent Framework that goes on after its window is full. It needs no key."""

import asyncio

from agent_framework import Agent, tool
from agent_framework.openai import OpenAIChatCompletionClient

import foldline
from foldline.integrations.agent_framework import FoldlineChatMiddleware
from foldline.testing import SimulatedProvider
from foldline.testing.provider import call

MODEL, WINDOW, TURNS = "gpt-5.6", 8_000, 20
POLICY = foldline.Policy.preset("balanced").but(window_tokens=WINDOW, reply_tokens=400)


@tool
def read_file(path: str) -> str:
    """Read a file."""
    return f"{path}\n" + "a line of code\n" * 150


async def work(provider: SimulatedProvider, *middleware: FoldlineChatMiddleware) -> int:
    """Ask until the provider refuses a request, at most `TURNS` times. Returns the number of answers."""
    client = OpenAIChatCompletionClient(MODEL, base_url=provider.openai_url, api_key="x")
    agent = Agent(client=client, tools=[read_file], middleware=list(middleware))
    history = agent.create_session()
    for turn in range(TURNS):
        provider.script(call("read_file", path=f"src/part_{turn}.py"), f"Part {turn} is fine.")
        try:
            await agent.run(f"Check part {turn}.", session=history)
        except Exception:  # noqa: BLE001 (the error of the client)
            return turn
    return TURNS


with SimulatedProvider(models={MODEL: WINDOW}) as provider, foldline.open(":memory:") as ledger:
    session = ledger.session("work", policy=POLICY)
    print(f"without foldline: {asyncio.run(work(provider))} turns")
    provider.requests.clear()
    turns = asyncio.run(work(provider, FoldlineChatMiddleware(session)))
    print(f"with foldline: {turns} turns, {session.folds} folds, {len(provider.refused)} requests refused")
    print(f"messages in the ledger: {len(session)}")
