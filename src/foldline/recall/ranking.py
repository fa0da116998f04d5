"""Ranks the messages that match a query. Only index entries are used, so the result is the same on every database.

A message gets a score for each term that it shares with the query. Rare terms count more. A match in a prompt counts
more, and a match in a long message counts less. The scores of close neighbours are added, so that a short remark in a
relevant discussion is found. Terms that the best messages share are added to the query (pseudo-relevance feedback). All
constants were fitted on one half of the questions of `bench recall`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from math import exp, log, sqrt
from typing import NamedTuple

from foldline.recall.terms import terms

LENGTH_CHARS = 800
"""A match in a message of about this many characters counts half as much as in a message of a few words."""
LENGTH_WEIGHT = 0.9
"""How strongly the length of a message lowers its score; 0 turns this off."""
LONG_CHARS = 4000
"""A longer message is treated like a message of this length (characters), so that rare terms in huge results still
count.
"""
FLOOR = 0.15
"""Messages that score less than this share of the best score are not shown."""
PROMPT_WEIGHT = 2.0
"""A match in a prompt counts this many times as much as a match in a reply or a tool result."""
RARITY_POWER = 1.5
"""Exponent of a term's rarity. With a value above 1, one rare term counts more than two terms that are half as rare."""
NEAR_CHARS = 1000
"""The farther away a neighbour is, the less its score counts. At this distance in characters, the weight of its squared
score is 1/e.
"""
FEEDBACK = 10
"""Number of best messages from which expansion terms are taken."""
EXPANSION_POOL = 40
EXPANSION_TERMS = 25
EXPANSION_SHARE = 0.4
"""The total weight of the expansion terms, relative to that of the query's own terms."""
QUERY_TERMS = 48
SIMILARITY_SHARE = 0.5
"""If word vectors are installed, the share of a message's score that comes from its similarity in
meaning to the query.
"""
SIMILARITY_LENGTH_WEIGHT = 0.2
"""How strongly the length of a message lowers its similarity."""
PASSAGE_GAP = 4
"""Two messages that are at most this many positions apart belong to one result (a passage). The messages between the
two are shown only if they match well themselves.
"""
LONG_REPLIES = 2
"""Maximum number of long replies and tool results that are shown at length. Those with the highest scores are taken."""
REPLY_FLOOR = 0.6
"""Long replies and tool results beyond `LONG_REPLIES` are shown only if they have at least this share of the best
score.
"""
FULL_MATCH = 0.6
"""A message is a full match if the terms of the query that it contains have at least this share of the score of the
terms in any other message. A full match is never too weak to be shown: a short prompt with the same words scores many
times higher, but a long tool result may have the answer.
"""

_QUESTION_WORDS = frozenset(terms("what which who whom whose when where why how many much please remind tell did does"))


_ABBREVIATIONS = (
    "arg argument, auth authentication, config configuration, db database, dep dependency, dir directory, "
    "doc documentation, env environment, err error, func function, impl implementation, info information, lib library, "
    "mr merge request, msg message, param parameter, perf performance, pr pull request, prod production, "
    "repo repository, spec specification, sync synchronization, temp temporary, ui user interface, var variable"
)
ABBREVIATIONS = {short: tuple(long) for short, *long in map(terms, _ABBREVIATIONS.split(", "))}
"""Abbreviations that developers use, each with the terms of its long form. A query with either form finds both."""


class Document(NamedTuple):
    """The index entry of a message."""

    id: int
    position: int
    size: int
    """Length in characters."""
    is_prompt: bool
    segment: int = 0


def query_terms(query: str) -> dict[str, float]:
    """The terms of a query with their weights. Question words are left out unless there are no other terms.

    >>> query_terms("Which port does the worker use?"), query_terms("the pull request")
    ({'port': 1.0, 'worker': 1.0, 'us': 1.0}, {'pull': 1.0, 'request': 1.0, 'pr': 1.0})
    """
    found = terms(query)
    wanted = [term for term in found if term not in _QUESTION_WORDS] or found
    weights = dict.fromkeys(wanted[:QUERY_TERMS], 1.0)
    for short, long in ABBREVIATIONS.items():
        if short in found:
            weights |= {term: 1 / len(long) for term in long if term not in weights}
        elif all(term in found for term in long):
            weights[short] = 1.0
    return weights


def rarity(frequency: int, total: int) -> float:
    """The inverse document frequency of a term, raised to the power `RARITY_POWER`.

    The term is in `frequency` of `total` messages.
    """
    return float(log(1 + (max(total, frequency) - frequency + 0.5) / (frequency + 0.5)) ** RARITY_POWER)


