"""The documented functions for the estimate, the gate and the slice. None of these functions has side effects."""

from __future__ import annotations

from foldline.window_budget.budget.estimate import estimate_message_tokens, estimate_tokens, prefix_tokens
from foldline.window_budget.budget.gate import budget_limit, is_over_budget
from foldline.window_budget.budget.slice import plan_slice

__all__ = [
    "budget_limit",
    "estimate_message_tokens",
    "estimate_tokens",
    "is_over_budget",
    "plan_slice",
    "prefix_tokens",
]
