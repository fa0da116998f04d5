"""`foldline verify`: check that nothing in a ledger was changed or damaged since it was written."""

from __future__ import annotations

from dataclasses import asdict

import click

from foldline.cli.shared import options
from foldline.cli.shared.ledger_choice import (
    LedgerLocation,
    all_owners_option,
    ledger_options,
    open_stores,
)
from foldline.cli.shared.output import line_printer, plural, print_json, printable, spinner
from foldline.cli.shared.owner_names import owned_sessions, owner_prefix


@click.command()
@all_owners_option
@ledger_options
@options.output_options("Print one JSON object with every fault.")
def verify(all_owners: bool, location: LedgerLocation, as_json: bool) -> None:
    r"""Recompute every key of a ledger from its content, and report what has changed.

    The exit code is 0 when there are no faults, and 1 when there are faults. The ledger is not changed.

    \b
    Example:  foldline verify
              foldline verify --ledger agent.db --json
    """
    with open_stores(location, all_owners=all_owners) as stores, spinner("reading every message"):
        faults = [(store.owner, fault) for store in stores for fault in store.verify()]
        checked = {store.owner for store in stores}
        owned = [one for store in stores[:1] for one in owned_sessions(store)]
        count = len(owned) if all_owners else len(stores[0].sessions())
        others = sum(one.owner not in checked for one in owned)
    if as_json:
        rows = [{"owner": owner, **asdict(fault)} for owner, fault in faults]
        print_json(
            {
                "ledger": str(location),
                "sound": not faults,
                "sessions": count,
                "of_other_owners": others,
                "faults": rows,
            }
        )
    else:
        echo = line_printer()
        for owner, fault in faults:
            echo(owner_prefix(owner) + printable(str(fault)), style="red")
        what = f"{location}: {plural(count, 'session')}"
        end = f"{plural(len(faults), 'fault')}: restore a copy; intact sessions can still be exported"
        echo(f"{what}, {end}" if faults else f"{what}, no faults")
        if others:
            echo(f"{plural(others, 'session')} of other owners not checked: foldline verify --all-owners", style="dim")
    if faults:
        raise click.exceptions.Exit(1)
