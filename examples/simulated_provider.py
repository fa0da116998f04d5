"""An agent that talks to the simulated provider instead of a real one. Run it: python examples/simulated_provider.py"""

from __future__ import annotations

from anthropic import Anthropic, BadRequestError
from anthropic.types import MessageParam

from foldline.testing import SimulatedProvider
from foldline.testing.provider import call, fail

MODEL = "claude-opus-5-5"
TOOL = {"name": "bash", "description": "Run a command.", "input_schema": {"type": "object"}}
SYSTEM = [{"type": "text", "text": "You are careful. " * 300, "cache_control": {"type": "ephemeral"}}]


def run(client: Anthropic, messages: list[MessageParam]) -> str:
    """The loop of an agent: ask the model, run the tools, ask again."""
    while True:
        reply = client.messages.create(model=MODEL, max_tokens=1_000, system=SYSTEM, tools=[TOOL], messages=messages)
        messages.append({"role": "assistant", "content": [block.to_dict() for block in reply.content]})
        calls = [block for block in reply.content if block.type == "tool_use"]
        if not calls:
            return reply.content[0].text
        results = [{"type": "tool_result", "tool_use_id": block.id, "content": "README.md"} for block in calls]
        messages.append({"role": "user", "content": results})


with SimulatedProvider(models={MODEL: 200_000}, counter=lambda text: len(text.split())) as provider:
    client = Anthropic(base_url=provider.url, api_key="any")
    provider.script(fail(529), call("bash", command="ls"), "There is one file.")
    messages: list[MessageParam] = [{"role": "user", "content": "What is in this folder?"}]
    print("reply:  ", run(client, messages))
    print("bill:   ", provider.bill)

    del messages[2]  # remove the result, but keep its call
    try:
        run(client, [*messages, {"role": "user", "content": "And now?"}])
    except BadRequestError as error:
        print("refused:", error.body["error"]["message"])
    print("rules:  ", [request.error.rule for request in provider.refused])
    client.close()
