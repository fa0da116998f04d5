"""The documented function `plan_slice`: it decides which messages stay, and which messages a digest replaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foldline.plan.cut import floor
from foldline.window_budget.budget.gate import engine_policy
from foldline.window_budget.contract import BudgetPolicy, CondensePlan
from foldline.window_budget.host_messages import HostMessages

__all__ = ["plan_slice"]


def plan_slice(messages: Sequence[Any], policy: BudgetPolicy) -> CondensePlan:
    """The plan that keeps about `keep_recent` tokens of the newest messages, and drops all older messages.

    The kept part never begins with a tool result. If the newest step alone has more than `keep_recent` tokens, only
    this step is kept.
    """
    cut = slice_at(HostMessages(messages), policy)
    return CondensePlan(cut=cut, kept=messages[cut:], dropped=messages[:cut])


def slice_at(host: HostMessages, policy: BudgetPolicy) -> int:
    """Index of the first message that is kept; 0 if nothing can be dropped."""
    cut = floor(host.timeline, engine_policy(policy), 0)
    return cut if cut > host.timeline.lead else 0
