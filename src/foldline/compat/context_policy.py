"""Context window policy: truncate a request, show large results as previews, and plan compactions.

Three functions work on a list of messages. `transform` makes a request fit: large results become previews, then the
oldest messages are removed. `plan_compaction` returns which messages a summary should replace, and `apply_summary`
replaces them.

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
"""The smallest saving for which a compaction is made."""
_NO_WINDOW = 10**15
"""No window limit: a compaction has its own threshold, and `transform` enforces the window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    """The messages that a summary replaces, between the leading system messages and the boundary."""

    boundary: int
    """Index of the first message that stays."""
    raw: tuple[int, ...]
    """Indexes before the boundary that stay too: the last user request, and calls without a result."""
    covered: tuple[int, ...]
    """Indexes that the summary replaces."""
    before: int
    after: int
    """Expected tokens with a summary of the largest allowed size."""
    reason: str


def transform(
    messages: Sequence[Any],
    policy: ContextWindowPolicy | None = None,
    *,
    tools: Sequence[Any] = (),
    artifacts: ArtifactCompaction | None = None,
    model: str = "",
) -> Any:
    """A list that fits; the same list if nothing changes. Raises `ViewTooLarge` if what must stay does not fit.

    Sizes are characters / 4; with a `model`, that model's counter is used.
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
    """Where to compact; None if no compaction is due or it would save too little.

    The latest user turn stays. If that turn alone is above the threshold, its older steps are compacted too, and the
    user message stays.
    """
    config = config or CompactionConfig()
    if policy.autocompact_threshold is None or config.mode is CompactionExecutionMode.Off:
        return None
    caller = CallerMessages(messages)
    whole_turn = _plan(caller.messages, compaction_policy(policy, config, keep_turns=1))
    found = whole_turn.fold
    if whole_turn.verdict and (found is None or found.after > policy.autocompact_threshold):
        found = _plan(caller.messages, compaction_policy(policy, config, keep_turns=0)).fold or found
    if found is None:
        return None
    raw = tuple(sorted((*found.pinned, *found.carried)))
    lead = next((place for place, each in enumerate(caller.messages) if each.role != "system"), 0)
    covered = tuple(index for index in range(lead, found.cut) if index not in raw)
    return CompactionPlan(
        boundary=found.cut, raw=raw, covered=covered, before=found.before, after=found.after, reason=found.reason
    )


def apply_summary(messages: Sequence[Any], plan: CompactionPlan, summary: str) -> Any:
    """The messages with a summary in place of the covered messages and of the previous summary."""
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
    """A summary as a tagged system message, hidden from users."""
    tag = PRESET.digest_header
    tagged = Text(text=f"{tag}\n{text}\n{tag.replace('<', '</')}")
    return Message(role="system", parts=(tagged,), meta=Meta(hidden=True))


def _plan(messages: Sequence[Message], policy: Policy) -> Plan:
    session = Session(policy=policy)
    session.add(*messages)
    return session.plan()


def truncation_policy(policy: ContextWindowPolicy, artifacts: ArtifactCompaction, model: str) -> Policy:
    """The foldline policy of `transform`."""
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
    """The foldline policy of `plan_compaction`: fold down to the floors, with a summary in front."""
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
    """Number of cache breakpoints of a request; 0 if prompt caching is off."""
    return PRESET.breakpoints if policy.enable_prompt_cache else 0
