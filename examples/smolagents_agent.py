"""An agent of smolagents that goes on after its window is full. It needs no key."""

from smolagents import OpenAIModel, ToolCallingAgent, tool

import foldline
from foldline.testing import SimulatedProvider
from foldline.testing.provider import call

MODEL, WINDOW, TURNS = "gpt-5.6", 8_000, 20
POLICY = foldline.Policy.preset("balanced").but(window_tokens=WINDOW, reply_tokens=400)


@tool
def read_file(path: str) -> str:
    """Read a file.

    Args:
        path: The path of the file.
    """
    return f"{path}\n" + "a line of code\n" * 150


def work(provider: SimulatedProvider, session: foldline.Session | None = None) -> int:
    """Ask until the provider refuses a request, at most `TURNS` times. Returns the number of answers."""
    model = OpenAIModel(MODEL, api_base=provider.openai_url, api_key="x", retry=False)
    if session is not None:
        model.client = foldline.wrap(model.client, session=session)
    agent = ToolCallingAgent([read_file], model, verbosity_level=-1)
    for turn in range(TURNS):
        answer = call("final_answer", answer=f"Part {turn} is fine.")
        provider.script(call("read_file", path=f"src/part_{turn}.py"), answer)
        try:
            agent.run(f"Check part {turn}.", reset=False)
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
