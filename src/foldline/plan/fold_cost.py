"""What folding costs and what it saves, because a fold throws the provider's prompt cache away behind the digest.

With the cache warm, what is kept has to be written again and every later request is cheaper by what left; with the
cache cold everything is written anyway, and a fold is a gain at once. When the session will end is not known, so the
gate rents before it buys: it goes on reading the droppable part at the read price until the money spent on that has
reached the price of folding. And it buys with money that was saved: by earlier folds, or a small stake beside what the
session has cost so far. So folding never costs a session more than that stake above never folding, whenever it ends.

All money is in one unit, that of the tariff. Where the best moments would have been is told in `hindsight`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from foldline.errors import ConfigError
from foldline.models.table import Model
from foldline.plan.timeline import Timeline

STAKE = 0.01
"""How far above never folding a session may ever come, as a share. The largest of those tried (0 to 0.05) that put no
session of the half for choosing above never folding, see `bench/economy.py`; 0 is safer still and folds later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tariff:
    """What a model's tokens cost, and the rules of its cache. By default relative to plain input, as most charge."""

    read: float = 0.1
    """A prompt token that the cache still has."""
    write: float = 1.25
    """A prompt token that it has not."""
    input: float = 1.0
    """A prompt token where nothing is cached."""
    output: float = 5.0
    life_seconds: float = 300.0
    """A cache entry that was not used for longer than this is gone."""
    least_prefix: int = 1024
    """A shorter prefix is never cached."""

    def __post_init__(self) -> None:
        if not 0 <= self.read <= self.write:
            raise ConfigError(
                f"a cached token cannot cost {self.read} when a new one costs {self.write}",
                hint="the read price lies between 0 and the write price",
            )
        if min(self.input, self.output, self.life_seconds, self.least_prefix) < 0:
            raise ConfigError("a price or a rule of the cache is negative", hint="all of them are 0 or more")


def tariff_of(model: Model, *, hour: bool = False) -> Tariff:
    """The tariff of a model, for the cache of five minutes or the one of an hour; the default where none is stated."""
    rules = model.cache
    life = 3600.0 if hour else float(rules.ttl_seconds)
    prices = model.prices
    if prices is None:
        return Tariff(life_seconds=life, least_prefix=rules.min_tokens)
    write = prices.write_1h if hour else prices.write
    return Tariff(
        read=prices.read,
        write=max(write, prices.input),  # a free write is still charged as input
        input=prices.input,
        output=prices.output,
        life_seconds=life,
        least_prefix=rules.min_tokens,
    )


def alive(tariff: Tariff, last: float | None, now: float | None) -> bool:
    """True if a request sent now finds the last one in the cache; so it does where a time is not known."""
    return last is None or now is None or now - last <= tariff.life_seconds


def charge(tariff: Tariff, *, tokens: int, common: int, warm: bool) -> float:
    """What one request costs whose first `common` tokens are those of the request before."""
    read = common if warm and common >= tariff.least_prefix else 0
    return tariff.read * read + tariff.write * (tokens - read)


def digest_cost(tariff: Tariff, *, covered: int, digest: int) -> float:
    """What a model takes for a digest: it reads what is covered, past any cache, and writes the digest."""
    return tariff.input * covered + tariff.output * digest


def fold_price(tariff: Tariff, *, rewritten: int, making: float, warm: bool) -> float:
    """What a fold costs beside what it saves: tokens that could have been read are written, and a digest is made.

    >>> fold_price(Tariff(), rewritten=10_000, making=0.0, warm=True)
    11500.0
    >>> fold_price(Tariff(), rewritten=10_000, making=0.0, warm=False)
    0.0
    """
    return making + (tariff.write - tariff.read) * rewritten * warm


def saving_per_request(tariff: Tariff, gain: int) -> float:
    """What each later request is cheaper by when `gain` tokens less are in it."""
    return tariff.read * gain


