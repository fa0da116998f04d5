"""`foldline recall`: search a ledger, or print messages by their handle."""

from __future__ import annotations

from typing import Any

import click

from foldline.cli.shared import options
from foldline.cli.shared.ledger_choice import LedgerLocation, choose_session, open_ledger, session_options
from foldline.cli.shared.output import line_printer, print_json, printable_lines
from foldline.ledger import Head
from foldline.placeholders import OMISSION
from foldline.plan.timeline import handle as numbered
from foldline.recall.handles import fetch, parse_handle
from foldline.recall.result import NOT_INDEXED, RecallResult
from foldline.recall.search import LEAST_TOKENS, TOKENS, RecallQuery, search


@click.command()
@click.argument("query", nargs=-1)
@click.option("--handle", metavar="HANDLE", help='Print these messages verbatim: "#12", "#12-20".')
@click.option("--everywhere", is_flag=True, help="Search all sessions, not only one.")
@click.option(
    "--tokens",
    type=click.IntRange(min=LEAST_TOKENS),
    default=TOKENS,
    show_default=True,
    metavar="TOKENS",
    help="Limit the length of the answer.",
)
@session_options
@options.output_options("Print one JSON object with the results.")
def recall(query: tuple[str, ...], location: LedgerLocation, as_json: bool, **flags: Any) -> None:
    r"""Search the messages of a session by a question, or print them verbatim by their handle.

    \b
    Example:  foldline recall which port does the worker use
              foldline recall --everywhere "permission denied"
              foldline recall --handle "#120-131"
    """
    question, handle = " ".join(query).strip(), flags["handle"] or ""
    if bool(question) == bool(handle.strip()):
        raise click.UsageError('Give a question or a handle: foldline recall which port, or --handle "#12".')
    wanted = parse_handle(handle) if handle else None
    anywhere = flags["everywhere"] or (wanted is not None and wanted.segment is not None)
    with open_ledger(location) as ledger:
        store = ledger.store
        picked = None if anywhere else choose_session(ledger, **flags)
        where = Head() if picked is None else picked.branch
        if wanted is not None:
            found = fetch(store, where, wanted, flags["tokens"])
        else:
            found = search(store, where, RecallQuery(query=question, tokens=flags["tokens"], everywhere=anywhere))
    if as_json:
        place = {"session": picked and picked.info.name, "branch": picked and picked.branch.name}
        print_json(place | {"query": question, "handle": handle} | found.to_dict())
        return
    _print(found)


def _print(found: RecallResult) -> None:
    echo = line_printer()
    if not found:
        echo("No message matches." if found.is_complete else NOT_INDEXED)
    for place, result in enumerate(found):
        if place:
            echo("")
        if result.session:
            echo(f"session {result.session}", style="bold")
        mark = result.handle.partition("#")[0]
        for line in result.messages:
            echo(f"{mark}{numbered(line.position)} {line.role}", style="cyan")
            for text in printable_lines(line.text):
                echo(f"    {text}")
    if found.rest:
        echo(f'\nmore: foldline recall --handle "{found.rest}"')
    elif any(not line.is_whole for result in found for line in result.messages):
        echo(f'\n{OMISSION} marks omitted text: print a whole message with --handle "#…"', style="dim")
