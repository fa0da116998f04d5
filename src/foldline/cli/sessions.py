"""`foldline sessions`: list the sessions of a ledger."""

from __future__ import annotations

from dataclasses import asdict

import click

from foldline.cli.shared import options
from foldline.cli.shared.ledger_choice import (
    LedgerLocation,
    find_owner,
    ledger_options,
    open_ledger,
)
from foldline.cli.shared.output import line_printer, local_time, plural, print_json, printable
from foldline.cli.shared.owner_names import OwnedSession, owned_sessions, owner_label


@click.command()
@click.option(
    "--all-owners", is_flag=True, help="List the sessions of every owner, also those recorded by foldline serve."
)
@ledger_options
@options.output_options("Print one JSON object with every session.")
def sessions(location: LedgerLocation, all_owners: bool, as_json: bool) -> None:
    r"""List the sessions of a ledger, the last used first.

    foldline serve records each conversation under an owner that stands for the client's API key.

    \b
    Example:  foldline sessions
              foldline sessions --ledger agent.db --json
              foldline sessions --all-owners
    """
    location = location if all_owners else find_owner(location, None, all_owners=False)
    with open_ledger(location) as ledger:
        every = owned_sessions(ledger.store)
        own = [OwnedSession(location.owner, info) for info in ledger.sessions()]
    listed = every if all_owners else own
    others = [one for one in every if one.owner != location.owner]
    if as_json:
        rows = [{"owner": owner_label(one.owner), **asdict(one.info)} for one in listed]
        print_json({"ledger": str(location), "sessions": rows, "of_other_owners": len(others)})
        return
    _print(listed, with_owner=all_owners)
    echo = line_printer()
    echo(f"\n{location}: {plural(len(listed), 'session')}")
    if others and not all_owners:
        echo(f"{plural(len(others), 'session')} of other owners: foldline sessions --all-owners", style="dim")


def _print(listed: list[OwnedSession], *, with_owner: bool) -> None:
    echo = line_printer()
    owners = max([len("owner"), *(len(owner_label(one.owner)) for one in listed)]) if with_owner else 0
    owner_title = f"{'owner':<{owners}}  " if with_owner else ""
    echo(f"{'last used':<16}  messages  folds  {owner_title}session", style="bold")
    for one in listed:
        info = one.info
        others = ", ".join(printable(name) for name in info.branches[1:])
        figures = f"{local_time(info.last_at)}  {info.messages:>8,}  {info.folds:>5,}"
        owner = f"{owner_label(one.owner) or '-':<{owners}}  " if with_owner else ""
        echo(f"{figures}  {owner}{printable(info.name)}{f'  branches: {others}' if others else ''}", soft_wrap=True)
