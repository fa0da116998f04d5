"""`foldline mcp`: serve the tools of one session over the Model Context Protocol."""

from __future__ import annotations

from typing import Any

import click

from foldline.cli.shared.ledger_choice import LedgerLocation, choose_session, open_ledger, session_options


@click.command()
@click.option(
    "--compact",
    is_flag=True,
    help="Also offer compact_context, for an agent that foldline watch supervises; watch requests the compaction.",
)
@session_options
def mcp(location: LedgerLocation, compact: bool, **flags: Any) -> None:
    r"""Serve recall, pin, fold and context_left of one session over standard input and output.

    The session is fixed when the server starts: a client cannot choose another.

    \b
    Example:  foldline mcp --session ticket-42
              claude mcp add memory -- foldline mcp --ledger agent.db --session ticket-42
    """
    from foldline.recall.mcp_server import serve  # noqa: PLC0415  # an extra
    from foldline.watch.interventions import compact_tool  # noqa: PLC0415

    with open_ledger(location) as ledger:
        picked = choose_session(ledger, **flags)
        session = ledger.session(picked.info.name, branch=picked.branch.name)
        serve(session, [compact_tool("mcp")] if compact else [])
