"""Context window policy: truncate a request, show large results as previews, and plan compactions.

These functions work on a list of messages. `transform` makes a request fit: large results become previews, then the
oldest messages are removed. `plan_compaction` returns which messages a summary should replace, and `apply_summary`
replaces them. `trim_to_compaction_boundary` takes a list that was loaded, and removes the messages before the latest
summary.

    messages = transform(messages, ContextWindowPolicy(max_context_tokens=128_000), tools=tools)
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field, fields
from enum import StrEnum
from typing import Any

from foldline.compat.caller_messages import CallerMessages
from foldline.digest.checks import check_size, reject_summary
from foldline.digest.prompt import SUMMARY_SYSTEM, SUMMARY_TEMPLATE
from foldline.errors import ConfigError, ViewTooLarge
from foldline.ledger.message_keys import trace
from foldline.measure.estimator import CHARS_4
from foldline.measure.message_size import TEXT_ONLY, message_tokens
from foldline.message import Message, Meta, Text
from foldline.plan.plan import Plan
from foldline.policy import Policy
from foldline.session import Session
from foldline.view.compose import messages_of

PRESET = Policy.preset("awaken")
MIN_COMPACTION_GAIN_TOKENS: int = PRESET.min_gain_tokens
"""A compaction is made only if it saves at least this many tokens."""
_UNLIMITED = PRESET.but(window_tokens=10**15, reply_tokens=0, prune_arrival_tokens=None)
"""The preset without a window limit, for compactions.

A compaction has its own threshold. The window limit applies only in `transform`.
"""
_MAX_GAIN_RATIO = 0.999_999
"""The largest `min_gain_ratio` that is used. The design allows a `min_savings_ratio` of 1.0, which is lowered to this
value.
"""
_SUMMARY_SHARE = 8
"""Divisor: a summary is expected to have at most `autocompact_threshold // _SUMMARY_SHARE` tokens.

This limit is used only if `summary_max_tokens` is not set.
"""
CompactionConfigKey = "compaction"
"""The section of an agent's settings that holds its `CompactionConfig`."""

_LOG = logging.getLogger("foldline.context_policy")


class ContextCompactionMode(StrEnum):
    """Which messages a compaction keeps at the end of the list."""

    KeepRecentRawSuffix = "keep_recent_raw_suffix"
    """The last `compaction_raw_suffix_messages` messages are kept."""
    CompactToSafeFrontier = "compact_to_safe_frontier"
    """The last `min_recent_messages` messages are kept."""


class CompactionExecutionMode(StrEnum):
    """Whether compaction runs at all."""

    Background = "background"
    Off = "off"


class CompactionRawRetention(StrEnum):
    """What happens to the messages that a summary replaces."""

    PreserveDurable = "preserve_durable"
    """The messages are removed from the prompt and stay in the record."""


def _set_choice(settings: Any, name: str, kind: type[StrEnum]) -> None:
    value = getattr(settings, name)
    try:
        object.__setattr__(settings, name, kind(value))
    except ValueError:
        allowed = ", ".join(kind)
        raise ConfigError(f"{name} cannot be {value!r}", hint=f"use one of {allowed}") from None


