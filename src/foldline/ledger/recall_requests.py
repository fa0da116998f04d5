"""The usage of requests whose replies called the recall tool.

The proxy answers such a call itself and sends another request, so the client gets one reply for several requests. The
message of the reply holds the usage of the last request. The usage of the earlier requests is stored as an event of the
branch, so that reports include every paid request.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from foldline.ledger.records import Branch
from foldline.ledger.store import Store
from foldline.message import Usage

_KIND = "recall_requests"
"""The kind of the event that stores the usage."""
_AT_ONCE = 1_000
"""Number of events that are read at once."""


class RecallRequest(NamedTuple):
    """A request whose reply called the recall tool."""

    key: tuple[str, int, int]
    """The name of the branch, the id of the event, and the place of the request in the event."""
    at: float
    """When the client's request was sent, in seconds since 1970."""
    model: str
    usage: Usage
    """The provider's figures. `output` is 0, because the usage of the last reply includes the output of all replies."""


def add_recall_requests(store: Store, branch: Branch, usages: Sequence[Usage], *, model: str, at: float) -> None:
    """Store the usage of requests whose replies called the recall tool."""
    store.event(branch, _KIND, {"at": at, "model": model, "usages": [one._replace(output=0) for one in usages]})


def read_recall_requests(store: Store, branch: Branch) -> Iterator[RecallRequest]:
    """The stored requests of a branch, oldest first."""
    after = 0
    while events := store.events(branch, after=after, limit=_AT_ONCE, kind=_KIND):
        for event in events:
            body = event.body
            for number, figures in enumerate(body["usages"]):
                yield RecallRequest((branch.name, event.id, number), body["at"], body["model"], Usage(*figures))
        after = events[-1].id
