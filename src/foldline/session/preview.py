"""A fold before it is made, for a person who has to say yes: what would leave, what would stand there, the money."""

from __future__ import annotations

from dataclasses import dataclass, field

from foldline.fold import Fold
from foldline.plan.fold_cost import break_even, charge, fold_price, tariff_of
from foldline.plan.timeline import handle
from foldline.session.state import Desk

_MILLION = 1e6
"""Prices are for so many tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a fold would do, before it does it. Money is in US dollars, None where the model's prices are not known."""

    fold: Fold
    leaves: str
    """The handle of what would leave."""
    before: int
    after: int
    mark: int
    """The entry of the record that it was made for."""
    place: object = field(default=None, repr=False)
    """The record that it was made for."""
    money_before: float | None = None
    """What each further request costs as it stands, read from the provider's cache."""
    money_after: float | None = None
    """The same after the fold."""
    money_once: float | None = None
    """What the fold itself costs: what stays is written to the cache anew."""
    pays_with: int | None = None
    """The request with which the fold has paid for itself; None when never, or where prices are not known."""

    def __str__(self) -> str:
        lines = [f"{self.leaves} would leave: {self.before:,} → {self.after:,} tokens"]
        if self.money_before is not None:
            pays = f", paid back with request {self.pays_with:,}" if self.pays_with is not None else ""
            lines.append(
                f"a request: ${self.money_before:.4f} → ${self.money_after:.4f}, once ${self.money_once:.4f}{pays}"
            )
        return "\n".join([*lines, str(self.fold)])


def preview_of(desk: Desk, fold: Fold, mark: int, place: object) -> Preview:
    """The preview of a fold with its digest, at the prices of the session's model."""
    timeline = desk.timeline
    leaves = handle(timeline.cut, fold.cut - 1)
    before, after = fold.before, fold.after
    if desk.model.prices is None:
        return Preview(fold=fold, leaves=leaves, before=before, after=after, mark=mark, place=place)
    tariff, head = tariff_of(desk.model), desk.tools + timeline.prefix[timeline.lead]
    rewritten = max(0, after - head)
    return Preview(
        fold=fold,
        leaves=leaves,
        before=before,
        after=after,
        mark=mark,
        place=place,
        money_before=charge(tariff, tokens=before, common=before, warm=True) / _MILLION,
        money_after=charge(tariff, tokens=after, common=after, warm=True) / _MILLION,
        money_once=fold_price(tariff, rewritten=rewritten, making=0.0, warm=True) / _MILLION,
        pays_with=break_even(tariff, rewritten=rewritten, gain=before - after, making=0.0, warm=True),
    )
