"""Finds what a caller can change if a view does not fit: a setting of the policy, or the block that is too large."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil
from typing import Any

from foldline.errors import ViewTooLarge
from foldline.plan.gate import Load
from foldline.policy import Policy

_NEVER_FOLDS = "this policy never folds"
_FOLD_RULE = "fold when request > 80%"
_KNOBS: tuple[dict[str, Any], ...] = (
    {"rules": (_FOLD_RULE,)},
    {"keep_hard": False},
    {"keep_first_prompt": False},
    {"digest_tokens": 500},
    {"leave": "marker"},
)
"""Changes to a policy that make a view smaller, in the order in which they are tried.

The first changes lose the least.
"""
_WINDOW_PER_TOKEN = 1.7
"""To make room for one more token of messages, the window must grow by this many tokens.

The number is above 1, because the tokens reserved for reply and digest grow with the window.
"""
_OF_BLOCK = {
    "system": "shorten the system messages",
    "tools": "send fewer or shorter tools",
    "pins": "unpin messages",
    "digest": "lower digest_tokens",
    "history": "shorten the newest messages",
}


def too_large(  # noqa: PLR0913 (all are named at the call)
    load: Load,
    policy: Policy,
    *,
    blocks: Mapping[str, int],
    tokens: int,
    fits: Callable[[Policy], bool],
    pins: Mapping[str, int],
) -> ViewTooLarge:
    """The error for a view that does not fit. `tokens` is the size of the view, including the margin.

    `fits` tells whether the view would fit under another policy. The first change in `_KNOBS` that helps becomes the
    hint. If no change helps, the hint names a pin without which the view would fit. `pins` maps the names of pins to
    their tokens.
    """
    folds = can_fold(policy)
    knobs = [knobs for knobs in _KNOBS if ("rules" in knobs) != folds and _differs(policy, knobs)]
    help_by_knob = next((_setting(knobs) for knobs in knobs if fits(policy.but(**knobs))), "")
    largest = max(_OF_BLOCK, key=lambda name: blocks.get(name, 0))
    window = f"raise window_tokens by {ceil((tokens - load.usable) * _WINDOW_PER_TOKEN):,}"
    remedy = f"{help_by_knob or _unpin(pins, tokens - load.usable) or _OF_BLOCK[largest]}, or {window}"
    hint = remedy if folds else f"{_NEVER_FOLDS}: {remedy}"
    return ViewTooLarge(tokens, load.usable, {**blocks, "margin": tokens - sum(blocks.values())}, hint=hint)


def _unpin(pins: Mapping[str, int], excess: int) -> str:
    """The advice to remove the largest pin; "" if the view would still not fit after that."""
    name, tokens = max(pins.items(), key=lambda pin: pin[1], default=("", 0))
    return f"unpin {name!r} ({tokens:,} tokens)" if tokens >= excess > 0 else ""


def can_fold(policy: Policy) -> bool:
    """Whether any rule of the policy folds."""
    return any(rule.action in {"fold", "clip"} for rule in policy.rules)


def _differs(policy: Policy, knobs: Mapping[str, Any]) -> bool:
    """Whether these settings would change the policy. A larger `digest_tokens` does not count as a change."""
    if "digest_tokens" in knobs:
        return policy.leave == "digest" and policy.digest_tokens > knobs["digest_tokens"]
    if knobs.get("leave") == "marker":
        return policy.leave == "digest"
    return any(getattr(policy, name) != value for name, value in knobs.items())


def _setting(knobs: Mapping[str, Any]) -> str:
    values = {name: value[0] if isinstance(value, tuple) else value for name, value in knobs.items()}
    return ", ".join(f"set {name} to {value!r}" for name, value in values.items())
