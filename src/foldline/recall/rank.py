"""Which messages answer a question: pure arithmetic over what the index says, the same on every database.

A message scores by the rare words it shares with the question, less for its length, more for a person's own words. What
stands close by counts too, and fades with the distance in characters, so that a short remark in the middle of the right
talk is found and a whole discussion comes back as one run. Words that the best messages share are then asked for as
well: people do not repeat their own words. Every number was chosen on one half of the questions of `bench recall`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import exp, log
from typing import NamedTuple

from foldline.recall.terms import terms

LENGTH_CHARS = 800
"""A message of this length is weighed as it is."""
LENGTH_WEIGHT = 0.9
"""How much a longer one loses: 0 would be nothing."""
PROMPT_WEIGHT = 2.0
"""What a person said weighs more than what a model or a tool said about it."""
NEAR_CHARS = 1000
"""At this distance a neighbour's score counts for a third (1/e)."""
FEEDBACK = 10
"""How many of the best messages lend their words to the question."""
LENT_POOL = 40
LENT_TERMS = 25
LENT_SHARE = 0.4
"""The weight of all lent words together, against the question's own."""
QUERY_TERMS = 48
"""More words make no question."""

_ASKING = frozenset(terms("what which who whom whose when where why how many much please remind tell did does"))
"""Words of a question that are not what it is about."""


class Doc(NamedTuple):
    """What is known of a message without reading it."""

    id: int
    position: int
    size: int
    """Characters."""
    prompt: bool
    """A person said it."""
    strand: int = 0


def asked(query: str) -> dict[str, float]:
    """The terms of a question with their weights; its asking words only when there is nothing else.

    >>> asked("Which port does the worker use?")
    {'port': 1.0, 'worker': 1.0, 'us': 1.0}
    """
    found = terms(query)
    return dict.fromkeys([term for term in found if term not in _ASKING][:QUERY_TERMS] or found[:QUERY_TERMS], 1.0)


def rarity(holding: int, total: int) -> float:
    """What a term that stands in `holding` of `total` messages says about one that has it."""
    return log(1 + (max(total, holding) - holding + 0.5) / (holding + 0.5))


def match(
    hits: Mapping[str, Sequence[int]], weights: Mapping[str, float], rarities: Mapping[str, float]
) -> dict[int, float]:
    """The summed rarity of the terms that each message has, by its id."""
    found: dict[int, float] = {}
    for term, ids in hits.items():
        worth = weights[term] * rarities[term]
        for id_ in ids:
            found[id_] = found.get(id_, 0.0) + worth
    return found


def score(docs: Iterable[Doc], matched: Mapping[int, float]) -> list[float]:
    """Each message by itself."""
    return [
        matched.get(doc.id, 0.0)
        * (PROMPT_WEIGHT if doc.prompt else 1.0)
        / (1 + LENGTH_WEIGHT * doc.size / LENGTH_CHARS)
        for doc in docs
    ]


def spread(docs: Sequence[Doc], scores: Sequence[float]) -> list[float]:
    """Each message with what stands around it; `docs` are in the order of the talk, with gaps where strangers stand."""
    out = list(scores)
    for order in (range(len(docs)), range(len(docs) - 1, -1, -1)):
        carried, before = 0.0, -1
        for at in order:
            if before >= 0 and adjacent(docs[before], docs[at]):
                apart = (docs[before].size + docs[at].size) / 2
                carried = (carried + scores[before]) * exp(-apart / NEAR_CHARS)
                out[at] += carried
            else:
                carried = 0.0
            before = at
    return out


def adjacent(one: Doc, other: Doc) -> bool:
    """Whether one message follows the other."""
    return one.strand == other.strand and abs(one.position - other.position) == 1


def lent(best: Sequence[tuple[float, str]], weights: Mapping[str, float]) -> dict[str, float]:
    """The terms that the best messages could lend to the question, the likeliest first, with the share that says so."""
    total = sum(worth for worth, _ in best) or 1.0
    found: dict[str, float] = {}
    for worth, text in best:
        own = terms(text)
        for term in own:
            if term not in weights:
                found[term] = found.get(term, 0.0) + worth / total / len(own)
    likeliest = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return dict(likeliest[:LENT_POOL])


def widened(weights: Mapping[str, float], pool: Mapping[str, float], rarities: Mapping[str, float]) -> dict[str, float]:
    """The question's terms and the lent ones, rare ones preferred, which together weigh `LENT_SHARE` of it."""
    worth = {term: share * rarities[term] for term, share in pool.items() if term in rarities}
    best = sorted(worth.items(), key=lambda item: (-item[1], item[0]))[:LENT_TERMS]
    total = sum(value for _, value in best)
    if not total:
        return dict(weights)
    scale = LENT_SHARE * sum(weights.values()) / total
    return dict(weights) | {term: value * scale for term, value in best}


def choose(
    docs: Sequence[Doc], scores: Sequence[float], costs: Sequence[float], *, results: int, budget: float
) -> list[int]:
    """Which messages to show, best first: indexes into `docs`.

    Messages that follow one another are one result. When there are as many results as may be, only their neighbours
    are added, as long as the budget lasts.
    """
    order = sorted((at for at in range(len(docs)) if scores[at] > 0), key=lambda at: (-scores[at], -docs[at].id))
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
