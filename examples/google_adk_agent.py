"""An agent of Google ADK that goes on after its window is full. It needs no key."""

import asyncio
import logging
import os

from google.adk.agents import LlmAgent
from google.adk.models.google_llm import Gemini
from google.adk.runners import InMemoryRunner

import foldline
from foldline.integrations.google_adk import FoldlinePlugin
from foldline.testing import SimulatedProvider
from foldline.testing.provider import call

MODEL, WINDOW, TURNS = "gemini-3-pro", 8_000, 20
POLICY = foldline.Policy.preset("balanced").but(window_tokens=WINDOW, reply_tokens=400)
logging.disable()
os.environ["GOOGLE_API_KEY"] = "x"


def read_file(path: str) -> str:
    """Read a file."""
    return f"{path}\n" + "a line of code\n" * 150


async def work(provider: SimulatedProvider, *plugins: FoldlinePlugin) -> int:
    """Ask until the provider refuses a request, at most `TURNS` times. Returns the number of answers."""
    model = Gemini(model=MODEL, base_url=provider.url)
    agent = LlmAgent(name="reader", model=model, tools=[read_file])
    async with InMemoryRunner(agent, plugins=list(plugins)) as runner:
        for turn in range(TURNS):
            provider.script(call("read_file", path=f"src/part_{turn}.py"), f"Part {turn} is fine.")
            try:
                await runner.run_debug(f"Check part {turn}.", quiet=True)
            except Exception:  # noqa: BLE001 (the error of the client)
                return turn
    return TURNS


with SimulatedProvider(models={MODEL: WINDOW}) as provider, foldline.open(":memory:") as ledger:
    session = ledger.session("work", policy=POLICY)
    print(f"without foldline: {asyncio.run(work(provider))} turns")
    provider.requests.clear()
    turns = asyncio.run(work(provider, FoldlinePlugin(session)))
    print(f"with foldline: {turns} turns, {session.folds} folds, {len(provider.refused)} requests refused")
    print(f"messages in the ledger: {len(session)}")
