"""Searches a ledger for the messages that match a query, within a token budget.

    found = search(store, store.session("ticket-42"), RecallQuery(query="which port does the worker use?"))
    print(found)            # the text for the model
    found.results[0].handle # '#120-131'

`candidates.py` finds and scores messages. `passages.py` chooses which messages are shown, and how much of each message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from foldline.errors import InputError, check_type
from foldline.ledger import Branch, Head, Store
from foldline.ledger.connections import Connection
from foldline.ledger.index_feed import catch_up, has_unindexed
from foldline.measure.estimator import Counter, Estimator
from foldline.recall import ranking
from foldline.recall.candidates import BranchPath, CandidateFinder
from foldline.recall.passages import PassageBuilder
from foldline.recall.result import RecallResult
from foldline.recall.text_index import IndexReader, TextIndex

TOKENS = 2000
"""Default token budget of a recall."""
LEAST_TOKENS = 50
RESULTS = 10
QUERY_CHARS = 4000
MAX_COUNT = 100_000
"""The messages of all sessions are counted only up to this number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallQuery:
    """A query and its limits."""

    query: str
    tokens: int = TOKENS
    results: int = RESULTS
    before: int | None = None
    """Only messages before this position are searched, so that messages in the view are not found.

    None means all messages.
    """
    everywhere: bool = False
    """Whether to search all sessions of the owner."""

    def __post_init__(self) -> None:
        check_type(self.query, str, "a query", hint='recall("which port?")')
        check_type(self.tokens, int, "tokens", hint="pass how many tokens the answer may have")
        if self.results < 1:
            raise InputError(f"{self.results} results are too few", hint="ask for at least one")
        if self.tokens < LEAST_TOKENS:
            raise InputError(f"{self.tokens} tokens are too few", hint=f"ask for at least {LEAST_TOKENS}")


def search(store: Store, where: Branch | Head, query: RecallQuery, counter: Counter | None = None) -> RecallResult:
    """The messages that match a query, from a branch or from all sessions of the owner."""
    if query.everywhere:
        return search_owners([store], query, counter)
    head = where if isinstance(where, Head) else store.head(where)
    stop = head.length if query.before is None else min(query.before, head.length)
    return _search([store], query, counter, BranchPath(store.spans(head), stop))


def search_owners(stores: Sequence[Store], query: RecallQuery, counter: Counter | None = None) -> RecallResult:
    """The messages that match a query, from all sessions of several owners. All stores must be of the same ledger."""
    return _search(stores, query, counter, None)


def _search(
    stores: Sequence[Store], query: RecallQuery, counter: Counter | None, path: BranchPath | None
) -> RecallResult:
    text = query.query[:QUERY_CHARS]
    weights = ranking.query_terms(text)
    if not weights or not stores:
        return RecallResult(results=())
    for store in stores:
        catch_up(store.tx, TextIndex())

    def work(connection: Connection) -> RecallResult:
        index = IndexReader(stores, connection, None if path is None else [span.segment for span in path.spans])
        total = index.count_messages(MAX_COUNT) if path is None else path.stop
        known = CandidateFinder(index, path, total).find(text, weights)
        builder = PassageBuilder(index, known, results=query.results, tokens=query.tokens)
        return builder.build(counter or Estimator())

    found = stores[0].tx.read(work)
    return replace(found, is_complete=not any(has_unindexed(store.tx) for store in stores))
