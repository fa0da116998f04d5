"""`foldline verify`: check that a ledger is as it was written."""

from __future__ import annotations

from dataclasses import asdict

import click

from foldline.cli.shared import options
from foldline.cli.shared.ledger_choice import Place, all_owners_option, at_ledger, opened, owner_prefix, stores_of
from foldline.cli.shared.output import busy, console, counted, print_json, safe


@click.command()
@all_owners_option
@at_ledger
@options.output("One JSON object with every fault.")
def verify(all_owners: bool, place: Place, as_json: bool) -> None:
    r"""Derive every key of a ledger anew from what it names, and say what is not as it was once written.

    The exit code is 0 when all is sound, 1 when something is not. Nothing is changed.

    \b
    Example:  foldline verify
              foldline verify --ledger agent.db --json
    """
    with opened(place) as found, busy("reading every message"):
        stores = stores_of(found, all_owners=all_owners)
        faults = [(store.owner, fault) for store in stores for fault in store.verify()]
        count = sum(len(store.sessions()) for store in stores)
    if as_json:
        rows = [{"owner": owner, **asdict(fault)} for owner, fault in faults]
        print_json({"ledger": str(place), "sound": not faults, "sessions": count, "faults": rows})
    else:
        out = console()
        for owner, fault in faults:
            out.print(owner_prefix(owner) + safe(str(fault)), style="red", soft_wrap=True)
        what = f"{place}: {counted(count, 'session')}"
        end = f"{counted(len(faults), 'fault')}: restore a copy; what is sound can still be exported"
        out.print(f"{what}, {end}" if faults else f"{what}, all sound", soft_wrap=True)
    if faults:
        raise click.exceptions.Exit(1)
