"""Policies for property tests: every preset in a window small enough to fold, and knobs nobody set together before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any, get_args

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from foldline.policy import Atom, Leave, Policy, Rule, Snap, presets

thorough = settings(
    max_examples=max(200, settings().max_examples),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
"""A few hundred examples with the suite, as many as the profile says in a night."""

_SEEN = {"squidbot": 5_000, "indus": 40_000, "ikigai": 150_000, "awaken": 60_000}
"""The window a preset's absolute numbers were made for, where that is not 100,000."""
_ABSOLUTE = (
    *("keep_tokens", "reserve_tokens", "min_gain_tokens", "digest_tokens", "prune_arrival_tokens"),
    *("prune_fold_tokens", "preview_chars"),
)


def small(name: str, window: int, **knobs: Any) -> Policy:
    """A preset in a small window: its shares as they are, its absolute numbers in proportion."""
    policy = Policy.preset(name)
    share = window / _SEEN.get(name, 100_000)
    scaled = {knob: max(1, int(value * share)) for knob in _ABSOLUTE if (value := getattr(policy, knob)) and share < 1}
    scaled["digest_tokens"] = max(60, scaled.get("digest_tokens", 60))
    rules = tuple(_scaled(rule, share) for rule in policy.rules)
    return policy.but(**{**scaled, "rules": rules, "window_tokens": window, "reply_tokens": 0, **knobs})


def _scaled(rule: Rule, share: float) -> Rule:
    return rule if rule.limit is None else replace(rule, limit=max(1, int(rule.limit * min(1, share))))


MODELS = ("", "claude-sonnet-5", "gpt-5", "gemini-2.5-pro")


@st.composite
def policies(draw: DrawFn, *, names: Sequence[str] = presets(), smallest: int = 300) -> Policy:
    """A preset in a window of a few hundred or thousand tokens."""
    return small(draw(st.sampled_from(names)), draw(st.integers(smallest, 6_000)))


def _together(**choices: Sequence[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Some knobs in one draw: a policy has many, and each draw costs time."""
    return st.sampled_from([dict(zip(choices, values, strict=True)) for values in product(*choices.values())])


_WHERE = _together(
    atom=get_args(Atom), snap=get_args(Snap), keep_messages=range(5), keep_turns=range(5), target_ratio=(0.0, 0.25, 0.5)
)
_WHAT = _together(
    counter=("model", "chars/4", "chars/3.6", "words"),
    leave=get_args(Leave),
    digest_tokens=(60, 200, 2_000),
    digest_role=("user", "system"),
    keep_first_prompt=(False, True),
    keep_hard=(False, False, True),
    min_gain_tokens=(0, 20, 200),
)
_PRUNE = _together(
    prune_arrival_tokens=(None, 1, 100),
    prune_fold_tokens=(None, 1, 100),
    prune_superseded=(False, True),
    prune_repeats=(False, True),
    prune_protect=((), ("run",)),
    preview_chars=(1, 50, 1_600),
    preview_lines=(1, 24),
    breakpoints=range(5),
)
_ACTIONS = ("fold", "clip", "warn", "pause")
_BOUNDS = ("request > 75%", "request >= 90%", "history > 50%", "history > {}", "count > 8", "cost >= 100%")
_RULES = st.lists(st.sampled_from([f"{action} when {bound}" for action in _ACTIONS for bound in _BOUNDS]), max_size=3)


@st.composite
def odd_policies(draw: DrawFn) -> Policy:
    """Knobs that nobody set together before."""
    window = draw(st.integers(300, 6_000))
    rules = tuple(Rule.parse(rule.format(window // 3)) for rule in draw(_RULES))
    keep = draw(st.sampled_from((0, 0, 0.25, 0.5)))
    return Policy(
        window_tokens=window,
        reply_tokens=draw(st.integers(0, window // 4)),
        rules=rules,
        keep_tokens=int(keep * window),
        keep_ratio=draw(st.sampled_from((0.0, 0.0, 0.3, 0.7, 0.99))),
        **draw(_WHERE),
        **draw(_WHAT),
        **draw(_PRUNE),
    )


models = st.sampled_from(MODELS)
FOLDING = tuple(name for name in presets() if name not in {"verbatim", "teaparty"})
"""The presets that ever fold."""
any_policy = policies() | odd_policies()
folding = policies(names=FOLDING) | odd_policies()
