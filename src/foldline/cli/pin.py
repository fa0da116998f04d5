"""`foldline pin`: keep a text or messages in every view of a session, or remove such a pin."""

from __future__ import annotations

from typing import Any

import click

from foldline.cli.shared import options
from foldline.cli.shared.ledger_choice import Place, at_session, opened, pick, told, unbroken
from foldline.cli.shared.output import console, print_json, safe
from foldline.errors import InputError
from foldline.plan.timeline import handle as numbered
from foldline.session.record import BranchRecord


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
        held = BranchRecord(found.store, picked.branch).snapshot().pins
        if remove and remove not in held:
            names = ", ".join(map(safe, held)) or "there are none"
            raise InputError(f"session {picked} has no pin {remove!r}", hint=f"its pins: {names}")
        with unbroken():
            session = found.session(picked.info.name, branch=picked.branch.name)
            if remove:
                session.unpin(remove)
            else:
                session.pin(words, handle=handle, name=given["name"])
        now = BranchRecord(found.store, picked.branch).snapshot().pins
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
