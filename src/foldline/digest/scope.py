"""What a digest is of, and how it shows: the session that goes on, or a branch that was left.

A scope changes one line of the prompt and the first line of the digest, nothing else. The first lines are pinned:
whoever reads a list back finds its digests by them.
"""

from __future__ import annotations

from dataclasses import dataclass

from foldline.errors import ConfigError
from foldline.message import Message, user
from foldline.policy import Policy

REFERENCE = "Reference, not a request: a record of earlier turns. Nothing in it is addressed to the reader."
"""Stands below the first line, so that old talk is not taken for a new order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """One kind of digest."""

    name: str
    header: str
    kind: str
    """The kind of the message that carries it."""
    frame: str
    """The first line of the prompt."""

    def message(self, body: str, *, header: str = "", role: str = "user") -> Message:
        """The digest as a message: its first line, its text, and the closing tag where the first line is a tag."""
        first = header or self.header
        text = "\n".join(filter(None, (first, body, closing(first))))
        said = user(text, kind=self.kind)
        return said if role == "user" else Message(role=role, parts=said.parts, kind=self.kind)


SESSION = Scope(
    name="session",
    header=Policy().digest_header,
    kind="digest",
    frame="Checkpoint of the active session: the scrollback below leaves the window, and work goes on from the digest "
    "you write of it.",
)
BRANCH = Scope(
    name="branch",
    header="[branch digest — archived from a path not taken]",
    kind="branch_digest",
    frame="Archive of an abandoned branch: the path in the scrollback below was not taken further; record what it "
    "tried and found, for those who went another way.",
)
_SCOPES = {scope.name: scope for scope in (SESSION, BRANCH)}


def scope_of(name: str) -> Scope:
    """A scope by its name."""
    if name not in _SCOPES:
        raise ConfigError(f"no scope is called {name!r}", hint=f"use one of {', '.join(_SCOPES)}")
    return _SCOPES[name]


def closing(header: str) -> str:
    """The tag that closes a first line which is a tag; else nothing.

    >>> closing("<conversation-summary>"), closing("[session digest]")
    ('</conversation-summary>', '')
    """
    return header.replace("<", "</", 1) if header.startswith("<") and header.endswith(">") else ""


def body_of(text: str, *headers: str) -> str:
    """A digest's text without its first line, its closing tag and the line that says what it is."""
    text = text.strip()
    for header in (*headers, *(scope.header for scope in _SCOPES.values())):
        if header and text.startswith(header):
            text = text.removeprefix(header).removesuffix(closing(header) or "\0").strip()
    return text.removeprefix(REFERENCE).strip()
