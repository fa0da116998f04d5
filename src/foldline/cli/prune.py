"""`foldline prune`: delete sessions that were not used for a given time. No other command deletes anything."""

from __future__ import annotations

import re
import sys
import time

import click

from foldline.cli.shared import options
from foldline.cli.shared.ledger_choice import (
    LedgerLocation,
    all_owners_option,
    ledger_options,
    open_stores,
)
from foldline.cli.shared.output import line_printer, local_time, plural, print_json, printable
from foldline.cli.shared.owner_names import owner_prefix

UNITS = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_AGE = re.compile(r"([1-9][0-9]{0,8})([mhdw])", re.ASCII)


class Age(click.ParamType[float]):
    """A command-line value such as `90d` or `12h`, converted to seconds."""

    name = "age"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The age in seconds."""
        found = _AGE.fullmatch(str(value).strip())
        if found is None:
            self.fail(
                f"invalid age {value!r}: write a number of at least 1 and a unit, such as 90d, 12h, 6w or 30m.",
                param,
                ctx,
            )
        return float(int(found[1]) * UNITS[found[2]])


@click.command()
@click.option(
    "--older-than",
    type=Age(),
    required=True,
    metavar="AGE",
    help="Delete sessions unused for this long: 90d, 12h, 6w, 30m.",
)
@click.option("--yes", is_flag=True, help="Delete without asking.")
@all_owners_option
@ledger_options
@options.output_options("Print one JSON object with the sessions; deletes only with --yes.")
def prune(older_than: float, yes: bool, all_owners: bool, location: LedgerLocation, as_json: bool) -> None:
    r"""Delete the sessions that were not used for a given time, after a confirmation.

    Messages that are also in other sessions are kept. No other command deletes anything.

    \b
    Example:  foldline prune --older-than 90d
              foldline prune --older-than 26w --yes
    """
    before, echo = time.time() - older_than, line_printer()
    with open_stores(location, all_owners=all_owners) as stores:
        old = [(store.owner, info) for store in stores for info in store.sessions() if info.last_at < before]
        if not as_json:
            for owner, info in old:
                figures = f"{plural(info.messages, 'message')}, last used {local_time(info.last_at)}"
                echo(f"{owner_prefix(owner)}{printable(info.name)}: {figures}")
        confirmed = yes or (bool(old) and not as_json and _confirm(len(old)))
        gone = [(store.owner, name) for store in stores for name in store.prune(older_than=before)] if confirmed else []
    if as_json:
        pairs = gone if confirmed else [(owner, info.name) for owner, info in old]
        rows = [{"owner": owner, "session": name} for owner, name in pairs]
        print_json({"ledger": str(location), "deleted": confirmed, "sessions": rows})
    else:
        none = "nothing was deleted" if old else f"no session in {location} is that old"
        echo(f"deleted {plural(len(gone), 'session')} from {location}" if gone else none)


def _confirm(count: int) -> bool:
    if not sys.stdin.isatty():
        raise click.UsageError("Cannot ask for confirmation without a terminal: use --yes to delete.")
    return click.confirm(f"permanently delete {plural(count, 'session')}?", default=False)
