"""An agent of Haystack that goes on after its window is full. It needs no key."""

from typing import Annotated

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import tool
from haystack.utils import Secret

import foldline
from foldline.testing import SimulatedProvider
from foldline.testing.provider import call

MODEL, WINDOW, TURNS = "gpt-5.6", 8_000, 20
POLICY = foldline.Policy.preset("balanced").but(window_tokens=WINDOW, reply_tokens=400)


@tool
def read_file(path: Annotated[str, "the path of the file"]) -> str:
    """Read a file."""
    return f"{path}\n" + "a line of code\n" * 150


def work(provider: SimulatedProvider, session: foldline.Session | None = None) -> int:
    """Ask until the provider refuses a request, at most `TURNS` times. Returns the number of answers."""
    generator = OpenAIChatGenerator(Secret.from_token("x"), MODEL, api_base_url=provider.openai_url, max_retries=0)
    generator.warm_up()
    if session is not None:
        generator.client = foldline.wrap(generator.client, session=session)
    agent, messages = Agent(chat_generator=generator, tools=[read_file]), []
    for turn in range(TURNS):
        provider.script(call("read_file", path=f"src/part_{turn}.py"), f"Part {turn} is fine.")
        try:
            messages = agent.run([*messages, ChatMessage.from_user(f"Check part {turn}.")])["messages"]
        except Exception:  # noqa: BLE001 (the error of the client)
            return turn
    return TURNS


with SimulatedProvider(models={MODEL: WINDOW}) as provider, foldline.open(":memory:") as ledger:
    session = ledger.session("work", policy=POLICY)
    print(f"without foldline: {work(provider)} turns")
    provider.requests.clear()
    turns = work(provider, session)
    print(f"with foldline: {turns} turns, {session.folds} folds, {len(provider.refused)} requests refused")
    print(f"messages in the ledger: {len(session)}")
