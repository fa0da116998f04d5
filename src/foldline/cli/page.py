"""`foldline page`: show a ledger and the session files of agents in a browser."""

from __future__ import annotations

import os
import threading
import webbrowser
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from foldline import ledger
from foldline.cli.serve import TOKEN_VARIABLE
from foldline.cli.shared import options
from foldline.cli.shared.ledger_choice import LedgerLocation, ledger_options, open_ledger
from foldline.cli.shared.output import print_json
from foldline.cli.shared.stop_signals import exit_at_stop_signal
from foldline.cli.shared.usage_rows import DEFAULT_FOLDERS
from foldline.errors import ConfigError, extra_hint
from foldline.ledger import Store
from foldline.recall.text_index import TextIndex

PORT = 8461
"""The default port: the default port of the proxy plus 1."""
_LOCAL = ("127.0.0.1", "localhost", "::1")
EXITS = {
    0: "stopped by SIGTERM or Ctrl-C",
    2: "the page cannot be served with these options, or there is no ledger",
    4: "the ledger cannot be opened",
}


@click.command(epilog="Exit codes: " + "; ".join(f"{code} {why}" for code, why in EXITS.items()) + ".")
@ledger_options
@click.option("--host", default="127.0.0.1", show_default=True, metavar="HOST", help="Listen on this address.")
@click.option("--port", type=options.WholeNumber(0, 65535), default=PORT, show_default=True,
              help="Listen on this port; 0: any free port.")  # fmt: skip
@click.option("--token", metavar="TOKEN", help=f"Demand this token (better: set {TOKEN_VARIABLE}).")
@click.option("--all-owners", is_flag=True, help="Show the sessions of every owner of a shared ledger.")
@click.option("--logs", multiple=True, type=click.Path(), metavar="FOLDER",
              help="Show the session files in this folder, not those in the agents' folders. Repeatable.")  # fmt: skip
@click.option("--no-logs", is_flag=True, help="Show only the ledger.")
@click.option("--read-only", is_flag=True, help="Refuse every change.")
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
@options.output_options("Print one JSON object with the address.")
def page(location: LedgerLocation, as_json: bool, **flags: Any) -> None:
    r"""Show sessions in a browser: what fills the window, what was folded, what requests cost. Pin, fold and unfold.

    The page shows the sessions of the ledger. It also shows the session files of Claude Code, Codex and pi, but does
    not change them. The page needs no network and sends nothing.

    \b
    Example:  foldline page
              foldline page --ledger agent.db --port 8461 --no-browser
    """
    _need_packages()
    token = flags["token"] or os.environ.get(TOKEN_VARIABLE, "")
    if flags["host"] not in _LOCAL and not token:
        hint = f"set {TOKEN_VARIABLE}, or listen on 127.0.0.1"
        raise ConfigError(f"listening on {flags['host']} needs a token", hint=hint)
    folders = () if flags["no_logs"] else flags["logs"] or _agent_folders()
    with exit_at_stop_signal(), ExitStack() as opened:
        store = _store(location, opened, is_optional=bool(folders))
        _serve(store, location, tuple(folders), **{**flags, "token": token, "as_json": as_json})


def _agent_folders() -> tuple[str, ...]:
    return tuple(str(Path.home() / name) for name in DEFAULT_FOLDERS if (Path.home() / name).is_dir())


def _store(location: LedgerLocation, opened: ExitStack, *, is_optional: bool) -> Store:
    """The store of the ledger. If `is_optional` is True, an empty store in memory replaces a missing default ledger."""
    if is_optional and location.missing and location.source == "default":
        store = ledger.open(":memory:", index=TextIndex())
        opened.callback(store.close)
        return store
    return opened.enter_context(open_ledger(location)).store


def _serve(store: Store, location: LedgerLocation, folders: tuple[str, ...], token: str, **flags: Any) -> None:
    """Run the server until Ctrl-C or SIGTERM."""
    import uvicorn  # noqa: PLC0415  # an extra

    from foldline.page.app import page_app  # noqa: PLC0415  # an extra
    from foldline.proxy.service import listen  # noqa: PLC0415

    bound = listen(flags["host"], flags["port"])
    host, port = bound.getsockname()[:2]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
    app = page_app(
        store,
        token=token,
        all_owners=flags["all_owners"],
        logs=folders,
        label=str(location),
        read_only=flags["read_only"],
    )
    if flags["as_json"]:
        print_json({"address": address, "ledger": str(location), "logs": list(folders)})
    else:
        click.echo(f"foldline shows {location} at {address} (Ctrl-C ends it)", err=True)
    if not flags["no_browser"]:
        threading.Timer(0.5, webbrowser.open, [f"{address}#token={token}" if token else address]).start()
    config = uvicorn.Config(app, log_config=None, log_level="warning", access_log=False, server_header=False, ws="none")
    try:
        uvicorn.Server(config).run(sockets=[bound])
    finally:
        bound.close()


def _need_packages() -> None:
    from importlib.util import find_spec  # noqa: PLC0415

    missing = [name for name in ("uvicorn", "starlette") if find_spec(name) is None]
    if missing:
        raise ConfigError(f"the page needs {' and '.join(missing)}", hint=extra_hint("proxy"))
