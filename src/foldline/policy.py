"""The policy: all settings (knobs) of foldline.

A policy is checked when it is created. So an impossible setting raises an error before a session starts. A floor is a
minimum that a fold must keep, such as a number of newest tokens (`keep_tokens`). Presets are named policies
(`presets.toml`). Three presets are foldline's own. The other six implement five published designs; one design has two
presets.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from foldline.errors import ConfigError

Basis = Literal["request", "history", "count", "cost"]
Action = Literal["warn", "fold", "clip", "pause"]
Atom = Literal["message", "step", "turn"]
Snap = Literal["forward", "backward"]
COUNTERS = ("model", "estimate", "chars/4", "chars/3.6", "words")
"""The allowed values of `Policy.counter`.

`model` means the model's own tokenizer if it is installed, otherwise the estimator.
"""
Leave = Literal["digest", "marker", "nothing"]

ENVIRONMENT = "FOLDLINE_"
"""Prefix of the environment variables that set a knob: `FOLDLINE_KEEP_TOKENS=8000`."""
ENVIRONMENT_LAYER = "environment"
"""The name of the layer of knobs that environment variables set."""

_RULE = re.compile(
    r"(?P<action>\w+) when (?P<basis>\w+) (?P<sign>>=|>) "
    r"(?P<number>[\d_,]+(?:\.\d+)?)(?P<percent> ?%)?(?P<latched> latched)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A condition and the action that the gate takes if the condition is true. A rule can be written as a sentence.

    >>> Rule.parse("fold when request > 75%")
    Rule(action='fold', basis='request', ratio=0.75, limit=None, strict=True, latched=False)
    >>> str(Rule.parse("clip when history >= 100,000 latched"))
    'clip when history >= 100,000 latched'

    `request` and `history` are in tokens, or in per cent of the usable window. `count` is in messages. `cost` is a
    ratio in per cent: the cost of the foldable messages in all requests since the last fold, divided by the cost of a
    fold.
    """

    action: Action
    basis: Basis
    ratio: float | None = None
    limit: int | None = None
    strict: bool = True
    latched: bool = False

    def __post_init__(self) -> None:
        _one_of("action of a rule", self.action, get_args(Action))
        _one_of("basis of a rule", self.basis, get_args(Basis))
        if (self.ratio is None) == (self.limit is None):
            raise ConfigError("a rule needs a ratio or a limit", hint='write "fold when request > 75%" or "… > 60000"')
        if self.ratio is not None and not self.ratio > 0:
            raise ConfigError(f"a rule's ratio must be above 0, not {self.ratio}")
        if self.ratio is not None and self.ratio > 1 and self.basis != "cost":
            raise ConfigError(
                f"'{self}' can never apply: the {self.basis} is at most 100% of the usable window",
                hint="lower the percentage to 100% or less",
            )
        if self.limit is not None and self.limit <= 0:
            raise ConfigError(f"a rule's limit must be above 0, not {self.limit}")
        if self.basis == "count" and self.limit is None:
            raise ConfigError(
                "a rule on 'count' needs a whole number of messages as its limit", hint='write "fold when count > 40"'
            )
        if self.basis == "cost" and self.ratio is None:
            raise ConfigError("a rule on cost needs a percentage", hint='write "fold when cost >= 100%"')

    @classmethod
    def parse(cls, text: str) -> Rule:
        """The rule that a sentence describes."""
        found = _RULE.fullmatch(" ".join(text.split()))
        if found is None:
            raise ConfigError(f"not a rule: {text!r}", hint='write "fold when request > 75%"')
        number = found["number"].replace(",", "").replace("_", "")
        if not found["percent"] and not number.isdecimal():
            raise ConfigError(f"not a whole number in rule {text!r}", hint="add % for a share of the usable window")
        return cls(
            action=found["action"],  # type: ignore[arg-type]  # `__post_init__` checks the value
            basis=found["basis"],  # type: ignore[arg-type]
            ratio=round(float(number) / 100, 9) if found["percent"] else None,
            limit=None if found["percent"] else int(number),
            strict=found["sign"] == ">",
            latched=bool(found["latched"]),
        )

    def __str__(self) -> str:
        amount = f"{self.limit:,}" if self.ratio is None else f"{self.ratio:.4%}".rstrip("0%").rstrip(".") + "%"
        return f"{self.action} when {self.basis} {'>' if self.strict else '>='} {amount}{' latched' * self.latched}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """All knobs. `None` means that the value is taken from the model, or that there is no limit.

    The default has no rules, so it never folds. For a policy that folds, change a preset:
    `Policy.preset("balanced").but(…)`.
    """

    # Window
    window_tokens: int | None = None
    """The model's window in tokens. Default: from the model table."""
    reply_tokens: int | None = None
    """Tokens reserved for the reply. Default: the model's longest reply, at most a quarter of its window."""
    reserve_tokens: int = 0
    """Tokens reserved in addition to the reply."""
    counter: str = "model"
    """How text is counted: `model` (exact if a tokenizer is installed), `estimate`, `chars/4`, `chars/3.6`, `words`."""

    # When to fold
    rules: tuple[Rule, ...] = ()
    """When to act. If several rules fire, the strongest action is taken: `fold` or `clip`, then `pause`, then `warn`. A
    list of sentences such as `["fold when request > 75%"]` is accepted too.
    """

    # Where to cut
    atom: Atom = "step"
    """The unit that is never split: a message with its results, a step, or a turn."""
    snap: Snap = "backward"
    """What happens to an atom (see `atom`) if a floor in tokens protects only a part of the atom. `backward` keeps the
    whole atom, `forward` folds the whole atom.
    """
    keep_tokens: int = 0
    """Floor: number of newest tokens that stay verbatim."""
    keep_ratio: float = 0.0
    """Floor: number of newest tokens that stay verbatim, as a share of the usable window. The larger of `keep_tokens`
    and `keep_ratio` applies.

    If this floor protects only a part of an atom (see `atom`), and the whole atom would make the view larger than
    `target_ratio`, the atom is folded, even with `snap="backward"`.
    """
    keep_messages: int = 0
    """Floor: number of newest messages that stay."""
    keep_turns: int = 0
    """Floor: number of newest turns that stay."""
    keep_first_prompt: bool = False
    """Keeps the first prompt, which is usually the task, in every view."""
    keep_hard: bool = False
    """What happens if the view does not fit. `True` raises an error. `False` lowers the floors, down to the newest
    step.
    """
    target_ratio: float = 0.0
    """The size of the view after a fold, as a share of the usable window. 0: fold every message that no floor protects.
    """
    min_gain_tokens: int = 0
    """While the request fits, foldline makes a fold only if the fold frees at least this many tokens. A value above the
    window means that foldline folds only if the request does not fit.
    """
    min_gain_ratio: float = 0.0
    """Like `min_gain_tokens`, but as a share of the tokens in the folded messages."""

    # Digest
    leave: Leave = "digest"
    """What replaces the folded messages: a digest, a one-line marker, or nothing."""
    digest_tokens: int = 2_000
    """The largest size of a digest, in tokens."""
    digest_role: Literal["user", "system"] = "user"
    """The role of the digest message. Avoid `system`, because models may take the digest for instructions."""
    digest_header: str = "[session digest — older turns condensed]"
    """The first line of the digest."""
    digest_form: Literal["sections", "cumulative"] = "sections"
    """What a model is asked to write: a digest in fixed sections, or an update of the earlier summary."""
    digest_system_prompt: str = ""
    """The system prompt for the model that writes digests, if `digest_form` is cumulative. Empty: foldline's own."""
    digest_user_prompt: str = ""
    """Like `digest_system_prompt`, for the user prompt. `{messages}` is replaced by the folded messages, and
    `{previous_summary}` by the earlier summary.
    """
    digest_model: str = ""
    """The model that writes digests. Empty: the digester's own model."""
    digest_seconds: int = 120
    """The time limit in seconds for a digest by a model, including all its requests."""
    digest_shared: bool = False
    """Begins the digest request with the session's view if the provider's cache makes such a request cheaper."""
    coverage_ratio: float = 0.5
    """The smallest share of the facts in the folded messages that a digest by a model must contain. If the digest
    contains less, foldline adds names, paths and numbers that the digest lacks, as far as `digest_tokens` allows.
    """
    on_failure: Literal["local", "keep"] = "local"
    """What happens if a model fails to write a digest.

    `local` writes the digest without a model. `keep` makes no fold while the request fits.
    """
    background: bool = True
    """Makes folds in the background if the session has a ledger. A request that does not fit is folded at once."""
    cooldown_messages: int = 8
    """After a failed fold, foldline waits for this many new messages. A request that does not fit is folded at once."""

    # Pruning
    prune_arrival_tokens: int | None = None
    """Tool results of this many tokens or more become stubs before they are sent for the first time."""
    prune_arrival_ratio: float | None = None
    """Like `prune_arrival_tokens`, as a share of the usable window."""
    prune_fold_tokens: int | None = None
    """At a fold, results of this many tokens or more in the kept messages become stubs, unless a floor protects them.
    """
    prune_superseded: bool = False
    """At a fold, if a file was read twice, the result of the earlier read becomes a stub."""
    prune_repeats: bool = False
    """At a fold, content that occurs again later is replaced by a reference to the later occurrence."""
    prune_protect: tuple[str, ...] = ()
    """Tools whose results are never pruned."""
    preview_chars: int = 1_600
    """The number of characters that a stub shows at most."""
    preview_lines: int = 24
    """The number of lines that a stub shows at most. `preview_chars` limits a stub, too."""

    # Sending
    bound_thinking: Literal["strip", "drop_block"] = "strip"
    """What happens to a signed thinking block if a fold changes the messages before it.

    Some providers refuse such a block. `strip` leaves the block out, and `drop_block` asks the provider to drop it.
    """
    breakpoints: int = 4
    """The largest number of cache breakpoints in a request. 0: no breakpoints."""
    continue_max: int = 2
    """If a reply reaches its length limit, the model is asked to continue, at most this many times in a row."""

    def __post_init__(self) -> None:
        for name, hint in _types().items():
            value = _read(name, getattr(self, name), hint, "Policy")
            object.__setattr__(self, name, value)
            if get_origin(hint) is Literal:
                _one_of(name, value, get_args(hint))
            elif name.endswith("_ratio") and value is not None and not 0 <= value <= 1:
                raise ConfigError(f"{name} must be between 0 and 1, not {value}")
            elif isinstance(value, int) and not isinstance(value, bool) and value < 0:
                raise ConfigError(f"{name} must be 0 or more, not {value}")
        above = ("window_tokens", "preview_chars", "preview_lines", "prune_arrival_tokens", "prune_fold_tokens")
        for name in (*above, "digest_seconds"):
            if getattr(self, name) == 0:
                raise ConfigError(f"{name} must be at least 1", hint="omit the setting to switch it off")
        if self.breakpoints > 4:
            raise ConfigError("breakpoints must be at most 4", hint="providers refuse requests with more breakpoints")
        if self.digest_user_prompt and "{messages}" not in self.digest_user_prompt:
            raise ConfigError("digest_user_prompt has no {messages}", hint="add {messages} for the conversation")
        if (self.digest_system_prompt or self.digest_user_prompt) and self.digest_form != "cumulative":
            raise ConfigError(
                f"digest_form {self.digest_form} uses fixed prompts, so you cannot set prompts of your own with it",
                hint='to use your own prompts, set digest_form = "cumulative"',
            )
        _one_of("counter", self.counter, COUNTERS)
        _check_window(self)
        _check_gain(self)

    def __new__(cls, **knobs: Any) -> Self:
        """A new policy. For an unknown knob, raises `ConfigError` with a hint that names the most similar knob."""
        _refuse_unknown(knobs, "Policy")
        return object.__new__(cls)

    @classmethod
    def preset(cls, name: str) -> Policy:
        """The preset with this name."""
        presets = _presets()
        if name not in presets:
            raise ConfigError(f"unknown preset {name!r}", hint=f"use one of {', '.join(presets)}")
        return cls(**read_knobs(presets[name], f"preset {name}"))

    def but(self, **knobs: Any) -> Policy:
        """The same policy with new values for some knobs."""
        return replace(self, **read_knobs(knobs, "arguments"))

    def __str__(self) -> str:
        return format_policy(self, {})


