"""Finds the results of the calls that match a query.

Often only a call has the words of a query, and only its result has the answer: the call names a file, and the result
shows its lines. So a result is scored together with its call, as if both were one message.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import takewhile
from typing import NamedTuple

from foldline.message import ToolResult
from foldline.recall import ranking
from foldline.recall.excerpt import indexed_calls
from foldline.recall.ranking import Document
from foldline.recall.terms import terms
from foldline.recall.text_index import IndexReader

CALLS = 40
"""For each of two scores (see `call_results`), this many of the best replies are read to find calls that match."""
CALL_CHARS = 2000
"""Only this many characters of a call are searched for terms of the query."""


class CallResult(NamedTuple):
    """A message with tool results, and the message with the calls of these results. The calls match the query."""

    call: Document
    result: Document
    terms: frozenset[str]
    """The terms of the query that the calls contain."""
    call_size: int
    """Length of the calls in characters."""


def call_results(
    index: IndexReader, docs: Sequence[Document], scores: Sequence[float], wanted: Collection[str]
) -> list[CallResult]:
    """The results in `docs` whose calls contain a term in `wanted`.

    `scores` has each message's own score. Only some calls are read: those of the replies with the best own scores, and
    those of the replies with the best results of `ranking.add_neighbour_scores`. So a call near a strong match is
    found, even if many messages match better than this call.
    """
    replies = [at for at, doc in enumerate(docs) if scores[at] > 0 and not doc.is_prompt]
    orders = (scores, ranking.add_neighbour_scores(docs, scores))
    best = dict.fromkeys(at for order in orders for at in nlargest(CALLS, replies, key=order.__getitem__))
    read = index.messages([docs[at].id for at in best])
    calls = {at: indexed_calls(read[docs[at].id]) for at in best if docs[at].id in read}
    after = {at: list(_after(docs, at, len(texts))) for at, texts in calls.items()}
    results = index.messages([doc.id for some in after.values() for doc in some])
    found = []
    for at, texts in calls.items():
        for doc in [doc for doc in after[at] if doc.id in results]:
            ids = [part.call_id for part in results[doc.id].parts if isinstance(part, ToolResult)]
            made = "\n".join([texts[id_] for id_ in ids if id_ in texts])
            if shared := frozenset(terms(made[:CALL_CHARS])).intersection(wanted):
                found.append(CallResult(docs[at], doc, shared, len(made)))
    return found


def _after(docs: Sequence[Document], at: int, count: int) -> Iterator[Document]:
    """The candidates among the `count` messages after a message."""
    call = docs[at]
    others = (docs[other] for other in range(at + 1, len(docs)))
    return takewhile(lambda doc: doc.segment == call.segment and doc.position <= call.position + count, others)


def add_call_terms(
    found: Sequence[CallResult],
    matched: Mapping[int, float],
    hits: Mapping[str, Sequence[int]],
    term_scores: Mapping[str, float],
) -> dict[Document, float]:
    """The score of each result in `found`, computed as if the result and its call were one text."""
    ids = {term: frozenset(hits[term]) for term in frozenset[str]().union(*[each.terms for each in found])}
    scores: dict[Document, float] = {}
    for _, result, shared, size in found:
        added = sum(term_scores[term] for term in shared if result.id not in ids[term])
        both = result._replace(size=result.size + size)
        (score,) = ranking.score_documents([both], {result.id: matched.get(result.id, 0.0) + added})
        scores[result] = score
    return scores
