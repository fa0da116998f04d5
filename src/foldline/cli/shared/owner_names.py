"""The owners of the sessions in a ledger: their names on the command line, and their sessions.

A person who can open a ledger can read the sessions of all its owners. The library and the proxy give a tenant only its
own sessions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from foldline import ledger
from foldline.cli.shared.output import printable
from foldline.errors import InputError
from foldline.ledger import Store
from foldline.ledger.records import SessionInfo

CANDIDATES = 5
"""How many sessions an error lists when a name is ambiguous."""
_PROXY_OWNER = re.compile(r"key-(none|[0-9a-f]{8})[0-9a-f]{0,24}")
"""Matches a tenant id that the proxy derived from a client's credentials."""


def existing_owner(store: Store, name: str) -> str:
    """The owner with this name, or the only owner whose name or label begins with this text."""
    found = _owner_by_name(store, name, is_whole=False)
    if found is not None:
        return found
    known = [owner_label(one) for one in ledger.owners(store) if one and _has_sessions(store, one)]
    hint = f"use one of: {', '.join(known[:CANDIDATES])}" if known else "leave out --owner"
    more = ", …; foldline sessions --all-owners lists the owners" if len(known) > CANDIDATES else ""
    raise InputError(f"the ledger has no sessions of the owner {name!r}", hint=hint + more)


def owner_to_write(store: Store, name: str) -> str:
    """The owner with this name or label. If there is no such owner, the result is the name itself."""
    return _owner_by_name(store, name, is_whole=True) or name


def owner_to_wait_for(store: Store, name: str) -> str:
    """Like `existing_owner`, but a name that no owner has yet is returned unchanged."""
    return _owner_by_name(store, name, is_whole=False) or name


def _owner_by_name(store: Store, name: str, *, is_whole: bool) -> str | None:
    """The owner with this name or label; None if there is none. A part of a name matches only if `is_whole` is False.

    An owner without sessions comes last: its row may be a displayed name that an older version stored as a name.
    """
    owners = ledger.owners(store)
    near = [one for one in owners if one.startswith(name) or owner_label(one).startswith(name)]
    used = [one for one in near if _has_sessions(store, one)]
    if name in used:
        return name
    whole = [one for one in used if owner_label(one) == name]
    found = whole if whole or is_whole else used
    if len(found) > 1:
        hint = f"give more of the name: {', '.join(map(owner_label, found[:CANDIDATES]))}"
        raise InputError(f"{len(found)} owners begin with {name!r}", hint=hint)
    return found[0] if found else name if name in owners else None


def _has_sessions(store: Store, owner: str) -> bool:
    return bool(ledger.for_owner(store, owner).sessions())


def owner_label(owner: str) -> str:
    """The name of an owner on the command line. The name is short if the owner stands for a client's key.

    >>> owner_label("alice"), owner_label("key-dbc4c99ccb8a782ad1b5233c3d095608")
    ('alice', 'proxy:dbc4c99c')
    """
    found = _PROXY_OWNER.fullmatch(owner)
    return f"proxy:{found[1]}" if found else printable(owner)


@dataclass(frozen=True, slots=True)
class OwnedSession:
    """A session, and the owner to whom it belongs."""

    owner: str
    info: SessionInfo


def owned_sessions(store: Store) -> list[OwnedSession]:
    """All sessions of all owners, the last used first. Sessions without messages are left out."""
    owned = (
        OwnedSession(name, info) for name in ledger.owners(store) for info in ledger.for_owner(store, name).sessions()
    )
    return sorted((one for one in owned if one.info.messages), key=lambda one: -one.info.last_at)


def owner_prefix(owner: str) -> str:
    """The text before a session's name in a list with several owners; "" if `owner` is empty."""
    return f"{owner_label(owner)}: " if owner else ""


def matching_names(names: list[str], name: str) -> list[str]:
    """The name itself if it is in the list, else the names in the list that begin with this text."""
    return [name] if name in names else [one for one in names if one.startswith(name)]
