"""`foldline sessions`: list the sessions of a ledger."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from foldline import ledger
from foldline.cli.shared import options
from foldline.cli.shared.ledger_choice import (
    LedgerLocation,
    ledger_options,
    open_ledger,
)
from foldline.cli.shared.output import line_printer, local_time, plural, print_json, printable
from foldline.cli.shared.owner_names import OwnedSession, owned_sessions, owner_label
from foldline.fold import Fold, compactions
from foldline.ledger import Store


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
    with open_ledger(location) as opened:
        every = owned_sessions(opened.store)
        owner = opened.store.owner
        own = [OwnedSession(owner, info) for info in opened.sessions()]
        listed = every if all_owners else own
        rows = [_row(opened.store, one) for one in listed]
    others = [one for one in every if one.owner != owner]
    if as_json:
        print_json({"ledger": str(location), "sessions": rows, "of_other_owners": len(others)})
        return
    _print(rows, with_owner=all_owners)
    echo = line_printer()
    echo(f"\n{location}: {plural(len(listed), 'session')}")
    if others and not all_owners:
        echo(f"{plural(len(others), 'session')} of other owners: foldline sessions --all-owners", style="dim")


def _row(store: Store, owned: OwnedSession) -> dict[str, Any]:
    """A session as JSON.

    `folds` is the number of foldline's own folds. `compactions` are those of the agent, the client or the provider.
    """
    info, folds = owned.info, list[Fold]()
    if info.folds:
        own = ledger.for_owner(store, owned.owner)
        states = [(branch, own.state(branch)) for branch in own.branches(info.name)]
        references = {(one.branch, one.seq): (branch, one) for branch, state in states for one in state.folds}
        folds = [own.fold(*place) for place in references.values()]
    return {
        "owner": owner_label(owned.owner),
        **asdict(info),
        "folds": sum(not fold.compacted_by for fold in folds),
        "compactions": [one._asdict() for one in compactions(folds)],
    }


def _print(rows: list[dict[str, Any]], *, with_owner: bool) -> None:
    echo = line_printer()
    owners = max([len("owner"), *(len(row["owner"]) for row in rows)]) if with_owner else 0
    owner_title = f"{'owner':<{owners}}  " if with_owner else ""
    echo(f"{'last used':<16}  messages  folds  {owner_title}session", style="bold")
    for row in rows:
        figures = f"{local_time(row['last_at'])}  {row['messages']:>8,}  {row['folds']:>5,}"
        owner = f"{row['owner'] or '-':<{owners}}  " if with_owner else ""
        others = ", ".join(printable(name) for name in row["branches"][1:])
        compacted = [f"  {one['messages']:,} compacted by the {one['by']}" for one in row["compactions"]]
        rest = "".join([*compacted, f"  branches: {others}" if others else ""])
        echo(f"{figures}  {owner}{printable(row['name'])}{rest}", soft_wrap=True)
