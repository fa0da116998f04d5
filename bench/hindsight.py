"""Computes the cheapest schedule of folds for a finished session, and the cost of any other rule on this session.

A rule on `cost` decides without knowing the later requests, so it is compared with a schedule that knows them. Both
costs are computed in the same way: the tokens before the digest are read from the cache, and the tokens after it are
written to the cache. After a pause longer than the cache's time to live, no token is read from the cache. A position in
a history is the number of tokens before it, so a trace needs no messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import NamedTuple, TypeAlias

from foldline.plan.fold_cost import FoldAccount, FoldProposal, TokenPrices, digest_cost, is_cache_warm, request_cost

_ROUNDING = 1e-6
"""A smaller difference between two costs is a rounding error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedRequest:
    """One request of a session, as it would have been without any fold."""

    added: int
    """Tokens added to the history since the previous request."""
    floor: int = 0
    """The last allowed cut; 0 if nothing may be folded."""
    at: float | None = None
    """The time of the request in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The sizes of a session's requests. A request that is too large even at its floor is sent at its floor."""

    requests: tuple[TracedRequest, ...]
    head: int = 0
    """Size of the unchanged beginning of every request."""
    digest: int = 0
    window: int | None = None
    cuts: tuple[int, ...] = ()
    """All legal cuts, ascending, if the optimum may also cut before the floor; empty if it cuts only at the floor."""
    digester: TokenPrices | None = None
    """The prices of the model that writes digests; None for local digests."""

    def view(self, cut: int, total: int) -> int:
        """The size of a request whose history has `total` tokens and is cut at `cut`."""
        return self.head + self.digest * (cut > 0) + total - cut

    def fits(self, cut: int, total: int) -> bool:
        """Whether such a request fits the window."""
        return self.window is None or self.view(cut, total) <= self.window

    def digest_price(self, old: int, new: int) -> float:
        """The price of a digest of everything up to `new`, if the previous digest covers everything up to `old`."""
        if self.digester is None:
            return 0.0
        return digest_cost(self.digester, covered=new - old + self.digest * (old > 0), digest=self.digest)


class ScheduleCost(NamedTuple):
    """The cost of a session, and its folds as pairs of request and cut."""

    cost: float
    folds: tuple[tuple[int, int], ...] = ()
    unpaid: int = 0
    """Number of requests at which the session had cost more so far than without folds."""


class _TracedStep(NamedTuple):
    """A request with the history before it."""

    total: int
    added: int
    floor: int
    at: float | None
    warm: bool


Decide: TypeAlias = Callable[[FoldAccount, FoldProposal], bool]
"""A rule for when to fold, given the account so far and the effect of a fold on the next request."""


def never(_account: FoldAccount, _proposal: FoldProposal) -> bool:
    """A rule that never decides to fold. A fold is then made only if a request does not fit the window."""
    return False


def replay_cost(trace: Trace, prices: TokenPrices, decide: Decide) -> ScheduleCost:
    """The cost of a rule on a trace. A fold at the floor is made if the rule decides so, or if the request does not
    fit.
    """
    account, cut, cost, unpaid = FoldAccount(), 0, 0.0, 0
    folds: list[tuple[int, int]] = []
    for index, step in enumerate(_steps(trace, prices)):
        proposal = FoldProposal(
            size=trace.view(cut, step.total),
            folded=trace.view(step.floor, step.total),
            head=trace.head,
            digest=trace.digest,
            digest_price=trace.digest_price(cut, step.floor),
            at=step.at,
        )
        folded = step.floor > cut and (not trace.fits(cut, step.total) or decide(account, proposal))
        if folded:
            cost += proposal.digest_price + request_cost(
                prices, tokens=proposal.folded, common=trace.head, warm=step.warm
            )
            cut = step.floor
            folds.append((index, cut))
            account = account.after_fold(proposal, prices)
            account = account.after_request(proposal._replace(size=proposal.folded), prices)
        else:
            account = account.after_request(proposal, prices)
            cost += request_cost(prices, tokens=proposal.size, common=proposal.size - step.added, warm=step.warm)
        unpaid += account.savings < -_ROUNDING
    return ScheduleCost(cost, tuple(folds), unpaid)


