"""`foldline verify` and `foldline prune`: whether all is as it was written, and the only thing that deletes."""

from __future__ import annotations

import re
import sys
import time
from dataclasses import asdict

import click

from foldline import ledger
from foldline.cli.shared import options
from foldline.cli.shared.ledger_choice import Place, at_ledger, opened
from foldline.cli.shared.output import busy, console, counted, print_json, safe, when
from foldline.ledger import Store
from foldline.ledger.records import SessionInfo
from foldline.session import Ledger

UNITS = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_AGE = re.compile(r"([1-9][0-9]{0,8})([mhdw])", re.ASCII)


_all_owners = click.option("--all-owners", is_flag=True, help="Of everybody who shares the ledger.")


def _stores(found: Ledger, everybody: bool) -> list[Store]:
    """The parts of the ledger that are meant."""
    return [ledger.share(found.store, name) for name in ledger.owners(found.store)] if everybody else [found.store]


def _of(owner: str) -> str:
    return f"{safe(owner)}: " if owner else ""


@click.command()
@_all_owners
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
        stores = _stores(found, all_owners)
        faults = [(store.owner, fault) for store in stores for fault in store.verify()]
        count = sum(len(store.sessions()) for store in stores)
    if as_json:
        rows = [{"owner": owner, **asdict(fault)} for owner, fault in faults]
        print_json({"ledger": str(place), "sound": not faults, "sessions": count, "faults": rows})
    else:
        out = console()
        for owner, fault in faults:
            out.print(_of(owner) + safe(str(fault)), style="red", soft_wrap=True)
        what = f"{place}: {counted(count, 'session')}"
        end = f"{counted(len(faults), 'fault')}: restore a copy; what is sound can still be exported"
        out.print(f"{what}, {end}" if faults else f"{what}, all sound", soft_wrap=True)
    if faults:
        raise click.exceptions.Exit(1)


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
@_all_owners
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
        before, stores = time.time() - older_than, _stores(found, all_owners)
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
        out.print(f"{_of(owner)}{safe(info.name)}: {figures}", soft_wrap=True)


def _asked(count: int) -> bool:
    if not sys.stdin.isatty():
        raise click.UsageError("Nobody is there to be asked: say --yes to delete them.")
    return click.confirm(f"delete {counted(count, 'session')} for ever?", default=False)
