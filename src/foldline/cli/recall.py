"""`foldline recall`: search a ledger, or print messages by their handle."""

from __future__ import annotations

from typing import Any, NamedTuple

import click

from foldline.cli.shared import options
from foldline.cli.shared.ledger_choice import (
    LedgerLocation,
    choose_session,
    find_owner,
    open_ledger,
    open_stores,
    owner_and_session_options,
)
from foldline.cli.shared.output import line_printer, plural, print_json, printable_lines
from foldline.cli.shared.owner_names import owned_sessions, owner_label, owner_prefix
from foldline.ledger import Head
from foldline.placeholders import OMISSION
from foldline.plan.timeline import handle as numbered
from foldline.recall.handles import Handle, fetch, has_segment, parse_handle
from foldline.recall.result import NOT_INDEXED, RecallResult
from foldline.recall.search import LEAST_TOKENS, TOKENS, RecallQuery, search, search_owners


@click.command()
@click.argument("query", nargs=-1)
@click.option("--handle", metavar="HANDLE", help='Print these messages in full: "#12", "#12-20". Secrets are redacted.')
@click.option(
    "--everywhere",
    is_flag=True,
    help="Search all sessions of the owner, not only one session. Add --all-owners for the sessions of every owner.",
)
@click.option(
    "--tokens",
    type=options.WholeNumber(min=LEAST_TOKENS),
    default=TOKENS,
    show_default=True,
    metavar="TOKENS",
    help="Limit the length of the answer.",
)
@owner_and_session_options
@options.output_options("Print one JSON object with the results.")
def recall(query: tuple[str, ...], location: LedgerLocation, as_json: bool, **flags: Any) -> None:
    r"""Search the messages of a session with a question, or print the messages that a handle names.

    \b
    Example:  foldline recall which port does the worker use
              foldline recall --everywhere "permission denied"
              foldline recall --handle "#120-131"
    """
    question, handle = " ".join(query).strip(), flags["handle"] or ""
    if bool(question) == bool(handle.strip()):
        raise click.UsageError('Give either a question, such as "which port", or a handle: --handle "#12".')
    wanted = parse_handle(handle) if handle else None
    if flags["everywhere"] and wanted is not None and wanted.segment is None:
        raise click.UsageError(
            f"Several sessions may have a message {handle}. Choose a session with --session, "
            'or give a handle that a search with --everywhere printed, such as "7#9".'
        )
    if flags["everywhere"] or (wanted is not None and wanted.segment is not None):
        answer = _recall_anywhere(location, question, wanted, flags["tokens"], all_owners=flags["all_owners"])
    else:
        answer = _recall_here(location, question, wanted, **flags)
    if as_json:
        results = [{"owner": owner_label(passage.owner), **passage.to_dict()} for passage in answer.found]
        place = {"session": answer.session, "branch": answer.branch, "of_other_owners": answer.others}
        print_json(place | {"query": question, "handle": handle} | answer.found.to_dict() | {"results": results})
        return
    _print(answer, all_owners=flags["all_owners"])


class _Answer(NamedTuple):
    found: RecallResult
    session: str | None = None
    branch: str | None = None
    others: int = 0
    """Number of sessions that `--everywhere` did not search, because they belong to other owners."""


def _recall_here(
    location: LedgerLocation, question: str, wanted: Handle | None, *, tokens: int, all_owners: bool, **flags: Any
) -> _Answer:
    """Recall in one session."""
    with open_ledger(find_owner(location, flags["session"], all_owners=all_owners)) as ledger:
        picked = choose_session(ledger, **flags)
        if wanted is not None:
            found = fetch(ledger.store, picked.branch, wanted, tokens)
        else:
            found = search(ledger.store, picked.branch, RecallQuery(query=question, tokens=tokens))
    return _Answer(found, picked.info.name, picked.branch.name)


def _recall_anywhere(
    location: LedgerLocation, question: str, wanted: Handle | None, tokens: int, *, all_owners: bool
) -> _Answer:
    """Recall in all sessions of the owner, or of every owner."""
    with open_stores(location, all_owners=all_owners) as stores:
        if wanted is not None:
            store = next((store for store in stores if has_segment(store, wanted)), stores[0])
            return _Answer(fetch(store, Head(), wanted, tokens))
        owners = {store.owner for store in stores}
        others = sum(owned.owner not in owners for owned in owned_sessions(stores[0]))
        return _Answer(search_owners(stores, RecallQuery(query=question, tokens=tokens)), others=others)


def _print(answer: _Answer, *, all_owners: bool) -> None:
    echo, found = line_printer(), answer.found
    if not found:
        wider = " Search all sessions with --everywhere." if answer.session is not None else ""
        echo(f"No message matches.{wider}" if found.is_complete else NOT_INDEXED)
    for place, result in enumerate(found):
        if place:
            echo("")
        if result.session:
            echo(f"session {owner_prefix(result.owner) if all_owners else ''}{result.session}", style="bold")
        mark = result.handle.partition("#")[0]
        for line in result.messages:
            echo(f"{mark}{numbered(line.position)} {line.role}", style="cyan")
            for text in printable_lines(line.text):
                echo(f"    {text}")
    owners = "--all-owners " if all_owners else ""
    if found.rest:
        echo(f'\nmore: foldline recall {owners}--handle "{found.rest}"')
    elif any(not line.is_whole for result in found for line in result.messages):
        echo(f'\n{OMISSION} marks omitted text: print a whole message with --handle "#…"', style="dim")
    if any(result.session for result in found):
        option = f'{owners}--handle "{found[0].handle}"'
        echo(f"a handle also names the session; print a message with {option}", style="dim")
    if answer.others:
        echo(f"{plural(answer.others, 'session')} of other owners not searched: add --all-owners", style="dim")