_Chain: TypeAlias = "tuple[int, int, _Chain] | None"
"""The folds that lead to a state, the newest first."""
_Way: TypeAlias = tuple[float, _Chain]
"""The cost of the cheapest schedule that leads to a cut, and its folds."""


def optimum(trace: Trace, prices: TokenPrices, *, stake: float = inf) -> ScheduleCost:
    """The cheapest schedule of folds. All requests and all cuts that the trace allows are considered.

    With `stake`, only those schedules are considered that never make the session more expensive than without folds by
    more than this share, whenever the session ends. A rule that keeps this bound cannot cost less. If the window leaves
    no such schedule, the cheapest one at that request is used.

    The cost of a request depends only on the current cut. So for every cut, only the cheapest way to it is kept, and
    the time is proportional to the number of requests times the number of cuts. Cutting only at the floor gives the
    same optimum on two conditions: the head can be cached, and reading a token for the digest costs no more than
    writing it to the cache. A later cut then never costs more.
    """
    best: dict[int, _Way] = {0: (0.0, None)}
    baseline = 0.0
    for index, step in enumerate(_steps(trace, prices)):
        after: dict[int, _Way] = {}
        for cut, (cost, chain) in best.items():
            if trace.fits(cut, step.total) or step.floor <= cut:
                size = trace.view(cut, step.total)
                after[cut] = (cost + request_cost(prices, tokens=size, common=size - step.added, warm=step.warm), chain)
        cuts = [cut for cut in trace.cuts if 0 < cut < step.floor and trace.fits(cut, step.total)]
        for cut, (way, chain) in _ways(best, trace, [*cuts, step.floor] if step.floor else ()):
            size = trace.view(cut, step.total)
            cost = way + request_cost(prices, tokens=size, common=trace.head, warm=step.warm)
            if cut not in after or cost < after[cut][0]:
                after[cut] = (cost, (index, cut, chain))
        size = trace.view(0, step.total)
        baseline += request_cost(prices, tokens=size, common=size - step.added, warm=step.warm)
        most = (1 + stake) * baseline + _ROUNDING if stake < inf else inf
        best = {cut: way for cut, way in after.items() if way[0] <= most}
        if not best:
            cheapest = min(after, key=lambda cut: after[cut][0])
            best = {cheapest: after[cheapest]}
    cost, chain = min(best.values(), key=lambda way: way[0])
    return ScheduleCost(cost, tuple(_unchain(chain))[::-1])


def _ways(best: Mapping[int, _Way], trace: Trace, cuts: Iterable[int]) -> Iterator[tuple[int, _Way]]:
    """For each cut, ascending, the cheapest way to it from an earlier cut, including the new digest."""
    sources = sorted(best, reverse=True)
    cheapest = None
    for cut in cuts:
        while sources and sources[-1] < cut:
            old = sources.pop()
            if cheapest is None or _reach(best, trace, old, cut) < _reach(best, trace, cheapest, cut):
                cheapest = old
        if cheapest is not None:
            yield cut, (_reach(best, trace, cheapest, cut), best[cheapest][1])


def _reach(best: Mapping[int, _Way], trace: Trace, old: int, new: int) -> float:
    """The cost of a fold from the cut `old` to the cut `new`.

    The digester's price is the same for every token. So if one old cut is cheaper than another, it is cheaper for every
    `new`.
    """
    return best[old][0] + trace.digest_price(old, new)


def _unchain(chain: _Chain) -> Iterator[tuple[int, int]]:
    while chain is not None:
        yield chain[0], chain[1]
        chain = chain[2]


def _steps(trace: Trace, prices: TokenPrices) -> Iterator[_TracedStep]:
    """Each request with the size of its history. If a floor is lower than an earlier one, the earlier floor is used."""
    total = floor = 0
    last: float | None = None
    for index, request in enumerate(trace.requests):
        total += request.added
        floor = max(floor, request.floor)
        yield _TracedStep(
            total, request.added, floor, request.at, index > 0 and is_cache_warm(prices, last, request.at)
        )
        last = last if request.at is None else request.at