def presets() -> tuple[str, ...]:
    """The names of all presets."""
    return tuple(_presets())


def load(layers: Iterable[tuple[str, Mapping[str, Any]]], *, preset: str = "balanced") -> tuple[Policy, dict[str, str]]:
    """A policy from several layers of knobs, and the layer that set each knob. Later layers override earlier ones.

    A layer may name a preset (`preset = "thrifty"`). The policy starts from the preset that is named last; then the
    knobs of all layers are applied.
    """
    named = [(source, dict(layer)) for source, layer in layers]
    for _, layer in named:
        preset = layer.pop("preset", None) or preset
    policy = Policy.preset(preset)
    sources = dict.fromkeys(_presets()[preset], f"preset {preset}")
    values: dict[str, Any] = {}
    for source, layer in named:
        values |= read_knobs(layer, source)
        sources |= dict.fromkeys(layer, source)
    try:
        return replace(policy, **values), sources
    except ConfigError as error:
        source = sources.get(error.message.partition(" ")[0], "")
        raise ConfigError(f"{source}: {error.message}" if source else error.message, hint=error.hint) from None


def file_knobs(path: Path) -> dict[str, Any]:
    """The knobs in a TOML file: the entries of its table `policy`, or all entries if the file has no such table."""
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot read the policy file {path}: {error}") from None
    values = found.get("policy", found)
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: [policy] must be a table of knobs")
    return values


