"""The documented gate: functions that tell whether a transcript is over its budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from foldline.plan.gate import Load, gate, limit
from foldline.policy import Policy
from foldline.window_budget.budget.estimate import window_of
from foldline.window_budget.contract import BudgetPolicy
from foldline.window_budget.host_messages import PRESET, HostMessages

__all__ = ["budget_limit", "is_over_budget"]


def budget_limit(model: Any, policy: BudgetPolicy) -> float:
    """The size above which a fold is due: (window - reserve) * ratio, at least 0."""
    return limit(engine_policy(policy).rules[0], _usable(model, policy))


def is_over_budget(messages: Sequence[Any], model: Any, policy: BudgetPolicy) -> bool:
    """Whether the estimate is above the limit."""
    return exceeds_limit(HostMessages(messages).timeline.prefix[-1], model, policy)


def exceeds_limit(size: int, model: Any, policy: BudgetPolicy) -> bool:
    """Whether a size is above the limit."""
    return bool(gate(Load(request=size, history=size, count=0, usable=_usable(model, policy)), engine_policy(policy)))


def engine_policy(policy: BudgetPolicy) -> Policy:
    """The documented policy as a foldline `Policy`."""
    rule = replace(PRESET.rules[0], ratio=policy.trigger_ratio)
    return PRESET.but(rules=(rule,), keep_tokens=policy.keep_recent, reserve_tokens=policy.reserve_tokens or 0)


def _usable(model: Any, policy: BudgetPolicy) -> int:
    return max(0, window_of(model) - (policy.reserve_tokens or 0))
