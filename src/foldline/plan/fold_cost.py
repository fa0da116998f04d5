"""Computes the cost and the savings of a fold.

After a fold, the provider's prompt cache is valid only up to the digest. If the cache had not expired, the kept part
must be written to the cache again. This cost is the price of the fold. Later requests are smaller and cost less. If the
cache has expired anyway, a fold saves money with the first request.

The number of later requests is unknown, so the gate does not fold at once. Until a fold, each request sends the
removable part again, at the price of reading the cache. This cost is called `rent`. A fold is made if two conditions
are true. First, the sum of the rent since the last fold has reached a share of the price of the fold (`PATIENCE`).
Second, the price is covered by the savings of earlier folds plus a small share of the session's cost so far (`STAKE`).
So folds make a session more expensive by at most this share. Only a fold that removes many tokens (`LARGE_GAIN`) may
use the whole stake, because it is paid back within a few requests. Amounts are in the unit of `TokenPrices`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

from foldline.errors import ConfigError
from foldline.message import Meta, Usage
from foldline.models.table import Model
from foldline.plan.timeline import Timeline

STAKE = 0.04
"""How much folds may add to the cost of a session, as a share of its cost without folds.

Until a fold is paid back, a session that ends costs more than without folds. It is not known when a session ends: in
recorded sessions, each request was the last with a probability of 1 % to 2 %, whatever came before it. So what counts
is the number of requests at which the session has cost more than without folds. The values of `STAKE`, `LARGE_GAIN` and
`SMALL_GAIN_STAKE` were chosen together on one half of the recorded sessions (`bench/economy.py`). They are the values
with the lowest number of such requests, among all values for which sessions cost at most 1.1 times the optimum. This
holds with and without known times of requests.

The optimum for a stake (`bench.hindsight.optimum` with `stake`) shows how much is possible: if folds may never add more
than 0.75 %, then even folds that are chosen after the session cost 1.18 to 1.22 times the optimum.
"""
LARGE_GAIN = 38_000
"""A fold may use the whole stake if the tokens that it removes exceed the tokens that are written to the cache again by
at least this number.
"""
SMALL_GAIN_STAKE = 0.075
"""The share of the stake that a fold may use if it removes fewer tokens than `LARGE_GAIN` demands.

With this small stake, a session that grows slowly is folded at some time, too.
"""
PATIENCE = 0.75
"""A fold is made only if the rent since the last fold has reached this share of the fold's price. Rent is the cost of
sending removable messages again.

With a smaller share, folds are made too often; with a larger share, each fold is made too late. The value was chosen
together with `STAKE`.
"""
CacheState: TypeAlias = Literal["warm", "unsent", "expired", "none"]
"""The state of the provider's prompt cache for one session:

- `warm`: the cache has the last request
- `unsent`: the cache has the last request, but the view was folded or unfolded since then, so the next request writes
  the view to the cache in any case
- `expired`: the cache no longer has the last request
- `none`: the provider or the client uses no cache
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPrices:
    """Prices of a model's tokens and the rules of its cache. The defaults are multiples of the price of plain input."""

    read: float = 0.1
    """The price of a prompt token that is read from the cache."""
    write: float = 1.25
    """The price of a prompt token that is written to the cache."""
    input: float = 1.0
    """The price of a prompt token that is not cached."""
    output: float = 5.0
    ttl_seconds: float = 300.0
    """A cache entry expires this many seconds after its last use."""
    min_prefix: int = 1024
    """A prefix is cached only if it has at least this many tokens."""

    def __post_init__(self) -> None:
        if not 0 <= self.read <= self.write:
            raise ConfigError(
                f"the read price {self.read} is not between 0 and the write price {self.write}",
                hint="reading a token from the cache cannot cost more than writing it",
            )
        if min(self.input, self.output, self.ttl_seconds, self.min_prefix) < 0:
            raise ConfigError(f"a price or a cache rule is negative: {self}", hint="use 0 or more")


def prices_of(model: Model, *, hour: bool = False, is_cached: bool = True) -> TokenPrices:
    """The prices of a model; the default prices if the table has none.

    If `hour` is true, the prices are those of a cache that keeps its entries for one hour. If `is_cached` is false, no
    prompt is cached: every prompt token has the price of plain input.
    """
    if not is_cached:
        plain = prices_of(model)
        return replace(plain, read=plain.input, write=plain.input)
    ttl = 3600.0 if hour else float(model.cache.ttl_seconds)
    rules = TokenPrices(ttl_seconds=ttl, min_prefix=model.cache.min_tokens)
    prices = model.prices
    if prices is None:
        return rules
    # if the vendor states no price for cache writes, they cost as much as plain input
    write = max(prices.write_1h if hour else prices.write, prices.input)
    return replace(rules, read=prices.read, write=write, input=prices.input, output=prices.output)