def environment_knobs(environment: Mapping[str, str]) -> dict[str, Any]:
    """The knobs that environment variables set."""
    names = {f"{ENVIRONMENT}{name.upper()}": name for name in (*_types(), "preset")}
    return {names[key]: value for key, value in environment.items() if key in names}


def read_knobs(values: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Values from a file or from environment variables, converted to the types of the knobs."""
    types = _types()
    _refuse_unknown(values, source)
    return {name: _read(name, value, types[name], source) for name, value in values.items()}


def _refuse_unknown(names: Iterable[str], source: str) -> None:
    """Raise `ConfigError` if a name is not the name of a knob."""
    types = _types()
    for name in names:
        if name not in types:
            raise ConfigError(f"{source}: unknown knob {name!r}", hint=suggest_name(name, types))


def format_policy(policy: Policy, sources: Mapping[str, str]) -> str:
    """The policy as a table: knob, value, and source of the value."""
    names = [knob.name for knob in fields(policy)]
    rows = [(name, format_value(getattr(policy, name)), sources.get(name, "default")) for name in names]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join(f"{name:<{widths[0]}}  {value:<{widths[1]}}  {source}".rstrip() for name, value, source in rows)


def format_value(value: Any) -> str:
    """A knob's value as text."""
    if isinstance(value, tuple):
        return "; ".join(map(str, value)) or "-"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "-" if value is None else str(value)


@cache
def _types() -> dict[str, Any]:
    return get_type_hints(Policy)


@cache
def _presets() -> dict[str, dict[str, Any]]:
    return tomllib.loads(files("foldline").joinpath("presets.toml").read_text("utf-8"))


def suggest_name(name: str, names: Iterable[str]) -> str:
    """A hint for an unknown name: the most similar known name."""
    from difflib import get_close_matches  # noqa: PLC0415  # imported only to make an error message

    near = get_close_matches(name, list(names), n=1)
    return f"did you mean {near[0]}?" if near else "see the policy reference for all knobs"


def _read(name: str, value: Any, hint: Any, source: str) -> Any:
    """A value converted to the type of the knob. Text is parsed; a value of a wrong type raises `ConfigError`."""
    kinds = get_args(hint) if get_origin(hint) is UnionType else (hint,)
    if value is None or (isinstance(value, str) and NoneType in kinds and value.lower() in {"none", ""}):
        if NoneType in kinds:
            return None
        raise ConfigError(f"{source}: {name} needs a value")
    kind = next(kind for kind in kinds if kind is not NoneType)
    try:
        return _convert(value, kind)
    except (TypeError, ValueError) as error:
        place = f"{ENVIRONMENT}{name.upper()}" if source == ENVIRONMENT_LAYER else f"{source}: {name}"
        raise ConfigError(f"{place} cannot be {value!r} ({error})") from None


def _convert(value: Any, kind: Any) -> Any:
    if get_origin(kind) is tuple:
        items = value.split(";") if isinstance(value, str) else value
        return tuple(_convert(item.strip() if isinstance(item, str) else item, get_args(kind)[0]) for item in items)
    if kind is Rule:
        return value if isinstance(value, Rule) else Rule.parse(str(value))
    if kind is bool:
        words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in words:
            return words[value.lower()]
        raise ValueError("it must be true or false")
    if kind is int:
        if isinstance(value, (bool, float)):
            raise ValueError("it must be a whole number")
        return _number(int, str(value).replace("_", "").replace(",", ""), "it must be a whole number, such as 8000")
    if kind is float:
        if isinstance(value, bool):
            raise ValueError("it must be a number")
        return _number(float, value, "it must be a number, such as 0.5")
    if not isinstance(value, str):
        raise TypeError("it must be text")
    return value


def _number(kind: Callable[[Any], int | float], value: Any, advice: str) -> int | float:
    """The value as a number. If it is not a number, the error says what to write."""
    try:
        return kind(value)
    except ValueError:
        raise ValueError(advice) from None


def _one_of(what: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigError(f"{what} cannot be {value!r}", hint=f"use one of {', '.join(allowed)}")


def _check_window(policy: Policy) -> None:
    """Raise `ConfigError` if no usable window is left, or if `keep_tokens` exceeds the usable window.

    `ConfigError` is also raised if the target is above the limit of a rule.
    """
    if policy.window_tokens is not None and policy.window_tokens <= (policy.reply_tokens or 0) + policy.reserve_tokens:
        raise no_usable_window(policy.window_tokens, policy.reply_tokens or 0, policy.reserve_tokens)
    if policy.window_tokens is not None and policy.keep_hard:
        usable = policy.window_tokens - (policy.reply_tokens or 0) - policy.reserve_tokens
        if policy.keep_tokens > usable:
            what = f"keep_tokens {policy.keep_tokens} is larger than the usable window {usable}"
            raise ConfigError(what, hint="lower keep_tokens")
    for rule in policy.rules:
        if rule.action in {"fold", "clip"} and rule.basis != "cost" and policy.target_ratio > (rule.ratio or 1):
            raise ConfigError(
                f"target_ratio {policy.target_ratio} is above the limit of the rule '{rule}'",
                hint="lower target_ratio, so that the rule does not fire again right after a fold",
            )


def _check_gain(policy: Policy) -> None:
    """Raise `ConfigError` if `keep_ratio` or `min_gain_ratio` prevents folds, or if no digest could have a text."""
    if policy.keep_ratio == 1:
        raise ConfigError(
            "keep_ratio 1.0 keeps the whole usable window, so nothing can be folded",
            hint='lower keep_ratio; for a policy that never folds, use the preset "verbatim"',
        )
    if policy.leave != "nothing" and policy.min_gain_ratio == 1:
        raise ConfigError(
            f"min_gain_ratio 1.0 cannot be reached, because the {policy.leave} of a fold also needs tokens",
            hint='lower min_gain_ratio, or set leave = "nothing"',
        )
    if policy.leave == "digest" and policy.digest_tokens == 0:
        raise ConfigError(
            "digest_tokens must be at least 1, because a digest replaces the folded messages",
            hint='raise digest_tokens, or set leave = "marker" or leave = "nothing"',
        )


def no_usable_window(window: int, reply: int, reserve: int) -> ConfigError:
    """The error for a window in which no token is left for the request, because all tokens are reserved."""
    what = f"reply_tokens {reply:,} and reserve_tokens {reserve:,} leave nothing of a window of {window:,} tokens"
    return ConfigError(what, hint="lower reply_tokens or reserve_tokens, or raise window_tokens")
