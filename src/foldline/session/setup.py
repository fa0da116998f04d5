"""What a session is set up with: model, policy, wire format and tools, and the limits that follow from them.

The record stores the choices as one settings entry; everything else here is computed from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from foldline.errors import ConfigError
from foldline.measure.estimator import Counter
from foldline.measure.message_size import TEXT_ONLY, Framing, message_tokens, tools_tokens
from foldline.measure.tokenizers import counter_for
from foldline.message import Message
from foldline.models.table import Model
from foldline.models.table import model as model_of
from foldline.plan.media_budget import MediaAllowance, media_allowance
from foldline.policy import Policy, read_knobs
from foldline.wire.formats import REQUEST_FORMATS, framing_of, grammar_of

DEFAULT_POLICY = "balanced"
DEFAULT_FORMAT = "openai"
"""The wire format of a model of which none is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The settings of a session, and the limits that follow from them."""

    model: Model
    policy: Policy
    format: str
    """The wire format in use."""
    format_known: bool
    """Whether the format was given or recognised; otherwise it is the model vendor's usual one."""
    tools: int
    """Tokens of the tool definitions."""
    extra: int
    """Tokens of everything else that each request carries beside its messages."""
    counter: Counter
    framing: Framing
    measured: bool
    """Whether sizes are the model's own, so that its usage figures may anchor them."""
    window: int
    usable: int
    """What a request may fill: the window without what is kept free for the reply."""
    arrival_limit: int
    """Results of at least this size are pruned before they are ever sent."""
    media: MediaAllowance

    def size(self, message: Message) -> int:
        """The size of a message by the session's counter."""
        return message_tokens(message, self.counter, self.framing)

    def row(self) -> dict[str, Any]:
        """The settings as they are stored: what differs from the defaults."""
        row: dict[str, Any] = {"model": self.model.name, "policy": policy_row(self.policy), "tools": self.tools}
        if self.format_known:
            row["format"] = self.format
        if self.extra:
            row["extra"] = self.extra
        return row


def setup(  # noqa: PLR0913 (all are named at the call)
    row: Mapping[str, Any],
    *,
    model: str | None = None,
    policy: Policy | str | None = None,
    tools: Sequence[Any] | None = None,
    format: str | None = None,
    extra_tokens: int | None = None,
    counter: Counter | None = None,
) -> Setup:
    """The setup for stored settings, changed by the arguments that are given.

    `counter` counts in place of the model's own, where the policy counts as the model does.
    """
    if policy is None:
        chosen = Policy(**read_knobs(row["policy"], "the record")) if row else Policy.preset(DEFAULT_POLICY)
    else:
        chosen = Policy.preset(policy) if isinstance(policy, str) else policy
    known = model_of(row.get("model", "") if model is None else model)
    told = check_format(row.get("format", "") if format is None else format)
    usual = known.format or DEFAULT_FORMAT
    used = told or usual
    measured = chosen.counter == "model"
    if counter is None or not measured:
        counter = counter_for(known.name, kind=chosen.counter)
    framing = framing_of(used, known.media) if measured else TEXT_ONLY
    window = chosen.window_tokens or known.window
    usable = _usable(window, known, chosen)
    limits = grammar_of(usual).limits
    return Setup(
        model=known,
        policy=chosen,
        format=used,
        format_known=bool(told),
        tools=row.get("tools", 0) if tools is None else tools_tokens(tools, counter, framing),
        extra=row.get("extra", 0) if extra_tokens is None else extra_tokens,
        counter=counter,
        framing=framing,
        measured=measured,
        window=window,
        usable=usable,
        arrival_limit=_arrival_limit(chosen, usable),
        media=media_allowance(most=limits.media, each=limits.media_bytes, request=limits.total_bytes, usable=usable),
    )


def check_format(format: str) -> str:
    """The name of a wire format that requests can be sent in, or "" when none is named."""
    if format and format not in REQUEST_FORMATS:
        raise ConfigError(f"unknown wire format {format!r}", hint=f"use one of {', '.join(REQUEST_FORMATS)}")
    return format


def policy_row(policy: Policy) -> dict[str, Any]:
    """A policy as it is stored: the knobs that differ from the defaults."""
    defaults, row = Policy(), {}
    for knob in fields(policy):
        value = getattr(policy, knob.name)
        if value != getattr(defaults, knob.name):
            row[knob.name] = [str(item) for item in value] if isinstance(value, tuple) else value
    return row


def _usable(window: int, model: Model, policy: Policy) -> int:
    reply = policy.reply_tokens
    if reply is None:
        reply = min(model.reply, window // 4)
    return max(0, window - reply - policy.reserve_tokens)


def _arrival_limit(policy: Policy, usable: int) -> int:
    """The size from which a result is pruned on arrival; one that is never reached when the policy sets none."""
    limits = [policy.prune_arrival_tokens, 1 << 62]
    if policy.prune_arrival_ratio is not None:
        limits.append(max(1, int(policy.prune_arrival_ratio * usable)))
    return min(limit for limit in limits if limit is not None)
