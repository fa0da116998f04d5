"""The id of a stored session in the agent's log.

The same session may be stored twice: in the agent's log, and in a ledger that imported the log or recorded the
requests. The ledger stores the id that the session has in the log, so that the session's requests are counted once.
"""

from __future__ import annotations

import re

from foldline.ledger.records import MAIN
from foldline.ledger.store import Store

_KIND = "agent_session"
"""The kind of the event that stores the id."""
_NUMBER = re.compile(r"\.\d+$")
"""The number that the proxy appends to a session name that another session already has."""
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


def add_agent_session(store: Store, session: str, agent_id: str) -> None:
    """Store `agent_id`, the id of a session in the agent's log. If it is "" or already stored, do nothing."""
    branch = store.session(session, MAIN)
    known = store.last_event(branch, _KIND)
    if agent_id and (known is None or known.body != agent_id):
        store.event(branch, _KIND, agent_id)


def agent_session_ids(store: Store, session: str) -> set[str]:
    """The possible ids of a stored session in the agent's log.

    If the session has a stored id, the result is only this id. Otherwise, the ids are derived from the session's name
    (see `ids_in_name`).
    """
    found = next((store.last_event(one, _KIND) for one in store.branches(session) if one.name == MAIN), None)
    return ids_in_name(session) if found is None else {found.body}


def ids_in_name(name: str) -> set[str]:
    """The possible ids of a session in the agent's log, derived from the session's name.

    The proxy and the adapters name a session by the agent's id. The names of Codex and pi files end with the id.

    >>> sorted(ids_in_name("ticket.2"))
    ['ticket', 'ticket.2']
    """
    uuid = _UUID.search(name)
    return {name, _NUMBER.sub("", name)} | ({uuid[0]} if uuid else set())
