"""Searches a ledger for the messages that match a query, within a token budget.

    found = search(store, store.session("ticket-42"), RecallQuery(query="which port does the worker use?"))
    print(found)            # the text for the model
    found.results[0].handle # '#120-131'

The database looks up the query's terms (`text_index.py`), and `ranking.py` orders the messages.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest, nsmallest
from itertools import combinations, groupby
from operator import itemgetter

from foldline.errors import InputError
from foldline.ledger import Branch, Head, Store
from foldline.ledger import branches as branch_table
from foldline.ledger.connections import Connection
from foldline.ledger.index_feed import has_unindexed
from foldline.ledger.records import Span
from foldline.measure.estimator import Counter, Estimator
from foldline.message import Message
from foldline.placeholders import OMISSION
from foldline.plan.timeline import handle
from foldline.recall import ranking
from foldline.recall.excerpt import excerpt, indexed_text
from foldline.recall.ranking import Document
from foldline.recall.result import RecalledMessage, RecalledPassage, RecallResult, text_of_passages
from foldline.recall.text_index import IndexReader, catch_up
from foldline.recall.word_vectors import installed_vectors

TOKENS = 2000
"""Default token budget of a recall."""
LEAST_TOKENS = 50
RESULTS = 10
QUERY_CHARS = 4000
PROMPT_CHARS = 500
LONG_REPLY_CHARS = 1000
"""Length in characters of an excerpt of a long reply or tool result that is shown at length.

It must be long enough to contain the answer.
"""
OTHER_CHARS = 150
HITS = 2000
"""Maximum number of messages that are looked up per term. The newest are taken."""
PAIRED_TERMS = 3
"""Number of common terms that are also used to find messages before the newest `HITS`.

A term with at least `HITS` hits is common. Those with the fewest hits are used, and a message must contain two of them.
"""
PAIRED_HITS = 40_000
"""A common term with more hits than this is not used to look up older messages."""
EXPANSION_HITS = 300
"""An expansion term with more hits than this is dropped."""
EXPANSION_CHARS = 4000
CANDIDATES = 150
"""Number of best messages that are scored together with their neighbours."""
CANDIDATES_TRIED = 2000
"""Maximum number of messages that are examined to find the candidates. Many of them may belong to other branches."""
SIMILAR = 150
"""If word vectors are installed, the number of best messages whose similarity in meaning to the query is computed."""
NEIGHBOURS = 4
"""Number of neighbours on each side of a candidate."""
CHARS_PER_TOKEN = 4
ROLE_CHARS = 20
LINE_CHARS = 14
"""Number of characters of the handle and the role at the start of a message."""
MAX_COUNT = 100_000
"""Messages of an owner are counted up to this number."""


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
        if self.tokens < LEAST_TOKENS or self.results < 1:
            hint = f"ask for at least one result and {LEAST_TOKENS} tokens"
            raise InputError(f"{self.tokens} tokens are too few for {self.results} results", hint=hint)


def search(store: Store, where: Branch | Head, query: RecallQuery, counter: Counter | None = None) -> RecallResult:
    """The messages of a branch, or of all of the owner's sessions, that match a query."""
    head = where if isinstance(where, Head) else store.head(where)
    weights = ranking.query_terms(query.query[:QUERY_CHARS])
    if not weights:
        return RecallResult(results=())
    catch_up(store)
    spans = None if query.everywhere else store.spans(head)
    stop = head.length if query.before is None else min(query.before, head.length)
    found = store.tx.read(
        lambda connection: _Search(store, connection, spans, stop).run(query, weights, counter or Estimator())
    )
    return replace(found, is_complete=False) if has_unindexed(store.tx) else found


