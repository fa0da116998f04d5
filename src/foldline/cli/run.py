"""`foldline run`: starts a client together with a private proxy."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import click

from foldline.cli.serve import need_packages
from foldline.cli.shared.ledger_choice import ledger_location, make_default_folder
from foldline.cli.shared.options import raw_policy_options
from foldline.cli.shared.output import plural
from foldline.cli.shared.settings import load_settings
from foldline.errors import ConfigError, InputError

CONTEXT = {"ignore_unknown_options": True, "allow_interspersed_args": False}


@click.command(context_settings=CONTEXT)
@click.option(
    "--upstream", "-u", multiple=True, metavar="[VENDOR=]URL", help="Use this provider, not the client's own provider."
)
@click.option("--mode", type=click.Choice(["fold", "observe", "off"]), default="fold", show_default=True,
              help="fold: record and fold. observe: record only. off: pass everything on.")  # fmt: skip
@click.option("--ledger", metavar="FILE|URL", help="Record in the ledger at this path or postgresql:// address.")
@click.option("--answer-compaction", is_flag=True,
              help="Answer the compaction requests of Claude Code and Codex from the ledger, at no cost.")  # fmt: skip
@click.option("--recall", is_flag=True,
              help="Offer the model a tool that reads folded messages back, and answer its calls.")  # fmt: skip
@click.option("--env", multiple=True, metavar="NAME=VALUE",
              help="Set a variable of the client; {url} stands for the proxy's address. Repeatable.")  # fmt: skip
@click.option("--quiet", "-q", is_flag=True, help="Do not print a summary at the end.")
@raw_policy_options
@click.argument("client")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(client: str, arguments: tuple[str, ...], **given: Any) -> None:
    r"""Run an agent whose conversations stay inside the window.

    Starts a private proxy on a free port of this machine, starts the client with the address of the proxy, and ends
    with the client's exit code. Nothing is written into the client's configuration. Known clients are claude, codex,
    opencode, gemini, aider and llm; for any other client, name its variables with --env. If the proxy dies, another one
    is started on the same port.

    \b
    Example:  foldline run claude
              foldline run --window 100000 claude -p "fix the build"
              foldline run -u https://api.openai.com --env OPENAI_BASE_URL={url}/v1 python agent.py
    """
    need_packages()
    from foldline.proxy.clients import CLIENTS, client_environment, configured_upstreams  # noqa: PLC0415
    from foldline.proxy.service import listen  # noqa: PLC0415  # heavy imports
    from foldline.proxy.supervisor import Supervisor  # noqa: PLC0415

    known = CLIENTS.get(Path(client).name)
    variables = dict(_variable(text) for text in given["env"])
    found = shutil.which(client)
    if found is None:
        raise InputError(f"the command {client!r} was not found", hint="install it, or give its path")
    if known is None and not variables:
        names = ", ".join(CLIENTS)
        raise ConfigError(
            f"foldline does not know how to point {client!r} at a proxy (it knows {names})",
            hint="name the variable: --env OPENAI_BASE_URL={url}/v1",
        )
    upstream = given["upstream"] or configured_upstreams(known, os.environ)
    if not upstream:
        raise ConfigError("no upstream is set", hint="name one: --upstream https://api.openai.com")
    bound = listen("127.0.0.1", 0)
    url = f"http://127.0.0.1:{bound.getsockname()[1]}"
    supervisor = Supervisor(bound, lambda number: _serve_command(number, upstream, given))
    supervisor.start()
    try:
        extra = [text.format(url=url) for text in known.arguments] if known else []
        environment = client_environment(known, variables, url, os.environ)
        code = _wait(subprocess.Popen([found, *extra, *arguments], env=environment))  # noqa: S603 (the user's command)
        receipt = "" if given["quiet"] else _receipt(url)
    finally:
        supervisor.stop()
        bound.close()
    if receipt:
        click.echo(receipt, err=True)
    raise click.exceptions.Exit(code)


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ConfigError(f"{text!r:.80} is not NAME=VALUE", hint="write --env NAME=VALUE")
    return name, value


def _serve_command(number: int, upstream: Any, given: dict[str, Any]) -> list[str]:
    """The command of the private proxy."""
    settings = load_settings(
        policy=given["policy"], model=given["model"], window=given["window"], ledger=given["ledger"]
    )
    location = ledger_location(settings)
    if given["mode"] != "off":
        make_default_folder(location)
    command = [sys.executable, "-m", "foldline.cli", "serve", "--descriptor", str(number), "--single-user"]
    command += ["--mode", given["mode"], "--ledger", location.url]
    for address in upstream:
        command += ["--upstream", address]
    command += ["--answer-compaction"] * given["answer_compaction"] + ["--recall"] * given["recall"]
    for name in ("policy", "model", "window"):
        command += [f"--{name}", str(given[name])] if given[name] is not None else []
    return command


def _wait(client: subprocess.Popen[bytes]) -> int:
    """Wait for the client, and return its exit code.

    Only the client handles Ctrl-C. SIGTERM is passed on to the client.
    """
    before = signal.signal(signal.SIGINT, signal.SIG_IGN), signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, lambda *_: client.terminate())
    try:
        code = client.wait()
    finally:
        signal.signal(signal.SIGINT, before[0])
        signal.signal(signal.SIGTERM, before[1])
    return 128 - code if code < 0 else code


def _receipt(url: str) -> str:
    """One line about what the proxy did; "" if the proxy does not answer."""
    try:
        with urllib.request.urlopen(f"{url}/foldline/api/receipt", timeout=5) as answer:  # noqa: S310 (our own address)
            found = json.load(answer)
    except (OSError, ValueError):
        return ""
    text = f"foldline: {plural(found['requests'], 'request')}, {found['folded']} of them folded"
    if found["prompt_tokens"]:
        text += f", {found['prompt_tokens']:,} prompt tokens instead of about {found['untouched_tokens']:,}"
    if found["usd"]:
        text += f", ${found['usd']:.2f} instead of about ${found['untouched_usd']:.2f}"
    return text + (f", {found['faults']} passed on after a fault" if found["faults"] else "")
