"""`foldline export`: write sessions of a ledger as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click

from foldline.cli.shared import options
from foldline.cli.shared.files import STDOUT, refuse_to_overwrite, write_all
from foldline.cli.shared.ledger_choice import Place, SessionName, at_ledger, opened
from foldline.cli.shared.output import console, counted
from foldline.errors import InputError


@click.command()
@click.option("--out", "-o", required=True, type=click.Path(), help="Where to write; - for standard output.")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
@click.option(
    "--session", "-s", "names", type=SessionName(), multiple=True, metavar="NAME", help="Only this one. Repeatable."
)
@at_ledger
@options.output("The report as one JSON object (on standard error when the lines go to standard output).")
def export(out: str, force: bool, names: tuple[str, ...], place: Place, as_json: bool) -> None:
    r"""Write sessions as lines of JSON, as they are at one moment: a copy, or the way to another database.

    \b
    Example:  foldline export -o backup.jsonl
              foldline export -o ticket.jsonl --session ticket-42
    """
    refuse_to_overwrite(out, [] if place.remote else [place.url], force=force)
    with opened(place) as found:
        every = [info.name for info in found.sessions()]
        for name in names:
            if name not in every:
                raise InputError(f"there is no session {name!r}", hint="foldline sessions lists them")
        chosen = list(names) or every
        size = write_all(out, _encoded(found.export(chosen)))
    made = {"ledger": str(place), "out": out, "sessions": chosen, "bytes": size}
    if as_json:
        click.echo(json.dumps(made), err=out == STDOUT)
    elif out != STDOUT:
        console().print(f"wrote {out}: {counted(len(chosen), 'session')}, {size:,} bytes", soft_wrap=True)


def _encoded(lines: Iterator[str]) -> Iterator[bytes]:
    return (line.encode() for line in lines)
