"""Hermes Agent in the smallest window that it accepts: with its own compressor, and with foldline. It needs no key."""

import json
import logging
import os
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

HOME = Path(tempfile.mkdtemp())
os.environ |= {"HERMES_HOME": str(HOME), "HERMES_QUIET": "1"}
CONFIG = "plugins: {enabled: [foldline]}\nmodel: {context_length: 64000}\ncontext: {engine: "
(HOME / "config.yaml").write_text(CONFIG + "foldline}\n")  # Hermes reads it when it is imported
logging.disable()

from run_agent import AIAgent  # noqa: E402

import foldline  # noqa: E402
from foldline.integrations.hermes import LEDGER_FILE  # noqa: E402
from foldline.testing import SimulatedProvider  # noqa: E402
from foldline.testing.provider import call  # noqa: E402

MODEL, HELPER, WINDOW, TURNS = "gpt-5.6", "gpt-5.6-mini", 64_000, 12


def work(engine: str, provider: SimulatedProvider) -> str:
    """Let Hermes read files. Returns how many turns it could answer, and the number of compressions."""
    helper = f"provider: custom, model: {HELPER}, api_key: x, base_url: '{provider.openai_url}'"
    (HOME / "config.yaml").write_text(f"{CONFIG}{engine}}}\nauxiliary: {{compression: {{{helper}}}}}\n")
    agent = AIAgent(
        base_url=provider.openai_url,
        api_key="x",
        provider="custom",
        api_mode="chat_completions",
        model=MODEL,
        max_tokens=2_000,
        quiet_mode=True,
        enabled_toolsets=["file", "context_engine"],
        skip_context_files=True,
        skip_memory=True,
        session_id=engine,
    )
    history, answers = [], 0
    for turn in range(TURNS):
        path = HOME / f"part_{turn}.txt"
        path.write_text(f"The port of part {turn} is {7000 + turn}.\n" * 900)
        provider.script(call("read_file", path=str(path), limit=900), f"Part {turn} is fine.", model=MODEL)
        result = agent.run_conversation(f"Check part {turn}.", conversation_history=history)
        history = result["messages"]
        answers += result["final_response"] == f"Part {turn} is fine."
    if engine == "foldline":
        provider.script(call("recall", query="port of part 1"), "It is 7001.", model=MODEL)
        agent.run_conversation("Which port has part 1?", conversation_history=history)
    return f"{answers} turns answered, {agent.context_compressor.compression_count} compressions"


for label, engine in (("without foldline", "compressor"), ("with foldline", "foldline")):
    with SimulatedProvider(models={MODEL: WINDOW, HELPER: WINDOW}) as provider:
        with redirect_stdout(StringIO()):
            report = work(engine, provider)
        summaries = sum("tools" not in request.body for request in provider.requests)
        print(f"{label}: {report}, {summaries} requests for summaries, {len(provider.refused)} refused")
answer = next(each for each in reversed(provider.requests[-1].body["messages"]) if each["role"] == "tool")
print("recall finds the port:", "7001" in json.dumps(answer))
with foldline.open(HOME / LEDGER_FILE) as ledger:
    print("messages in the ledger:", sum(each.messages for each in ledger.sessions()))