def _at_least(least: int, settings: Any, *names: str) -> None:
    for name in names:
        value = getattr(settings, name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
            raise ConfigError(f"{name} must be a whole number of at least {least}, not {value!r}")


def _section(sections: Any, name: str) -> Mapping[str, Any]:
    found = sections.get(name) if isinstance(sections, Mapping) else None
    if found is not None and not isinstance(found, Mapping):
        raise ConfigError(f"section {name} must be a mapping, not {type(found).__name__}")
    return found or {}


def _known(section: Mapping[str, Any], kind: type[Any]) -> dict[str, Any]:
    names = list(kind.__dataclass_fields__)
    for name in section:
        if name not in names:
            raise ConfigError(f"unknown setting {name!r}", hint=f"use one of {', '.join(names)}")
    return dict(section)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextWindowPolicy:
    """Window, reserve and compaction settings of one agent."""

    max_context_tokens: int = PRESET.window_tokens or 0
    max_output_tokens: int = PRESET.reply_tokens or 0
    min_recent_messages: int = PRESET.keep_messages
    enable_prompt_cache: bool = True
    autocompact_threshold: int | None = None
    """A compaction is planned above this many tokens; None means never."""
    compaction_mode: ContextCompactionMode = ContextCompactionMode.KeepRecentRawSuffix
    compaction_raw_suffix_messages: int = 2

    def __post_init__(self) -> None:
        _set_choice(self, "compaction_mode", ContextCompactionMode)
        _at_least(1, self, "max_context_tokens", "autocompact_threshold")
        _at_least(0, self, "max_output_tokens", "min_recent_messages", "compaction_raw_suffix_messages")
        if self.max_output_tokens >= self.max_context_tokens:
            raise ConfigError(
                f"max_output_tokens ({self.max_output_tokens:,}) is not below max_context_tokens",
                hint="lower max_output_tokens or raise max_context_tokens",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactCompaction:
    """The size above which a tool result becomes a preview, and the size of the preview."""

    threshold_tokens: int = PRESET.prune_arrival_tokens or 0
    preview_max_chars: int = PRESET.preview_chars
    preview_max_lines: int = PRESET.preview_lines

    def __post_init__(self) -> None:
        _at_least(1, self, *(knob.name for knob in fields(self)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionConfig:
    """How summaries are written."""

    mode: CompactionExecutionMode = CompactionExecutionMode.Background
    execution_mode: InitVar[CompactionExecutionMode | None] = None
    """Another name for the setting `mode`. If both are given, `execution_mode` is used."""
    summarizer_system_prompt: str = SUMMARY_SYSTEM
    summarizer_user_prompt: str = SUMMARY_TEMPLATE
    """`{messages}` is replaced by the transcript, `{previous_summary}` by the previous summary."""
    summary_max_tokens: int | None = None
    summary_model: str | None = None
    """Another model of the same vendor; None means the agent's model."""
    min_savings_ratio: float = PRESET.min_gain_ratio
    raw_retention: CompactionRawRetention = CompactionRawRetention.PreserveDurable

    def __post_init__(self, execution_mode: CompactionExecutionMode | None) -> None:
        object.__setattr__(self, "mode", execution_mode or self.mode)
        _set_choice(self, "mode", CompactionExecutionMode)
        _set_choice(self, "raw_retention", CompactionRawRetention)
        _at_least(1, self, "summary_max_tokens")
        if not 0 <= self.min_savings_ratio <= 1:
            raise ConfigError(f"min_savings_ratio must be between 0 and 1, not {self.min_savings_ratio}")
        if "{messages}" not in self.summarizer_user_prompt:
            raise ConfigError("summarizer_user_prompt has no {messages}", hint="add {messages} for the transcript")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """One agent's settings: its policy, and optional sections."""

    context_policy: ContextWindowPolicy = ContextWindowPolicy()
    sections: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _ = self.artifact_compaction, self.compaction  # validates the sections now

    @property
    def artifact_compaction(self) -> ArtifactCompaction:
        """The settings in `sections.context_transform.artifact_compaction`."""
        section = _section(self.sections, "context_transform")
        return ArtifactCompaction(**_known(_section(section, "artifact_compaction"), ArtifactCompaction))

    @property
    def compaction(self) -> CompactionConfig:
        """The settings in `sections.compaction`, which is a mapping or a `CompactionConfig`."""
        found = self.sections.get(CompactionConfigKey)
        if isinstance(found, CompactionConfig):
            return found
        return CompactionConfig(**_known(_section(self.sections, CompactionConfigKey), CompactionConfig))


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    """The messages that a summary replaces, between the leading system messages and the boundary."""

    boundary: int
    """Index of the first message that stays."""
    raw: tuple[int, ...]
    """Indexes of the messages before the boundary that also stay: the last user request, and calls without a result."""
    covered: tuple[int, ...]
    """Indexes of the messages that the summary replaces."""
    before: int
    after: int
    """Expected tokens of the list after the compaction."""
    reason: str
    boundary_key: bytes = b""
    """Hash of the messages before the boundary.

    `apply_summary` uses the hash to check that the messages before the boundary are unchanged.
    """


def transform(
    messages: Sequence[Any],
    policy: ContextWindowPolicy | None = None,
    *,
    tools: Sequence[Any] = (),
    artifacts: ArtifactCompaction | None = None,
    model: str = "",
) -> Any:
    """The messages, shortened so that they fit. If nothing changes, the same list is returned.

    Raises `ViewTooLarge` if the messages cannot fit. Tokens are counted with the counter of `model`. If `model` is not
    given, tokens are counted as characters / 4.
    """
    policy, artifacts = policy or ContextWindowPolicy(), artifacts or ArtifactCompaction()
    caller = CallerMessages(messages)
    session = Session(model=model, policy=truncation_policy(policy, artifacts, model), tools=tools)
    _add(session, caller.messages)
    try:
        session.view()
    except ViewTooLarge as error:
        knobs = "raise max_context_tokens, or lower max_output_tokens or min_recent_messages"
        raise ViewTooLarge(error.tokens, error.limit, error.bill, hint=knobs) from None
    return caller.restore(messages_of(session.timeline, caller.wire_format), plain=True)


def plan_compaction(
    messages: Sequence[Any], policy: ContextWindowPolicy, config: CompactionConfig | None = None
) -> CompactionPlan | None:
    """The plan of a compaction. None if no compaction is due, or if it would save too little.

    The latest user turn stays. If the latest user turn alone is above the threshold, its older steps are also
    compacted, but its user message stays.
    """
    config = config or CompactionConfig()
    if policy.autocompact_threshold is None or config.mode is CompactionExecutionMode.Off:
        return None
    share = max(1, policy.autocompact_threshold // _SUMMARY_SHARE)
    expected = config.summary_max_tokens or min(PRESET.digest_tokens, share)
    base = compaction_policy(_UNLIMITED, policy, config, keep_turns=1).but(digest_tokens=expected)
    caller = CallerMessages(messages)
    whole_turn = _plan(caller.messages, base)
    found = whole_turn.fold
    if whole_turn.verdict and (found is None or found.after > policy.autocompact_threshold):
        found = _plan(caller.messages, base.but(keep_turns=0)).fold or found
    if found is None:
        return None
    raw = tuple(sorted((*found.pinned, *found.carried)))
    lead = next((place for place, each in enumerate(caller.messages) if each.role != "system"), 0)
    covered = tuple(index for index in range(lead, found.cut) if index not in raw)
    return CompactionPlan(
        boundary=found.cut,
        raw=raw,
        covered=covered,
        before=found.before,
        after=found.after,
        reason=found.reason,
        boundary_key=_key(caller.messages[: found.cut]),
    )


def apply_summary(messages: Sequence[Any], plan: CompactionPlan, summary: str) -> Any:
    """The messages with a summary in place of the covered messages and of the previous summary.

    Returns the same list if `summary` is no summary (blank, a tool call, an error text, a request for the
    conversation), if it is not smaller than the messages that it replaces, or if the messages before the boundary have
    changed since the plan was made. Messages that were appended since then do not matter.
    """
    caller = CallerMessages(messages)
    if _key(caller.messages[: plan.boundary]) != plan.boundary_key:
        return messages
    covered, kept, removed = set(plan.covered), list[Message](), list[Message]()
    for index, message in enumerate(caller.messages):
        (removed if index in covered or is_summary(message) else kept).append(message)
    cause = reject_summary(summary) or check_size(size_of(_summary(summary)), covered=sum(map(size_of, removed)))
    if cause:
        _LOG.warning("the messages stay as they were: %s", cause)
        return messages
    lead = next((place for place, each in enumerate(kept) if each.role != "system"), len(kept))
    return caller.restore([*kept[:lead], _summary(summary), *kept[lead:]])


def trim_to_compaction_boundary(messages: Sequence[Any]) -> Any:
    """The leading system messages, the latest summary, and all messages after this summary.

    If there is no summary, the same list is returned.
    """
    caller = CallerMessages(messages)
    latest = max((index for index, message in enumerate(caller.messages) if is_summary(message)), default=0)
    lead = next((index for index, each in enumerate(caller.messages) if each.role != "system"), len(messages))
    system = [message for message in caller.messages[: min(lead, latest)] if not is_summary(message)]
    return caller.restore([*system, *caller.messages[latest:]])


def size_of(message: Message) -> int:
    """The size of a message in tokens: four characters count as one token."""
    return message_tokens(message, CHARS_4, TEXT_ONLY)


def is_summary(message: Message) -> bool:
    """Whether a message is the summary of a compaction."""
    return message.role == "system" and message.text.startswith(PRESET.digest_header)


def _summary(text: str) -> Message:
    tag = PRESET.digest_header
    tagged = Text(text=f"{tag}\n{text}\n{tag.replace('<', '</')}")
    return Message(role="system", parts=(tagged,), meta=Meta(hidden=True))


def _plan(messages: Sequence[Message], policy: Policy) -> Plan:
    session = Session(policy=policy)
    _add(session, messages)
    return session.plan()


def _add(session: Session, messages: Sequence[Message]) -> None:
    """Add messages to a session, and allow the session to cut all messages except the newest one.

    By default, a session also keeps all prompts without a reply.
    """
    session.add(*messages)
    session.timeline.tail = max(session.timeline.cuts["message"], default=session.timeline.lead)


def _key(messages: Sequence[Message]) -> bytes:
    key = b""
    for message in messages:
        key = trace("", key, message)
    return key


def truncation_policy(policy: ContextWindowPolicy, artifacts: ArtifactCompaction, model: str) -> Policy:
    """The foldline policy that `transform` applies."""
    return PRESET.but(
        window_tokens=policy.max_context_tokens,
        reply_tokens=policy.max_output_tokens,
        counter="model" if model else PRESET.counter,
        keep_messages=policy.min_recent_messages,
        prune_arrival_tokens=artifacts.threshold_tokens,
        preview_chars=artifacts.preview_max_chars,
        preview_lines=artifacts.preview_max_lines,
    )


def compaction_policy(
    base: Policy, policy: ContextWindowPolicy, config: CompactionConfig, *, keep_turns: int
) -> Policy:
    """The base policy with the settings of a compaction. In such a policy, a digest replaces all messages except those
    that must stay.
    """
    suffix = policy.compaction_mode is ContextCompactionMode.KeepRecentRawSuffix
    return base.but(
        rules=(f"fold when request > {policy.autocompact_threshold}",),
        keep_messages=policy.compaction_raw_suffix_messages if suffix else policy.min_recent_messages,
        keep_turns=keep_turns,
        target_ratio=0.0,
        min_gain_ratio=min(config.min_savings_ratio, _MAX_GAIN_RATIO),
        leave="digest",
        digest_tokens=config.summary_max_tokens or PRESET.digest_tokens,
        digest_system_prompt=config.summarizer_system_prompt,
        digest_user_prompt=config.summarizer_user_prompt,
    )


def breakpoints(policy: ContextWindowPolicy) -> int:
    """The maximum number of cache breakpoints in a request; 0 if prompt caching is off."""
    return PRESET.breakpoints if policy.enable_prompt_cache else 0
