"""`foldline mcp`: serve the tools of one session over the Model Context Protocol."""

from __future__ import annotations

from typing import Any

import click

from foldline.cli.shared.ledger_choice import LedgerLocation, choose_session, open_ledger, session_options
from foldline.cli.shared.owner_names import existing_owner, owner_to_wait_for
from foldline.errors import InputError
from foldline.plan.gate import Load
from foldline.session import Ledger, Session


@click.command()
@click.option(
    "--compact",
    is_flag=True,
    help="Also offer compact_context. With this tool, an agent under foldline watch asks for its own compaction.",
)
@session_options
def mcp(location: LedgerLocation, compact: bool, **flags: Any) -> None:
    r"""Serve the tools recall, pin, fold and context_left for one session over standard input and output.

    Without --session, each call uses the session that was used last. Under foldline run, the session used last is the
    agent's own conversation. A client cannot choose another session.

    \b
    Example:  foldline mcp --session ticket-42
              claude mcp add memory -- foldline mcp --ledger agent.db --session ticket-42
    """
    from foldline.recall.mcp_server import serve  # noqa: PLC0415  # an extra
    from foldline.watch.interventions import compact_tool  # noqa: PLC0415

    observed = [compact_tool("mcp")] if compact else []
    owner_of = owner_to_wait_for if flags["session"] is None else existing_owner
    with open_ledger(location, create=location.source == "default", owner_of=owner_of) as ledger:
        if flags["session"] is None:
            serve(LastUsedSession(ledger, flags["branch"]), observed)
            return
        picked = choose_session(ledger, **flags)
        serve(ledger.session(picked.info.name, branch=picked.branch.name), observed)


class LastUsedSession:
    """The most recently used session of a ledger.

    The session is chosen again at each call of a tool, because the server starts before the agent's conversation is
    recorded.
    """

    def __init__(self, ledger: Ledger, branch: str) -> None:
        self._ledger, self._branch = ledger, branch
        self._open: tuple[str, Session] | None = None

    def recall(self, *given: Any, **options: Any) -> Any:
        """The messages that match a query, or those that a handle names."""
        return self._session().recall(*given, **options)

    def pin(self, *given: Any, **options: Any) -> Any:
        """Pin a text, or the messages that a handle names."""
        return self._session().pin(*given, **options)

    def fold(self) -> Any:
        """Fold now."""
        return self._session().fold()

    def load(self) -> Load:
        """The sizes of the request and of the window."""
        return self._session().load()

    def _session(self) -> Session:
        infos = self._ledger.sessions()
        if not infos:
            raise InputError("nothing is recorded yet", hint="start the agent with foldline run, or name a --session")
        name = infos[0].name
        if self._open is None or self._open[0] != name:
            self._open = name, self._ledger.session(name, branch=self._branch)
        self._open[1].refresh()
        return self._open[1]
