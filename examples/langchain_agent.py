"""An agent of LangChain that goes on after its window is full. It needs no key."""

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.tools import tool

import foldline
from foldline.integrations.langchain import FoldlineMiddleware
from foldline.testing import SimulatedProvider
from foldline.testing.provider import call

MODEL, WINDOW, TURNS = "claude-opus-5-5", 8_000, 20
POLICY = foldline.Policy.preset("balanced").but(window_tokens=WINDOW, reply_tokens=400)


@tool
def read_file(path: str) -> str:
    """Read a file."""
    return f"{path}\n" + "a line of code\n" * 150


def work(provider: SimulatedProvider, *middleware: FoldlineMiddleware) -> int:
    """Ask until the provider refuses a request, at most `TURNS` times. Returns the number of answers."""
    model = ChatAnthropic(model=MODEL, base_url=provider.url, api_key="x", max_tokens=400, max_retries=0)
    agent, messages = create_agent(model, [read_file], middleware=middleware), []
    for turn in range(TURNS):
        provider.script(call("read_file", path=f"src/part_{turn}.py"), f"Part {turn} is fine.")
        messages.append({"role": "user", "content": f"Check part {turn}."})
        try:
            messages = agent.invoke({"messages": messages})["messages"]
        except Exception:  # noqa: BLE001 (the error of the model class)
            return turn
    return TURNS


with SimulatedProvider(models={MODEL: WINDOW}) as provider, foldline.open(":memory:") as ledger:
    session = ledger.session("work", policy=POLICY)
    print(f"without foldline: {work(provider)} turns")
    provider.requests.clear()
    turns = work(provider, FoldlineMiddleware(session))
    print(f"with foldline: {turns} turns, {session.folds} folds, {len(provider.refused)} requests refused")
    print(f"messages in the ledger: {len(session)}")
