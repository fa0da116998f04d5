"""Runs real clients through the proxy, with several folds, against the strict simulated provider.

The clients are Codex, opencode, Gemini CLI, aider, and the SDKs of Anthropic and OpenAI for Node. Each client that is
installed sends about 60 requests in a small window, through the proxy and without it. Nothing leaves the machine. The
number of requests, folds and refused requests is printed, and the number of printed lines that differ because of the
proxy. The exit status is 1 if a line differs, if the provider refused a request that the proxy had folded, or if it
refused more requests than without the proxy. Gemini CLI itself sends some invalid requests, which Google refuses too:
its loop detection sends the newest part of the history, which begins with a call and ends with an unanswered call.

    npm install @openai/codex opencode-ai @google/gemini-cli openai @anthropic-ai/sdk && pip install aider-chat
    NODE_MODULES=$PWD/node_modules PATH=node_modules/.bin:$PATH python -m bench proxy_clients
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path
from typing import Any, NamedTuple

SECONDS = 600
STEPS = 62
_WHY = "why is that so? " * 30
_VARYING = re.compile(
    r"\x1b\[[0-9;?]*[A-Za-z]|[0-9a-f]{8}-[0-9a-f-]{27}|\d{4}-\d\d-\d\dT[\d:.Z-]+|\b\d{1,3}(?:,\d{3})+\b"
)
"""What differs between any two runs of a client: colors, ids, times, and sums of tokens."""
_OF_A_RUN = ("foldline:", "[STARTUP]")
"""Lines of `foldline run`, and lines about the time that a start took."""


class ClientRun(NamedTuple):
    """How to run one client: its window, its arguments, its tool calls, its prompts and its files."""

    window: int
    arguments: tuple[str, ...]
    variables: dict[str, str]
    call: Callable[[int], tuple[tuple[str, dict[str, Any]], ...]]
    typed: str = ""
    files: dict[str, str] = {}  # noqa: RUF012 (never changed)
    command: str = ""
    """The command, if it is not the name of the run."""
    options: tuple[str, ...] = ()
    """Further options of `foldline run`."""


def _count(tool: str, argument: str) -> Callable[[int], tuple[tuple[str, dict[str, Any]], ...]]:
    return lambda step: ((tool, {argument: f"seq {step * 100} {step * 100 + 700}"}),)


_CODEX = ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-c", "model=gpt-5.1", "look")
_AIDER = (
    *("--model", "openai/gpt-5.1", "--no-git", "--yes-always", "--no-show-model-warnings", "--no-check-update"),
    *("--analytics-disable", "--map-tokens", "0", "--max-chat-history-tokens", "1000000", "--no-pretty"),
    *("--no-suggest-shell-commands", "--input-history-file", os.devnull, "--chat-history-file", os.devnull),
)


def _node(file: str, *options: str) -> ClientRun:
    """A script that uses an SDK for Node, whose packages are in the folder NODE_MODULES."""
    variables = {
        "NODE_MODULES": os.environ.get("NODE_MODULES", ""),
        "OPENAI_API_KEY": "none",
        "ANTHROPIC_API_KEY": "none",
    }
    script = str(Path(__file__).parent / "node" / file)
    return ClientRun(40_000, (script,), variables, _count("count", "command"), command="node", options=options)


_OPENCODE = {"permission": "allow", "autoupdate": False, "share": "disabled"}
_GEMINI = json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}})
RUNS = {
    "codex": ClientRun(40_000, _CODEX, {"OPENAI_API_KEY": "none"}, _count("exec_command", "cmd")),
    "opencode": ClientRun(
        40_000,
        ("run", "-m", "anthropic/claude-sonnet-4-5", "look around"),
        {"ANTHROPIC_API_KEY": "none", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"},
        lambda step: (("bash", {"command": f"seq {step * 100} {step * 100 + 700}", "description": "count"}),),
        files={".config/opencode/opencode.json": json.dumps(_OPENCODE)},
    ),
    "node-anthropic": _node("anthropic.mjs", "--env", "ANTHROPIC_BASE_URL={url}"),
    "node-chat": _node("openai_chat.mjs", "--env", "OPENAI_BASE_URL={url}/v1"),
    "node-responses": _node("openai_responses.mjs", "--env", "OPENAI_BASE_URL={url}/v1"),
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


def play(name: str, place: Path, *, directly: bool = False) -> tuple[subprocess.CompletedProcess[str], list[Any]]:
    """Run a client, through the proxy or directly. Returns how it ended, and the requests that the provider
    received.
    """
    from foldline.proxy.clients import CLIENTS, client_environment
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
        command = [planned.command or name]
        if directly:
            known, given = CLIENTS.get(name), dict(zip(planned.options[::2], planned.options[1::2], strict=True))
            variables = dict(text.split("=", 1) for option, text in given.items() if option == "--env")
            env = client_environment(known, variables, provider.url, env)
            command += [text.format(url=provider.url) for text in known.arguments] if known else []
        else:
            proxy = [sys.executable, "-m", "foldline.cli", "run", "-u", provider.url]
            proxy += ["--ledger", str(place / "ledger.db"), "--window", str(planned.window)]
            command = [*proxy, *planned.options, *command]
        command += planned.arguments
        options: dict[str, Any] = {"cwd": project, "env": env, "input": planned.typed, "timeout": SECONDS}
        done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
        return done, list(provider.requests)


def shown(done: subprocess.CompletedProcess[str], place: Path) -> list[str]:
    """The lines that a client printed, without what differs between any two runs."""
    lines = (done.stdout + done.stderr).replace(str(place), "").splitlines()
    return [_VARYING.sub("", line).rstrip() for line in lines if not line.startswith(_OF_A_RUN)]


def run(name: str, place: Path, dump: str = "") -> bool:
    """Run a client through the proxy and without it. Returns True if it ended normally, printed the same lines, and no
    request was refused because of the proxy.

    Errors that also occur without the proxy are the client's own.
    """
    import foldline
    from foldline.digest.markup import SESSION

    done, requests = play(name, place / "proxy")
    alone, plain = play(name, place / "plain", directly=True)
    refused = [request for request in requests if request.error]
    folded = [request for request in refused if SESSION.header in str(request.body)]
    own = Counter(str(request.error) for request in plain if request.error)
    caused = Counter(str(request.error) for request in refused) - own
    lines = unified_diff(shown(alone, place / "plain"), shown(done, place / "proxy"), n=0, lineterm="")
    differing = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
    print(f"{name}: exit {done.returncode}, {len(requests)} requests, {len(refused)} refused, {len(folded)} of them "
          f"folded, {own.total()} refused without the proxy, {len(differing)} visible differences; "
          f"{done.stderr.strip()[-160:]}")  # fmt: skip
    for line in differing[:5]:
        print(f"  differs: {line[:160]}")
    for one in refused[:3]:
        print(f"  refused: {one.error}")
        if dump:
            Path(dump, f"{name}-{requests.index(one)}.json").write_text(json.dumps(one.body, indent=1))
    with foldline.open(place / "proxy" / "ledger.db") as opened:
        for info in opened.sessions():
            print(f"  session with {info.messages} messages and {info.folds} folds")
    return done.returncode == 0 and not folded and not caused and not differing


def main(argv: list[str]) -> int:
    options = argparse.ArgumentParser(prog="python -m bench proxy_clients", description=__doc__)
    options.add_argument(
        "clients", nargs="*", help=f"clients to run, of {', '.join(RUNS)}; default: all that are installed"
    )
    options.add_argument("--dump", default="", help="a folder for the bodies of refused requests")
    given = options.parse_args(argv)
    names = given.clients or [name for name, one in RUNS.items() if shutil.which(one.command or name)]
    if not names:
        print("no client was found; see the first lines of this module")
        return 2
    good = True
    for name in names:
        with tempfile.TemporaryDirectory(dir=Path.cwd(), ignore_cleanup_errors=True) as place:
            try:
                good = run(name, Path(place), given.dump) and good
            except subprocess.TimeoutExpired:
                good = False
                print(f"{name}: did not end within {SECONDS} seconds")
    return 0 if good else 1
