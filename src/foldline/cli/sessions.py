"""`foldline sessions`: what a ledger holds."""

from __future__ import annotations

from dataclasses import asdict

import click

from foldline.cli.shared import options
from foldline.cli.shared.ledger_choice import Place, at_ledger, opened
from foldline.cli.shared.output import console, counted, print_json, safe, when


@click.command()
@at_ledger
@options.output("One JSON object with every session.")
def sessions(place: Place, as_json: bool) -> None:
    r"""List the sessions of a ledger, the one used last first.

    \b
    Example:  foldline sessions
              foldline sessions --ledger agent.db --json
    """
    with opened(place) as found:
        infos = found.sessions()
    if as_json:
        print_json({"ledger": str(place), "sessions": [asdict(info) for info in infos]})
        return
    out = console()
    width = max([len("session"), *(len(safe(info.name)) for info in infos)])
    out.print(f"{'session':<{width}}  messages  folds  last used", style="bold", soft_wrap=True)
    for info in infos:
        others = ", ".join(safe(name) for name in info.branches[1:])
        figures = f"{info.messages:>8,}  {info.folds:>5,}  {when(info.last_at)}"
        out.print(f"{safe(info.name):<{width}}  {figures}{f'  branches: {others}' if others else ''}", soft_wrap=True)
    out.print(f"\n{place}: {counted(len(infos), 'session')}", soft_wrap=True)
