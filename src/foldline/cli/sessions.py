"""`foldline sessions`: list the sessions of a ledger."""

from __future__ import annotations

from dataclasses import asdict

import click

from foldline.cli.shared import options
from foldline.cli.shared.ledger_choice import LedgerLocation, ledger_options, open_ledger
from foldline.cli.shared.output import line_printer, local_time, plural, print_json, printable


@click.command()
@ledger_options
@options.output_options("Print one JSON object with every session.")
def sessions(location: LedgerLocation, as_json: bool) -> None:
    r"""List the sessions of a ledger, the last used first.

    \b
    Example:  foldline sessions
              foldline sessions --ledger agent.db --json
    """
    with open_ledger(location) as ledger:
        infos = ledger.sessions()
    if as_json:
        print_json({"ledger": str(location), "sessions": [asdict(info) for info in infos]})
        return
    echo = line_printer()
    width = max([len("session"), *(len(printable(info.name)) for info in infos)])
    echo(f"{'session':<{width}}  messages  folds  last used", style="bold")
    for info in infos:
        others = ", ".join(printable(name) for name in info.branches[1:])
        figures = f"{info.messages:>8,}  {info.folds:>5,}  {local_time(info.last_at)}"
        branches = f"  branches: {others}" if others else ""
        echo(f"{printable(info.name):<{width}}  {figures}{branches}")
    echo(f"\n{location}: {plural(len(infos), 'session')}")
