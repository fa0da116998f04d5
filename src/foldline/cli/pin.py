"""`foldline pin`: keep a text or messages in every view of a session, or remove such a pin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from foldline.cli.shared import options
from foldline.cli.shared.ledger_choice import (
    LedgerLocation,
    SessionChoice,
    choose_session,
    defer_interrupt,
    open_ledger,
    session_options,
)
from foldline.cli.shared.output import first_words, line_printer, plural, print_json, printable
from foldline.errors import InputError
from foldline.plan.timeline import handle as numbered
from foldline.session import Ledger
from foldline.session.record import BranchRecord

_WORDS = 120
"""How many characters of a pinned message are shown."""


@click.command()
@click.argument("text", nargs=-1)
@click.option("--handle", metavar="HANDLE", help='Pin these messages: "#12", "#12-20".')
@click.option(
    "--name",
    default="",
    metavar="NAME",
    help="Name the pin of a text or of one message; default: the handle of the message.",
)
@click.option("--remove", metavar="NAME", help="Remove a pin. If it pins a text, the next request lacks this text.")
@session_options
@options.output_options("Print one JSON object with the current pins.")
def pin(text: tuple[str, ...], location: LedgerLocation, as_json: bool, **flags: Any) -> None:
    r"""Keep a text, or the messages that a handle names, in every view of a session.

    A text is added as a note at the end of the session. Without arguments, the pins are listed.

    \b
    Example:  foldline pin
              foldline pin never push to main
              foldline pin --handle "#12" --name port
              foldline pin --remove port
    """
    words, handle, remove = " ".join(text).strip(), flags["handle"] or "", flags["remove"]
    if sum(map(bool, (words, handle, remove))) > 1:
        raise click.UsageError('Give only one of: a text, --handle "#12", --remove NAME.')
    with open_ledger(location) as ledger:
        picked = choose_session(ledger, **flags)
        held = BranchRecord(ledger.store, picked.branch).snapshot().pins
        if remove and remove not in held:
            names = ", ".join(map(printable, held)) or "none"
            raise InputError(f"unknown pin {remove!r} in session {picked}", hint=f"pins of the session: {names}")
        if not (words or handle or remove):
            _list_pins(ledger, picked, held, as_json=as_json)
            return
        with defer_interrupt():
            session = ledger.session(picked.info.name, branch=picked.branch.name)
            if remove:
                session.unpin(remove, at_once=True)
            else:
                session.pin(words, handle=handle, name=flags["name"])
        now = BranchRecord(ledger.store, picked.branch).snapshot().pins
    changed = [name for name in {**held, **now} if held.get(name) != now.get(name)]
    if as_json:
        pins = [{"name": name, "message": at + 1} for name, at in _by_message(now)]
        print_json({"session": picked.info.name, "branch": picked.branch.name, "changed": changed, "pins": pins})
        return
    what = ", ".join(map(printable, changed)) or "no change"
    verb = "removed pin" if remove else "pinned"
    echo = line_printer()
    echo(f"session {printable(str(picked))}: {verb}: {what}")
    handles = {name: "" if name == numbered(at) else f" ({numbered(at)})" for name, at in _by_message(now)}
    every = ", ".join(f"{printable(name)}{handle}" for name, handle in handles.items())
    echo(f"current pins: {every or 'none'}")


def _by_message(pins: Mapping[str, int]) -> list[tuple[str, int]]:
    """The pins in the order of their messages."""
    return sorted(pins.items(), key=lambda pin: pin[1])


def _list_pins(ledger: Ledger, picked: SessionChoice, held: Mapping[str, int], *, as_json: bool) -> None:
    """Print every pin with the beginning of its message."""
    if as_json:
        pins = [{"name": name, "message": at + 1} for name, at in _by_message(held)]
        print_json({"session": picked.info.name, "branch": picked.branch.name, "changed": [], "pins": pins})
        return
    echo = line_printer()
    echo(f"session {printable(str(picked))}: {plural(len(held), 'pin')}")
    record = BranchRecord(ledger.store, picked.branch)
    record.version()
    for name, at in _by_message(held):
        label = numbered(at) if name == numbered(at) else f"{printable(name)} ({numbered(at)})"
        words = "".join(first_words(message, _WORDS) for message in record.read(at, at + 1))
        echo(f"  {label:<14} {words}", overflow="ellipsis", no_wrap=True)
