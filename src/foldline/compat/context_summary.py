"""The summarizer of a context window policy: it compacts a list of messages with a model.

    messages, state = compact(messages, policy, digester=digester, state=state)

The summary is cumulative: each prompt contains the previous summary. Messages that are internal to the agent program
(`Meta.hidden`) are not shown to the model. The saving is estimated before the model is called, and measured afterwards.
If the saving is too small, or if the model fails, the messages stay unchanged. The next attempt is made only after some
messages were added. Without a digester, nothing is compacted. Use `transform` to truncate the messages instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypedDict, Unpack

from foldline.compat.caller_messages import CallerMessages
from foldline.compat.context_policy import (
    MIN_COMPACTION_GAIN_TOKENS,
    PRESET,
    AgentSpec,
    CompactionConfig,
    CompactionExecutionMode,
    CompactionPlan,
    ContextWindowPolicy,
    apply_summary,
    compaction_policy,
    is_summary,
    plan_compaction,
    size_of,
    truncation_policy,
)
from foldline.digest.digester import Digester, DigesterCall, DigestRequest, FoldRefused
from foldline.digest.driver import RetryLimits, write_model_digest, write_model_digest_async
from foldline.digest.markup import body_of
from foldline.digest.prompt import cumulative_prompt
from foldline.digesters import digester_of, with_policy_model
from foldline.errors import ConfigError
from foldline.fold import Digest
from foldline.measure.estimator import CHARS_4
from foldline.models.table import model as model_of
from foldline.models.table import plain_name
from foldline.policy import Policy

_RETRIES = RetryLimits(seconds=PRESET.digest_seconds)


class CompactionEvent(NamedTuple):
    """One compaction: its summary, and the sizes before and after."""

    summary: str
    pre_tokens: int
    post_tokens: int
    at: float
    """Time in seconds since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionState:
    """The compactions of one conversation. Each attempt returns a new state."""

    events: tuple[CompactionEvent, ...] = ()
    refused: str = ""
    """Why the last attempt changed nothing; "" if it succeeded."""
    refused_at: int = 0
    """The number of messages at the time of the last attempt that changed nothing."""

    def is_cooling_down(self, count: int) -> bool:
        """Whether the next attempt must wait, because the last attempt changed nothing and only a few messages were
        added since then. `count` is the number of messages now.
        """
        return bool(self.refused) and count < self.refused_at + PRESET.cooldown_messages


def summarizer_model(config: CompactionConfig, model: str) -> str:
    """The name of the model that writes summaries: `summary_model`, or by default the agent's own model.

    If `summary_model` and the agent's own model are both in the model table, they must be from the same vendor, and the
    name is returned without the prefix and suffix that a platform adds. If one of the two models is not in the model
    table, nothing is checked.
    """
    wanted = config.summary_model
    if not wanted:
        return model
    known, agent = model_of(wanted), model_of(model)
    if known.source.startswith("default") or agent.source.startswith("default"):
        return wanted
    vendor = agent.vendor
    if known.vendor != vendor:
        raise ConfigError(
            f"summary_model {wanted} is made by {known.vendor} and not by {vendor}",
            hint="name a model of the agent's own vendor",
        )
    return plain_name(wanted)


def session_policy(spec: AgentSpec, model: str = "") -> Policy:
    """An agent's settings as the policy of a session, with compaction in the background.

        session = foldline.open("agent.db").session("run-7", model=model, policy=session_policy(spec, model))

    The session creates its summarizer and its worker if the provider's key and SDK are available.
    """
    policy, config = spec.context_policy, spec.compaction
    bare = truncation_policy(policy, spec.artifact_compaction, model)
    if policy.autocompact_threshold is None or config.mode is CompactionExecutionMode.Off:
        return bare
    compacting = compaction_policy(bare, policy, config, keep_turns=1)
    return compacting.but(background=True, digest_model=summarizer_model(config, model))


class CompactionOptions(TypedDict, total=False):
    """The optional arguments of `compact` and `acompact`."""

    digester: Digester | Callable[[DigesterCall], Any] | None
    """Writes the summaries: one of `foldline.digesters`, or a function."""
    state: CompactionState | None
    clock: Callable[[], float]
    """Returns the time in seconds since 1970; by default `time.time`."""


