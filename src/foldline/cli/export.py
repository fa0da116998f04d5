"""`foldline export`: write sessions of a ledger as lines of JSON."""

from __future__ import annotations

import json

import click

from foldline.cli.shared import options
from foldline.cli.shared.files import STDOUT, refuse_to_overwrite, write_file
from foldline.cli.shared.ledger_choice import (
    LedgerLocation,
    SessionName,
    any_owner_option,
    find_owner,
    ledger_options,
    no_sessions,
    open_ledger,
    session_by_name,
)
from foldline.cli.shared.output import console, plural
from foldline.cli.shared.owner_names import owned_sessions


@click.command()
@click.option("--out", "-o", required=True, type=click.Path(), help="Write to this file; - is standard output.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.option(
    "--session",
    "-s",
    "names",
    type=SessionName(),
    multiple=True,
    metavar="NAME",
    help="Write only this session; the beginning of its name is enough. Repeatable.",
)
@any_owner_option
@ledger_options
@options.output_options("Print the report as one JSON object (on standard error if -o is -).")
def export(out: str, names: tuple[str, ...], location: LedgerLocation, as_json: bool, **flags: bool) -> None:
    r"""Write sessions as lines of JSON, from one snapshot of the ledger.

    Use the file as a backup, or to move to another database.

    \b
    Example:  foldline export -o backup.jsonl
              foldline export -o ticket.jsonl --session ticket-42
    """
    if flags["all_owners"] and not names:
        raise click.UsageError("--all-owners needs --session, because an export has the sessions of one owner only.")
    refuse_to_overwrite(out, [] if location.remote else [location.url], force=flags["force"])
    found = {find_owner(location, name, all_owners=flags["all_owners"]) for name in names} or {location}
    if len(found) > 1:
        raise click.UsageError("These sessions belong to several owners: write one file for each owner.")
    (location,) = found
    with open_ledger(location) as ledger:
        every = ledger.sessions()
        if not every and owned_sessions(ledger.store):
            raise no_sessions(ledger.store)
        named = [session_by_name(ledger.store, every, name) for name in names]
        chosen = list(dict.fromkeys(info.name for info in named or every))
        size = write_file(out, (line.encode() for line in ledger.export(chosen)))
    report = {"ledger": str(location), "out": out, "sessions": chosen, "bytes": size}
    if as_json:
        click.echo(json.dumps(report), err=out == STDOUT)
    elif out != STDOUT:
        console().print(f"wrote {out}: {plural(len(chosen), 'session')}, {size:,} bytes", soft_wrap=True)
