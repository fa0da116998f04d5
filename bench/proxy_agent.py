"""Runs the real Claude Code through the proxy, with several folds, against the strict simulated provider.

One session has three prompts, each with many shell calls, and a small window. Nothing leaves the machine. The number of
requests, folds and refused requests is printed. The exit status is 1 if the provider refused a request.

    npm install @anthropic-ai/claude-code && python -m bench proxy_agent --claude node_modules/.bin/claude
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROMPTS = ("look around carefully", "and again", "once more")
SECONDS = 170


def run(claude: str, place: Path, *, window: int, calls: int) -> int:
    from foldline.testing.provider import ScriptedReply, SimulatedProvider

    (place / "home").mkdir()
    (place / "project").mkdir()
    refused = requests = 0
    for number, prompt in enumerate(PROMPTS):
        with SimulatedProvider(takes_foreign=True) as provider:
            for step in range(calls):
                command = {"command": f"seq {step * 1000} {step * 1000 + 900}", "description": "count"}
                provider.script(ScriptedReply(thinking="Let me see.", text="Step.", calls=(("Bash", command),)))
            provider.script(ScriptedReply(thinking="So.", text="Done with it."))
            env = {
                "PATH": os.environ["PATH"],
                "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
                "HOME": str(place / "home"),
                "ANTHROPIC_API_KEY": "none",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            }
            command_line = [sys.executable, "-m", "foldline.cli", "run", "-u", provider.url]
            command_line += ["--ledger", str(place / "ledger.db"), "--window", str(window)]
            command_line += [claude, "-p", prompt, "--allowedTools", "Bash", "--model", "claude-sonnet-4-5"]
            command_line += ["-c"] if number else []
            done = subprocess.run(
                command_line,
                cwd=place / "project",
                env=env,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
            requests += len(provider.requests)
            refused += len(provider.refused)
            print(f"exit {done.returncode}: {done.stdout.strip()[-60:]!r}; {done.stderr.strip()[-160:]}")
            for one in provider.refused:
                print(f"refused: {one.error}")
    print(f"{requests} requests, {refused} refused")
    return 1 if refused else 0


def main(argv: list[str]) -> int:
    options = argparse.ArgumentParser(prog="python -m bench proxy_agent", description=__doc__)
    options.add_argument("--claude", default=os.environ.get("FOLDLINE_CLAUDE", "claude"), help="the agent's command")
    options.add_argument("--window", type=int, default=64_000)
    options.add_argument("--calls", type=int, default=25)
    given = options.parse_args(argv)
    claude = shutil.which(given.claude)
    if claude is None:
        print("claude was not found: npm install @anthropic-ai/claude-code, then --claude node_modules/.bin/claude")
        return 2
    with tempfile.TemporaryDirectory() as place:
        return run(os.path.abspath(claude), Path(place), window=given.window, calls=given.calls)