class _Search:
    def __init__(self, store: Store, connection: Connection, spans: Sequence[Span] | None, stop: int) -> None:
        self.store, self.connection = store, connection
        self.path = None if spans is None else _BranchPath(spans, stop)
        self.index = IndexReader(store, connection, None if spans is None else [span.segment for span in spans])
        self.total = self.index.count_messages(MAX_COUNT) if spans is None else stop

    def run(self, query: RecallQuery, weights: dict[str, float], counter: Counter) -> RecallResult:
        """Run the search.

        The query's terms are searched first; then terms that the best matches share are added (expansion terms).
        """
        hits = self._hits(weights)
        rarities = {term: self._rarity(ids, HITS) for term, ids in hits.items()}
        term_scores = {term: weights[term] * rarities[term] for term in hits}
        matched = ranking.add_term_scores({}, hits, term_scores)
        pool = ranking.expansion_terms(self._best_texts(matched), weights)
        found = dict(zip(pool, self.index.find([[term] for term in pool], EXPANSION_HITS), strict=True))
        rare = {term: self._rarity(ids, EXPANSION_HITS) for term, ids in found.items() if len(ids) < EXPANSION_HITS}
        expansion = ranking.expansion_weights(weights, pool, rare)
        term_scores |= {term: weight * rare[term] for term, weight in expansion.items()}
        matched = ranking.add_term_scores(matched, {term: found[term] for term in expansion}, term_scores)
        docs, own = self._with_neighbours(matched)
        scores = ranking.add_neighbour_scores(docs, own)
        if vectors := installed_vectors():
            best = nlargest(SIMILAR, range(len(docs)), key=lambda at: scores[at])
            read = self.index.messages([docs[at].id for at in best])
            texts = [indexed_text(message) for message in read.values()]
            found_similar = dict(zip(read, vectors.similarities(query.query[:QUERY_CHARS], texts), strict=True))
            own = ranking.add_similarities(docs, own, found_similar)
            scores = ranking.add_neighbour_scores(docs, own)
        order, at_length = ranking.worth_showing(docs, own, scores, OTHER_CHARS)
        chars = [PROMPT_CHARS if doc.is_prompt else OTHER_CHARS for doc in docs]
        for at in at_length:
            chars[at] = LONG_REPLY_CHARS
        costs = [(min(doc.size, most) + LINE_CHARS) / CHARS_PER_TOKEN for doc, most in zip(docs, chars, strict=True)]
        chosen = ranking.choose(docs, order, costs, results=query.results, budget=query.tokens)
        return self._within_budget({docs[at]: chars[at] for at in chosen}, term_scores, query.tokens, counter)

    def _hits(self, wanted: Collection[str]) -> dict[str, list[int]]:
        """The ids of the messages that contain each term.

        For a common term, these are the newest messages, and older ones that contain two common terms.
        """
        hits = dict(zip(wanted, self.index.find([[term] for term in wanted], HITS), strict=True))
        common = {term: self._frequency(ids, HITS) for term, ids in hits.items() if len(ids) >= HITS}
        few = [term for term in common if common[term] <= PAIRED_HITS]
        paired = nsmallest(PAIRED_TERMS, few, key=lambda term: common[term])
        older: dict[str, set[int]] = {term: set() for term in paired}
        pairs = list(combinations(paired, 2))
        for pair, both in zip(pairs, self.index.find(pairs, HITS), strict=True):
            for term in pair:
                older[term].update(id_ for id_ in both if id_ < hits[term][-1])
        return {term: ids + sorted(older.get(term, ()), reverse=True) for term, ids in hits.items() if ids}

    def _frequency(self, ids: Sequence[int], limit: int) -> int:
        """The number of messages that contain a term.

        If `limit` or more messages contain the term, the number is estimated from the newest ones.
        """
        if len(ids) < limit:
            return len(ids)
        return max(limit, self.total * limit // (ids[0] - ids[limit - 1] + 1))

    def _rarity(self, ids: Sequence[int], limit: int) -> float:
        return ranking.rarity(self._frequency(ids, limit), self.total)

    def _candidates(self, matched: Mapping[int, float]) -> list[Document]:
        """The best messages. If too few of them belong to the branch, more are examined."""
        found: list[Document] = []
        examined = 0
        for count in (CANDIDATES, CANDIDATES_TRIED):
            ordered = ranking.top_ids(matched, count)
            for start in range(examined, len(ordered), CANDIDATES):
                docs = self.index.by_id(ordered[start : start + CANDIDATES])
                found += docs if self.path is None else filter(self.path.has, docs)
                if len(found) >= CANDIDATES:
                    return found
            examined = len(ordered)
        return found

    def _best_texts(self, matched: Mapping[int, float]) -> list[tuple[float, str]]:
        docs = self._candidates(matched)
        scored = zip(ranking.score_documents(docs, matched), [doc.id for doc in docs], strict=True)
        best = sorted([item for item in scored if item[0] > 0], reverse=True)[: ranking.FEEDBACK]
        read = self.index.messages([id_ for _, id_ in best])
        return [(score, indexed_text(read[id_])[:EXPANSION_CHARS]) for score, id_ in best if id_ in read]

    def _with_neighbours(self, matched: Mapping[int, float]) -> tuple[list[Document], list[float]]:
        """The best messages and their neighbours, in order, and for each message its score without those of its
        neighbours.
        """
        steps = range(-NEIGHBOURS, NEIGHBOURS + 1)
        places = {(doc.segment, doc.position + step) for doc in self._candidates(matched) for step in steps}
        if self.path is not None:
            places = {self.path.locate(position) for _, position in places if 0 <= position < self.path.stop}
        by_segment = groupby(sorted(places), key=itemgetter(0))
        around = [
            doc for segment, group in by_segment for doc in self.index.by_position(segment, [at for _, at in group])
        ]
        if self.path is not None:
            around = [doc._replace(segment=0) for doc in around]
        docs = sorted(around, key=lambda doc: (doc.segment, doc.position))
        return docs, ranking.score_documents(docs, matched)

    def _within_budget(
        self, chars: Mapping[Document, int], term_scores: Mapping[str, float], tokens: int, counter: Counter
    ) -> RecallResult:
        """The chosen messages that fit the token budget, each with at most `chars` characters.

        The message chosen last is dropped first. If only one message is left, its text is shortened.
        """
        read = self.index.messages([doc.id for doc in chars])
        chosen = [doc for doc in chars if doc.id in read]  # retention may have deleted some
        shown = {doc: _recalled(doc, read[doc.id], term_scores, chars[doc]) for doc in chosen}
        while chosen:
            results = self._passages(chosen, shown)
            size = counter.count(text_of_passages(results)).upper
            if size <= tokens:
                return RecallResult(results=results, tokens=size)
            first = chosen[0]
            if len(chosen) > 1:
                chosen.pop()
            elif len(shown[first].text) > 2 * len(OMISSION):
                shown[first] = _recalled(first, read[first.id], term_scores, len(shown[first].text) // 2)
            else:
                break
        return RecallResult(results=())

    def _passages(
        self, chosen: Sequence[Document], shown: Mapping[Document, RecalledMessage]
    ) -> tuple[RecalledPassage, ...]:
        """The chosen messages, grouped into passages. The passage with the best message comes first."""
        passages: list[list[Document]] = []
        for doc in sorted(chosen, key=lambda doc: (doc.segment, doc.position)):
            if passages and ranking.in_one_passage(passages[-1][-1], doc):
                passages[-1].append(doc)
            else:
                passages.append([doc])
        order = {doc: number for number, doc in enumerate(chosen)}
        passages.sort(key=lambda passage: min(order[doc] for doc in passage))
        return tuple([self._passage(docs, tuple([shown[doc] for doc in docs])) for docs in passages])

    def _passage(self, docs: Sequence[Document], messages: tuple[RecalledMessage, ...]) -> RecalledPassage:
        segment, owner = docs[0].segment, self.store.tx.owner
        session = branch_table.branch_of_segment(self.connection, owner, segment).session if segment else ""
        name = f"{segment or ''}{handle(docs[0].position, docs[-1].position)}"
        return RecalledPassage(handle=name, messages=messages, session=session)


class _BranchPath:
    """The messages of one branch. Messages are stored in segments (runs of messages that branches share)."""

    def __init__(self, spans: Sequence[Span], stop: int) -> None:
        self.spans, self.stop = spans, stop
        self.by_segment = {span.segment: span for span in spans}

    def locate(self, position: int) -> tuple[int, int]:
        """The number of the segment that contains this position, and the position."""
        return self.spans[bisect_right(self.spans, position, key=lambda span: span.start) - 1].segment, position

    def has(self, doc: Document) -> bool:
        """Whether the branch has this message."""
        span = self.by_segment.get(doc.segment)
        return span is not None and span.start <= doc.position < min(span.stop, self.stop)


def _recalled(doc: Document, message: Message, term_scores: Mapping[str, float], chars: int) -> RecalledMessage:
    text = indexed_text(message)
    shown = excerpt(text, term_scores, chars)
    return RecalledMessage(position=doc.position, role=message.role[:ROLE_CHARS], text=shown, is_whole=shown == text)
