"""`foldline show`: show what the model sees of a session, and the digest of the folded messages.

The command reads only: it makes no fold and writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from foldline.cli.shared import options
from foldline.cli.shared.ledger_choice import (
    LedgerLocation,
    SessionChoice,
    choose_session,
    open_ledger,
    session_options,
)
from foldline.cli.shared.output import (
    digest_lines,
    digest_row,
    first_words,
    line_printer,
    local_time,
    pager,
    plural,
    print_json,
    printable,
    printable_lines,
)
from foldline.fold import Digest, Fold, compactions
from foldline.ledger import Branch, Head
from foldline.ledger.records import FoldReference
from foldline.measure.estimator import format_tokens
from foldline.message import Message
from foldline.plan.gate import HIDDEN
from foldline.plan.timeline import handle as numbered
from foldline.plan.timeline import left_handles
from foldline.recall.handles import fetch, parse_handle
from foldline.session import Ledger
from foldline.session.record import BranchRecord, Snapshot
from foldline.session.setup import setup
from foldline.session.state import State
from foldline.view.compose import View, around_digest

if TYPE_CHECKING:
    from rich.console import Console

WORDS = 200
"""Maximum number of characters that are shown of a message."""
DIGEST_LINES = 9
"""How many lines of the current digest are shown."""
RANGES = 3
"""How many ranges of folded messages are shown with the command that prints them."""
_FEWEST_ROWS, _OTHER_ROWS = 8, 30
"""How many messages are shown at least, and how many lines of the screen the rest of the report takes."""
NO_LIMIT = 1 << 40
"""A token limit larger than any message."""


@dataclass(frozen=True, slots=True)
class SessionReport:
    """The state of a session in the ledger."""

    picked: SessionChoice
    state: State
    snapshot: Snapshot
    folds: tuple[tuple[FoldReference, Fold], ...]
    """The folds that were not undone, oldest first."""


@click.command()
@click.option(
    "--handle", metavar="HANDLE", help='Print only these messages, in full: "#12", "#12-20". Secrets are redacted.'
)
@click.option("--all", "everything", is_flag=True, help="Print all messages of the view; on a terminal, in a pager.")
@click.option("--digests", is_flag=True, help="Print every digest with its kept and missing facts.")
@session_options
@options.output_options("Print one JSON object with everything.")
def show(location: LedgerLocation, digests: bool, everything: bool, as_json: bool, **flags: Any) -> None:
    r"""Show what the model sees of a session: the budget, the pins, the digest, what is folded and the newest messages.

    \b
    Example:  foldline show
              foldline show --session ticket-42 --digests
              foldline show --handle "#120-131"
    """
    with open_ledger(location) as ledger:
        if flags["handle"]:
            _print_messages(ledger, flags, as_json=as_json)
            return
        shown = load_session(ledger, choose_session(ledger, **flags))
    if as_json:
        print_json({"ledger": str(location), **report(shown)})
    elif digests:
        _print_digests(shown)
    else:
        with pager(is_wanted=everything) as out:
            _print(shown, out, everything=everything)


def load_session(ledger: Ledger, picked: SessionChoice) -> SessionReport:
    """Load a session with its recorded settings, and measure it. Nothing is written."""
    record = BranchRecord(ledger.store, picked.branch)
    snapshot = record.snapshot()
    state = State(setup(snapshot.settings), snapshot, record.read)
    branch = ledger.store.state(picked.branch)
    folds = tuple((folded, ledger.store.fold(picked.branch, folded)) for folded in branch.folds)
    return SessionReport(picked, state, snapshot, folds)


def report(shown: SessionReport) -> dict[str, Any]:
    """The state of a session as JSON: its view, pins, folds and digests."""
    info, view = shown.picked.info, shown.state.view()
    return {
        "session": info.name,
        "branch": shown.picked.branch.name,
        "branches": list(info.branches),
        "made_at": info.made_at,
        "last_at": info.last_at,
        "model": shown.state.model.name,
        "messages": shown.snapshot.version.length,
        "window": view.window,
        "usable": view.usable,
        "tokens": view.tokens,
        "exact": view.exact,
        "source": view.source,
        "need": view.need.name,
        "reason": view.verdict.reason,
        "blocks": view.blocks,
        "folded": left_handles(shown.state.timeline.fold),
        "pins": [
            {"name": name, "message": at + 1} for name, at in sorted(shown.snapshot.pins.items(), key=lambda at: at[1])
        ],
        "folds": [_fold_row(number, folded, fold) for number, (folded, fold) in enumerate(shown.folds, start=1)],
        "view": [
            {
                "message": index + 1,
                "role": message.shown_role,
                "kind": message.kind,
                "tokens": tokens,
                "shortened": message is not shown.state.timeline.messages[index],
                "starts": first_words(message, WORDS),
            }
            for index, message, tokens in _view_messages(shown.state)
        ],
    }


def _fold_row(number: int, folded: FoldReference, fold: Fold) -> dict[str, Any]:
    row = {
        "number": number,
        "at": folded.at,
        "folded": left_handles(fold),
        "before": fold.before,
        "after": fold.after,
        "reason": fold.reason,
    }
    if fold.digest is None:
        return row
    return {**row, "digest": {**digest_row(fold, fold.digest), "text": fold.digest.message.text}}


def _view_messages(state: State) -> Iterator[tuple[int, Message, int]]:
    """The messages of the view in order, each with its index and size."""
    timeline = state.timeline
    fold = timeline.fold or Fold(cut=timeline.cut)
    before = [*range(timeline.lead), *fold.pinned, *fold.carried]
    for index in [*before, *range(max(timeline.cut, timeline.lead), len(timeline))]:
        if index not in timeline.removed:
            yield index, timeline.shown[index], timeline.tokens(index)


def _print(shown: SessionReport, out: Console, *, everything: bool) -> None:
    echo, state, picked = line_printer(out=out), shown.state, shown.picked
    info, view = picked.info, state.view()
    pins = shown.snapshot.pins
    folds = [fold for _, fold in shown.folds]
    own = sum(not fold.compacted_by for fold in folds)
    counts = (shown.snapshot.version.length, "message"), (own, "fold"), (len(pins), "pin")
    compacted = [f"{one.messages:,} compacted by the {one.by}" for one in compactions(folds)]
    figures = ", ".join([*(plural(*count) for count in counts), *compacted])
    echo(f"session {printable(str(picked))}: {figures}; last used {local_time(info.last_at)}")
    echo(f"model {printable(state.model.name) or 'not known'}\n")
    for line in str(view).splitlines():
        echo(line, style="cyan" if line.startswith("───") else None)
    if hidden := view.blocks.get(HIDDEN, 0):
        echo(f"hidden ~{hidden:,}: system prompt and tools of the agent, which are in no message")
    if view.blocks.get("pins") and not pins:
        echo("pins: messages that the policy keeps, such as the first prompt")
    if pins:
        echo("\npins", style="bold")
    for name, at in sorted(pins.items(), key=lambda pin: pin[1]):
        label = "" if name == numbered(at) else f"{printable(name)}  "
        starts = first_words(state.timeline.messages[at], WORDS)
        _print_row(echo, f"  {numbered(at):<7}{label}{starts}")
    _print_view(shown, view, out, everything=everything)


def _print_view(shown: SessionReport, view: View, out: Console, *, everything: bool) -> None:
    """Print the messages of the view in the order in which they are sent.

    The digest is printed at its place, with a line that names the folded messages.
    """
    echo, state = line_printer(out=out), shown.state
    title = "what the model sees" if view.tokens <= view.usable else "too large to be sent: it must be folded first"
    echo(f"\n{title}", style="bold")
    rows = list(_view_messages(state))
    fold = state.timeline.fold
    kept_after = set(around_digest(state.timeline, fold)[1]) if fold is not None else set()
    for row in rows:
        if row[0] < view.cut and row[0] not in kept_after:
            _print_message(echo, shown, row)
    if fold is not None and view.cut:
        _print_line(echo, shown)
    for row in rows:
        if row[0] in kept_after:
            _print_message(echo, shown, row)
    after = [row for row in rows if row[0] >= view.cut]
    room = len(after) if everything else max(_FEWEST_ROWS, out.height - _OTHER_ROWS)
    if len(after) > room:
        echo(f"  … {plural(len(after) - room, 'message')} before these: foldline show --all", style="dim")
    for row in after[max(0, len(after) - room) :]:
        _print_message(echo, shown, row)


def _print_message(echo: Callable[..., None], shown: SessionReport, row: tuple[int, Message, int]) -> None:
    index, message, tokens = row
    marks = "pin " if index in shown.snapshot.pins.values() else ""
    marks += "stub " if message is not shown.state.timeline.messages[index] else ""
    head = f"  {numbered(index):<7}{message.kind or message.shown_role:<10}{format_tokens(tokens, False):>7}  {marks}"
    _print_row(echo, head + first_words(message, WORDS))


def _print_row(echo: Callable[..., None], text: str) -> None:
    """Print one line, cut at the width of the terminal."""
    echo(text, overflow="ellipsis", no_wrap=True, soft_wrap=False)


def _print_line(echo: Callable[..., None], shown: SessionReport) -> None:
    """Print the current digest, and a line that says which messages are folded."""
    fold = shown.state.timeline.fold
    if fold is not None and fold.digest is not None:
        echo(f"  {_by(fold, fold.digest)}", style="magenta")
        lines = digest_lines(fold.digest.message.text)
        for text in lines[:DIGEST_LINES]:
            echo(f"    │ {text}", style="dim", overflow="ellipsis", no_wrap=True, soft_wrap=False)
        if len(lines) > DIGEST_LINES:
            echo(f"    │ … {len(lines) - DIGEST_LINES} more lines: foldline show --digests", style="dim")
    fold = fold or Fold(cut=shown.state.timeline.cut)
    echo(f"─── fold line: {left_handles(fold)} are only in the ledger ───", style="cyan")
    for left in fold.left[:RANGES]:
        echo(f'    foldline show --handle "{numbered(left.start, left.stop - 1)}"', style="dim")


def _by(fold: Fold, digest: Digest) -> str:
    loss = f", {digest.loss.kept:,} of {digest.loss.facts:,} facts kept" if digest.loss else ""
    return f"digest by {printable(digest.by)}, {format_tokens(fold.digest_tokens, False)} tokens{loss}"


def _print_digests(shown: SessionReport) -> None:
    echo = line_printer()
    if not shown.folds:
        echo(f"session {printable(str(shown.picked))}: nothing is folded")
    for number, (folded, fold) in enumerate(shown.folds, start=1):
        force = ", in force" if number == len(shown.folds) else ""
        echo(f"─── fold {number} of {len(shown.folds)}, {local_time(folded.at)}{force} ───", style="cyan")
        for line in printable_lines(str(fold)):
            echo(line)
        if fold.digest is not None:
            for line in printable_lines(fold.digest.message.text):
                echo(f"    │ {line}", style="dim")
        echo("")


def _print_messages(ledger: Ledger, flags: dict[str, Any], *, as_json: bool) -> None:
    """Print the messages that a handle names.

    The messages are read one at a time, so any number of messages can be printed.
    """
    wanted, echo = parse_handle(flags["handle"]), line_printer()
    where: Branch | Head = Head()
    if wanted.segment is None:
        where = choose_session(ledger, **flags).branch
    rows: list[dict[str, Any]] = []
    for position in range(wanted.first, wanted.last + 1):
        skip = wanted.skip if position == wanted.first else 0
        one = replace(wanted, first=position, last=position, skip=skip)
        result = fetch(ledger.store, where, one, NO_LIMIT)[0]
        if as_json:
            rows += result.to_dict()["lines"]
            continue
        for line in result.messages:
            echo(f"{one} {line.role}", style="cyan")
            for text in printable_lines(line.text):
                echo(f"    {text}")
    if as_json:
        print_json({"handle": str(wanted), "messages": rows})
