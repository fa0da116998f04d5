"""A complete agent: Anthropic, streaming, tools, recall, digests by a model, restart. It needs no key."""

from __future__ import annotations

import tempfile
from typing import Any

from anthropic import Anthropic

import foldline
from foldline import Tools, digesters
from foldline.testing import SimulatedProvider
from foldline.testing.provider import call

MODEL = "claude-sonnet-5"
READ = {"name": "read", "description": "Read a file.", "input_schema": {"type": "object"}}


def answer(session: foldline.Session, client: Anthropic, prompt: str) -> str:
    """Ask the model, and run its tools until it answers."""
    session.add({"role": "user", "content": prompt})
    while True:
        stream: Any = client.messages.create(**session.view().request("anthropic", max_tokens=2_000), stream=True)
        for event in (streamed := session.stream(stream)):
            if event.type == "content_block_delta" and event.delta.type == "text_delta":
                print(event.delta.text, end="", flush=True)
        if (reply := streamed.message) is None:
            raise RuntimeError("the stream ended without a reply")
        for asked in reply.calls:
            result = {"type": "tool_result", "tool_use_id": asked.id, "content": "PORT = 7091"}
            session.add({"role": "user", "content": [result]} if asked.name == "read" else Tools(session).answer(asked))
        if not reply.calls:
            return reply.text


with SimulatedProvider() as provider, tempfile.TemporaryDirectory() as folder:  # only for this demo
    provider.script(call("read", path="config.py"), "The port is 7091.\n", call("recall", query="port"), "7091.\n")
    client = Anthropic(base_url=provider.url, api_key="any")
    digester = digesters.anthropic("claude-haiku-4-5", base_url=provider.url, api_key="any")
    for prompt in ("Which port does the worker use?", "Which port was it?"):  # the second time, after a restart
        with foldline.open(f"{folder}/agent.db", digester=digester) as ledger:
            tools = [READ, *Tools.definitions("anthropic")]
            answer(ledger.session("ticket-42", model=MODEL, tools=tools), client, prompt)
    print(f"{len(provider.requests)} requests, {len(provider.refused)} refused")
    client.close()