def break_even(tariff: Tariff, *, rewritten: int, gain: int, making: float, warm: bool) -> int | None:
    """With which request a fold has paid for itself, the one it is made for being the first; None when never.

    >>> break_even(Tariff(), rewritten=10_000, gain=40_000, making=0.0, warm=True)
    3
    >>> break_even(Tariff(), rewritten=10_000, gain=40_000, making=0.0, warm=False)
    1
    """
    if gain <= 0:
        return None
    at_once = (tariff.read if warm else tariff.write) * gain
    left = fold_price(tariff, rewritten=rewritten, making=making, warm=warm) - at_once
    if left <= 0:
        return 1
    later = saving_per_request(tariff, gain)
    return 1 + math.ceil(left / later - 1e-9) if later else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a fold would do to the request that is about to be sent."""

    size: int
    """The request as it stands."""
    folded: int
    """The request after a fold."""
    head: int = 0
    """What stands in front of both and stays as it is: tools, system, memory."""
    digest: int = 0
    """How much of `folded` is the digest."""
    making: float = 0.0
    """What the digest itself costs to make."""
    at: float | None = None
    """When the request is sent, in seconds; None where no clock is known."""

    @property
    def gain(self) -> int:
        """By how much the request would shrink."""
        return self.size - self.folded

    @property
    def worth(self) -> bool:
        """A fold frees more than what stands in its place takes; anything less loses text for nothing."""
        return self.gain > self.digest


class Terms(NamedTuple):
    """One offer in money."""

    price: float
    """What the fold costs beside what it saves."""
    rent: float
    """What sending the droppable part once more costs."""
    rate: float
    """What a token costs in this request that stood in the last one."""
    untouched: float
    """What this request would cost if nothing had ever been folded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rent:
    """The account of one session: nothing in it that its requests and folds do not say.

    Before a request, `share` says whether to fold. If so, `bought` books the fold; in any case `sent` books the
    request.
    """

    size: int = 0
    """The last request."""
    gone: int = 0
    """By how much it was smaller than if nothing had ever been folded."""
    at: float | None = None
    """When it was sent."""
    paid: float = 0.0
    """Spent on the droppable part since the last fold."""
    saved: float = 0.0
    """What the folds so far have saved, less what they cost."""
    spent: float = 0.0
    """What the session would have cost without any fold."""

    def terms(self, offer: Offer, tariff: Tariff) -> Terms:
        """An offer in money. What is new is written in any case, so keeping it adds nothing to the price."""
        warm = self.size >= tariff.least_prefix and alive(tariff, self.at, offer.at)
        added = max(0, offer.size - self.size)
        kept = offer.folded - offer.head - offer.digest
        rewritten = offer.digest + max(0, kept - added) + (offer.head if offer.head < tariff.least_prefix else 0)
        price = fold_price(tariff, rewritten=rewritten, making=offer.making, warm=warm)
        stay = charge(tariff, tokens=offer.size, common=offer.size - added, warm=warm)
        fold = charge(tariff, tokens=offer.folded, common=offer.head, warm=warm) + offer.making
        whole = offer.size + self.gone
        return Terms(
            price=price,
            rent=price + stay - fold,
            rate=tariff.read if warm else tariff.write,
            untouched=charge(tariff, tokens=whole, common=whole - added, warm=warm),
        )

    def share(self, offer: Offer, tariff: Tariff, *, stake: float = STAKE) -> float:
        """How much of the price of folding now has been earned: from 1 on, folding is right.

        Earned is what the fold saves in this request, and the rent paid since the last fold as far as it is covered by
        what all folds have saved and by the stake. 0 where a fold is not worth it, `inf` where it is free.
        """
        if not offer.worth or offer.folded < tariff.least_prefix:
            return 0.0
        terms = self.terms(offer, tariff)
        if terms.price <= 0:
            return math.inf if terms.rent > 0 else 0.0
        cover = self.saved + terms.rate * self.gone + stake * (self.spent + terms.untouched)
        return (terms.rent + max(0.0, min(self.paid, cover))) / terms.price

    def bought(self, offer: Offer, tariff: Tariff) -> Rent:
        """The account when a fold has been made, before the folded request is sent: its price is paid."""
        terms = self.terms(offer, tariff)
        kept = offer.folded - offer.head - offer.digest
        new = min(kept, max(0, offer.size - self.size))
        never_sent = terms.rent - terms.rate * offer.gain  # what was new and left at once had to be written otherwise
        return replace(
            self,
            size=offer.folded - new if self.size else 0,
            gone=self.gone + offer.gain,
            paid=0.0,
            saved=self.saved + never_sent - terms.price,
            spent=self.spent + never_sent,
        )

    def sent(self, offer: Offer, tariff: Tariff) -> Rent:
        """The account when the request has been sent as it stands."""
        terms = self.terms(offer, tariff)
        return Rent(
            size=offer.size,
            gone=self.gone,
            at=self.at if offer.at is None else offer.at,
            paid=self.paid + (max(0.0, terms.rent) if offer.worth else 0.0),
            saved=self.saved + terms.rate * self.gone,
            spent=self.spent + terms.untouched,
        )


def offer(timeline: Timeline, floor_at: int, *, digest: int, fixed: int = 0, at: float | None = None) -> Offer:
    """What a fold at `floor_at` would do to a timeline; `fixed` is what lies beside it (tools, memory).

    Pins and carried messages of the last fold are taken to stay as they are.
    """
    fold, prefix = timeline.fold, timeline.prefix
    stands = fold.pinned_tokens + fold.carried_tokens if fold else 0
    head = fixed + prefix[timeline.lead]
    return Offer(
        size=head + (fold.digest_tokens if fold else 0) + stands + timeline.history,
        folded=head + digest + stands + prefix[-1] - prefix[floor_at],
        head=head,
        digest=digest,
        at=at,
    )
