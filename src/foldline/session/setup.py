"""The setup of a session: model, policy, wire format and tools, and the limits that follow from them.

The record stores these choices as one settings entry. Everything else in a setup is computed from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from foldline.errors import ConfigError, check_type
from foldline.measure.estimator import Counter
from foldline.measure.message_size import TEXT_ONLY, Framing, tools_tokens
from foldline.measure.tokenizers import counter_for
from foldline.models.table import Model, misspelled_name, similar_name
from foldline.models.table import model as model_of
from foldline.plan.media_budget import MediaAllowance, bytes_for_media
from foldline.policy import Policy, no_usable_window, read_knobs
from foldline.recall.excerpt import has_recall_tool
from foldline.wire.formats import REQUEST_FORMATS, element_format, framing_of, grammar_of
from foldline.wire.tool_definitions import json_tools, tools_hash

DEFAULT_POLICY = "balanced"
DEFAULT_FORMAT = "openai"
"""The wire format for models whose format is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The settings of a session, and the limits that follow from them."""

    model: Model
    policy: Policy
    format: str
    """The wire format in use."""
    format_known: bool
    """Whether the format was given or detected. If not, it is the usual format of the model's vendor."""
    tools: int
    """Tokens of the tool definitions."""
    definitions: tuple[Any, ...] | None
    """The tool definitions; None if another process gave them, so that only their size is known."""
    tools_key: str
    """The hash of the tool definitions (see `tools_hash`). If the definitions are unknown, this is the hash in the
    record.
    """
    stored_tools_key: str
    """The hash that the record stores: the hash of the tools that any process gave last."""
    has_recall: bool
    """Whether the tools that any process gave last include the recall tool.

    If not, placeholders do not advise to use it.
    """
    extra: int
    """Tokens of each request that are neither in messages nor in tools."""
    trusts_first_usage: bool
    """Whether a first usage figure that shows many hidden tokens counts without a second figure that confirms it.

    This is so if the messages are from a recorded file: no later figure may come, and the size of the recorded request
    does not depend on the window of this session.
    """
    counter: Counter
    framing: Framing
    measured: bool
    """Whether sizes are counted in the model's tokens. Only then can reported usage correct them."""
    window: int
    assumption: str
    """The reason why the window is a guess; "" if the policy or the model table states it."""
    usable: int
    """The largest request in tokens: the window minus the tokens that are reserved for the reply."""
    arrival_limit: int
    """Results of at least this many tokens are pruned on arrival.

    If the policy has no such limit, the value is larger than any result.
    """
    media: MediaAllowance

    def row(self) -> dict[str, Any]:
        """The settings in the form in which they are stored. Policy values that equal the defaults are left out."""
        knobs, defaults = {}, Policy()
        for knob in fields(self.policy):
            value = getattr(self.policy, knob.name)
            if value != getattr(defaults, knob.name):
                knobs[knob.name] = [str(item) for item in value] if isinstance(value, tuple) else value
        row: dict[str, Any] = {"model": self.model.name, "policy": knobs, "tools": self.tools}
        if self.stored_tools_key:
            row["tools_key"] = self.stored_tools_key
        if self.has_recall:
            row["recall"] = True
        if self.format_known:
            row["format"] = self.format
        if self.extra:
            row["extra"] = self.extra
        if self.trusts_first_usage:
            row["trusts_first_usage"] = True
        return row


def policy_of(policy: Policy | str) -> Policy:
    """The given policy. If a name is given, the preset with this name."""
    if isinstance(policy, str):
        return Policy.preset(policy)
    hint = 'policy="balanced", or Policy.preset("balanced").but(window_tokens=…)'
    check_type(policy, Policy, "policy", hint=hint)
    return policy


