"""An agent of Strands that goes on after its window is full. It needs no key."""

from strands import Agent, tool
from strands.agent.conversation_manager import ConversationManager, NullConversationManager
from strands.models.openai import OpenAIModel

import foldline
from foldline.integrations.strands import FoldlineConversationManager
from foldline.testing import SimulatedProvider
from foldline.testing.provider import call

MODEL, WINDOW, TURNS = "gpt-5.6", 8_000, 20
POLICY = foldline.Policy.preset("balanced").but(window_tokens=WINDOW, reply_tokens=400)


@tool
def read_file(path: str) -> str:
    """Read a file."""
    return f"{path}\n" + "a line of code\n" * 150


def work(provider: SimulatedProvider, manager: ConversationManager) -> int:
    """Ask until the provider refuses a request, at most `TURNS` times. Returns the number of answers."""
    model = OpenAIModel(client_args={"base_url": provider.openai_url, "api_key": "x"}, model_id=MODEL)
    agent = Agent(model=model, tools=[read_file], conversation_manager=manager, callback_handler=None)
    for turn in range(TURNS):
        provider.script(call("read_file", path=f"src/part_{turn}.py"), f"Part {turn} is fine.")
        try:
            agent(f"Check part {turn}.")
        except Exception:  # noqa: BLE001 (the error of the client)
            return turn
    return TURNS


with SimulatedProvider(models={MODEL: WINDOW}) as provider, foldline.open(":memory:") as ledger:
    session = ledger.session("work", policy=POLICY)
    print(f"without foldline: {work(provider, NullConversationManager())} turns")
    provider.requests.clear()
    turns = work(provider, FoldlineConversationManager(session))
    print(f"with foldline: {turns} turns, {session.folds} folds, {len(provider.refused)} requests refused")
    print(f"messages in the ledger: {len(session)}")
