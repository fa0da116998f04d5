"""Recall by search: what was said about it, with its neighbours, within a cap of tokens.

    found = search(store, store.session("ticket-42"), "which port does the worker use?")
    print(found)            # what a model is given
    found.results[0].handle # '#120-131'

The database finds the messages that have the question's words, by number and not by text; ranking is `rank`'s. Only the
few messages that are shown are read. The words of a question and of a message are data and nothing else.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
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
from foldline.recall import ranking as rank
from foldline.recall.excerpt import excerpt, searchable_text
from foldline.recall.ranking import Document
from foldline.recall.text_index import IndexReader, catch_up

TOKENS = 2000
"""What one recall may cost."""
LEAST_TOKENS = 50
RESULTS = 10
QUERY_CHARS = 4000
"""A question is not longer: the rest is not looked at."""
PROMPT_CHARS = 700
"""A person's words are shown up to this length, the best part of them when there are more."""
OTHER_CHARS = 200
HITS = 4000
"""Messages that are taken for one word of the question, the newest first."""
PAIRED = 3
"""Of so many common words, the rarest ones, old messages are taken too if they have two of them."""
PAIRED_HITS = 40_000
"""A word that more messages have is not worth looking for in pairs."""
EXPANSION_HITS = 300
"""A lent word that more messages have says too little."""
CANDIDATES = 150
"""Messages that are looked at closely."""
LOOKED_AT = 2000
"""How many are tried for that where many belong to other paths."""
WINDOW = 4
"""And so many on each side of them."""
EXPANSION_CHARS = 4000
"""Characters of a message whose words are lent."""
CHARS_PER_TOKEN = 4
ROLE_CHARS = 20
LINE_CHARS = 14
"""What the handle and the role in front of a message cost."""
UNSEARCHED = "Nothing was found, but what was said last could not be searched now: ask again."
MANY = 100_000
"""Where counting the owner's messages stops: more make no word rarer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledMessage:
    """One message of a result."""

    position: int
    role: str
    text: str
    whole: bool
    """Nothing was left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledRun:
    """Messages that follow one another."""

    handle: str
    lines: tuple[RecalledMessage, ...]
    session: str = ""
    """Which session said it, when all were asked."""

    def __str__(self) -> str:
        mark = self.handle.partition("#")[0]
        head = f"[session {self.session}]\n" if self.session else ""
        return head + "\n".join(f"{mark}{handle(line.position)} {line.role}: {line.text}" for line in self.lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallResult:
    """What a search found, best first. Its text is what a model is given."""

    results: tuple[RecalledRun, ...]
    tokens: int = 0
    whole: bool = True
    """Everything was searched: not so where the newest could not be indexed now."""

    def __str__(self) -> str:
        return _text(self.results) if self.results or self.whole else UNSEARCHED


def _text(results: Sequence[RecalledRun]) -> str:
    if not results:
        return "Nothing was said about that."
    cut = not all(line.whole for result in results for line in result.lines)
    note = [f"{OMISSION} was left out: recall by handle gives the whole"] if cut else []
    return "\n\n".join([*map(str, results), *note])


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallQuery:
    """A question to everything that was said."""

    query: str
    tokens: int = TOKENS
    results: int = RESULTS
    before: int | None = None
    """Only messages in front of this position: what is in the view already need not be found."""
    everywhere: bool = False
    """In all sessions of the owner."""

    def __post_init__(self) -> None:
        if self.tokens < LEAST_TOKENS or self.results < 1:
            raise InputError(
                f"no room for {self.results} results in {self.tokens} tokens",
                hint=f"ask for at least one result and {LEAST_TOKENS} tokens",
            )


def search(store: Store, where: Branch | Head, ask: RecallQuery, counter: Counter | None = None) -> RecallResult:
    """What was said about it on a path or, asked for, in all of the owner's sessions."""
    head = where if isinstance(where, Head) else store.head(where)
    weights = rank.query_terms(ask.query[:QUERY_CHARS])
    if not weights:
        return RecallResult(results=())
    catch_up(store)
    spans = None if ask.everywhere else store.spans(head)
    stop = head.length if ask.before is None else min(ask.before, head.length)
    found = store.tx.read(
        lambda connection: _Search(store, connection, spans, stop).run(ask, weights, counter or Estimator())
    )
    return replace(found, whole=False) if has_unindexed(store.tx) else found


class _Search:
    """One search, on one connection."""

    def __init__(self, store: Store, connection: Connection, spans: Sequence[Span] | None, stop: int) -> None:
        self.store, self.connection = store, connection
        self.path = None if spans is None else _Path(spans, stop)
        self.index = IndexReader(store, connection, None if spans is None else [span.strand for span in spans])
        self.total = self.index.total(MANY) if spans is None else stop

    def run(self, ask: RecallQuery, weights: dict[str, float], counter: Counter) -> RecallResult:
        """Ask, ask again with the words that the best messages lend, and show what is best then."""
        hits = self._hits(weights)
        rarities = {term: self._rarity(ids, HITS) for term, ids in hits.items()}
        worth = {term: weights[term] * rarities[term] for term in hits}
        matched = rank.add_term_scores({}, hits, worth)
        pool = rank.expansion_terms(self._best(matched), weights)
        more = dict(zip(pool, self.index.having([[term] for term in pool], EXPANSION_HITS), strict=True))
        few = {term: self._rarity(ids, EXPANSION_HITS) for term, ids in more.items() if len(ids) < EXPANSION_HITS}
        lent = rank.expansion_weights(weights, pool, few)
        worth |= {term: weight * few[term] for term, weight in lent.items()}
        docs, scores = self._near(rank.add_term_scores(matched, {term: more[term] for term in lent}, worth))
        scores = rank.add_neighbour_scores(docs, scores)
        costs = [(min(doc.size, _allowance(doc)) + LINE_CHARS) / CHARS_PER_TOKEN for doc in docs]
        chosen = rank.choose(docs, scores, costs, results=ask.results, budget=ask.tokens)
        return self._fitted([docs[at] for at in chosen], worth, ask.tokens, counter)

    def _hits(self, wanted: Iterable[str]) -> dict[str, list[int]]:
        """Which messages have each term. Of a common one the newest, and older ones that have two common ones."""
        wanted = list(wanted)
        hits = dict(zip(wanted, self.index.having([[term] for term in wanted], HITS), strict=True))
        common = {term: self._holding(ids, HITS) for term, ids in hits.items() if len(ids) >= HITS}
        paired = nsmallest(
            PAIRED, [term for term in common if common[term] <= PAIRED_HITS], key=lambda term: common[term]
        )
        older: dict[str, set[int]] = {term: set() for term in paired}
        pairs = list(combinations(paired, 2))
        for pair, both in zip(pairs, self.index.having(pairs, HITS), strict=True):
            for term in pair:
                older[term].update(id_ for id_ in both if id_ < hits[term][-1])
        return {term: ids + sorted(older.get(term, ()), reverse=True) for term, ids in hits.items() if ids}

    def _holding(self, ids: Sequence[int], limit: int) -> int:
        """How many messages have a term; if not all were taken, by how dense the newest of them stand."""
        if len(ids) < limit:
            return len(ids)
        return max(limit, self.total * limit // (ids[0] - ids[limit - 1] + 1))

    def _rarity(self, ids: Sequence[int], limit: int) -> float:
        return rank.rarity(self._holding(ids, limit), self.total)

    def _candidates(self, matched: Mapping[int, float]) -> list[Document]:
        """The messages that match best."""
        ordered = rank.top_ids(matched, LOOKED_AT)
        found: list[Document] = []
        for start in range(0, len(ordered), CANDIDATES):
            found += filter(self._allowed, self.index.by_id(ordered[start : start + CANDIDATES]))
            if len(found) >= CANDIDATES:
                break
        return found

    def _best(self, matched: Mapping[int, float]) -> list[tuple[float, str]]:
        """The texts of the few best messages, each with its score."""
        docs = self._candidates(matched)
        scored = [(score, doc.id) for score, doc in zip(rank.score(docs, matched), docs, strict=True) if score > 0]
        best = sorted(scored, reverse=True)[: rank.FEEDBACK]
        read = self.index.messages([id_ for _, id_ in best])
        return [(score, searchable_text(read[id_])[:EXPANSION_CHARS]) for score, id_ in best if id_ in read]

    def _near(self, matched: Mapping[int, float]) -> tuple[list[Document], list[float]]:
        """The messages that match best and their neighbours, in the order of the talk, each with its own score."""
        found = self._candidates(matched)
        places = {(doc.strand, doc.position + step) for doc in found for step in range(-WINDOW, WINDOW + 1)}
        if self.path is not None:
            places = {self.path.home(position) for _, position in places if 0 <= position < self.path.stop}
        around = [doc for strand, positions in _grouped(places) for doc in self.index.at(strand, positions)]
        if self.path is not None:
            around = [doc._replace(strand=0) for doc in around]
        docs = sorted(around, key=lambda doc: (doc.strand, doc.position))
        return docs, rank.score(docs, matched)

    def _allowed(self, doc: Document) -> bool:
        return self.path is None or self.path.has(doc.strand, doc.position)

    def _fitted(
        self, chosen: list[Document], worth: Mapping[str, float], tokens: int, counter: Counter
    ) -> RecallResult:
        """The chosen messages, as many as fit: what was chosen last is left out first."""
        read = self.index.messages([doc.id for doc in chosen])
        chosen = [doc for doc in chosen if doc.id in read]  # retention may have been faster
        lines = {doc: _line(doc, read[doc.id], worth, _allowance(doc)) for doc in chosen}
        while chosen:
            shown = self._results(chosen, lines)
            size = counter.count(_text(shown)).upper
            if size <= tokens:
                return RecallResult(results=shown, tokens=size)
            first = chosen[0]
            if len(chosen) > 1:
                chosen.pop()
            elif len(lines[first].text) > 2 * len(OMISSION):
                lines[first] = _line(first, read[first.id], worth, len(lines[first].text) // 2)
            else:
                break
        return RecallResult(results=())

    def _results(
        self, chosen: Sequence[Document], lines: Mapping[Document, RecalledMessage]
    ) -> tuple[RecalledRun, ...]:
        """The chosen messages as runs, the run whose message was chosen first in front."""
        runs: list[list[Document]] = []
        for doc in sorted(chosen, key=lambda doc: (doc.strand, doc.position)):
            if runs and rank.adjacent(runs[-1][-1], doc):
                runs[-1].append(doc)
            else:
                runs.append([doc])
        order = {doc: number for number, doc in enumerate(chosen)}
        runs.sort(key=lambda run: min(order[doc] for doc in run))
        return tuple([self._result(run, tuple([lines[doc] for doc in run])) for run in runs])

    def _result(self, run: Sequence[Document], lines: tuple[RecalledMessage, ...]) -> RecalledRun:
        name, strand = handle(run[0].position, run[-1].position), run[0].strand
        if not strand:
            return RecalledRun(handle=name, lines=lines)
        said_in = branch_table.branch_of_strand(self.connection, self.store.tx.owner, strand).session
        return RecalledRun(handle=f"{strand}{name}", lines=lines, session=said_in)


class _Path:
    """Which messages a path has."""

    def __init__(self, spans: Sequence[Span], stop: int) -> None:
        self.spans, self.stop = spans, stop
        self.starts = [span.start for span in spans]
        self.by_strand = {span.strand: span for span in spans}

    def home(self, position: int) -> tuple[int, int]:
        """The strand on which the path has this position, and the position."""
        return self.spans[bisect_right(self.starts, position) - 1].strand, position

    def has(self, strand: int, position: int) -> bool:
        """Whether the path has this very message."""
        span = self.by_strand.get(strand)
        return span is not None and span.start <= position < min(span.stop, self.stop)


def _grouped(places: Iterable[tuple[int, int]]) -> list[tuple[int, list[int]]]:
    """Positions by strand, in order."""
    return [(strand, [at for _, at in group]) for strand, group in groupby(sorted(places), key=itemgetter(0))]


def _line(doc: Document, message: Message, worth: Mapping[str, float], chars: int) -> RecalledMessage:
    """A message as it is shown."""
    text = searchable_text(message)
    shown = excerpt(text, worth, chars)
    return RecalledMessage(position=doc.position, role=message.role[:ROLE_CHARS], text=shown, whole=shown == text)


def _allowance(doc: Document) -> int:
    """How many characters of a message are shown."""
    return PROMPT_CHARS if doc.prompt else OTHER_CHARS
