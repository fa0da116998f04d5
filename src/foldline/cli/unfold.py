"""`foldline unfold`: undo the newest fold of a session."""

from __future__ import annotations

from typing import Any

import click

from foldline.cli.shared import options
from foldline.cli.shared.ledger_choice import (
    LedgerLocation,
    choose_session,
    open_ledger,
    report_choice,
    session_options,
)
from foldline.cli.shared.output import console, plural, print_json, printable
from foldline.errors import InputError
from foldline.measure.estimator import format_tokens
from foldline.plan.timeline import handle as numbered
from foldline.session.record import BranchRecord


@click.command()
@session_options
@options.output_options("Print one JSON object with the restored messages.")
def unfold(location: LedgerLocation, as_json: bool, **flags: Any) -> None:
    r"""Undo the newest fold of a session: the messages that it folded are in the view again.

    \b
    Example:  foldline unfold
              foldline unfold --session ticket-42
    """
    with open_ledger(location) as ledger:
        picked = report_choice(choose_session(ledger, flags["session"], flags["branch"]))
        before = BranchRecord(ledger.store, picked.branch).snapshot()
        if before.fold is None:
            raise InputError(f"session {picked} has no fold to undo", hint="see its folds with foldline show")
        session = ledger.session(picked.info.name, branch=picked.branch.name)
        session.unfold()
        load, cut, plan = session.load(), session.timeline.cut, session.plan()
    back = numbered(cut, before.fold.cut - 1) if before.fold.cut > cut else ""
    if as_json:
        print_json(
            {
                "session": picked.info.name,
                "branch": picked.branch.name,
                "back": back,
                "folds": session.folds,
                "tokens": load.request,
                "usable": load.usable,
                "need": plan.verdict.need.name,
            }
        )
        return
    out = console()
    left = f"{plural(session.folds, 'older fold')} in force" if session.folds else "nothing is folded now"
    out.print(
        f"session {printable(str(picked))}: {back or 'shortened results'} in the view again; {left}", soft_wrap=True
    )
    out.print(f"{format_tokens(load.request, False)} of {format_tokens(load.usable, True)} usable", soft_wrap=True)
    if plan.fold is not None:
        out.print(f"the next request will fold again: {plan.verdict.reason}", style="yellow", soft_wrap=True)
