"""`foldline show`: what the model sees of a session, with the fold line drawn through it, and what stands for the rest.

The view is shown as it stands: looking makes no fold and writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from foldline.cli.recall import row as recalled_row
from foldline.cli.shared import options
from foldline.cli.shared.ledger_choice import Chosen, Place, at_session, opened, pick, told
from foldline.cli.shared.output import (
    console,
    counted,
    digest_lines,
    digest_row,
    first_words,
    lines_of,
    print_json,
    safe,
    when,
)
from foldline.fold import Digest, Fold
from foldline.ledger import Branch, Head
from foldline.ledger.records import FoldReference
from foldline.measure.estimator import human
from foldline.message import Message
from foldline.plan.timeline import handle as numbered
from foldline.recall.handles import fetch, parse_handle
from foldline.session import Ledger
from foldline.session.record import BranchRecord, Snapshot
from foldline.session.setup import setup
from foldline.session.state import State

if TYPE_CHECKING:
    from rich.console import Console

WORDS = 200
"""Characters of a message that are shown where its line is wide enough."""
SHOWN = 9
"""Lines of the digest in force that are shown."""
WHOLE = 1 << 40
"""More tokens than any message has."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A session as it stands."""

    picked: Chosen
    state: State
    snapshot: Snapshot
    folds: tuple[tuple[FoldReference, Fold], ...]
    """The folds that hold, oldest first."""


@click.command()
@click.option("--handle", metavar="HANDLE", help='Only these messages, word for word and whole: "#12", "#12-20".')
@click.option("--digests", is_flag=True, help="Every digest whole, with what it kept and lost.")
@at_session
@options.output("One JSON object with everything.")
def show(place: Place, digests: bool, as_json: bool, **given: Any) -> None:
    r"""Show what the model sees of a session: the budget, the digest, the fold line, the messages behind it.

    \b
    Example:  foldline show
              foldline show --session ticket-42 --digests
              foldline show --handle "#120-131"
    """
    with opened(place) as found:
        if given["handle"]:
            _print_messages(found, given, as_json=as_json)
            return
        seen = look(found, told(pick(found, given["session"], given["branch"])))
    if as_json:
        print_json({"ledger": str(place), **report(seen)})
    elif digests:
        _print_digests(seen)
    else:
        _print(seen)


def look(found: Ledger, picked: Chosen) -> Seen:
    """A session under the settings it was left with, measured and not changed."""
    record = BranchRecord(found.store, picked.branch)
    snapshot = record.snapshot()
    state = State(setup(snapshot.settings), snapshot, record.read)
    branch = found.store.state(picked.branch)
    folds = tuple((folded, found.store.fold(picked.branch, folded)) for folded in branch.folds)
    return Seen(picked, state, snapshot, folds)


def report(seen: Seen) -> dict[str, Any]:
    """Everything `show` says, as data."""
    info, view = seen.picked.info, seen.state.view()
    return {
        "session": info.name,
        "branch": seen.picked.branch.name,
        "branches": list(info.branches),
        "made_at": info.made_at,
        "last_at": info.last_at,
        "model": seen.state.model.name,
        "messages": seen.snapshot.version.length,
        "window": view.window,
        "usable": view.usable,
        "tokens": view.tokens,
        "exact": view.exact,
        "source": view.source,
        "need": view.need.name,
        "reason": view.verdict.reason,
        "blocks": view.blocks,
        "folded": numbered(0, view.cut - 1) if view.cut else "",
        "pins": [
            {"name": name, "message": at + 1} for name, at in sorted(seen.snapshot.pins.items(), key=lambda at: at[1])
        ],
        "folds": [_fold_row(number, folded, fold) for number, (folded, fold) in enumerate(seen.folds, start=1)],
        "view": [
            {
                "message": index + 1,
                "role": message.role,
                "kind": message.kind,
                "tokens": tokens,
                "shortened": message is not seen.state.timeline.messages[index],
                "starts": first_words(message, WORDS),
            }
            for index, message, tokens in _shown(seen.state)
        ],
    }


def _fold_row(number: int, folded: FoldReference, fold: Fold) -> dict[str, Any]:
    row = {
        "number": number,
        "at": folded.at,
        "folded": numbered(0, fold.cut - 1) if fold.cut else "",
        "before": fold.before,
        "after": fold.after,
        "reason": fold.reason,
    }
    if fold.digest is None:
        return row
    return {**row, "digest": {**digest_row(fold, fold.digest), "text": fold.digest.message.text}}


def _shown(state: State) -> Iterator[tuple[int, Message, int]]:
    """The messages of the record that the view shows, in its order, each with its place and size."""
    timeline = state.timeline
    fold = timeline.fold or Fold(cut=timeline.cut)
    before = [*range(timeline.lead), *fold.pinned, *fold.carried]
    for index in [*before, *range(max(timeline.cut, timeline.lead), len(timeline))]:
        yield index, timeline.shown[index], timeline.tokens(index)


