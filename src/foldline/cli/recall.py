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
from foldline.recall.search import LEAST_TOKENS, TOKENS, RecalledRun, RecallQuery, search


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
    results: tuple[RecalledRun, ...]
    with open_ledger(location) as ledger:
        store = ledger.store
        picked = None if anywhere else choose_session(ledger, **flags)
        where = Head() if picked is None else picked.branch
        if wanted is not None:
            page = fetch(store, where, wanted, flags["tokens"])
            results, tokens, rest = (page.run,), page.tokens, page.rest
        else:
            recalled = search(store, where, RecallQuery(query=question, tokens=flags["tokens"], everywhere=anywhere))
            results, tokens, rest = recalled.results, recalled.tokens, None
    if as_json:
        print_json(
            {
                "session": picked and picked.info.name,
                "branch": picked and picked.branch.name,
                "query": question,
                "handle": handle,
                "tokens": tokens,
                "results": [row(result) for result in results],
                "rest": rest and str(rest),
            }
        )
        return
    _print(results, str(rest or ""))


def row(result: RecalledRun) -> dict[str, Any]:
    """A result as JSON."""
    return {
        "handle": result.handle,
        "session": result.session,
        "lines": [
            {"message": line.position + 1, "role": line.role, "text": line.text, "whole": line.is_whole}
            for line in result.messages
        ],
    }


def _print(results: tuple[RecalledRun, ...], rest: str) -> None:
    echo = line_printer()
    if not results:
        echo("No message matches.")
    for place, result in enumerate(results):
        if place:
            echo("")
        if result.session:
            echo(f"session {result.session}", style="bold")
        mark = result.handle.partition("#")[0]
        for line in result.messages:
            echo(f"{mark}{numbered(line.position)} {line.role}", style="cyan")
            for text in printable_lines(line.text):
                echo(f"    {text}")
    if rest:
        echo(f'\nmore: foldline recall --handle "{rest}"')
    elif any(not line.is_whole for result in results for line in result.messages):
        echo(f'\n{OMISSION} marks omitted text: print a whole message with --handle "#…"', style="dim")
