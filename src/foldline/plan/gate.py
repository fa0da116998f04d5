"""The gate decides whether a fold is needed, and why.

SOFT: a rule asks for an action, but the request can be sent as it is. HARD: the request does not fit the window. Every
rule compares one value of the load, its basis, with a limit. To add a basis, add its name to `Basis` in policy.py and a
field with this name to `Load`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from math import isinf
from typing import NamedTuple

from foldline.policy import Policy, Rule


class Need(IntEnum):
    """How urgent a fold is."""

    NONE = 0
    SOFT = 1
    HARD = 2


HIDDEN = "hidden"
"""Name of the block with the tokens that are in no message and in no known tool, such as an unrecorded system prompt.

Their number is known only from reported usage or from `extra_tokens`.
"""


class Load(NamedTuple):
    """The input of the gate: the size of the request that would be sent now, its parts, and its limit.

    `usable` is the largest request allowed. `fixed` is the part of the request that no fold can remove: tool schemas,
    memory, and hidden tokens that only the usage shows. `scale` is the number of real tokens per token of the counter,
    as learned from usage. `history` is in the counter's unit. `upper` is the size of the request plus the margin of its
    estimate; 0 if the size is exact. `margin` is the margin of an estimate that is not based on usage. It is given as a
    share of the estimate. `earned_share` says whether a fold would save costs; at 1, the fold is due (see
    fold_cost.py).
    """

    request: int
    history: int
    count: int  # type: ignore[assignment]  # number of messages; hides `tuple.count`, which is not used here
    usable: int
    fixed: int = 0
    scale: float = 1.0
    upper: int = 0
    margin: float = 0.0
    earned_share: float = 0.0
    blocks: dict[str, int] = {}  # noqa: RUF012 (never changed)
    """Tokens by block, in the order of the view."""
    is_estimated: bool = False
    """Whether the whole size is an estimate: no part of it is based on usage."""

    @property
    def ceiling(self) -> int:
        """The largest estimate with which a view is sure to fit: the estimate plus its margin is at most `usable`."""
        return int(self.usable / (1 + self.margin))

    def size_of(self, tokens: int) -> int:
        """The size of a request in the provider's tokens, if the local counter counts `tokens` for its messages."""
        return self.fixed + round(self.scale * tokens)

    def room_in(self, size: int) -> int:
        """The inverse of `size_of`: how many tokens the local counter may count for the messages of such a request."""
        return int((size - self.fixed) / self.scale)

    def value_for(self, rule: Rule) -> float:
        """The value of this load that a rule compares with its limit."""
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
"""The verdict if no action is needed."""
_WEIGHT = {"pause": 1, "clip": 2, "fold": 2}


def limit(rule: Rule, usable: int) -> float:
    """The limit of a rule: a share for a rule on cost, otherwise a number of tokens or messages."""
    if rule.limit is not None:
        return rule.limit
    share = rule.ratio or 0.0
    return share if rule.basis == "cost" else share * usable


def bound(rule: Rule, load: Load) -> float:
    """The limit of a rule, lowered if the size of the load is an estimate.

    The margin of an estimate is added before the size is compared with `usable`. So the need becomes HARD while the
    estimate is still below `usable`. A rule on `request` with a limit near `usable` would not fire before that. It
    would then be too late to make the fold in the background. So the limit of such a rule is lowered by the margin.

    >>> load = Load(request=80, history=80, count=9, usable=100, margin=0.25, is_estimated=True)
    >>> [bound(Rule.parse(f"fold when request > {share}%"), load) for share in (75, 90)]
    [75.0, 72.0]

    """
    found = limit(rule, load.usable)
    is_late = rule.basis == "request" and load.is_estimated and found > load.ceiling
    return found / (1 + load.margin) if is_late else found


def gate(load: Load, policy: Policy, latched: Sequence[Rule] = ()) -> Verdict:
    """The verdict on a load.

    The need is HARD if the load exceeds the usable window, SOFT if a rule asks for an action, else NONE.
    """
    fired: tuple[Rule, ...] = ()
    for rule in policy.rules:
        if _holds(rule, load) or rule in latched:
            fired += (rule,)
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


def headroom(load: Load, policy: Policy, latched: Sequence[Rule] = ()) -> float:
    """The number of tokens by which the history can grow before a rule other than a warning fires, or before the
    request no longer fits. At most 0 if a rule has fired, if the request does not fit, or if the limit of a rule is not
    in tokens.

    >>> load = Load(request=80, history=80, count=9, usable=100)
    >>> headroom(load, Policy(rules=(Rule.parse("fold when request > 90%"),)))
    10.0
    """
    least: float = load.usable - max(load.request, load.upper)
    for rule in policy.rules:
        if rule.action != "warn":
            is_counted = rule.basis in {"request", "history"} and rule not in latched
            least = min(least, bound(rule, load) - load.value_for(rule)) if is_counted else min(least, 0)
    return least


def _holds(rule: Rule, load: Load) -> bool:
    basis = rule.basis
    value = load.earned_share if basis == "cost" else getattr(load, basis)  # `value_for`, without a further call
    most = bound(rule, load) if load.is_estimated else limit(rule, load.usable)
    is_reached: bool = value > most if rule.strict else value >= most
    return is_reached


def _reason(rule: Rule, load: Load) -> str:
    if rule.basis == "cost" and isinf(load.earned_share):
        return f"folding costs nothing now ({rule})"
    if rule.basis == "cost":
        return f"a fold has earned {load.earned_share:.0%} of its price ({rule})"
    value, most = load.value_for(rule), limit(rule, load.usable)
    upper_text = f" (it may be {load.upper:,})" if bound(rule, load) < most else ""
    return f"{rule.basis} is {value:,}{upper_text} of {most:,.0f} allowed ({rule})"


def scale_blocks(blocks: Mapping[str, int], total: int, *, hidden: int) -> dict[str, int]:
    """The estimates of the blocks, scaled so that they add up to `total`.

    Of the total, `hidden` tokens become a block of their own. If all estimates are 0, the whole total becomes this
    block.

    >>> scale_blocks({"tools": 100, "history": 300}, 540, hidden=100)
    {'tools': 110, 'history': 330, 'hidden': 100}

    """
    estimated = sum(blocks.values())
    apart = total if not estimated else max(0, min(hidden, total))
    scaled, before, placed = {}, 0, 0
    for name, size in blocks.items():
        before += size
        upto = before * (total - apart) // estimated if estimated else 0
        scaled[name], placed = upto - placed, upto
    return {**scaled, HIDDEN: apart} if apart else scaled
