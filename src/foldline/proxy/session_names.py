"""Takes the name of a session from the headers in which clients name their conversations."""

from __future__ import annotations

import secrets
from collections.abc import Container

from foldline.proxy.forwarded_headers import RawHeaders, header

_NAMES = (b"x-foldline-session", b"x-claude-code-session-id", b"session-id", b"session_id", b"x-session-id")
"""Headers that name a conversation. If a request has several of these headers, the first one in this list is used."""
_AGENT = b"x-claude-code-agent-id"
"""The header that names a sub-agent. A sub-agent has a conversation separate from that of its parent."""
_READ = frozenset((*_NAMES, _AGENT))
_LONGEST = 120


def client_session_id(headers: RawHeaders) -> str:
    """The id that the client gives its conversation; "" if the client gives none."""
    named = [(name.lower(), value) for name, value in headers if name.lower() in _READ]
    if not named:
        return ""
    found = next((value for name in _NAMES if (value := header(named, name).strip())), "")
    if not found:
        return ""
    agent = header(named, _AGENT).strip()
    return printable_name(f"{found}/{agent}" if agent else found)


def printable_name(text: str) -> str:
    """The text, changed so that the ledger accepts it as a name."""
    if text.isprintable():
        return text[:_LONGEST]
    return "".join(char if char.isprintable() else "?" for char in text)[:_LONGEST]


def new_session_name(client_id: str, taken: Container[str]) -> str:
    """A name for a new session: the client's id, or a random name if the client gives no id.

    If the id is taken, a number is appended.

    >>> new_session_name("a", {"a", "a.2"})
    'a.3'
    """
    if not client_id:
        return f"chat-{secrets.token_hex(6)}"
    number = 1
    while (name := client_id if number == 1 else f"{client_id}.{number}") in taken:
        number += 1
    return name
