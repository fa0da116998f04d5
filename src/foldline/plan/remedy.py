"""Finds what a caller can change if a view does not fit: a setting of the policy, or the block that is too large."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil
from typing import Any

from foldline.errors import ViewTooLarge
from foldline.plan.gate import HIDDEN, Load
from foldline.policy import Policy

_NEVER_FOLDS = "this policy never folds"
FOLDING_POLICY = 'Policy.preset("balanced").but(window_tokens=…)'
"""The policy that a hint recommends if the current one never folds.

`fit` and the command line replace this text by their own option.
"""
_FOLD_RULE = "fold when request > 80%"
_KNOBS: tuple[dict[str, Any], ...] = (
    {"rules": (_FOLD_RULE,)},
    {"keep_hard": False},
    {"keep_first_prompt": False},
    {"digest_tokens": 500},
    {"leave": "marker"},
)
"""Changes to a policy that make a view smaller, in the order in which they are tried.

The change that loses the least comes first.
"""
_OF_BLOCK = {
    "system": "shorten the system messages",
    "tools": "send fewer or shorter tools",
    "pins": "unpin messages",
    "history": "shorten the newest messages",
    HIDDEN: "shorten the hidden part (the system prompt and tools that are in no message)",
}
"""For each block, the advice for the case that this block is the largest.

The block `digest` is missing, because `_KNOBS` already tries a smaller digest, and a marker in place of the digest.
"""


def too_large(  # noqa: PLR0913 (all are keyword-only)
    load: Load,
    policy: Policy,
    *,
    blocks: Mapping[str, int],
    tokens: int,
    fits: Callable[[Policy, Load], bool],
    pins: Mapping[str, int],
) -> ViewTooLarge:
    """The error for a view that does not fit. `tokens` is the size of the view, including the margin.

    `fits` is a function that tells whether the view would fit with another policy or another usable window. The first
    change in `_KNOBS` that helps becomes the hint. If no change helps, the hint names a pin without which the view
    would fit. `pins` maps the names of pins to their tokens.
    """
    folds = can_fold(policy)
    knobs = [knobs for knobs in _KNOBS if ("rules" in knobs) != folds and _differs(policy, knobs)]
    help_by_knob = next((_setting(knobs) for knobs in knobs if fits(policy.but(**knobs), load)), "")
    largest = max(_OF_BLOCK, key=lambda name: blocks.get(name, 0))
    window = _window_advice(load, policy, fits if folds else lambda _, larger: larger.usable >= tokens)
    remedy = f"{help_by_knob or _unpin(pins, tokens - load.usable) or _OF_BLOCK[largest]}, or {window}"
    hint = remedy if folds else f"{_NEVER_FOLDS}: {remedy}"
    return ViewTooLarge(tokens, load.usable, {**blocks, "margin": tokens - sum(blocks.values())}, hint=hint)


def _window_advice(load: Load, policy: Policy, fits: Callable[[Policy, Load], bool]) -> str:
    """The advice to use a larger window, with the smallest window in which the view fits."""
    if not policy.window_tokens:
        return "use a model with a larger window"
    low, high = load.usable, 2 * load.usable
    while not fits(policy, load._replace(usable=high)):
        low, high = high, 2 * high
    while high - low > max(1, high // 100):
        middle = (low + high) // 2
        low, high = (low, middle) if fits(policy, load._replace(usable=middle)) else (middle, high)
    if policy.reply_tokens is not None:
        return f"raise window_tokens to {policy.window_tokens + high - load.usable:,}"
    return f"raise window_tokens to {ceil(policy.window_tokens * high / load.usable):,}"


def _unpin(pins: Mapping[str, int], excess: int) -> str:
    """The advice to remove the largest pin; "" if the view would still not fit after that."""
    name, tokens = max(pins.items(), key=lambda pin: pin[1], default=("", 0))
    return f"unpin {name!r} ({tokens:,} tokens)" if tokens >= excess > 0 else ""


def can_fold(policy: Policy) -> bool:
    """Whether any rule of the policy folds."""
    return any(rule.action in {"fold", "clip"} for rule in policy.rules)


def _differs(policy: Policy, knobs: Mapping[str, Any]) -> bool:
    """Whether these settings would change the policy.

    A new value for `digest_tokens` counts as a change only if it is lower than the old one.
    """
    if "digest_tokens" in knobs:
        return policy.leave == "digest" and policy.digest_tokens > knobs["digest_tokens"]
    if knobs.get("leave") == "marker":
        return policy.leave == "digest"
    return any(getattr(policy, name) != value for name, value in knobs.items())


def _setting(knobs: Mapping[str, Any]) -> str:
    if "rules" in knobs:
        return f"use {FOLDING_POLICY}"
    return ", ".join(f"set {name} to {value!r}" for name, value in knobs.items())
