"""pi, the coding agent, in a window of 16,000 tokens: with its own compaction, and with foldline's extension.

FOLDLINE_PI is the command of pi (default: pi).
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import foldline
from foldline.testing import SimulatedProvider
from foldline.testing.provider import SimulatedModel, call

EXTENSION = Path(__file__).resolve().parent.parent / "plugins" / "pi" / "foldline.ts"
MODEL, TURNS, WINDOW = "gpt-5.6", 10, 16_000
SETTINGS = {"compaction": {"reserveTokens": 4_000, "keepRecentTokens": 4_000}}


def work(home: Path, provider: SimulatedProvider, options: list[str]) -> int:
    """Let pi read files. Returns the number of compactions."""
    models = [{"id": MODEL, "contextWindow": WINDOW, "maxTokens": 1_000}]
    simulated = {"baseUrl": provider.openai_url, "api": "openai-completions", "apiKey": "x", "models": models}
    (home / "models.json").write_text(json.dumps({"providers": {"simulated": simulated}}))
    (home / "settings.json").write_text(json.dumps(SETTINGS))
    command = [os.environ.get("FOLDLINE_PI", "pi"), "--mode", "rpc", "--provider", "simulated", "--model", MODEL]
    environment = {**os.environ, "PI_CODING_AGENT_DIR": str(home), "PI_OFFLINE": "1", "XDG_DATA_HOME": str(home)}
    with subprocess.Popen(
        [*command, "--no-extensions", *options],
        cwd=home,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as pi:

        def send(kind: str, end: str, **fields: str) -> dict:
            """Send a command and return the event that ends it."""
            print(json.dumps({"type": kind, **fields}), file=pi.stdin, flush=True)
            return next(event for line in pi.stdout if (event := json.loads(line))["type"] == end)

        compactions = 0
        for turn in range(TURNS):
            (home / f"part_{turn}.txt").write_text(f"The port of part {turn} is {7000 + turn}. " * 150)
            provider.script(call("read", path=f"part_{turn}.txt"), f"Part {turn} is fine.")
            send("prompt", "agent_end", message=f"Check part {turn}.")
            if turn % 3 == 2:
                compactions += send("compact", "response")["success"]
        if options:
            provider.script(call("recall", query="port of part 1"), "It is 7001.")
            send("prompt", "agent_end", message="Which port has part 1?")
        pi.stdin.close()
    return compactions


for label, options in (("without foldline", []), ("with foldline", ["--extension", str(EXTENSION)])):
    with (
        tempfile.TemporaryDirectory() as folder,
        SimulatedProvider(models={MODEL: SimulatedModel(window=WINDOW)}) as provider,
    ):
        compactions = work(Path(folder), provider, options)
        summaries = sum("tools" not in request.body for request in provider.requests)
        refused = len(provider.refused)
        print(
            f"{label}: {TURNS} turns, {compactions} compactions, {summaries} requests for summaries, {refused} refused"
        )
        if options:
            answer = next(each for each in reversed(provider.requests[-1].body["messages"]) if each["role"] == "tool")
            print("recall finds the port:", "7001" in str(answer))
            with foldline.open(Path(folder) / "foldline" / "ledger.db") as ledger:
                print("messages in the ledger:", sum(each.messages for each in ledger.sessions()))