def is_cache_warm(prices: TokenPrices, last: float | None, now: float | None) -> bool:
    """True if the request that was sent at the time `last` is still in the cache at the time `now`.

    The result is also True if one of the times is unknown.
    """
    return last is None or now is None or now - last <= prices.ttl_seconds


def reports_cache(usages: Iterable[Usage], min_prefix: int) -> bool:
    """False if the usage of the replies shows that the provider does not cache the prompts; otherwise True.

    The usage shows this if at least two replies had prompts of at least `min_prefix` tokens, and no reply reports
    tokens that were read from a cache or written to it. If a reply is stored as several messages, each of them may
    repeat the usage of the reply, so prompts of the same size count once.

    >>> reports_cache([Usage(input=5_000), Usage(input=6_000)], min_prefix=1_024)
    False
    >>> reports_cache([Usage(input=5_000), Usage(input=1_000, cache_read=5_000)], min_prefix=1_024)
    True
    """
    sizes = set()
    for usage in usages:
        if usage.cache_read or usage.cache_write:
            return True
        if usage.prompt >= max(1, min_prefix):
            sizes.add(usage.prompt)
    return len(sizes) < 2


def cache_state(
    model: Model, newest: Sequence[Meta], *, now: float | None, added_at: float | None = None
) -> CacheState:
    """The state of the provider's prompt cache for a session, from the times and the usage of its newest messages.

    `added_at` is the time of the newest message if the message itself has no time.
    """
    rules = prices_of(model)
    if not reports_cache((one.usage for one in newest if one.usage), rules.min_prefix):
        return "none"
    last = (newest[-1].at if newest else None) or added_at
    return "warm" if is_cache_warm(rules, last, now) else "expired"


def request_cost(prices: TokenPrices, *, tokens: int, common: int, warm: bool) -> float:
    """The cost of one request whose first `common` tokens are the same as in the previous request."""
    read = common if warm and common >= prices.min_prefix else 0
    return prices.read * read + prices.write * (tokens - read)


def digest_cost(prices: TokenPrices, *, covered: int, digest: int) -> float:
    """The cost of a digest by a model.

    The model reads the covered messages, which are not cached, and writes the digest.
    """
    return prices.input * covered + prices.output * digest


def fold_price(prices: TokenPrices, *, rewritten: int, digest_price: float, warm: bool) -> float:
    """The price of a fold: the cost of the digest, plus the cost of writing cached tokens again.

    The savings of the fold are not subtracted.

    >>> fold_price(TokenPrices(), rewritten=10_000, digest_price=0.0, warm=True)
    11500.0
    >>> fold_price(TokenPrices(), rewritten=10_000, digest_price=0.0, warm=False)
    0.0

    """
    return digest_price + (prices.write - prices.read) * rewritten * warm


def break_even(prices: TokenPrices, *, rewritten: int, gain: int, digest_price: float, warm: bool) -> int | None:
    """The number of requests after which the fold has saved as much as it cost; None if it never saves that much.

    The number includes the first request after the fold.

    >>> break_even(TokenPrices(), rewritten=10_000, gain=40_000, digest_price=0.0, warm=True)
    3
    >>> break_even(TokenPrices(), rewritten=10_000, gain=40_000, digest_price=0.0, warm=False)
    1
    """
    if gain <= 0:
        return None
    at_once = (prices.read if warm else prices.write) * gain
    left = fold_price(prices, rewritten=rewritten, digest_price=digest_price, warm=warm) - at_once
    if left <= 0:
        return 1
    later = prices.read * gain
    return 1 + math.ceil(left / later - 1e-9) if later else None


class FoldProposal(NamedTuple):
    """The effect of a fold on the request that is about to be sent, in tokens.

    The class is a named tuple, like `FoldAccount`, because several are made at every turn.
    """

    size: int
    """Tokens of the request without the fold."""
    folded: int
    """Tokens of the request after the fold."""
    head: int = 0
    """Tokens at the start of the request that the fold does not change: tools, system, memory."""
    digest: int = 0
    """Tokens of the digest, which are part of `folded`."""
    digest_price: float = 0.0
    """The cost of writing the digest."""
    at: float | None = None
    """When the request is sent, in seconds; None if unknown."""

    @property
    def gain(self) -> int:
        """The tokens that the fold removes from the request."""
        return self.size - self.folded

    @property
    def is_worthwhile(self) -> bool:
        """True if the fold removes more tokens than its digest has."""
        return self.size - self.folded > self.digest


class ProposalCosts(NamedTuple):
    """The costs of a proposed fold, in the unit of `TokenPrices`.

    `price` is the price of the fold; savings are not subtracted. `rent` is the cost of sending the removable part once
    more. `rate` is the price of a token that was already in the last request. `baseline` is the cost of this request in
    a session without folds.
    """

    price: float
    rent: float
    rate: float
    baseline: float


