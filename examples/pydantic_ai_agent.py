"""An agent of Pydantic AI that goes on after its window is full. It needs no key."""

import asyncio

from anthropic import AsyncAnthropic
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

import foldline
from foldline.integrations.pydantic_ai import FoldlineCapability
from foldline.testing import SimulatedProvider
from foldline.testing.provider import call

MODEL, WINDOW, TURNS = "claude-opus-5-5", 8_000, 20
POLICY = foldline.Policy.preset("balanced").but(window_tokens=WINDOW, reply_tokens=400)


def read_file(path: str) -> str:
    """Read a file."""
    return f"{path}\n" + "a line of code\n" * 150


async def work(provider: SimulatedProvider, *capabilities: FoldlineCapability) -> int:
    """Ask until the provider refuses a request, at most `TURNS` times. Returns the number of answers."""
    async with AsyncAnthropic(base_url=provider.url, api_key="x", max_retries=0) as client:
        model = AnthropicModel(MODEL, provider=AnthropicProvider(anthropic_client=client))
        agent = Agent(model, tools=[read_file], capabilities=capabilities, model_settings={"max_tokens": 400})
        messages = []
        for turn in range(TURNS):
            provider.script(call("read_file", path=f"src/part_{turn}.py"), f"Part {turn} is fine.")
            try:
                result = await agent.run(f"Check part {turn}.", message_history=messages)
            except Exception:  # noqa: BLE001 (the error of the model class)
                return turn
            messages = result.all_messages()
    return TURNS


with SimulatedProvider(models={MODEL: WINDOW}) as provider, foldline.open(":memory:") as ledger:
    session = ledger.session("work", policy=POLICY)
    print(f"without foldline: {asyncio.run(work(provider))} turns")
    provider.requests.clear()
    turns = asyncio.run(work(provider, FoldlineCapability(session)))
    print(f"with foldline: {turns} turns, {session.folds} folds, {len(provider.refused)} requests refused")
    print(f"messages in the ledger: {len(session)}")