def compact(
    messages: Sequence[Any],
    policy: ContextWindowPolicy,
    config: CompactionConfig | None = None,
    **options: Unpack[CompactionOptions],
) -> tuple[Any, CompactionState]:
    """Compact the messages if a compaction is due.

    Returns the new list and the new state. If nothing was compacted, the same list is returned.
    """
    pending = _PendingCompaction.of(messages, policy, config, **options)
    if isinstance(pending, CompactionState):
        return messages, pending
    return pending.apply(write_model_digest(pending.request, pending.digester, _RETRIES))


async def acompact(
    messages: Sequence[Any],
    policy: ContextWindowPolicy,
    config: CompactionConfig | None = None,
    **options: Unpack[CompactionOptions],
) -> tuple[Any, CompactionState]:
    """Like `compact`, but the event loop is not blocked."""
    pending = _PendingCompaction.of(messages, policy, config, **options)
    if isinstance(pending, CompactionState):
        return messages, pending
    return pending.apply(await write_model_digest_async(pending.request, pending.digester, _RETRIES))


@dataclass(frozen=True, slots=True, kw_only=True)
class _PendingCompaction:
    messages: Sequence[Any]
    plan: CompactionPlan
    config: CompactionConfig
    state: CompactionState
    digester: Digester
    request: DigestRequest
    clock: Callable[[], float]

    @classmethod
    def of(
        cls,
        messages: Sequence[Any],
        policy: ContextWindowPolicy,
        config: CompactionConfig | None,
        **options: Unpack[CompactionOptions],
    ) -> _PendingCompaction | CompactionState:
        """The compaction that is due. If no compaction is due, the current state is returned."""
        for name in options.keys() - CompactionOptions.__annotations__.keys():
            known = ", ".join(CompactionOptions.__annotations__)
            raise ConfigError(f"unknown argument {name!r}", hint=f"use one of {known}")
        digester, clock = digester_of(options.get("digester")), options.get("clock", time.time)
        config, state = config or CompactionConfig(), options.get("state") or CompactionState()
        if digester is None or state.is_cooling_down(len(messages)):
            return state
        plan = plan_compaction(messages, policy, config)
        if plan is None:
            return state
        other = PRESET.but(digest_model=summarizer_model(config, digester.model))
        digester = with_policy_model(digester, other) or digester
        read = CallerMessages(messages).messages
        covered = [read[index] for index in plan.covered]
        before = next((body_of(each.text, PRESET.digest_header) for each in read if is_summary(each)), "")
        request = DigestRequest(
            messages=[each for each in covered if not each.meta.hidden and not is_summary(each)],
            count_tokens=lambda text: CHARS_4.count(text).tokens,
            max_tokens=config.summary_max_tokens or PRESET.digest_tokens,
            covered_tokens=sum(map(size_of, covered)),
            prior_digest=before,
            prompt=cumulative_prompt(config.summarizer_system_prompt, config.summarizer_user_prompt),
            header=PRESET.digest_header,
            on_failure="keep",
            plain_list=True,
        )
        return cls(
            messages=messages, plan=plan, config=config, state=state, digester=digester, request=request, clock=clock
        )

    def apply(self, made: Digest | FoldRefused) -> tuple[Any, CompactionState]:
        """The messages and the state after the digester has returned `made`."""
        if isinstance(made, FoldRefused):
            return self.messages, self._refused(made.cause)
        summary = body_of(made.message.text, PRESET.digest_header)
        after = apply_summary(self.messages, self.plan, summary)
        pre, post = (sum(map(size_of, CallerMessages(each).messages)) for each in (self.messages, after))
        gain = pre - post
        if gain < MIN_COMPACTION_GAIN_TOKENS or gain <= self.config.min_savings_ratio * self.request.covered_tokens:
            return self.messages, self._refused(f"the summary would free only {max(0, gain):,} tokens")
        event = CompactionEvent(summary, pre, post, self.clock())
        return after, CompactionState(events=(*self.state.events, event))

    def _refused(self, cause: str) -> CompactionState:
        return replace(self.state, refused=cause, refused_at=len(self.messages))
