"""`foldline pin` and `foldline unfold`: the two things a person may want to change in a session by hand."""

from __future__ import annotations

from typing import Any

import click

from foldline.cli.shared import options
from foldline.cli.shared.ledger_choice import Chosen, Place, at_session, opened, pick, told, unbroken
from foldline.cli.shared.output import console, counted, print_json, safe
from foldline.errors import InputError
from foldline.measure.estimator import human
from foldline.plan.timeline import handle as numbered
from foldline.session import Ledger, Session
from foldline.session.record import Tip


def _session(found: Ledger, picked: Chosen) -> Session:
    return found.session(picked.info.name, branch=picked.branch.name)


@click.command()
@click.argument("text", nargs=-1)
@click.option("--handle", metavar="HANDLE", help='Messages that were said: "#12", "#12-20".')
@click.option("--name", default="", metavar="NAME", help="What to call the pin; else it has the name of its message.")
@click.option("--remove", metavar="NAME", help="Let go of a pin.")
@at_session
@options.output("One JSON object with the pins that hold now.")
def pin(text: tuple[str, ...], place: Place, as_json: bool, **given: Any) -> None:
    r"""Keep a text, or messages by their handle, in every view of a session, whatever is folded.

    A text becomes a note at the end of the session.

    \b
    Example:  foldline pin never push to main
              foldline pin --handle "#12" --name port
              foldline pin --remove port
    """
    words, handle, remove = " ".join(text).strip(), given["handle"] or "", given["remove"]
    if sum(map(bool, (words, handle, remove))) != 1:
        raise click.UsageError('Give one of them: a text, --handle "#12", or --remove NAME.')
    with opened(place) as found:
        picked = told(pick(found, given["session"], given["branch"]))
        held = Tip(found.store, picked.branch).known().pins
        if remove and remove not in held:
            names = ", ".join(map(safe, held)) or "there are none"
            raise InputError(f"session {picked} has no pin {remove!r}", hint=f"its pins: {names}")
        with unbroken():
            session = _session(found, picked)
            if remove:
                session.unpin(remove)
            else:
                session.pin(words, handle=handle, name=given["name"])
        now = Tip(found.store, picked.branch).known().pins
    changed = [name for name in {**held, **now} if held.get(name) != now.get(name)]
    if as_json:
        pins = [{"name": name, "message": at + 1} for name, at in now.items()]
        print_json({"session": picked.info.name, "branch": picked.branch.name, "changed": changed, "pins": pins})
        return
    what = ", ".join(map(safe, changed)) or "nothing new"
    verb = "no longer pinned" if remove else "pinned"
    out = console()
    out.print(f"session {safe(str(picked))}: {verb}: {what}", soft_wrap=True)
    every = ", ".join(f"{safe(name)}{'' if name == numbered(at) else f' ({numbered(at)})'}" for name, at in now.items())
    out.print(f"pins now: {every or 'none'}", soft_wrap=True)


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
        before = Tip(found.store, picked.branch).known()
        if before.fold is None:
            raise InputError(f"session {picked}: nothing is folded", hint="there is nothing to take back")
        session = _session(found, picked)
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
