"""Real clients through the proxy and several folds, against the strict simulated provider: Codex, Gemini CLI and aider.

Those that are installed are run, each with about 60 requests in a small window. Nothing leaves the machine. Printed are
requests, folds and refused requests; the exit status is 1 if the provider refused a request of a conversation that the
proxy had folded.

    npm install @openai/codex @google/gemini-cli && pip install aider-chat
    PATH=node_modules/.bin:$PATH python -m bench proxy_clients
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

SECONDS = 280
STEPS = 62
_WHY = "why is that so? " * 30


class ClientRun(NamedTuple):
    """How one client is run: its window, its arguments, what it calls, what is typed, and its files."""

    window: int
    arguments: tuple[str, ...]
    variables: dict[str, str]
    call: Callable[[int], tuple[tuple[str, dict[str, Any]], ...]]
    typed: str = ""
    files: dict[str, str] = {}  # noqa: RUF012 (never changed)


def _count(tool: str, argument: str) -> Callable[[int], tuple[tuple[str, dict[str, Any]], ...]]:
    return lambda step: ((tool, {argument: f"seq {step * 100} {step * 100 + 700}"}),)


_CODEX = ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-c", "model=gpt-5.1", "look")
_AIDER = (
    *("--model", "openai/gpt-5.1", "--no-git", "--yes-always", "--no-show-model-warnings", "--no-check-update"),
    *("--analytics-disable", "--map-tokens", "0", "--max-chat-history-tokens", "1000000", "--no-pretty"),
    "--no-suggest-shell-commands",
)
_GEMINI = json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}})
RUNS = {
    "codex": ClientRun(40_000, _CODEX, {"OPENAI_API_KEY": "none"}, _count("exec_command", "cmd")),
    "gemini": ClientRun(
        40_000,
        ("-y", "--skip-trust", "-m", "gemini-2.5-pro", "-p", "look around"),
        {"GEMINI_API_KEY": "none"},
        _count("run_shell_command", "command"),
        files={".gemini/settings.json": _GEMINI},
    ),
    "aider": ClientRun(
        16_000,
        _AIDER,
        {"OPENAI_API_KEY": "none"},
        lambda _: (),
        typed="\n".join(f"/ask question {number}: {_WHY}" for number in range(60)) + "\n/exit\n",
    ),
}


def run(name: str, place: Path) -> bool:
    """Run a client; whether it ended well and no folded request was refused."""
    import foldline
    from foldline.digest.markup import SESSION
    from foldline.testing.provider import ScriptedReply, SimulatedProvider

    planned, home, project = RUNS[name], place / "home", place / "project"
    for folder in (home, project):
        folder.mkdir(parents=True)
    for path, text in planned.files.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text)
    with SimulatedProvider(takes_foreign=True, needs_tools=False) as provider:
        for step in range(STEPS):
            calls = planned.call(step)
            provider.script(
                ScriptedReply(text=f"Step {step}. " + "It went well. " * (2 if calls else 120), calls=calls)
            )
        provider.script(ScriptedReply(text="Done with it."))
        ours = {key: os.environ.get(key, "") for key in ("PATH", "PYTHONPATH")}
        env = {**ours, "HOME": str(home), "CODEX_HOME": str(home), **planned.variables}
        command = [
            sys.executable,
            "-m",
            "foldline.cli",
            "run",
            "-u",
            provider.url,
            "--ledger",
            str(place / "ledger.db"),
        ]
        command += ["--window", str(planned.window), name, *planned.arguments]
        options: dict[str, Any] = {"cwd": project, "env": env, "input": planned.typed, "timeout": SECONDS}
        done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
        refused = [request for request in provider.refused if SESSION.header in str(request.body)]
        print(f"{name}: exit {done.returncode}, {len(provider.requests)} requests, {len(provider.refused)} refused, "
              f"{len(refused)} of them folded; {done.stderr.strip()[-160:]}")  # fmt: skip
        for one in provider.refused[:3]:
            print(f"  refused: {one.error}")
    with foldline.open(place / "ledger.db") as opened:
        for info in opened.sessions():
            print(f"  session with {info.messages} messages and {info.folds} folds")
    return done.returncode == 0 and not refused


def main(argv: list[str]) -> int:
    options = argparse.ArgumentParser(prog="python -m bench proxy_clients", description=__doc__)
    options.add_argument("clients", nargs="*", help=f"some of {', '.join(RUNS)}; all that are installed by default")
    given = options.parse_args(argv)
    names = given.clients or [name for name in RUNS if shutil.which(name)]
    if not names:
        print("no client was found; see the first lines of this module")
        return 2
    good = True
    for name in names:
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
            good = run(name, Path(place)) and good
    return 0 if good else 1