class FoldAccount(NamedTuple):
    """The costs and savings of one session, derived from its requests and folds.

    Before a request, `earned_share` tells whether to fold. `after_fold` adds a fold, `after_request` adds a request.
    """

    size: int = 0
    """Tokens of the last request."""
    removed: int = 0
    """The tokens that all folds together removed from the last request."""
    at: float | None = None
    """When the last request was sent, in seconds; None if unknown."""
    rent_paid: float = 0.0
    """The cost of sending the removable part in all requests since the last fold."""
    savings: float = 0.0
    """The savings of all folds so far, minus the prices of these folds."""
    baseline_cost: float = 0.0
    """What the session would have cost if nothing had ever been folded."""

    def costs_of(self, proposal: FoldProposal, prices: TokenPrices) -> ProposalCosts:
        """The costs of a proposed fold.

        The price does not include new tokens of this request, because they are written to the cache with or without a
        fold.
        """
        size, folded, head, digest, digest_price, at = proposal
        warm = self.size >= prices.min_prefix and is_cache_warm(prices, self.at, at)
        added = max(0, size - self.size)
        rewritten = digest + max(0, folded - head - digest - added) + (head if head < prices.min_prefix else 0)
        price = fold_price(prices, rewritten=rewritten, digest_price=digest_price, warm=warm)
        stay = request_cost(prices, tokens=size, common=size - added, warm=warm)
        fold = request_cost(prices, tokens=folded, common=head, warm=warm) + digest_price
        rate, unfolded = prices.read if warm else prices.write, size + self.removed
        baseline = request_cost(prices, tokens=unfolded, common=unfolded - added, warm=warm)
        return tuple.__new__(ProposalCosts, (price, price + stay - fold, rate, baseline))

    def earned_share(self, proposal: FoldProposal, prices: TokenPrices, *, stake: float = STAKE) -> float:
        """A number that says whether a fold would save costs. The fold is due when the number reaches 1.

        The result is the smaller of two shares. The first is the rent since the last fold, including this request,
        divided by `PATIENCE` times the price of the fold. The second is the part of the price that savings and `stake`
        cover; only a fold with a large gain may use the whole stake. The result is 0 if the fold is not worthwhile, and
        `inf` if the fold is free.
        """
        if not proposal.is_worthwhile or proposal.folded < prices.min_prefix:
            return 0.0
        costs = self.costs_of(proposal, prices)
        if costs.price <= 0:
            return math.inf if costs.rent > 0 else 0.0
        if (prices.write - prices.read) * (proposal.gain - LARGE_GAIN) < costs.price:
            stake *= SMALL_GAIN_STAKE
        cover = self.savings + costs.rate * self.removed + stake * (self.baseline_cost + costs.baseline)
        paid = (costs.rent + max(0.0, self.rent_paid)) / PATIENCE
        return min(paid, costs.rent + max(0.0, cover)) / costs.price

    def after_fold(self, proposal: FoldProposal, prices: TokenPrices) -> FoldAccount:
        """The account after the proposed fold. The request after the fold is not yet included."""
        costs = self.costs_of(proposal, prices)
        kept = proposal.folded - proposal.head - proposal.digest
        new = min(kept, max(0, proposal.size - self.size))
        # the cost of new tokens that the fold removes before they are ever sent
        never_sent = costs.rent - costs.rate * proposal.gain
        return self._replace(
            size=proposal.folded - new if self.size else 0,
            removed=self.removed + proposal.gain,
            rent_paid=0.0,
            savings=self.savings + never_sent - costs.price,
            baseline_cost=self.baseline_cost + never_sent,
        )

    def after_request(self, proposal: FoldProposal, prices: TokenPrices) -> FoldAccount:
        """The account after a request that was sent without the proposed fold."""
        _, removed, at, rent_paid, savings, baseline_cost = self
        _, rent, rate, baseline = self.costs_of(proposal, prices)
        if rent > 0 and proposal.is_worthwhile:
            rent_paid += rent
        at = at if proposal.at is None else proposal.at
        account = (proposal.size, removed, at, rent_paid, savings + rate * removed, baseline_cost + baseline)
        return tuple.__new__(FoldAccount, account)  # a third of the time of `FoldAccount(…)`


def propose_fold(
    timeline: Timeline, floor_at: int, *, digest: int, fixed: int = 0, at: float | None = None
) -> FoldProposal:
    """The effect of a fold with the cut `floor_at`.

    `fixed` is the number of tokens outside the timeline (tools, memory). It is assumed that the fold keeps the same
    pins and the same carried messages as the last fold.
    """
    fold, prefix = timeline.fold, timeline.prefix
    kept = fold.pinned_tokens + fold.carried_tokens if fold else 0
    head, total = fixed + prefix[timeline.lead], prefix[-1]
    size = head + (fold.digest_tokens if fold else 0) + kept + total - prefix[timeline.cut]
    folded = head + digest + kept + total - prefix[floor_at]
    return tuple.__new__(FoldProposal, (size, folded, head, digest, 0.0, at))  # half the time of `FoldProposal(…)`