def add_term_scores(
    scores: Mapping[int, float], hits: Mapping[str, Sequence[int]], term_scores: Mapping[str, float]
) -> dict[int, float]:
    """The score of each message, plus the scores of the terms that the message contains.

    `scores` maps message ids to scores.
    """
    added = dict(scores)
    for term, ids in hits.items():
        score = term_scores[term]
        for id_ in ids:
            added[id_] = added.get(id_, 0.0) + score
    return added


def top_ids(scores: Mapping[int, float], count: int) -> list[int]:
    """The ids with the highest scores, the best first. At most `count` ids are returned.

    Among equal scores, the newest message comes first.
    """
    least = sorted(scores.values())[-count] if len(scores) > count else 0.0
    chosen = sorted([(value, id_) for id_, value in scores.items() if value >= least], reverse=True)
    return [id_ for _, id_ in chosen[:count]]


def score_documents(docs: Iterable[Document], matched: Mapping[int, float]) -> list[float]:
    """The score of each message, without the scores of its neighbours.

    A match in a long message counts less, and a match in a prompt counts more.
    """
    lengths = ((doc, 1 + LENGTH_WEIGHT * min(doc.size, LONG_CHARS) / LENGTH_CHARS) for doc in docs)
    return [matched.get(doc.id, 0.0) * ((PROMPT_WEIGHT if doc.is_prompt else 1.0) / length) for doc, length in lengths]


def add_neighbour_scores(docs: Sequence[Document], scores: Sequence[float]) -> list[float]:
    """Each message's score, combined with the scores of its neighbours. Near neighbours count more than distant ones.

    `docs` are sorted by position and may have gaps. A combined score is the square root of the sum of the squared
    scores, so that many weak neighbours do not outweigh one strong match.
    """
    before, after = _neighbour_squares(docs, scores)
    return [sqrt(score * score + left + right) for score, left, right in zip(scores, before, after, strict=True)]


def _neighbour_squares(
    docs: Sequence[Document], scores: Sequence[float], *, across_turns: bool = True
) -> tuple[list[float], list[float]]:
    """For each message, the sum of the squared scores of the messages before it, and of those after it.

    The sums are returned as two lists. The squared scores are weighted by distance (see `NEAR_CHARS`).

    Without `across_turns`, only messages of the same turn count. A turn begins with a prompt that follows a reply.
    """
    decays = [
        exp((one.size + other.size) / (-2 * NEAR_CHARS))
        if are_adjacent(one, other) and (across_turns or one.is_prompt or not other.is_prompt)
        else 0.0
        for one, other in pairwise(docs)
    ]
    squares = [score * score for score in scores]
    return _carried(squares, decays), _carried(squares[::-1], decays[::-1])[::-1]


def _carried(squares: Sequence[float], decays: Sequence[float]) -> list[float]:
    """For each message, the sum of the squared scores of the messages before it, weighted by distance.

    `decays` has one factor for each pair of neighbours. The weight of an earlier message is the product of the factors
    of all pairs between this message and the later one.
    """
    sums = [0.0] if squares else []
    for square, decay in zip(squares, decays, strict=False):
        sums.append((sums[-1] + square) * decay)
    return sums


def add_similarities(
    docs: Sequence[Document], scores: Sequence[float], similarities: Mapping[int, float]
) -> list[float]:
    """Each message's score, combined with the similarity in meaning between the message and the query.

    `scores` do not include the scores of neighbours. `similarities` maps message ids to similarities. Scores are scaled
    so that the highest score is `1 - SIMILARITY_SHARE`. Similarities are scaled so that the highest similarity is
    `SIMILARITY_SHARE`.
    """
    values = [
        similarities.get(doc.id, 0.0) ** 2 / (1 + SIMILARITY_LENGTH_WEIGHT * min(doc.size, LONG_CHARS) / LENGTH_CHARS)
        for doc in docs
    ]
    terms_scale = (1 - SIMILARITY_SHARE) / (max(scores, default=0.0) or 1.0)
    scale = SIMILARITY_SHARE / (max(values, default=0.0) or 1.0)
    return [score * terms_scale + value * scale for score, value in zip(scores, values, strict=True)]


def are_adjacent(one: Document, other: Document) -> bool:
    """Whether two messages are consecutive."""
    return one.segment == other.segment and abs(one.position - other.position) == 1


def in_one_passage(one: Document, other: Document) -> bool:
    """Whether two messages are close enough to be one result."""
    return one.segment == other.segment and abs(one.position - other.position) <= PASSAGE_GAP


