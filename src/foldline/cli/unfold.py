"""`foldline unfold`: take back the newest fold of a session."""

from __future__ import annotations

from typing import Any

import click

from foldline.cli.shared import options
from foldline.cli.shared.ledger_choice import Place, at_session, opened, pick, told
from foldline.cli.shared.output import console, counted, print_json, safe
from foldline.errors import InputError
from foldline.measure.estimator import human
from foldline.plan.timeline import handle as numbered
from foldline.session.record import BranchRecord


@click.command()
@at_session
@options.output("One JSON object with what is in the view again.")
def unfold(place: Place, as_json: bool, **given: Any) -> None:
    r"""Take back the newest fold of a session: what it took from the view is there again.

    \b
    Example:  foldline unfold
              foldline unfold --session ticket-42
    """
    with opened(place) as found:
        picked = told(pick(found, given["session"], given["branch"]))
        before = BranchRecord(found.store, picked.branch).snapshot()
        if before.fold is None:
            raise InputError(f"session {picked}: nothing is folded", hint="there is nothing to take back")
        session = found.session(picked.info.name, branch=picked.branch.name)
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
    left = f"{counted(session.folds, 'fold')} before it in force" if session.folds else "nothing is folded now"
    out.print(
        f"session {safe(str(picked))}: {back or 'what was shortened'} is in the view again; {left}", soft_wrap=True
    )
    out.print(f"{human(load.request, False)} of {human(load.usable, True)} usable", soft_wrap=True)
    if plan.fold is not None:
        out.print(f"the next request would fold again: {plan.verdict.reason}", style="yellow", soft_wrap=True)
