"""Finds the messages that may answer a query, and scores them.

The database looks up the query's terms (`text_index.py`). Then it looks up the terms that several of the best matches
contain, because an answer may not use the words of the query. The best matches are read with their neighbours and
scored (`ranking.py`). No message is shown or shortened here; that is done in `passages.py`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import nlargest, nsmallest
from itertools import chain, combinations
from operator import attrgetter
from typing import NamedTuple

from foldline.ledger.records import Span
from foldline.recall import ranking
from foldline.recall.call_results import add_call_terms, call_results
from foldline.recall.excerpt import indexed_text
from foldline.recall.ranking import Document
from foldline.recall.text_index import IndexReader
from foldline.recall.verbatim import Phrase, phrases, verbatim_range
from foldline.recall.word_vectors import WordVectors, installed_vectors

HITS = 2000
"""Maximum number of messages that are looked up per term. The newest are taken."""
PAIRED_TERMS = 3
"""Number of common terms that are combined in pairs to find older messages.

A term is common if at least `HITS` messages contain it; only the newest `HITS` of them are looked up. The rarest of the
common terms are combined, and older messages that contain both terms of a pair are looked up, too.
"""
PAIRED_HITS = 40_000
"""A common term with more hits than this is not used to look up older messages."""
EXPANSION_HITS = 300
"""An expansion term with more hits than this is dropped."""
EXPANSION_CHARS = 4000
CANDIDATES = 100
"""Number of best messages that are scored together with their neighbours."""
CANDIDATES_TRIED = 2000
"""Maximum number of messages that are examined to find the candidates. Many of them may belong to other branches."""
NEIGHBOURS = 4
"""Number of neighbours on each side of a candidate."""
SIMILAR = 150
"""If word vectors are installed, this many of the best messages are compared with the query in meaning."""
VERBATIM = 30
"""Maximum number of messages that are read for a phrase, to find those that contain it verbatim."""
RARE = 3
"""If at most this many messages contain all names and numbers of a query, these messages come first, like messages that
contain the whole query.
"""
ANSWERS = 2
"""Maximum number of prompts whose answers are looked up."""
QUESTION_CHARS = 300
"""A prompt with more characters than this may contain the answer, so it is not treated as a mere question."""
TURN_PAGE = 64
MAX_TURN = 8 * TURN_PAGE
"""Maximum number of messages after a prompt in which its answer is searched."""


class BranchPath:
    """The messages of one branch. Messages are stored in segments (runs of messages that branches share)."""

    def __init__(self, spans: Sequence[Span], stop: int) -> None:
        self.spans, self.stop = spans, stop
        self._by_segment = {span.segment: span for span in spans}

    def has(self, doc: Document) -> bool:
        """Whether the branch has this message."""
        span = self._by_segment.get(doc.segment)
        return span is not None and span.start <= doc.position < min(span.stop, self.stop)

    def split(self, low: int, high: int) -> list[tuple[int, int, int]]:
        """The parts of a range of positions, as (segment, first position, last position)."""
        low, high = max(low, 0), min(high, self.stop - 1)
        parts = []
        for span in self.spans[max(0, bisect_right(self.spans, low, key=attrgetter("start")) - 1) :]:
            if span.start > high:
                break
            parts.append((span.segment, max(low, span.start), min(high, span.stop - 1)))
        return [part for part in parts if part[1] <= part[2]]


class Candidates(NamedTuple):
    """The messages that may be shown, in the order of the conversation, and what is known about them."""

    docs: list[Document]
    own_scores: list[float]
    """The score of each message, without the scores of its neighbours."""
    scores: list[float]
    matches: Mapping[int, float]
    """Maps the id of each message that contains terms of the query to the sum of these terms' scores."""
    phrase_counts: Mapping[int, int]
    """For each message id, the number of phrases of the query that the message contains verbatim. Other messages are
    left out.
    """
    exact: Collection[int]
    """The ids of the messages that contain the whole query or its rare names (see `_exact_ids`). The ids of the answers
    to these messages are included.
    """
    answers: Mapping[int, int]
    """Maps each of the best prompts to its answer. Both are given as indexes into `docs`."""
    call_results: Mapping[int, Sequence[int]]
    """Maps the id of a message with calls that match to the ids of the messages with the results of these calls."""
    phrases: Sequence[Phrase]
    term_scores: Mapping[str, float]