def expansion_terms(best: Sequence[tuple[float, str]], weights: Mapping[str, float]) -> dict[str, float]:
    """Terms that are not in the query but in at least two of the best messages, each with a value.

    `best` holds the score and the text of each message. The value of a term is higher if the term is in messages with
    high scores.
    """
    total = sum(score for score, _ in best) or 1.0
    found: dict[str, list[float]] = {}
    for score, text in best:
        own = terms(text)
        for term in own:
            if term not in weights:
                found.setdefault(term, []).append(score / total / len(own))
    shared = [(term, sum(shares)) for term, shares in found.items() if len(shares) > 1]
    return dict(sorted(shared, key=lambda item: (-item[1], item[0]))[:EXPANSION_POOL])


def expansion_weights(
    weights: Mapping[str, float], pool: Mapping[str, float], rarities: Mapping[str, float]
) -> dict[str, float]:
    """The weight of each expansion term.

    Rarer terms weigh more. The sum of the weights is `EXPANSION_SHARE` times the query's total weight.
    """
    values = {term: share * rarities[term] for term, share in pool.items() if term in rarities}
    best = sorted(values.items(), key=lambda item: (-item[1], item[0]))[:EXPANSION_TERMS]
    scale = EXPANSION_SHARE * sum(weights.values()) / (sum(value for _, value in best) or 1.0)
    return {term: value * scale for term, value in best}


def full_matches(term_sums: Sequence[float]) -> set[int]:
    """The full matches (see `FULL_MATCH`), as indexes. `term_sums` has the sum of each message's term scores."""
    least = FULL_MATCH * max(term_sums, default=0.0)
    return {at for at, total in enumerate(term_sums) if total >= least > 0}


def worth_showing(
    docs: Sequence[Document], own: Sequence[float], scores: Sequence[float], long_chars: int, full: Collection[int]
) -> tuple[list[int], list[int]]:
    """The messages to show, best first, and those of the long replies and tool results that get a long excerpt.

    Messages are given as indexes into `docs`. `own` has the scores without the scores of neighbours. A message without
    a match is shown only between matches or beside a match of the same turn. A reply or tool result without a match
    must also have at most `long_chars` characters. A message without text is never shown. `full` are the full matches.
    They are shown even if their scores are low, and they are the first that get a long excerpt.
    """
    best = max(scores, default=0.0)
    between = map(min, *_neighbour_squares(docs, own))
    in_turn = map(sum, zip(*_neighbour_squares(docs, own, across_turns=False), strict=True))
    context = [sqrt(max(pair)) for pair in zip(between, in_turn, strict=True)]
    shares = [score if mine else around for score, mine, around in zip(scores, own, context, strict=True)]
    strong = {at for at, share in enumerate(shares) if share >= FLOOR * best}.union(full)
    wanted = [at for at, share in enumerate(shares) if at in strong and share > 0 and docs[at].size]
    order = sorted(wanted, key=lambda at: (-scores[at], -docs[at].id))
    long_ones = [at for at in order if not docs[at].is_prompt and docs[at].size > long_chars]
    at_length = sorted([at for at in long_ones if own[at] > 0], key=lambda at: at not in full)[:LONG_REPLIES]
    weak = {at for at in long_ones if not own[at] or scores[at] < REPLY_FLOOR * best} - set(at_length)
    return [at for at in order if at not in weak], at_length


def choose(
    docs: Sequence[Document], order: Sequence[int], costs: Sequence[float], *, results: int, budget: float
) -> list[int]:
    """The messages to show, best first, as indexes into `docs`.

    `order` has the messages that are worth showing, best first. The messages are tried in this order. Chosen messages
    that are in the same passage count as one result. A message is skipped if it would raise the number of results above
    `results`, or the sum of the costs above `budget`. The messages after it are still tried, because a later message
    may cost less, or may belong to a passage that is already shown.
    """
    shown: set[int] = set()
    chosen: list[int] = []
    count, spent = 0, 0.0
    for at in order:
        before, after = _nearest(docs, shown, at, -1), _nearest(docs, shown, at, 1)
        joined = before is not None and after is not None and in_one_passage(docs[before], docs[after])
        added = 1 - (before is not None) - (after is not None) + joined
        if spent + costs[at] > budget or count + added > results:
            continue
        shown.add(at)
        chosen.append(at)
        count += added
        spent += costs[at]
    return chosen


def _nearest(docs: Sequence[Document], shown: set[int], at: int, step: int) -> int | None:
    """The nearest chosen message before (`step` is -1) or after (`step` is 1) a message.

    None if no chosen message on this side belongs to the same passage.
    """
    other = at + step
    while 0 <= other < len(docs) and in_one_passage(docs[at], docs[other]):
        if other in shown:
            return other
        other += step
    return None
