"""Runs the compaction of real clients, which the proxy answers from the ledger.

Claude Code gets a prompt and then `/compact`, many times in one session. Codex runs with a low limit for its own
compaction. The proxy answers with `--answer-compaction`, and nothing leaves the machine. The number of runs, answered
compactions and failures is printed, and the time that an answer took in the proxy. The exit status is 1 if a compaction
failed or took longer than 300 ms.

    npm install @anthropic-ai/claude-code @openai/codex
    PATH=node_modules/.bin:$PATH python -m bench proxy_compact --runs 100
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

GOAL_S = 0.3
SECONDS = 240


@contextmanager
def serving(upstream: str, place: Path, *, window: int) -> Iterator[tuple[str, int, list[dict[str, Any]]]]:
    """Run a proxy that answers compactions. Yields its address, its process id, and a list that gets its log lines at
    the end.
    """
    command = [sys.executable, "-m", "foldline.cli", "serve", "--json", "--port", "0", "-u", upstream]
    command += ["--ledger", str(place / "ledger.db"), "--answer-compaction", "--log-format", "json"]
    command += ["--window", str(window), "--single-user"]
    lines: list[dict[str, Any]] = []
    with (place / "log.jsonl").open("w") as log:
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert running.stdout is not None
        try:
            yield json.loads(running.stdout.readline())["address"], running.pid, lines
        finally:
            running.send_signal(signal.SIGTERM)
            running.wait(60)
    found = (place / "log.jsonl").read_text().splitlines()
    lines += [json.loads(line) for line in found if line.startswith("{")]


def cpu_seconds(pid: int) -> float:
    """The processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def environment(place: Path, **given: str) -> dict[str, str]:
    home = place / "home"
    home.mkdir(exist_ok=True)
    return {"PATH": os.environ["PATH"], "HOME": str(home), "CODEX_HOME": str(home), **given}


def claude(runs: int, place: Path) -> tuple[int, list[float]]:
    """The number of runs that failed, and the seconds of each answer in the proxy.

    The processor time of the proxy during each `/compact` is printed, because the machine may be busy. So is the time
    of the whole command, most of which the client needs to start.
    """
    from foldline.testing.provider import ScriptedReply, SimulatedProvider

    failed, thought, used, took = 0, "Let me see.", list[float](), list[float]()
    with (
        SimulatedProvider(takes_foreign=True) as provider,
        serving(provider.url, place, window=150_000) as (url, pid, log),
    ):
        env = environment(place, ANTHROPIC_BASE_URL=url, ANTHROPIC_API_KEY="none")
        env["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] = "1"
        base = [
            "claude",
            "--allowedTools",
            "Bash",
            "--model",
            "claude-sonnet-4-5",
            "--output-format",
            "stream-json",
            "--verbose",
            "-p",
        ]
        for number in range(runs):
            words = f"question {number}: " + "why is that so? " * 40
            for step in range(3):
                call = ("Bash", {"command": f"seq {step} {step + 90}", "description": "count"})
                provider.script(ScriptedReply(thinking=thought, text=f"Step {step}.", calls=(call,)))
            provider.script(ScriptedReply(thinking=thought, text="Done with it."))
            for prompt in (words, "/compact"):
                command = [*base, prompt, *(["-c"] if number or prompt != words else [])]
                before, start = cpu_seconds(pid), time.perf_counter()
                done = subprocess.run(
                    command, cwd=place, env=env, capture_output=True, text=True, timeout=SECONDS, check=False
                )
            used.append(cpu_seconds(pid) - before)
            took.append(time.perf_counter() - start)
            failed += done.returncode != 0 or "compact_boundary" not in done.stdout
            print(f"claude {number + 1}: {failed} failed", file=sys.stderr, flush=True)
        failed += len(provider.refused)
        for one in provider.refused[:2]:
            print(f"  refused: {one.error}")
    for what, values in (("processor time of the proxy during /compact", used), ("the command /compact", took)):
        middle, most = sorted(values)[len(values) // 2] * 1e3, max(values) * 1e3
        print(f"claude: {what}: {middle:.0f} ms (p50), at most {most:.0f} ms")
    return failed, [line["seconds"] for line in log if line.get("answered") == "compaction"]


def codex(runs: int, place: Path) -> tuple[int, list[float]]:
    """The number of runs that failed, and the seconds of each answer."""
    from foldline.testing.provider import ScriptedReply, SimulatedProvider

    failed, steps = 0, 24
    with (
        SimulatedProvider(takes_foreign=True, needs_tools=False) as provider,
        serving(provider.url, place, window=150_000) as (url, _, log),
    ):
        table = f'{{name="x",base_url="{url}/v1",env_key="OPENAI_API_KEY",wire_api="responses"}}'
        command = ["codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
        command += ["-c", "model=gpt-5.1", "-c", "model_provider=x", "-c", f"model_providers.x={table}"]
        command += ["-c", "model_auto_compact_token_limit=14000", "look around"]
        for number in range(runs):
            for step in range(steps):
                call = ("exec_command", {"cmd": f"seq {step * 100} {step * 100 + 900}"})
                provider.script(ScriptedReply(text=f"Step {step}.", calls=(call,)))
            provider.script(ScriptedReply(text="Done with it."))
            env = environment(place, OPENAI_API_KEY="none")
            done = subprocess.run(
                command, cwd=place, env=env, capture_output=True, text=True, timeout=SECONDS, check=False,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
            failed += done.returncode != 0 or "Done with it." not in done.stdout
            print(f"codex {number + 1}: {failed} failed", file=sys.stderr, flush=True)
        failed += len(provider.refused)
        for one in provider.refused[:2]:
            print(f"  refused: {one.error}")
    return failed, [line["seconds"] for line in log if line.get("answered") == "compaction"]


def main(argv: list[str]) -> int:
    options = argparse.ArgumentParser(prog="python -m bench proxy_compact", description=__doc__)
    options.add_argument("clients", nargs="*", default=["claude", "codex"])
    options.add_argument("--runs", type=int, default=20)
    given = options.parse_args(argv)
    good = True
    for name in given.clients:
        if shutil.which(name) is None:
            print(f"{name} was not found; see the first lines of this module")
            continue
        with tempfile.TemporaryDirectory() as place:
            failed, seconds = (claude if name == "claude" else codex)(given.runs, Path(place))
        slowest = max(seconds, default=0.0)
        ordered = sorted(seconds)
        middle = ordered[len(ordered) // 2] if ordered else 0.0
        print(f"{name}: {given.runs} runs, {len(seconds)} compactions answered, {failed} failures; "
              f"answered in {middle * 1e3:.0f} ms (p50), at most {slowest * 1e3:.0f} ms")  # fmt: skip
        good = good and not failed and bool(seconds) and slowest <= GOAL_S
    return 0 if good else 1
