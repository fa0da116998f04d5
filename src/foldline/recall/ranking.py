"""Which messages answer a question: pure arithmetic over what the index says, the same on every database.

A message scores by the rare words it shares with the question, less for its length, more for a person's own words. What
stands close by counts too, and fades with the distance in characters, so that a short remark in the middle of the right
talk is found and a whole discussion comes back as one run. Words that the best messages share are then asked for as
well: people do not repeat their own words. Every number was chosen on one half of the questions of `bench recall`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import exp, log, sqrt
from typing import NamedTuple

from foldline.recall.terms import terms

LENGTH_CHARS = 800
"""At about this length a match counts half as much as in a word or two."""
LENGTH_WEIGHT = 0.9
"""How much length takes away: 0 would be nothing."""
LONG_CHARS = 4000
"""Beyond this it loses no more: a rare word in a huge result is still a rare word."""
FLOOR = 0.15
"""What scores less than this share of the best is not worth its tokens."""
PROMPT_WEIGHT = 2.0
"""What a person said weighs more than what a model or a tool said about it."""
RARITY_POWER = 1.5
"""How much more a rare word says than two that are half as rare."""
NEAR_CHARS = 1000
"""At this distance the square of a neighbour's score counts for a third (1/e)."""
FEEDBACK = 10
"""How many of the best messages lend their words to the question."""
EXPANSION_POOL = 40
EXPANSION_TERMS = 25
EXPANSION_SHARE = 0.4
"""The weight of all lent words together, against the question's own."""
QUERY_TERMS = 48
"""More words make no question."""

_ASKING = frozenset(terms("what which who whom whose when where why how many much please remind tell did does"))
"""Words of a question that are not what it is about."""


class Document(NamedTuple):
    """What is known of a message without reading it."""

    id: int
    position: int
    size: int
    """Characters."""
    prompt: bool
    """A person said it."""
    strand: int = 0


def query_terms(query: str) -> dict[str, float]:
    """The terms of a question with their weights; its asking words only when there is nothing else.

    >>> asked("Which port does the worker use?")
    {'port': 1.0, 'worker': 1.0, 'us': 1.0}
    """
    found = terms(query)
    return dict.fromkeys([term for term in found if term not in _ASKING][:QUERY_TERMS] or found[:QUERY_TERMS], 1.0)


def rarity(holding: int, total: int) -> float:
    """What a term that stands in `holding` of `total` messages says about one that has it."""
    worth: float = log(1 + (max(total, holding) - holding + 0.5) / (holding + 0.5)) ** RARITY_POWER
    return worth


def add_term_scores(
    found: dict[int, float], hits: Mapping[str, Sequence[int]], worth: Mapping[str, float]
) -> dict[int, float]:
    """Add to each message, by its id, what the terms that it has are worth."""
    for term, ids in hits.items():
        more = worth[term]
        for id_ in ids:
            found[id_] = found.get(id_, 0.0) + more
    return found


def top_ids(found: Mapping[int, float], count: int) -> list[int]:
    """The ids that have most, at most `count`, the newest first among equals."""
    least = sorted(found.values(), reverse=True)[count - 1] if len(found) > count else 0.0
    chosen = sorted([(-value, -id_) for id_, value in found.items() if value >= least])
    return [-id_ for _, id_ in chosen[:count]]


def score(docs: Iterable[Document], matched: Mapping[int, float]) -> list[float]:
    """Each message by itself."""
    return [matched.get(doc.id, 0.0) * _worth(doc) for doc in docs]


def _worth(doc: Document) -> float:
    """What a match in a message counts."""
    length = 1 + LENGTH_WEIGHT * min(doc.size, LONG_CHARS) / LENGTH_CHARS
    return (PROMPT_WEIGHT if doc.prompt else 1.0) / length


def add_neighbour_scores(docs: Sequence[Document], scores: Sequence[float]) -> list[float]:
    """Each message with what stands around it; `docs` are in the order of the talk, with gaps where strangers stand.

    Squares are summed, so that many faint matches around do not drown one that is clear.
    """
    squares = [score_ * score_ for score_ in scores]
    out = list(squares)
    for order in (range(len(docs)), range(len(docs) - 1, -1, -1)):
        carried, before = 0.0, -1
        for at in order:
            if before >= 0 and adjacent(docs[before], docs[at]):
                apart = (docs[before].size + docs[at].size) / 2
                carried = (carried + squares[before]) * exp(-apart / NEAR_CHARS)
                out[at] += carried
            else:
                carried = 0.0
            before = at
    return [sqrt(square) for square in out]


def adjacent(one: Document, other: Document) -> bool:
    """Whether one message follows the other."""
    return one.strand == other.strand and abs(one.position - other.position) == 1


def expansion_terms(best: Sequence[tuple[float, str]], weights: Mapping[str, float]) -> dict[str, float]:
    """The terms that the best messages share and could lend to the question, each with the share that says so."""
    total = sum(worth for worth, _ in best) or 1.0
    found: dict[str, list[float]] = {}
    for worth, text in best:
        own = terms(text)
        for term in own:
            if term not in weights:
                found.setdefault(term, []).append(worth / total / len(own))
    shared = [(term, sum(shares)) for term, shares in found.items() if len(shares) > 1]
    return dict(sorted(shared, key=lambda item: (-item[1], item[0]))[:EXPANSION_POOL])


def expansion_weights(
    weights: Mapping[str, float], pool: Mapping[str, float], rarities: Mapping[str, float]
) -> dict[str, float]:
    """The weight of each expansion term: rarer ones weigh more, all together `EXPANSION_SHARE` of the query."""
    worth = {term: share * rarities[term] for term, share in pool.items() if term in rarities}
    best_ = sorted(worth.items(), key=lambda item: (-item[1], item[0]))[:EXPANSION_TERMS]
    scale = EXPANSION_SHARE * sum(weights.values()) / (sum(value for _, value in best_) or 1.0)
    return {term: value * scale for term, value in best_}


def choose(
    docs: Sequence[Document], scores: Sequence[float], costs: Sequence[float], *, results: int, budget: float
) -> list[int]:
    """Which messages to show, best first: indexes into `docs`.

    Messages that follow one another are one result. When there are as many results as may be, only their neighbours
    are added, as long as the budget lasts.
    """
    least = FLOOR * max(scores, default=0.0)
    wanted = (at for at, score_ in enumerate(scores) if score_ > 0 and score_ >= least)
    order = sorted(wanted, key=lambda at: (-scores[at], -docs[at].id))
    shown: set[int] = set()
    chosen: list[int] = []
    runs, spent = 0, 0.0
    for at in order:
        beside = sum(
            other in shown and adjacent(docs[other], docs[at]) for other in (at - 1, at + 1) if 0 <= other < len(docs)
        )
        if spent + costs[at] > budget or (not beside and runs >= results):
            continue
        shown.add(at)
        chosen.append(at)
        runs += 1 - beside
        spent += costs[at]
    return chosen
