"""`foldline unfold`: undo the newest fold of a session."""

from __future__ import annotations

from typing import Any

import click

from foldline.cli.shared import options
from foldline.cli.shared.ledger_choice import LedgerLocation, choose_session, open_ledger, session_options
from foldline.cli.shared.output import line_printer, plural, print_json, printable
from foldline.errors import InputError
from foldline.measure.estimator import format_tokens
from foldline.plan.timeline import left_handles
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
        picked = choose_session(ledger, **flags)
        before = BranchRecord(ledger.store, picked.branch).snapshot()
        if before.fold is None:
            raise InputError(f"session {picked} has no fold to undo", hint="see its folds with foldline show")
        session = ledger.session(picked.info.name, branch=picked.branch.name)
        session.unfold()
        load, plan = session.load(), session.plan()
        back = left_handles(before.fold, session.timeline.fold)
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
    echo = line_printer()
    left = f"{plural(session.folds, 'older fold')} in force" if session.folds else "nothing is folded now"
    echo(f"session {printable(str(picked))}: {back or 'shortened results'} in the view again; {left}")
    echo(f"{format_tokens(load.request, False)} of {format_tokens(load.usable, True)} usable")
    if plan.fold is not None:
        echo(f"the next request will fold again: {plan.verdict.reason}", style="yellow")
