"""A ledger with its text index, for tests of recall: every test and every example is an owner of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count

from foldline import ledger
from foldline.fold import Fold
from foldline.ledger import Branch, Store
from foldline.measure.estimator import Estimator
from foldline.message import Message, user
from foldline.plan.gate import Load
from foldline.recall.handles import fetch, parse_handle
from foldline.recall.search import TOKENS, RecallQuery, search
from foldline.recall.text_index import TextIndex

_OWNERS = count()


@contextmanager
def stored(url: str, messages: Sequence[Message], *, session: str = "talk") -> Iterator[tuple[Store, Branch]]:
    """A store of a new owner in which one session was said."""
    store = ledger.open(url, owner=f"owner {next(_OWNERS)}", index=TextIndex())
    try:
        branch = store.session(session)
        store.append(branch, messages)
        yield store, branch
    finally:
        store.close()


class LedgerSession:
    """The least that the tools need of a session, on a real ledger."""

    WINDOW = 1000

    def __init__(self, url: str, owner: str = "session") -> None:
        self.store = ledger.open(url, owner=owner, index=TextIndex())
        self.branch = self.store.session("talk")

    def recall(self, query: str = "", *, handle: str = "", tokens: int = TOKENS, everywhere: bool = False) -> object:
        if handle:
            return fetch(self.store, self.branch, parse_handle(handle), tokens)
        return search(self.store, self.branch, RecallQuery(query=query, tokens=tokens, everywhere=everywhere))

    def pin(self, text: str = "", *, handle: str = "") -> tuple[str, ...]:
        name = f"pin {len(self.store.state(self.branch).pins) + 1}"
        self.store.pin(self.branch, name, parse_handle(handle).first if handle else user(text))
        return (name,)

    def fold(self) -> str:
        cut = max(0, self.store.head(self.branch).length - 2)
        self.store.append_fold(self.branch, Fold(cut=cut, reason="asked for"))
        return f"folded up to #{cut}"

    def load(self) -> Load:
        state = self.store.state(self.branch)
        start = state.fold.cut if state.fold else 0
        texts = [stored.message.text for stored in self.store.read(self.branch, start=start)]
        size = sum(Estimator().count(text).tokens for text in texts)
        return Load(request=size, history=size, count=len(texts), usable=self.WINDOW)
