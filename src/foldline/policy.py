"""Every knob of foldline, once: what to measure, when to fold, where to cut, what to keep, what stands in its place.

A policy is data. It is checked when it is made, so that a setting that cannot work is an error at the start and not a
surprise in the middle of a session. Presets are policies with a name (`presets.toml`): the six of the designs that
foldline unites, and three of its own.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from foldline.errors import ConfigError

Basis = Literal["request", "history", "count", "cost"]
Action = Literal["warn", "fold", "clip", "pause"]
Atom = Literal["message", "step", "turn"]
Snap = Literal["forward", "backward"]
Leave = Literal["digest", "marker", "nothing"]
Failure = Literal["local", "keep"]

ENVIRONMENT = "FOLDLINE_"
"""Prefix of the environment variables that set a knob: `FOLDLINE_KEEP_TOKENS=8000`."""

_RULE = re.compile(
    r"(?P<action>\w+) when (?P<basis>\w+) (?P<sign>>=|>) "
    r"(?P<number>[\d_,]+(?:\.\d+)?)(?P<percent> ?%)?(?P<latched> latched)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One test of the gate, written as a sentence.

    >>> Rule.parse("fold when request > 75%")
    Rule(action='fold', basis='request', ratio=0.75, limit=None, strict=True, latched=False)
    >>> str(Rule.parse("clip when history >= 100,000 latched"))
    'clip when history >= 100,000 latched'

    `request` and `history` are in tokens, or in per cent of the usable window; `count` is in messages; `cost` is in per
    cent of the price of folding that has been paid as rent.
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
        if self.limit is not None and self.limit <= 0:
            raise ConfigError(f"a rule's limit must be above 0, not {self.limit}")
        if self.basis == "count" and self.limit is None:
            raise ConfigError("a rule on count needs a number of messages", hint='write "fold when count > 40"')
        if self.basis == "cost" and self.ratio is None:
            raise ConfigError("a rule on cost needs per cent", hint='write "fold when cost >= 100%"')

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Read a rule from its sentence."""
        found = _RULE.fullmatch(" ".join(text.split()))
        if found is None:
            raise ConfigError(f"not a rule: {text!r}", hint='write "fold when request > 75%"')
        number = found["number"].replace(",", "").replace("_", "")
        if not found["percent"] and not number.isdecimal():
            raise ConfigError(f"not a whole number in rule {text!r}", hint="add % for a share of the usable window")
        return cls(
            action=found["action"],  # type: ignore[arg-type]  # checked when it is made
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
    """All knobs. `None` means: from the model, or no such bound."""

    # What there is to fill
    window_tokens: int | None = None
    """The model's window; by default from the model table. A number given here always wins."""
    reply_tokens: int | None = None
    """Kept free for the reply; by default the model's longest reply, at most a quarter of its window."""
    reserve_tokens: int = 0
    """Kept free beside the reply."""
    counter: str = "model"
    """How text is counted: `model` (exact where installed, else the estimator), `chars/4`, `chars/3.6` or `words`."""

    # When
    rules: tuple[Rule, ...] = ()
    """The gate. The first rule that asks for most decides; a request above the usable window is HARD in any case."""

    # Where
    atom: Atom = "step"
    """What may not be split: a message with its results, a step, or a turn."""
    snap: Snap = "backward"
    """Where a floor falls inside an atom: `backward` keeps the atom (at least the floor), `forward` drops it."""
    keep_tokens: int = 0
    """Newest tokens that stay word for word."""
    keep_ratio: float = 0.0
    """The same as a share of the usable window; the larger floor wins."""
    keep_messages: int = 0
    """Newest messages that stay."""
    keep_turns: int = 0
    """Newest turns that stay."""
    keep_first_prompt: bool = False
    """The first thing the user asked is pinned: it is usually the task."""
    keep_hard: bool = False
    """The floors above hold even when the view then does not fit (it is refused). Else they yield down to one step."""
    target_ratio: float = 0.0
    """Where a fold lands, as a share of the usable window: no more leaves than reaches it. 0: down to the floors."""
    min_gain_tokens: int = 0
    """A fold that frees less than this is not made."""
    min_gain_ratio: float = 0.0
    """The same as a share of what the fold covers."""

    # What stands in its place
    leave: Leave = "digest"
    """What stands for the folded part: a digest, a one-line marker, or nothing."""
    digest_tokens: int = 2_000
    """The digest's cap."""
    digest_role: Literal["user", "system"] = "user"
    """Who says the digest. `system` turns old talk into orders, and only the preset that documents it does so."""
    digest_header: str = "[session digest — older turns condensed]"
    """The digest's first line."""
    digest_form: Literal["sections", "cumulative"] = "sections"
    """How a model is asked: for the documented sections, or for a running summary brought up to date."""
    digest_model: str = ""
    """The model that writes digests, where a digester is given; empty: the digester's own."""
    digest_seconds: int = 120
    """How long a model's digest may take, all its requests together."""
    digest_shared: bool = False
    """Ask behind the session's own view where the provider's cache makes that cheaper than sending it anew."""
    coverage_ratio: float = 0.5
    """The share of facts a model's digest must show; missing ones are added below it, within the cap."""
    on_failure: Failure = "local"
    """What a failed model's digest leads to: a `local` one, or everything stays (`keep`) while it still fits."""
    background: bool = True
    """A fold that can wait for a model's digest is made meanwhile, where a ledger is; what must fit does not wait."""
    cooldown_messages: int = 8
    """After a fold was refused, so many messages pass before the next is tried; what no longer fits does not wait."""

    # What is too large
    prune_arrival_tokens: int | None = None
    """A result this large becomes a stub before it is ever sent."""
    prune_arrival_ratio: float | None = None
    """The same as a share of the usable window."""
    prune_fold_tokens: int | None = None
    """At a fold, kept results this large and older than the floors become stubs."""
    prune_superseded: bool = False
    """At a fold, an older read of a file that was read again becomes a stub."""
    prune_repeats: bool = False
    """At a fold, content that stands there word for word a second time is referenced instead."""
    prune_protect: tuple[str, ...] = ()
    """Tools whose results are never pruned."""
    preview_chars: int = 1_600
    """How much of a pruned result its stub shows."""
    preview_lines: int = 24
    """The same in lines; the shorter one wins."""

    # Sending
    breakpoints: int = 4
    """Cache breakpoints placed at most; 0 places none."""
    continue_max: int = 2
    """How often a reply that stopped at its length limit is asked to go on."""

    def __post_init__(self) -> None:
        _check(self)

    @classmethod
    def preset(cls, name: str) -> Policy:
        """A policy by its name."""
        presets = _presets()
        if name not in presets:
            raise ConfigError(f"no preset is called {name!r}", hint=f"use one of {', '.join(presets)}")
        return cls(**read_knobs(presets[name], f"preset {name}"))

    def but(self, **knobs: Any) -> Policy:
        """The same policy with other values for some knobs."""
        return replace(self, **read_knobs(knobs, "arguments"))

    def __str__(self) -> str:
        return table(self, {})


def presets() -> tuple[str, ...]:
    """The names of all presets."""
    return tuple(_presets())


def load(layers: Iterable[tuple[str, Mapping[str, Any]]], *, preset: str = "balanced") -> tuple[Policy, dict[str, str]]:
    """A policy from named layers of knobs, later ones winning, and for each knob the layer its value came from.

    A layer may name a preset (`preset = "thrifty"`): the last one named is what all layers change.
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
    return replace(policy, **values), sources


def file_knobs(path: Path) -> dict[str, Any]:
    """The knobs that a TOML file sets: those of its table `policy`, or all it holds where it has none."""
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot read the policy file {path}: {error}") from None
    values = found.get("policy", found)
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: [policy] must be a table of knobs")
    return values


def environment_knobs(environment: Mapping[str, str]) -> dict[str, Any]:
    """The knobs that an environment sets."""
    names = {f"{ENVIRONMENT}{name.upper()}": name for name in (*_types(), "preset")}
    return {names[key]: value for key, value in environment.items() if key in names}


def read_knobs(values: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Values as they stand in a file or an environment, in the types the knobs have."""
    types = _types()
    unknown = [name for name in values if name not in types]
    if unknown:
        raise ConfigError(f"{source}: no knob is called {unknown[0]!r}", hint=nearest(unknown[0], types))
    return {name: _read(name, value, types[name], source) for name, value in values.items()}


def table(policy: Policy, sources: Mapping[str, str]) -> str:
    """The policy as a table: knob, value, and where the value comes from."""
    rows = [
        (knob.name, shown(getattr(policy, knob.name)), sources.get(knob.name, "default")) for knob in fields(policy)
    ]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join(f"{name:<{widths[0]}}  {value:<{widths[1]}}  {source}".rstrip() for name, value, source in rows)


def shown(value: Any) -> str:
    """A knob's value for people."""
    if isinstance(value, tuple):
        return "; ".join(str(item) for item in value) or "-"
    return (
        "-" if value is None else f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    )


@cache
def _types() -> dict[str, Any]:
    return get_type_hints(Policy)


@cache
def _presets() -> dict[str, dict[str, Any]]:
    return tomllib.loads(files("foldline").joinpath("presets.toml").read_text("utf-8"))


def nearest(name: str, names: Iterable[str]) -> str:
    """What somebody may have meant who wrote a name that does not exist."""
    from difflib import get_close_matches  # noqa: PLC0415  # only when something went wrong

    near = get_close_matches(name, list(names), n=1)
    return f"did you mean {near[0]}?" if near else "see the policy reference for all knobs"


def _read(name: str, value: Any, hint: Any, source: str) -> Any:
    """One value in the knob's type; text (from an environment) is converted, everything else must fit."""
    kinds = get_args(hint) if get_origin(hint) is UnionType else (hint,)
    if value is None or (isinstance(value, str) and NoneType in kinds and value.lower() in {"none", ""}):
        if NoneType in kinds:
            return None
        raise ConfigError(f"{source}: {name} needs a value")
    kind = next(kind for kind in kinds if kind is not NoneType)
    try:
        return _convert(value, kind)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{source}: {name} cannot be {value!r} ({error})") from None


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
        raise ValueError("true or false")
    if kind is int:
        if isinstance(value, (bool, float)):
            raise ValueError("a whole number")
        return int(str(value).replace("_", "").replace(",", ""))
    if kind is float:
        if isinstance(value, bool):
            raise ValueError("a number")
        return float(value)
    if not isinstance(value, str):
        raise TypeError("text")
    return value


def _one_of(what: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigError(f"{what} cannot be {value!r}", hint=f"use one of {', '.join(allowed)}")


def _check(policy: Policy) -> None:
    """Refuse what cannot work, in a sentence that says what to change."""
    for name, hint in _types().items():
        value = getattr(policy, name)
        if get_origin(hint) is Literal:
            _one_of(name, value, get_args(hint))
        elif name.endswith(("_ratio",)) and value is not None and not 0 <= value <= 1:
            raise ConfigError(f"{name} must be between 0 and 1, not {value}")
        elif isinstance(value, int) and not isinstance(value, bool) and value < 0:
            raise ConfigError(f"{name} cannot be negative, not {value}")
    above = ("window_tokens", "preview_chars", "preview_lines", "prune_arrival_tokens", "prune_fold_tokens")
    for name in (*above, "digest_seconds"):
        if getattr(policy, name) == 0:
            raise ConfigError(f"{name} must be at least 1", hint="leave it out to switch it off")
    if policy.breakpoints > 4:
        raise ConfigError("breakpoints cannot be more than 4", hint="providers refuse a fifth")
    _check_window(policy)


def _check_window(policy: Policy) -> None:
    """The trigger must lie between nothing and the window, and a fold must land below it."""
    window = policy.window_tokens
    if window is not None:
        reserved = (policy.reply_tokens or 0) + policy.reserve_tokens
        if policy.keep_hard and policy.keep_tokens > window - reserved:
            raise ConfigError("keep_tokens is larger than the usable window", hint="lower keep_tokens")
    for rule in policy.rules:
        if rule.action in {"fold", "clip"} and rule.basis != "cost" and policy.target_ratio > (rule.ratio or 1):
            raise ConfigError(
                f"target_ratio {policy.target_ratio} lies above the trigger of '{rule}'",
                hint="a fold must land below its trigger: lower target_ratio",
            )
