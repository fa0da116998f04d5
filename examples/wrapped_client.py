"""A wrapped client of Anthropic. The loop is unchanged, and continues after the window is full. It needs no key."""

from anthropic import Anthropic, BadRequestError

import foldline
from foldline.testing import SimulatedProvider

MODEL, WINDOW, TURNS = "claude-opus-5-5", 8_000, 20
POLICY = foldline.Policy.preset("balanced").but(window_tokens=WINDOW, reply_tokens=400)


def chat(client: Anthropic) -> int:
    """Talk until the provider refuses a request, at most `TURNS` turns. Returns the number of turns."""
    messages = []
    for turn in range(TURNS):
        messages.append({"role": "user", "content": f"Check part {turn}: " + "a line of code\n" * 150})
        try:
            reply = client.messages.create(model=MODEL, max_tokens=400, messages=messages)
        except BadRequestError:
            return turn
        messages.append({"role": "assistant", "content": reply.content})
    return TURNS


with SimulatedProvider(models={MODEL: WINDOW}) as provider, foldline.open(":memory:") as ledger:
    session = ledger.session("work", policy=POLICY)
    with Anthropic(base_url=provider.url, api_key="x") as client:
        print(f"without foldline: {chat(client)} turns")
        provider.requests.clear()
        turns = chat(foldline.wrap(client, session=session))
    print(f"with foldline: {turns} turns, {session.folds} folds, {len(provider.refused)} requests refused")
    print(f"messages in the ledger: {len(session)}")
