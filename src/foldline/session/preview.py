"""The preview of a fold, for a person to approve: the messages to be folded, the digest, tokens and costs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from foldline.fold import Fold
from foldline.plan.fold_cost import break_even, fold_price, prices_of, request_cost
from foldline.plan.timeline import left_handles
from foldline.session.state import State

_MILLION = 1e6
"""Prices are per million tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a fold would do. Costs are in US dollars; None if the model's prices are unknown."""

    fold: Fold
    leaves: str
    """The handles of the messages that would leave the view."""
    before: int
    after: int
    entry: int
    """The newest log entry of the record when the preview was made."""
    record: object = field(default=None, repr=False)
    """The identity of the record that the preview was made for."""
    money_before: float | None = None
    """Cost of each later request without the fold, if it is read from the provider's cache."""
    money_after: float | None = None
    """Cost of each later request after the fold, if it is read from the provider's cache."""
    money_once: float | None = None
    """Cost of the fold itself, because the kept part must be written to the cache again. 0 if the cache has expired."""
    pays_with: int | None = None
    """Number of requests after which the savings cover the cost of the fold; None if they never do, or if the prices
    are unknown.
    """

    def __str__(self) -> str:
        lines = [f"{self.leaves} would leave: {self.before:,} → {self.after:,} tokens"]
        if self.money_before is not None:
            pays = f", paid back after {self.pays_with:,} requests" if self.pays_with is not None else ""
            lines.append(
                f"a request: ${self.money_before:.4f} → ${self.money_after:.4f}, once ${self.money_once:.4f}{pays}"
            )
        return "\n".join([*lines, str(self.fold)])


def preview_of(state: State, fold: Fold, record: object, *, warm: bool = True) -> Preview:
    """The preview of a complete fold, at the prices of the session's model.

    `warm` is False if the provider's cache has expired: the next request is then written to the cache in any case.
    """
    timeline, before, after = state.timeline, fold.before, fold.after
    leaves, entry = left_handles(fold, timeline.fold or Fold(cut=timeline.cut)), state.snapshot.version.entry
    preview = Preview(fold=fold, leaves=leaves, before=before, after=after, entry=entry, record=record)
    if state.model.prices is None:
        return preview
    prices, head = prices_of(state.model), state.tools + timeline.prefix[timeline.lead]
    rewritten = max(0, after - head)
    return replace(
        preview,
        money_before=request_cost(prices, tokens=before, common=before, warm=True) / _MILLION,
        money_after=request_cost(prices, tokens=after, common=after, warm=True) / _MILLION,
        money_once=fold_price(prices, rewritten=rewritten, digest_price=0.0, warm=warm) / _MILLION,
        pays_with=break_even(prices, rewritten=rewritten, gain=before - after, digest_price=0.0, warm=warm),
    )
