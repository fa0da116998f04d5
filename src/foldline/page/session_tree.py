"""Finds sessions that belong together: the conversations of a client and of its sub-agents."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

_FOLDER = "/subagents/"
"""The folder beside a session file in which Claude Code keeps the files of its sub-agents."""


def parents_of(names: Collection[str]) -> dict[str, str]:
    """For each session that has a parent session, the name of its parent.

    The proxy names a sub-agent after its parent (`3f0c/agent-1`). It numbers further conversations of a client
    (`3f0c.2`).

    >>> parents_of(["3f0c", "3f0c.2", "3f0c/agent-1", "3f0c/agent-1.2", "ticket-42.5"])
    {'3f0c.2': '3f0c', '3f0c/agent-1': '3f0c', '3f0c/agent-1.2': '3f0c/agent-1'}
    """
    known = frozenset(names)
    found = {name: next((one for one in _candidates(name) if one in known), "") for name in names}
    return {name: parent for name, parent in found.items() if parent}


def _candidates(name: str) -> Iterator[str]:
    """Names that the parent of a session could have, the nearest first."""
    if _FOLDER in name:
        yield name.rpartition(_FOLDER)[0] + ".jsonl"
    stem, _, number = name.rpartition(".")
    if stem and number.isdecimal():
        yield stem
        name = stem
    if "/" in name:
        yield name.rpartition("/")[0]


def tree_of(rows: Sequence[Mapping[str, Any]], owner: str, session: str) -> list[Mapping[str, Any]]:
    """The rows of the whole tree of a session: its topmost ancestor first, then all descendants of that ancestor."""
    own = {row["session"]: row for row in rows if row["owner"] == owner}
    root = session
    while root in own and own[root]["parent"]:
        root = own[root]["parent"]
    found, waiting = [], [root]
    while waiting:
        name = waiting.pop(0)
        if name in own:
            found.append(own[name])
        waiting = [row["session"] for row in reversed(own.values()) if row["parent"] == name] + waiting
    return found