def setup(  # noqa: PLR0913 (all are keyword-only)
    row: Mapping[str, Any],
    *,
    model: str | None = None,
    policy: Policy | str | None = None,
    tools: Sequence[Any] | None = None,
    definitions: tuple[Any, ...] | None = None,
    format: str | None = None,
    extra_tokens: int | None = None,
    trusts_first_usage: bool | None = None,
    counter: Counter | None = None,
) -> Setup:
    """The setup for stored settings, changed by the arguments that are given.

    `tools` replace the stored tools. `definitions` are the tools that the caller gave to the same session object
    earlier. If another process has stored other tools since then, the size of the larger set of tools is used.
    `counter` replaces the model's token counter. It is not used if the policy chooses another kind of counter.
    """
    if policy is None:
        chosen = Policy(**read_knobs(row["policy"], "the record")) if row else Policy.preset(DEFAULT_POLICY)
    else:
        chosen = policy_of(policy)
    check_type(extra_tokens or 0, int, "extra_tokens", hint="pass a number of tokens")
    if extra_tokens is not None and extra_tokens < 0:
        raise ConfigError(f"extra_tokens must not be negative: {extra_tokens}", hint="pass 0 or more")
    if counter is not None and not callable(getattr(counter, "count", None)):
        hint = "pass an object with the members of foldline.measure.estimator.Counter: name, exact, count(text)"
        raise ConfigError(f"not a counter: {type(counter).__name__}", hint=hint)
    if model is not None and not isinstance(model, str):
        raise ConfigError(f'model must be a string such as "claude-sonnet-5", not {type(model).__name__}')
    known = model_of(row.get("model", "") if model is None else model)
    given = row.get("format", "") if format is None else format
    if given and given not in REQUEST_FORMATS:
        raise ConfigError(f"unknown wire format {given!r}", hint=f"use one of {', '.join(REQUEST_FORMATS)}")
    usual = known.format or DEFAULT_FORMAT
    used = given or usual
    measured = chosen.counter == "model"
    if counter is None or not measured:
        counter = counter_for(known.name, kind=chosen.counter)
    framing = _framing(used, known) if measured else TEXT_ONLY
    window = chosen.window_tokens or known.window
    reply = min(known.reply, window // 4) if chosen.reply_tokens is None else chosen.reply_tokens
    usable = window - reply - chosen.reserve_tokens
    if usable <= 0:
        raise no_usable_window(window, reply, chosen.reserve_tokens)
    arrival_limits = [chosen.prune_arrival_tokens, 1 << 62]
    if chosen.prune_arrival_ratio is not None:
        arrival_limits.append(max(1, int(chosen.prune_arrival_ratio * usable)))
    limits = grammar_of(usual).limits
    if tools is not None:
        definitions = json_tools(tools)
    size = 0 if definitions is None else tools_tokens(definitions, counter, framing)
    is_replaced = tools is not None or (model is not None and definitions is not None)
    stored, stored_key = 0 if is_replaced else row.get("tools", 0), row.get("tools_key", "")
    tools_key = stored_key if definitions is None else tools_hash(definitions)
    return Setup(
        model=known,
        policy=chosen,
        format=used,
        format_known=bool(given),
        tools=max(stored, size),
        definitions=() if definitions is None and not stored else definitions,
        tools_key=tools_key,
        stored_tools_key=stored_key if tools is None else tools_key,
        has_recall=row.get("recall", False) if tools is None else has_recall_tool(definitions or ()),
        extra=row.get("extra", 0) if extra_tokens is None else extra_tokens,
        trusts_first_usage=row.get("trusts_first_usage", False) if trusts_first_usage is None else trusts_first_usage,
        counter=counter,
        framing=framing,
        measured=measured,
        window=window,
        assumption="" if chosen.window_tokens else _assumption(known),
        usable=usable,
        arrival_limit=min(limit for limit in arrival_limits if limit is not None),
        media=MediaAllowance(
            max_count=limits.media,
            max_bytes=limits.media_bytes,
            max_total_bytes=bytes_for_media(limits.total_bytes, usable),
            max_pixels=limits.pixels,
            many_images=limits.many_images,
            max_pixels_of_many=limits.pixels_of_many,
        ),
    )


def _framing(format: str, model: Model) -> Framing:
    """The tokens that a provider adds to messages in this format.

    Thinking can be sent only in the format in which the model wrote it. So thinking in other formats is not counted.
    """
    others = frozenset(REQUEST_FORMATS) - {element_format(format)}
    return replace(framing_of(format, model.media), unsent_thinking=others)


def _assumption(model: Model) -> str:
    """The reason why the window of a model is a guess; "" if it is known."""
    similar = misspelled_name(model.name) if model.is_window_known else similar_name(model.name) if model.name else ""
    if model.is_window_known and (not similar or " from " in model.source):  # the user's table names this model
        return ""
    named = f"the model {model.name!r} is unknown" if model.name else "no model was named"
    meant = f" (did you mean {similar}?)" if similar else ""
    return f"{named}{meant}; set window_tokens if its window is not {model.window:,} tokens"
