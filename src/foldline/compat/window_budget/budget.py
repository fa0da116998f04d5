"""When and where: the documented estimate, gate and slice, as questions to the engine. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from foldline.compat.window_budget.contract import BudgetPolicy, CondensePlan, TokenEstimate
from foldline.compat.window_budget.talk import PRESET, Talk, tokens
from foldline.measure.usage_anchor import Gauge
from foldline.message import Message
from foldline.models.table import model as model_of
from foldline.plan.cut import floor
from foldline.plan.gate import Load, gate, limit
from foldline.policy import Policy
from foldline.wire.fields import pick, text_of

DEFAULT_POLICY = BudgetPolicy(
    trigger_ratio=PRESET.rules[0].ratio or 1,
    keep_recent=PRESET.keep_tokens,
    reserve_tokens=PRESET.reserve_tokens,
)


def estimate_message_tokens(message: Any) -> int:
    """The size of one message, rather too high than too low."""
    return tokens(Talk([message]).messages[0])


def estimate_tokens(messages: Sequence[Any]) -> int:
    """The size of a transcript; 0 for an empty one."""
    return prefix_tokens(messages)[-1]


def prefix_tokens(messages: Sequence[Any]) -> list[int]:
    """The size of the first i messages at each i, from 0 to all of them."""
    return list(Talk(messages).timeline.prefix)


def estimate_context(messages: Sequence[Any], model: Any) -> TokenEstimate:
    """How full the window is: by the provider's own figure and an estimate of what came after it, where there is one.

    A figure measured the messages that stood before it. After a fold they are gone, so only a reply that is younger
    than the digest in front is believed.
    """
    gauge = gauge_of(Talk(messages))
    return TokenEstimate(context_tokens=gauge.tokens, context_window=window_of(model), anchored=gauge.anchored)


def budget_limit(model: Any, policy: BudgetPolicy) -> float:
    """The size above which a fold is due: the window without its reserve, times the ratio; never below 0."""
    return limit(engine(policy).rules[0], _usable(model, policy))


def is_over_budget(messages: Sequence[Any], model: Any, policy: BudgetPolicy) -> bool:
    """Whether the estimate is above the limit."""
    return over(Talk(messages).timeline.prefix[-1], model, policy)


def plan_slice(messages: Sequence[Any], policy: BudgetPolicy) -> CondensePlan:
    """Keep about `keep_recent` tokens of the newest part, and never begin it with a result.

    Where the newest step alone is larger, it is kept and everything before it is dropped.
    """
    cut = slice_at(Talk(messages), policy)
    return CondensePlan(cut=cut, kept=messages[cut:], dropped=messages[:cut])


def over(size: int, model: Any, policy: BudgetPolicy) -> bool:
    """The gate's word on a size."""
    return bool(gate(Load(request=size, history=size, count=0, usable=_usable(model, policy)), engine(policy)))


def slice_at(talk: Talk, policy: BudgetPolicy) -> int:
    """The first message that is kept; 0 when nothing can be dropped."""
    cut = floor(talk.timeline, engine(policy), 0)
    return cut if cut > talk.timeline.lead else 0


def gauge_of(talk: Talk) -> Gauge:
    """The measure of a transcript, with the usage that still holds."""
    lead = talk.timeline.lead
    front = talk.messages[lead] if lead < len(talk.messages) else None
    folded = front is not None and front.kind == "digest"
    since = front.meta.at if front is not None else None
    gauge = Gauge()
    for index, message in enumerate(talk.messages):
        gauge = gauge.add(message if not folded else _unless_void(message, since), talk.timeline.tokens(index))
    return gauge


def _unless_void(message: Message, since: float | None) -> Message:
    if message.meta.usage is None or (since is not None and message.meta.at is not None and message.meta.at > since):
        return message
    return replace(message, meta=replace(message.meta, usage=None))


def engine(policy: BudgetPolicy) -> Policy:
    """The policy in the engine's words."""
    rule = replace(PRESET.rules[0], ratio=policy.trigger_ratio)
    return PRESET.but(rules=(rule,), keep_tokens=policy.keep_recent, reserve_tokens=policy.reserve_tokens or 0)


def window_of(model: Any) -> int:
    """The window that a model says it has, else what is known of a model of that name."""
    given = pick(model, "contextWindow")
    if isinstance(given, (int, float)):
        return max(0, int(given))
    return model_of(text_of(model) or text_of(pick(model, "id"))).window


def _usable(model: Any, policy: BudgetPolicy) -> int:
    return max(0, window_of(model) - (policy.reserve_tokens or 0))
