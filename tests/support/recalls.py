"""A ledger with its text index, for tests of recall: every test and every example is an owner of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count

from foldline import ledger
from foldline.ledger import Branch, Store
from foldline.message import Message
from foldline.recall.index import Words

_OWNERS = count()


@contextmanager
def told(url: str, messages: Sequence[Message], *, session: str = "talk") -> Iterator[tuple[Store, Branch]]:
    """A store of a new owner in which one session was said."""
    store = ledger.open(url, owner=f"owner {next(_OWNERS)}", index=Words())
    try:
        branch = store.session(session)
        store.append(branch, messages)
        yield store, branch
    finally:
        store.close()
