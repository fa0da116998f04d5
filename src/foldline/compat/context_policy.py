"""A context window policy: truncation to what is available, large results as previews, and where to compact.

The documented settings, and three functions on a list of messages. `transform` makes a request fit: results that are
too large become previews, then the oldest messages leave. `plan_compaction` says up to where a summary should stand for
the history, and `apply_summary` puts it there.

    messages = transform(messages, ContextWindowPolicy(max_context_tokens=128_000), tools=tools)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from foldline.compat.caller_messages import CallerMessages
from foldline.compat.context_settings import (
    PRESET,
    AgentSpec,
    ArtifactCompaction,
    CompactionConfig,
    CompactionConfigKey,
    CompactionExecutionMode,
    CompactionRawRetention,
    ContextCompactionMode,
    ContextWindowPolicy,
)
from foldline.message import Message, Meta, Text
from foldline.plan.plan import Plan
from foldline.policy import Policy
from foldline.session import Session
from foldline.view.compose import messages_of

__all__ = [
    "MIN_COMPACTION_GAIN_TOKENS",
    "AgentSpec",
    "ArtifactCompaction",
    "CompactionConfig",
    "CompactionConfigKey",
    "CompactionExecutionMode",
    "CompactionPlan",
    "CompactionRawRetention",
    "ContextCompactionMode",
    "ContextWindowPolicy",
    "apply_summary",
    "breakpoints",
    "is_summary",
    "plan_compaction",
    "transform",
]

MIN_COMPACTION_GAIN_TOKENS: int = PRESET.min_gain_tokens
"""A compaction that frees less is not worth its summary."""
_NO_WINDOW = 10**15
"""Compaction has a threshold of its own; the window is the affair of truncation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    """What a summary is to stand for: everything from the leading system messages to the boundary."""

    boundary: int
    """The first message that stays raw."""
    raw: tuple[int, ...]
    """Messages before the boundary that stay raw all the same: what the user asked last, and calls still running."""
    covered: tuple[int, ...]
    """Messages that the summary replaces."""
    before: int
    after: int
    """Expected tokens, with a summary as long as it may be."""
    reason: str


def transform(
    messages: Sequence[Any],
    policy: ContextWindowPolicy | None = None,
    *,
    tools: Sequence[Any] = (),
    artifacts: ArtifactCompaction | None = None,
    model: str = "",
) -> Any:
    """The messages that fit: the same list while nothing needs to change; `ViewTooLarge` when what must stay does not.

    Sizes are characters by four; with a `model` they are counted as that model does.
    """
    policy, artifacts = policy or ContextWindowPolicy(), artifacts or ArtifactCompaction()
    caller = CallerMessages(messages)
    session = Session(model=model, policy=truncation_policy(policy, artifacts, model), tools=tools)
    session.add(*caller.messages)
    session.view()
    return caller.restore(messages_of(session.timeline, caller.wire_format))


def plan_compaction(
    messages: Sequence[Any], policy: ContextWindowPolicy, config: CompactionConfig | None = None
) -> CompactionPlan | None:
    """Where to compact; None when nothing is due or a summary would not pay.

    The latest user turn stays raw. Only when that turn alone keeps the messages above the threshold, its own older
    steps are compacted too, and the user's words stay.
    """
    config = config or CompactionConfig()
    if policy.autocompact_threshold is None or config.mode is CompactionExecutionMode.Off:
        return None
    caller = CallerMessages(messages)
    whole_turn = _planned(caller.messages, compaction_policy(policy, config, keep_turns=1))
    found = whole_turn.fold
    if whole_turn.verdict and (found is None or found.after > policy.autocompact_threshold):
        found = _planned(caller.messages, compaction_policy(policy, config, keep_turns=0)).fold or found
    if found is None:
        return None
    raw = tuple(sorted((*found.pinned, *found.carried)))
    lead = next((place for place, each in enumerate(caller.messages) if each.role != "system"), 0)
    covered = tuple(index for index in range(lead, found.cut) if index not in raw)
    return CompactionPlan(
        boundary=found.cut, raw=raw, covered=covered, before=found.before, after=found.after, reason=found.reason
    )


def apply_summary(messages: Sequence[Any], plan: CompactionPlan, summary: str) -> Any:
    """The messages with a summary in place of those it covers, and of the summary before it."""
    caller = CallerMessages(messages)
    covered = set(plan.covered)
    kept = [
        message for index, message in enumerate(caller.messages) if index not in covered and not is_summary(message)
    ]
    lead = next((place for place, each in enumerate(kept) if each.role != "system"), len(kept))
    return caller.restore([*kept[:lead], _summary(summary), *kept[lead:]])


def is_summary(message: Message) -> bool:
    """Whether a message is the summary of a compaction."""
    return message.role == "system" and message.text.startswith(PRESET.digest_header)


def _summary(text: str) -> Message:
    """A summary as a tagged system message, internal to the host."""
    tag = PRESET.digest_header
    said = Text(text=f"{tag}\n{text}\n{tag.replace('<', '</')}")
    return Message(role="system", parts=(said,), meta=Meta(hidden=True))


def _planned(messages: Sequence[Message], policy: Policy) -> Plan:
    session = Session(policy=policy)
    session.add(*messages)
    return session.plan()


def truncation_policy(policy: ContextWindowPolicy, artifacts: ArtifactCompaction, model: str) -> Policy:
    """The policy of `transform` in the engine's words."""
    return PRESET.but(
        window_tokens=policy.max_context_tokens,
        reply_tokens=policy.max_output_tokens,
        counter="model" if model else PRESET.counter,
        keep_messages=policy.min_recent_messages,
        prune_arrival_tokens=artifacts.threshold_tokens,
        preview_chars=artifacts.preview_max_chars,
        preview_lines=artifacts.preview_max_lines,
    )


def compaction_policy(policy: ContextWindowPolicy, config: CompactionConfig, *, keep_turns: int) -> Policy:
    """The policy of `plan_compaction` in the engine's words: down to the floors, with a summary in front."""
    suffix = policy.compaction_mode is ContextCompactionMode.KeepRecentRawSuffix
    return PRESET.but(
        rules=(f"fold when request > {policy.autocompact_threshold}",),
        window_tokens=_NO_WINDOW,
        reply_tokens=0,
        keep_messages=policy.compaction_raw_suffix_messages if suffix else policy.min_recent_messages,
        keep_turns=keep_turns,
        target_ratio=0.0,
        min_gain_ratio=config.min_savings_ratio,
        leave="digest",
        digest_tokens=config.summary_max_tokens or PRESET.digest_tokens,
        prune_arrival_tokens=None,
    )


def breakpoints(policy: ContextWindowPolicy) -> int:
    """How many cache breakpoints a request may be given under a policy: none when prompt caching is off."""
    return PRESET.breakpoints if policy.enable_prompt_cache else 0
