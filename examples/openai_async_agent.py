"""A complete agent: OpenAI, async, with a tool. Run it as it is; it needs no key."""

from __future__ import annotations

import asyncio
from typing import Any

from openai import AsyncOpenAI

from foldline import AsyncSession, Session
from foldline.testing import SimulatedProvider
from foldline.testing.provider import call

READ = {"name": "read", "description": "Read a file.", "input_schema": {"type": "object"}}  # of any format


async def answer(session: AsyncSession, client: AsyncOpenAI, prompt: str) -> str:
    """Ask the model, and run its tools until it answers."""
    await session.add({"role": "user", "content": prompt})
    while True:
        view = await session.view()
        reply: Any = await client.chat.completions.create(**view.request("openai", max_tokens=2_000))
        await session.add(reply)
        if (answered := session.reply) is None or not answered.calls:
            return answered.text if answered else ""
        for asked in answered.calls:
            await session.add({"role": "tool", "tool_call_id": asked.id, "content": "PORT = 7091"})


async def main() -> None:
    """Talk to the simulated provider; without it, `AsyncOpenAI()` talks to OpenAI."""
    with SimulatedProvider() as provider:
        provider.script(call("read", path="config.py"), "The port is 7091.")
        async with AsyncOpenAI(base_url=provider.openai_url, api_key="any") as client:
            session = AsyncSession(Session(model="gpt-5", tools=[READ]))
            print(await answer(session, client, "Which port does the worker use?"))
            print(session)


asyncio.run(main())
