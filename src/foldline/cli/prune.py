"""`foldline prune`: delete sessions that were not used for a given time. The only command that deletes."""

from __future__ import annotations

import re
import sys
import time

import click

from foldline.cli.shared import options
from foldline.cli.shared.ledger_choice import Place, all_owners_option, at_ledger, opened, owner_prefix, stores_of
from foldline.cli.shared.output import console, counted, print_json, safe, when
from foldline.ledger.records import SessionInfo

UNITS = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_AGE = re.compile(r"([1-9][0-9]{0,8})([mhdw])", re.ASCII)


class Age(click.ParamType[float]):
    """How long ago: `90d`, `12h`."""

    name = "age"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds."""
        found = _AGE.fullmatch(str(value).strip())
        if found is None:
            self.fail(f"{value!r} is no age: write 90d, 12h, 6w or 30m.", param, ctx)
        return float(int(found[1]) * UNITS[found[2]])


@click.command()
@click.option(
    "--older-than", type=Age(), required=True, metavar="AGE", help="Last used so long ago: 90d, 12h, 6w, 30m."
)
@click.option("--yes", is_flag=True, help="Delete without asking.")
@all_owners_option
@at_ledger
@options.output("One JSON object with the sessions; deletes only with --yes.")
def prune(older_than: float, yes: bool, all_owners: bool, place: Place, as_json: bool) -> None:
    r"""Delete the sessions that nobody has used for long, after showing them and asking.

    What other sessions share with them stays. Nothing else that foldline does deletes anything.

    \b
    Example:  foldline prune --older-than 90d
              foldline prune --older-than 26w --yes
    """
    with opened(place) as found:
        before, stores = time.time() - older_than, stores_of(found, all_owners=all_owners)
        old = [(store.owner, info) for store in stores for info in store.sessions() if info.last_at < before]
        if not as_json:
            _print_old(old)
        sure = yes or (bool(old) and not as_json and _asked(len(old)))
        gone = [(store.owner, name) for store in stores for name in store.prune(older_than=before)] if sure else []
    if as_json:
        pairs = gone if sure else [(owner, info.name) for owner, info in old]
        rows = [{"owner": owner, "session": name} for owner, name in pairs]
        print_json({"ledger": str(place), "deleted": sure, "sessions": rows})
    else:
        kept = "nothing was deleted" if old else f"nothing in {place} is that old"
        end = f"deleted {counted(len(gone), 'session')} from {place}" if gone else kept
        console().print(end, soft_wrap=True)


def _print_old(old: list[tuple[str, SessionInfo]]) -> None:
    out = console()
    for owner, info in old:
        figures = f"{counted(info.messages, 'message')}, last used {when(info.last_at)}"
        out.print(f"{owner_prefix(owner)}{safe(info.name)}: {figures}", soft_wrap=True)


def _asked(count: int) -> bool:
    if not sys.stdin.isatty():
        raise click.UsageError("Nobody is there to be asked: say --yes to delete them.")
    return click.confirm(f"delete {counted(count, 'session')} for ever?", default=False)
