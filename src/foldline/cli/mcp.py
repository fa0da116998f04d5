"""`foldline mcp`: the tools of one session, for any client that speaks the Model Context Protocol."""

from __future__ import annotations

from typing import Any

import click

from foldline.cli.shared.ledger_choice import Place, at_session, opened, pick, told


@click.command()
@click.option(
    "--compact",
    is_flag=True,
    help="Offer compact_context too, for an agent whose stream foldline watch reads: watch sees the call and acts.",
)
@at_session
def mcp(place: Place, compact: bool, **given: Any) -> None:
    r"""Serve recall, pin, fold and context_left of one session over standard input and output.

    The session is chosen here, when the server starts: nothing that a client sends can choose another.

    \b
    Example:  foldline mcp --session ticket-42
              claude mcp add memory -- foldline mcp --ledger agent.db --session ticket-42
    """
    from foldline.recall.mcp_server import serve  # noqa: PLC0415  # an extra
    from foldline.watch.interventions import compact_tool  # noqa: PLC0415

    with opened(place) as found:
        picked = told(pick(found, given["session"], given["branch"]))
        session = found.session(picked.info.name, branch=picked.branch.name)
        serve(session, [compact_tool("mcp")] if compact else [])
