"""The gate decides whether a fold is needed, and why.

SOFT: a rule asks for an action, but the request can be sent as it is. HARD: the request does not fit the window. Every
rule tests one figure, its basis. To add a new basis, add its name to `Basis` in policy.py and its figure to `Load`.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from math import isinf
from typing import NamedTuple

from foldline.policy import Policy, Rule


class Need(IntEnum):
    """How urgent a fold is."""

    NONE = 0
    SOFT = 1
    HARD = 2


class Load(NamedTuple):
    """The figures that the gate tests. Sizes are in the counter's unit.

    `usable` is the largest request allowed. `fixed` is the part of the request that no fold can remove: tool schemas,
    memory, and hidden tokens that only the usage shows. `upper` is the size of the request plus the margin of its
    estimate; 0 if the size is exact. `margin` is the margin of an estimate that is not based on usage, as a share.
    `earned_share` is the amount paid for sending the removable messages, divided by the price of a fold (see
    fold_cost.py).
    """

    request: int
    history: int
    count: int  # type: ignore[assignment]  # of messages; hides tuple.count, which nothing uses here
    usable: int
    fixed: int = 0
    upper: int = 0
    margin: float = 0.0
    earned_share: float = 0.0
    blocks: dict[str, int] = {}  # noqa: RUF012 (never changed)
    """Tokens by block, in the order of the view."""

    @property
    def ceiling(self) -> int:
        """The largest estimate of a new view that fits: the estimate plus its margin is at most `usable`."""
        return int(self.usable / (1 + self.margin))

    def value_for(self, rule: Rule) -> float:
        """The figure that a rule tests."""
        figure: float = self.earned_share if rule.basis == "cost" else getattr(self, rule.basis)
        return figure


class Verdict(NamedTuple):
    """The gate's answer.

    `fired` contains the rules that fire now. A rule with `latched` set stays in `fired` until the next fold.
    """

    need: Need
    action: str = ""
    reason: str = ""
    fired: tuple[Rule, ...] = ()

    def __bool__(self) -> bool:
        return self.need > Need.NONE


NOTHING_DUE = Verdict(Need.NONE)
"""The verdict that nothing is to be done. This is the usual verdict."""
_WEIGHT = {"pause": 1, "clip": 2, "fold": 2}


def limit(rule: Rule, usable: int) -> float:
    """The limit of a rule, in the unit of the figure that the rule compares with it."""
    if rule.limit is not None:
        return rule.limit
    share = rule.ratio or 0.0
    return share if rule.basis == "cost" else share * usable


def gate(load: Load, policy: Policy, latched: Iterable[Rule] = ()) -> Verdict:
    """The verdict on a load.

    The need is HARD if the load exceeds the usable window, SOFT if a rule asks for an action, else NONE.
    """
    held = tuple(latched)
    fired = tuple([rule for rule in policy.rules if rule in held or _holds(rule, load)])
    needed = max(load.request, load.upper)
    if not fired and needed <= load.usable:
        return NOTHING_DUE
    wanted = None
    for rule in fired:
        if rule.action != "warn" and (wanted is None or _WEIGHT[rule.action] > _WEIGHT[wanted.action]):
            wanted = rule
    if needed > load.usable:
        action = wanted.action if wanted and wanted.action != "pause" else "fold"
        upper_text = f" (it may be {needed:,})" if needed > load.request else ""
        reason = f"the request of {load.request:,}{upper_text} does not fit into {load.usable:,}"
        return Verdict(need=Need.HARD, action=action, reason=reason, fired=fired)
    if wanted is None:
        return Verdict(need=Need.NONE, fired=fired)
    return Verdict(need=Need.SOFT, action=wanted.action, reason=_reason(wanted, load), fired=fired)


def _holds(rule: Rule, load: Load) -> bool:
    value, bound = load.value_for(rule), limit(rule, load.usable)
    return value > bound if rule.strict else value >= bound


def _reason(rule: Rule, load: Load) -> str:
    if rule.basis == "cost" and isinf(load.earned_share):
        return f"folding costs nothing now ({rule})"
    if rule.basis == "cost":
        return f"{load.earned_share:.0%} of the price of folding is earned ({rule})"
    return f"{rule.basis} is {load.value_for(rule):,} of {limit(rule, load.usable):,.0f} allowed ({rule})"