def _print(seen: Seen) -> None:
    out, state, picked = console(), seen.state, seen.picked
    info, view = picked.info, state.view()
    names = ", ".join(
        f"{safe(name)} ({numbered(at)})" for name, at in seen.snapshot.pins.items() if name != numbered(at)
    )
    pins = counted(len(seen.snapshot.pins), "pin") + (f" ({names})" if names else "")
    figures = f"{counted(seen.snapshot.version.length, 'message')}, {counted(len(seen.folds), 'fold')}, {pins}"
    out.print(f"session {safe(str(picked))}: {figures}; last used {when(info.last_at)}", soft_wrap=True)
    out.print(f"model {safe(state.model.name) or 'not known'}\n", soft_wrap=True)
    for line in str(view).splitlines():
        out.print(line, style="cyan" if line.startswith("───") else None, soft_wrap=True)
    beside = view.tokens - sum(view.blocks.values())
    if beside > 0:
        said = f"{human(beside, False)} of it stand in no message: the system prompt and tools that the agent sent"
        out.print(said, soft_wrap=True)
    out.print("\nwhat the model sees", style="bold")
    pinned = set(seen.snapshot.pins.values())
    drawn = not view.cut
    for index, message, tokens in _shown(state):
        if not drawn and index >= view.cut:
            drawn = _print_line(out, seen)
        marks = f"{'pin ' if index in pinned else ''}{'stub ' if message is not state.timeline.messages[index] else ''}"
        head = f"  {numbered(index):<7}{message.kind or message.role:<10}{human(tokens, False):>7}  {marks}"
        out.print(head + first_words(message, WORDS), overflow="ellipsis", no_wrap=True)
    if not drawn:
        _print_line(out, seen)


def _print_line(out: Console, seen: Seen) -> bool:
    """What stands for the folded part, and the line below which everything is as it was said."""
    fold = seen.state.timeline.fold
    if fold is not None and fold.digest is not None:
        out.print(f"  {_by(fold, fold.digest)}", style="magenta", soft_wrap=True)
        lines = digest_lines(fold.digest.message.text)
        for text in lines[:SHOWN]:
            out.print(f"    │ {text}", style="dim", overflow="ellipsis", no_wrap=True)
        if len(lines) > SHOWN:
            out.print(f"    │ … {len(lines) - SHOWN} more lines: foldline show --digests", style="dim", soft_wrap=True)
    gone = numbered(0, seen.state.timeline.cut - 1)
    out.print(f'─── fold line: {gone} are in the record: foldline show --handle "{gone}" ───', style="cyan")
    return True


def _by(fold: Fold, digest: Digest) -> str:
    loss = f", {digest.loss.kept:,} of {digest.loss.facts:,} facts are shown" if digest.loss else ""
    return f"digest by {safe(digest.by)}, {human(fold.digest_tokens, False)} tokens{loss}"


def _print_digests(seen: Seen) -> None:
    out = console()
    if not seen.folds:
        out.print(f"session {safe(str(seen.picked))}: nothing is folded", soft_wrap=True)
    for number, (folded, fold) in enumerate(seen.folds, start=1):
        force = ", in force" if number == len(seen.folds) else ""
        out.print(f"─── fold {number} of {len(seen.folds)}, {when(folded.at)}{force} ───", style="cyan")
        for line in lines_of(str(fold)):
            out.print(line, soft_wrap=True)
        if fold.digest is not None:
            for line in lines_of(fold.digest.message.text):
                out.print(f"    │ {line}", style="dim", soft_wrap=True)
        out.print("")


def _print_messages(found: Ledger, given: dict[str, Any], *, as_json: bool) -> None:
    """The messages of a handle, one after another, so that any number of them can be shown."""
    wanted, out = parse_handle(given["handle"]), console()
    where: Branch | Head = Head()
    if wanted.strand is None:
        where = told(pick(found, given["session"], given["branch"])).branch
    rows: list[dict[str, Any]] = []
    for position in range(wanted.first, wanted.last + 1):
        skip = wanted.skip if position == wanted.first else 0
        one = replace(wanted, first=position, last=position, skip=skip)
        result = fetch(found.store, where, one, WHOLE).result
        if as_json:
            rows += recalled_row(result)["lines"]
            continue
        for line in result.lines:
            out.print(f"{one} {line.role}", style="cyan", soft_wrap=True)
            for text in lines_of(line.text):
                out.print(f"    {text}", soft_wrap=True)
    if as_json:
        print_json({"handle": str(wanted), "messages": rows})
