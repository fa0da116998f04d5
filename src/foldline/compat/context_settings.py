"""The settings of a context window policy, validated when they are created."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum, StrEnum
from typing import Any, TypeVar

from foldline.digest.prompt import SUMMARY_SYSTEM, SUMMARY_TEMPLATE
from foldline.errors import ConfigError
from foldline.policy import Policy

PRESET = Policy.preset("awaken")
CompactionConfigKey = "compaction"
"""The section of an agent's settings that holds its `CompactionConfig`."""

Choice = TypeVar("Choice", bound=Enum)


class ContextCompactionMode(StrEnum):
    """Up to which message a compaction reaches."""

    KeepRecentRawSuffix = "keep_recent_raw_suffix"
    """Up to the last few messages."""
    CompactToSafeFrontier = "compact_to_safe_frontier"
    """Up to the last position where every call has its result, minus `min_recent_messages`."""


class CompactionExecutionMode(StrEnum):
    """Whether compaction runs at all."""

    Background = "background"
    Off = "off"


class CompactionRawRetention(StrEnum):
    """What happens to the messages that a summary replaces."""

    PreserveDurable = "preserve_durable"
    """They are removed from the prompt and stay in the record."""


def _choice(name: str, value: Any, kind: type[Choice]) -> Choice:
    try:
        return kind(value)
    except ValueError:
        allowed = ", ".join(str(each.value) for each in kind)
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
    names = [knob.name for knob in fields(kind)]
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
    """Plan a compaction above this many tokens; None: never."""
    compaction_mode: ContextCompactionMode = ContextCompactionMode.KeepRecentRawSuffix
    compaction_raw_suffix_messages: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "compaction_mode", _choice("compaction_mode", self.compaction_mode, ContextCompactionMode)
        )
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
    summarizer_system_prompt: str = SUMMARY_SYSTEM
    summarizer_user_prompt: str = SUMMARY_TEMPLATE
    """`{messages}` is replaced by the transcript, `{previous_summary}` by the previous summary."""
    summary_max_tokens: int | None = None
    summary_model: str | None = None
    """Another model of the same vendor; None: the agent's model."""
    min_savings_ratio: float = PRESET.min_gain_ratio
    raw_retention: CompactionRawRetention = CompactionRawRetention.PreserveDurable

    def __post_init__(self) -> None:
        object.__setattr__(self, "mode", _choice("mode", self.mode, CompactionExecutionMode))
        object.__setattr__(self, "raw_retention", _choice("raw_retention", self.raw_retention, CompactionRawRetention))
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
        """`sections.context_transform.artifact_compaction`."""
        section = _section(self.sections, "context_transform")
        return ArtifactCompaction(**_known(_section(section, "artifact_compaction"), ArtifactCompaction))

    @property
    def compaction(self) -> CompactionConfig:
        """`sections.compaction`."""
        section = dict(_section(self.sections, CompactionConfigKey))
        if "execution_mode" in section:
            section["mode"] = section.pop("execution_mode")
        return CompactionConfig(**_known(section, CompactionConfig))
