"""The documented estimate, gate and slice, computed by the engine. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from foldline.compat.window_budget.contract import BudgetPolicy, CondensePlan, TokenEstimate
from foldline.compat.window_budget.host_messages import PRESET, HostMessages, tokens
from foldline.measure.usage_anchor import Gauge
from foldline.message import Message
from foldline.models.table import model as model_of
from foldline.plan.cut import floor
from foldline.plan.gate import Load, gate, limit
from foldline.policy import Policy
from foldline.wire.field_access import pick, text_of

DEFAULT_POLICY = BudgetPolicy(
    trigger_ratio=PRESET.rules[0].ratio or 1,
    keep_recent=PRESET.keep_tokens,
    reserve_tokens=PRESET.reserve_tokens,
)


def estimate_message_tokens(message: Any) -> int:
    """The estimated size of one message; errs high."""
    return tokens(HostMessages([message]).messages[0])


def estimate_tokens(messages: Sequence[Any]) -> int:
    """The size of a transcript; 0 for an empty one."""
    return prefix_tokens(messages)[-1]


def prefix_tokens(messages: Sequence[Any]) -> list[int]:
    """The size of the first i messages at each i, from 0 to all of them."""
    return list(HostMessages(messages).timeline.prefix)


def estimate_context(messages: Sequence[Any], model: Any) -> TokenEstimate:
    """How full the window is: the last reported usage plus an estimate of later messages, or an estimate alone.

    A reply's usage covers the messages before it. A fold removes those, so usage counts only if its reply is newer than
    the leading digest.
    """
    gauge = gauge_of(HostMessages(messages))
    return TokenEstimate(context_tokens=gauge.tokens, context_window=window_of(model), anchored=gauge.is_anchored)


def budget_limit(model: Any, policy: BudgetPolicy) -> float:
    """The size above which a fold is due: (window - reserve) * ratio, at least 0."""
    return limit(engine_policy(policy).rules[0], _usable(model, policy))


def is_over_budget(messages: Sequence[Any], model: Any, policy: BudgetPolicy) -> bool:
    """Whether the estimate is above the limit."""
    return exceeds_limit(HostMessages(messages).timeline.prefix[-1], model, policy)


def plan_slice(messages: Sequence[Any], policy: BudgetPolicy) -> CondensePlan:
    """The slice that keeps about `keep_recent` tokens of the newest messages and never begins with a tool result.

    If the newest step alone is larger, it is kept and everything before it is dropped.
    """
    cut = slice_at(HostMessages(messages), policy)
    return CondensePlan(cut=cut, kept=messages[cut:], dropped=messages[:cut])


def exceeds_limit(size: int, model: Any, policy: BudgetPolicy) -> bool:
    """Whether a size is above the limit."""
    return bool(gate(Load(request=size, history=size, count=0, usable=_usable(model, policy)), engine_policy(policy)))


def slice_at(host: HostMessages, policy: BudgetPolicy) -> int:
    """Index of the first message that is kept; 0 if nothing can be dropped."""
    cut = floor(host.timeline, engine_policy(policy), 0)
    return cut if cut > host.timeline.lead else 0


def gauge_of(host: HostMessages) -> Gauge:
    """The measured size of a transcript, built on the usage that is still valid."""
    lead = host.timeline.lead
    front = host.messages[lead] if lead < len(host.messages) else None
    folded = front is not None and front.kind == "digest"
    since = front.meta.at if front is not None else None
    gauge = Gauge()
    for index, message in enumerate(host.messages):
        gauge = gauge.add(message if not folded else _unless_void(message, since), host.timeline.tokens(index))
    return gauge


def _unless_void(message: Message, since: float | None) -> Message:
    if message.meta.usage is None or (since is not None and message.meta.at is not None and message.meta.at > since):
        return message
    return replace(message, meta=replace(message.meta, usage=None))


def engine_policy(policy: BudgetPolicy) -> Policy:
    """The documented policy as a foldline `Policy`."""
    rule = replace(PRESET.rules[0], ratio=policy.trigger_ratio)
    return PRESET.but(rules=(rule,), keep_tokens=policy.keep_recent, reserve_tokens=policy.reserve_tokens or 0)


def window_of(model: Any) -> int:
    """The window of a model object in tokens; if it names none, the window in the model table."""
    given = pick(model, "contextWindow")
    if isinstance(given, (int, float)):
        return max(0, int(given))
    return model_of(text_of(model) or text_of(pick(model, "id"))).window


def _usable(model: Any, policy: BudgetPolicy) -> int:
    return max(0, window_of(model) - (policy.reserve_tokens or 0))
