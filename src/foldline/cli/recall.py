"""`foldline recall`: what was said about something, from everything a ledger keeps."""

from __future__ import annotations

from typing import Any

import click

from foldline.cli.shared import options
from foldline.cli.shared.ledger_choice import Place, at_session, opened, pick, told
from foldline.cli.shared.output import console, lines_of, print_json
from foldline.ledger import Head
from foldline.placeholders import OMISSION
from foldline.plan.timeline import handle as numbered
from foldline.recall.handles import fetch, parse_handle
from foldline.recall.search import LEAST_TOKENS, TOKENS, RecalledRun, RecallQuery, search


@click.command()
@click.argument("query", nargs=-1)
@click.option("--handle", metavar="HANDLE", help='Messages word for word: "#12", "#12-20", or as recall named them.')
@click.option("--everywhere", is_flag=True, help="Search all sessions, not only one.")
@click.option(
    "--tokens",
    type=click.IntRange(min=LEAST_TOKENS),
    default=TOKENS,
    show_default=True,
    metavar="TOKENS",
    help="How long the answer may be.",
)
@at_session
@options.output("One JSON object with what was found.")
def recall(query: tuple[str, ...], place: Place, as_json: bool, **given: Any) -> None:
    r"""Read back what was said: by a question, or word for word by its handle.

    \b
    Example:  foldline recall which port does the worker use
              foldline recall --everywhere "permission denied"
              foldline recall --handle "#120-131"
    """
    question, handle = " ".join(query).strip(), given["handle"] or ""
    if bool(question) == bool(handle.strip()):
        raise click.UsageError('Ask a question or give a handle: foldline recall which port, or --handle "#12".')
    wanted = parse_handle(handle) if handle else None
    anywhere = given["everywhere"] or (wanted is not None and wanted.strand is not None)
    results: tuple[RecalledRun, ...]
    with opened(place) as found:
        store = found.store
        picked = None if anywhere else told(pick(found, given["session"], given["branch"]))
        where = Head() if picked is None else picked.branch
        if wanted is not None:
            page = fetch(store, where, wanted, given["tokens"])
            results, tokens, rest = (page.result,), page.tokens, page.rest
        else:
            recalled = search(store, where, RecallQuery(query=question, tokens=given["tokens"], everywhere=anywhere))
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
    """A result as data."""
    return {
        "handle": result.handle,
        "session": result.session,
        "lines": [
            {"message": line.position + 1, "role": line.role, "text": line.text, "whole": line.whole}
            for line in result.lines
        ],
    }


def _print(results: tuple[RecalledRun, ...], rest: str) -> None:
    out = console()
    if not results:
        out.print("Nothing was said about that.")
    for place, result in enumerate(results):
        if place:
            out.print("")
        if result.session:
            out.print(f"session {result.session}", style="bold", soft_wrap=True)
        mark = result.handle.partition("#")[0]
        for line in result.lines:
            out.print(f"{mark}{numbered(line.position)} {line.role}", style="cyan", soft_wrap=True)
            for text in lines_of(line.text):
                out.print(f"    {text}", soft_wrap=True)
    if rest:
        out.print(f'\ngoes on: foldline recall --handle "{rest}"', soft_wrap=True)
    elif any(not line.whole for result in results for line in result.lines):
        out.print(f'\n{OMISSION} was left out: --handle "#…" gives a message whole', style="dim", soft_wrap=True)