class CandidateFinder:
    """Finds the candidates for one query."""

    def __init__(self, index: IndexReader, path: BranchPath | None, total: int) -> None:
        self.index, self.path, self.total = index, path, total

    def find(self, query: str, weights: Mapping[str, float]) -> Candidates:
        """Find the candidates for a query. `weights` maps each term of the query to its weight.

        The query's terms are searched first; then terms that the best matches share are added (expansion terms).
        """
        hits = self._hits(weights)
        if (asked := self._open_question()) is not None:
            hits = {term: rest for term, ids in hits.items() if (rest := [id_ for id_ in ids if id_ != asked])}
        rarities = {term: self._rarity(ids, HITS) for term, ids in hits.items()}
        term_scores = {term: weights[term] * rarities[term] for term in hits}
        matches = ranking.add_term_scores({}, hits, term_scores)
        wanted = phrases(query)
        texts = self._phrase_texts(wanted, weights, hits)
        best = ranking.top_ids(matches, CANDIDATES)
        pool = ranking.expansion_terms(self._best_texts(best, matches), weights)
        found = self.index.find_rare(pool, EXPANSION_HITS)
        rare = {term: self._rarity(ids, EXPANSION_HITS) for term, ids in found.items()}
        expansion = ranking.expansion_weights(weights, pool, rare)
        term_scores |= {term: weight * rare[term] for term, weight in expansion.items()}
        added = {term: found[term] for term in expansion}
        matched = ranking.add_term_scores(matches, added, term_scores)
        changed = {id_: matched[id_] for id_ in {*best, *chain.from_iterable(added.values())}}
        phrase_counts = Tally(id_ for ids in texts.values() for id_ in ids)
        docs = self._with_neighbours(self._of_branch(ranking.top_ids(changed, CANDIDATES), matched), phrase_counts)
        own = ranking.score_documents(docs, matched)
        pairs = call_results(self.index, docs, own, hits)
        called = add_call_terms(pairs, matched, hits, term_scores)
        own = [max(score, called.get(doc, 0.0)) for doc, score in zip(docs, own, strict=True)]
        scores = ranking.add_neighbour_scores(docs, own)
        if vectors := installed_vectors():
            own = self._add_similarities(vectors, query, docs, own, scores)
            scores = ranking.add_neighbour_scores(docs, own)
        results: dict[int, list[int]] = defaultdict(list)
        for pair in pairs:
            results[pair.call.id].append(pair.result.id)
        exact = _exact_ids(texts)
        exact.update(*[results[id_] for id_ in exact & results.keys()])
        known = Candidates(docs, own, scores, matches, phrase_counts, exact, {}, results, wanted, term_scores)
        return self._with_answers(known, matched)

    def _open_question(self) -> int | None:
        """The id of the branch's newest prompt, if it is a question without an answer; else None.

        The model that searches is about to answer this question. The question repeats the words of the query, so it
        would match better than every message with the answer.
        """
        if self.path is None:
            return None
        newest = self._read(0, [(self.path.stop - TURN_PAGE, self.path.stop - 1)])
        prompt = next((doc for doc in reversed(newest) if doc.is_prompt), None)
        if prompt is None or prompt.size > QUESTION_CHARS:
            return None
        read = self.index.messages([prompt.id, newest[-1].id])
        question, last = read.get(prompt.id), read.get(newest[-1].id)
        if question is None or last is None or (last.role == "assistant" and not last.calls):
            return None
        return prompt.id if indexed_text(question).rstrip().endswith("?") else None

    def _hits(self, wanted: Collection[str]) -> dict[str, list[int]]:
        """For each term, the ids of the messages that contain the term.

        For a common term, only some messages are looked up: the newest ones, and older ones that contain two common
        terms.
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

        If `limit` or more messages contain the term, the number is estimated from the newest of these messages.
        """
        if len(ids) < limit:
            return len(ids)
        return max(limit, self.total * limit // (ids[0] - ids[limit - 1] + 1))

    def _rarity(self, ids: Sequence[int], limit: int) -> float:
        return ranking.rarity(self._frequency(ids, limit), self.total)

    def _phrase_texts(
        self, wanted: Sequence[Phrase], weights: Collection[str], hits: Mapping[str, Sequence[int]]
    ) -> dict[Phrase, list[int]]:
        """For each phrase, the ids of the messages that contain the phrase verbatim.

        Only messages that contain all terms of a phrase are read. A phrase whose terms are in too many messages is left
        out.
        """
        groups = [(phrase, group) for phrase in wanted for group in phrase.term_groups]
        known = [_ids_with_all([hits.get(term, ()) for term in group if term in weights]) for _, group in groups]
        common = [at for at, ids in enumerate(known) if ids is None or len(ids) >= VERBATIM]
        for at, ids in zip(common, self.index.find([groups[at][1] for at in common], VERBATIM), strict=True):
            known[at] = set(ids)
        maybe: dict[Phrase, set[int]] = {}
        for (phrase, _), some in zip(groups, known, strict=True):
            if some is not None and len(some) < VERBATIM:
                maybe.setdefault(phrase, set()).update(some)
        read = self.index.messages(sorted(set().union(*maybe.values())))
        texts = {id_: indexed_text(message) for id_, message in read.items()}
        return {
            phrase: [id_ for id_ in ids if id_ in texts and verbatim_range(texts[id_], [phrase])]
            for phrase, ids in maybe.items()
        }

    def _of_branch(self, ids: Sequence[int], matched: Mapping[int, float]) -> list[Document]:
        """The index entries of `ids`, which are the best matches. Messages of other branches are left out.

        If some of `ids` belong to other branches, further matches are looked up in their place.
        """
        found = self.index.by_id(ids)
        if self.path is None:
            return found
        found = [doc for doc in found if self.path.has(doc)]
        if len(found) == len(ids):
            return found
        ordered = ranking.top_ids(matched, CANDIDATES_TRIED)
        found = []
        for start in range(0, len(ordered), CANDIDATES):
            found += filter(self.path.has, self.index.by_id(ordered[start : start + CANDIDATES]))
            if len(found) >= CANDIDATES:
                break
        return found

    def _best_texts(self, ids: Sequence[int], matched: Mapping[int, float]) -> list[tuple[float, str]]:
        """The scores and texts of the best messages, from which expansion terms are taken."""
        docs = self._of_branch(ids, matched)
        scored = zip(ranking.score_documents(docs, matched), [doc.id for doc in docs], strict=True)
        best = sorted([item for item in scored if item[0] > 0], reverse=True)[: ranking.FEEDBACK]
        read = self.index.messages([id_ for _, id_ in best])
        return [(score, indexed_text(read[id_])[:EXPANSION_CHARS]) for score, id_ in best if id_ in read]

    def _with_neighbours(self, best: Sequence[Document], phrase_ids: Iterable[int]) -> list[Document]:
        """The best matches, the messages with phrases of the query, and the neighbours of all of them, in order."""
        known = [doc for doc in self.index.by_id([*phrase_ids]) if self.path is None or self.path.has(doc)]
        positions: dict[int, list[int]] = defaultdict(list)
        for doc in (*best, *known):
            positions[doc.segment if self.path is None else 0].append(doc.position)
        return [doc for segment in sorted(positions) for doc in self._read(segment, _merged(positions[segment]))]

    def _read(self, segment: int, ranges: Iterable[tuple[int, int]]) -> list[Document]:
        """The messages of the branch in these ranges of positions, in order.

        If there is no branch, the messages of `segment` are read.
        """
        by_segment: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for low, high in ranges:
            for part, first, last in [(segment, low, high)] if self.path is None else self.path.split(low, high):
                by_segment[part].append((first, last))
        found = [doc for part, some in by_segment.items() for doc in self.index.read(part, some)]
        return sorted(found, key=attrgetter("position"))

    def _add_similarities(
        self, vectors: WordVectors, query: str, docs: Sequence[Document], own: Sequence[float], scores: Sequence[float]
    ) -> list[float]:
        """Each message's own score, combined with the similarity in meaning between the message and the query.

        `scores` include the scores of neighbours. The similarity is computed only for the messages with the highest
        `scores`.
        """
        best = nlargest(SIMILAR, range(len(docs)), key=lambda at: scores[at])
        read = self.index.messages([docs[at].id for at in best])
        texts = [indexed_text(message) for message in read.values()]
        return ranking.add_similarities(docs, own, dict(zip(read, vectors.similarities(query, texts), strict=True)))

    def _with_answers(self, known: Candidates, matched: Mapping[int, float]) -> Candidates:
        """The candidates, including the answers to the best prompts."""
        pairs = self._answers(known, matched)
        new = list({answer for _, answer in pairs} - set(known.docs))
        new_scores = ranking.score_documents(new, matched)
        rows = [
            *zip(known.docs, known.own_scores, known.scores, strict=True),
            *zip(new, new_scores, new_scores, strict=True),
        ]
        rows.sort(key=lambda row: (row[0].segment, row[0].position))
        at_doc = {row[0]: at for at, row in enumerate(rows)}
        return known._replace(
            docs=[row[0] for row in rows],
            own_scores=[row[1] for row in rows],
            scores=[row[2] for row in rows],
            answers={at_doc[prompt]: at_doc[answer] for prompt, answer in pairs},
            exact={*known.exact, *(answer.id for prompt, answer in pairs if prompt.id in known.exact)},
        )

    def _answers(self, known: Candidates, matched: Mapping[int, float]) -> list[tuple[Document, Document]]:
        """The best prompts, each with its answer.

        An answer must match the query, too. But if the prompt contains the whole query, its answer is included even if
        the answer does not match.
        """
        docs, scores = known.docs, known.scores
        least = ranking.REPLY_FLOOR * max(scores, default=0.0)
        prompts = [
            at for at, doc in enumerate(docs) if doc.is_prompt and (scores[at] >= least or doc.id in known.exact)
        ]
        prompts.sort(key=lambda at: (docs[at].id not in known.exact, -scores[at], -docs[at].id))
        pairs: list[tuple[Document, Document]] = []
        for prompt in [docs[at] for at in prompts]:
            answer = self._answer(prompt)
            if answer is not None and (prompt.id in known.exact or matched.get(answer.id)):
                pairs.append((prompt, answer))
            if len(pairs) == ANSWERS:
                break
        return pairs

    def _answer(self, prompt: Document) -> Document | None:
        """The answer to a prompt: the last message with text before the next prompt; None if there is none."""
        answer = None
        for start in range(prompt.position + 1, prompt.position + MAX_TURN, TURN_PAGE):
            read = self._read(prompt.segment, [(start, start + TURN_PAGE - 1)])
            for doc in read:
                if doc.is_prompt:
                    return answer
                answer = doc if doc.size else answer
            if len(read) < TURN_PAGE:
                return answer
        return None


def _exact_ids(texts: Mapping[Phrase, Collection[int]]) -> set[int]:
    """The ids of the messages that contain the whole query.

    If no message contains the whole query, the result has the ids of the messages that contain all names in the query
    (such as `worker.max_port`). If more than `RARE` messages contain all names, the result is empty.
    """
    whole = {id_ for phrase, ids in texts.items() if phrase.is_query for id_ in ids}
    named = [set(ids) for phrase, ids in texts.items() if not phrase.is_query]
    both = set.intersection(*named) if named and not whole else set[int]()
    return both if 0 < len(both) <= RARE else whole


def _ids_with_all(lists: Sequence[Sequence[int]]) -> set[int] | None:
    """The ids that are in all lists.

    A list with `HITS` or more ids is ignored, because older ids may be missing in it. Returns None if all lists are
    ignored.
    """
    complete = sorted([ids for ids in lists if len(ids) < HITS], key=len)
    return set(complete[0]).intersection(*complete[1:]) if complete else None


def _merged(positions: Iterable[int]) -> list[tuple[int, int]]:
    """The ranges of all positions that are at most `NEIGHBOURS` away from one of the given positions.

    >>> _merged([20, 3, 12])
    [(-1, 7), (8, 24)]
    """
    ranges: list[tuple[int, int]] = []
    for position in sorted(positions):
        low, high = position - NEIGHBOURS, position + NEIGHBOURS
        if ranges and low <= ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], high)
        else:
            ranges.append((low, high))
    return ranges
